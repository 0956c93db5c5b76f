/*
 * Makes the user's words fit to be shown in messages. What is wrong with them is found out elsewhere, as by argv.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "lib/rlock.h"
#include "options/usage.h"

char *usage_show(const char *text, char out[USAGE_SHOWN_MAX])
{
	char *copy = strdup(text);

	if (copy == NULL) {
		/* Better nothing than a password. */
		(void)snprintf(out, USAGE_SHOWN_MAX, "...");
		return out;
	}
	rlock_url_hide_password(copy);
	(void)rlock_escape(copy, strlen(copy), out, USAGE_SHOWN_MAX);
	free(copy);
	return out;
}

void usage_bad_value(const char *where, const char *value, const char *why)
{
	char shown[USAGE_SHOWN_MAX];

	if (value == NULL)
		message_error("%s: %s", where, why);
	else
		message_error("%s '%s': %s", where, usage_show(value, shown), why);
}
