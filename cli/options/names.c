/*
 * Lock names and holders as messages show them: escaped, and cut where they are long. What the message says is left to
 * the callers, and which names are valid to the library.
 */
#include <stdio.h>
#include <string.h>

#include "options/names.h"

#define LONGEST_ESCAPE 64 /* less room than that is left empty */

char *names_show_one(const struct opts *opts, size_t index, char out[NAME_SHOWN_MAX])
{
	if (index >= opts->name_count)
		index = 0;
	return rlock_escape(opts->names[index].text, opts->names[index].len, out, NAME_SHOWN_MAX);
}

char *names_show(const struct rlock_name *names, size_t count, char out[NAMES_SHOWN_MAX])
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count && len + LONGEST_ESCAPE < NAMES_SHOWN_MAX; i++) {
		if (i > 0)
			out[len++] = ' ';
		(void)rlock_escape(names[i].text, names[i].len, out + len, NAMES_SHOWN_MAX - len);
		len += strlen(out + len);
	}
	return out;
}

char *names_show_holder(const char *note, const char *owner, char out[HOLDER_SHOWN_MAX])
{
	if (note[0] != '\0')
		(void)snprintf(out, HOLDER_SHOWN_MAX, "%s (%s)", note, owner);
	else
		(void)snprintf(out, HOLDER_SHOWN_MAX, "%s", owner);
	return out;
}
