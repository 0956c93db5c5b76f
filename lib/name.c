/*
 * What may be the name of a lock. Which keys belong to a name is for redis/keys.c to say.
 */
#include <string.h>

#include "rlock.h"

enum rlock_status rlock_name_check(const struct rlock_name *name, const char **why)
{
	const char *reason = NULL;

	if (name->len == 0)
		reason = "a name has at least one byte";
	else if (name->len > RLOCK_NAME_MAX)
		reason = "a name has at most 512 bytes";
	else if (name->text[0] == '-')
		reason = "a name can't start with '-'";
	else if (memchr(name->text, '\n', name->len) != NULL)
		reason = "a name can't contain a newline";
	else if (memchr(name->text, '\0', name->len) != NULL)
		reason = "a name can't contain a NUL byte";
	if (reason == NULL)
		return RLOCK_OK;
	*why = reason;
	return RLOCK_EINVAL;
}
