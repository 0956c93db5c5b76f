/*
 * Helpers of test_url.c and the files beside it that test URLs. What is checked is said there.
 */
#include <stdio.h>
#include <string.h>

#include "rlock.h"

#include "urls.h"

struct rlock_url *parse_url(const char *text)
{
	char why[RLOCK_ERROR_MAX] = "";
	struct rlock_url *url = NULL;

	if (rlock_url_parse(text, &url, why) != RLOCK_OK)
		(void)printf("# %s: %s\n", text, why);
	return url;
}

bool is_one_clause(const char *why)
{
	size_t len = strlen(why);
	size_t i;

	for (i = 0; i < len; i++) {
		if ((unsigned char)why[i] < ' ' || (unsigned char)why[i] > '~')
			return false;
	}
	return len > 0 && (why[0] < 'A' || why[0] > 'Z') && why[len - 1] != '.';
}

const char *shown(const char *text)
{
	static char out[1024];

	return rlock_escape(text, strlen(text), out, sizeof(out));
}
