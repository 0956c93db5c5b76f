/*
 * Every Redis key and channel name of the wire format, and what may be the name of a lock.
 * Nobody else in the library spells one.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What stands around the name. wire: RedissonObject.prefixName and suffixName. */
static const struct {
	const char *prefix; /* NULL: none */
	bool is_wrapped;    /* in braces, but for a name that has some */
} forms[] = {
	[RLOCK__KEY_LOCK] = { NULL, false },
	[RLOCK__KEY_HOLDS] = { "rlock_holds", true },
	[RLOCK__KEY_COUNTER] = { "redisson_lock_token", true },
	[RLOCK__KEY_QUEUE] = { "redisson_lock_queue", true },
	[RLOCK__KEY_DEADLINES] = { "redisson_lock_timeout", true },
	[RLOCK__KEY_WAITERS] = { "rlock_waiters", true },
	[RLOCK__KEY_WRITER] = { "rlock_writer", true },
	[RLOCK__KEY_TIMEOUTS] = { NULL, true },
	[RLOCK__KEY_CHANNEL] = { "redisson_lock__channel", true },
	[RLOCK__KEY_READWRITE_CHANNEL] = { "redisson_rwlock", true },
};

/*
 * Only an opening brace is looked for: a name that has one is taken to have chosen its own slot, closed
 * or not.
 */
struct rlock__text rlock__key(enum rlock__key which, const struct rlock_name *name)
{
	const char *prefix = forms[which].prefix;
	size_t prefix_len = prefix != NULL ? strlen(prefix) : 0;
	bool is_wrapped = forms[which].is_wrapped && memchr(name->text, '{', name->len) == NULL;
	struct rlock__text key = { malloc(prefix_len + name->len + 4), 0 };
	char *end = key.text;

	if (end == NULL)
		return key;
	if (prefix != NULL) {
		end = mempcpy(end, prefix, prefix_len);
		*end++ = ':';
	}
	if (is_wrapped)
		*end++ = '{';
	end = mempcpy(end, name->text, name->len);
	if (is_wrapped)
		*end++ = '}';
	*end = '\0';
	key.len = (size_t)(end - key.text);
	return key;
}

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
