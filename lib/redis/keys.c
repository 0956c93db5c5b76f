/*
 * Spells every key and channel that belongs to the name of a lock, as the wire format has it; no other file of the
 * library spells one. It also says what may be a name at all.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "redis/keys.h"
#include "rlock.h"

/* What goes around the name. wire: RedissonObject.prefixName and suffixName. */
static const struct {
	const char *prefix; /* NULL: none */
	bool is_wrapped;    /* in braces, but for a name that has some */
	const char *suffix; /* NULL: none */
	bool is_channel;
} forms[] = {
	[RLOCK__KEY_LOCK] = { NULL, false, NULL, false },
	[RLOCK__KEY_HOLDS] = { "rlock_holds", true, NULL, false },
	[RLOCK__KEY_COUNTER] = { "redisson_lock_token", true, NULL, false },
	[RLOCK__KEY_QUEUE] = { "redisson_lock_queue", true, NULL, false },
	[RLOCK__KEY_DEADLINES] = { "redisson_lock_timeout", true, NULL, false },
	[RLOCK__KEY_WAITERS] = { "rlock_waiters", true, NULL, false },
	[RLOCK__KEY_WRITER] = { "rlock_writer", true, NULL, false },
	[RLOCK__KEY_ENDS] = { "rlock_ends", true, NULL, false },
	[RLOCK__KEY_WAKE_QUEUE] = { "rlock_queue", true, NULL, false },
	[RLOCK__KEY_TURN] = { "rlock_turn", true, NULL, false },
	[RLOCK__KEY_PERMITS] = { NULL, true, "timeout", false },
	[RLOCK__KEY_TOTAL] = { "rlock_total", true, NULL, false },
	[RLOCK__KEY_TIMEOUTS] = { NULL, true, NULL, false },
	[RLOCK__KEY_CHANNEL] = { "redisson_lock__channel", true, NULL, true },
	[RLOCK__KEY_READWRITE_CHANNEL] = { "redisson_rwlock", true, NULL, true },
	[RLOCK__KEY_SEMAPHORE_CHANNEL] = { "redisson_sc", true, NULL, true },
};

#define AROUND_MAX 32 /* the longest prefix or suffix, a colon, braces and a NUL */

/*
 * wire: as in Redisson, a name with an opening brace counts as one that chooses its own slot, even without a closing
 * one. Returns the length; out has room for the name and AROUND_MAX.
 */
static size_t write_key(enum rlock__key which, const struct rlock_name *name, char *out)
{
	const char *prefix = forms[which].prefix, *suffix = forms[which].suffix;
	bool is_wrapped = forms[which].is_wrapped && memchr(name->text, '{', name->len) == NULL;
	char *end = out;

	assert(prefix == NULL || strlen(prefix) + sizeof(":{}") <= AROUND_MAX);
	if (prefix != NULL) {
		end = stpcpy(end, prefix);
		*end++ = ':';
	}
	if (is_wrapped)
		*end++ = '{';
	end = mempcpy(end, name->text, name->len);
	if (is_wrapped)
		*end++ = '}';
	if (suffix != NULL) {
		*end++ = ':';
		end = stpcpy(end, suffix);
	}
	*end = '\0';
	return (size_t)(end - out);
}

struct rlock__text rlock__key(enum rlock__key which, const struct rlock_name *name)
{
	struct rlock__text key = { malloc(name->len + AROUND_MAX), 0 };

	if (key.text != NULL)
		key.len = write_key(which, name, key.text);
	return key;
}

struct rlock__text rlock__key_arg(enum rlock__key which, const struct rlock_name *name,
				  bool is_in_cluster)
{
	struct rlock__text arg = { NULL, 0 };

	if (!forms[which].is_channel || !is_in_cluster)
		return rlock__key(which, name);
	arg.text = malloc(name->len + AROUND_MAX + 1);
	if (arg.text == NULL)
		return arg;
	arg.text[0] = '+';
	arg.len = write_key(which, name, arg.text + 1) + 1;
	return arg;
}

/* ---- slots of a cluster ---- */

/* The part of a key that its slot depends on: that between the first braces, unless it is empty; else all of it. */
static struct rlock_name tag_of(const char *key, size_t len)
{
	const char *open = memchr(key, '{', len);
	const char *end = open != NULL ? memchr(open, '}', len - (size_t)(open - key)) : NULL;

	if (end == NULL || end == open + 1)
		return (struct rlock_name){ key, len };
	return (struct rlock_name){ open + 1, (size_t)(end - open - 1) };
}

static int compare_tags(struct rlock_name tag, struct rlock_name other)
{
	size_t shorter = tag.len < other.len ? tag.len : other.len;
	int order = memcmp(tag.text, other.text, shorter);

	return order != 0 ? order : (tag.len > other.len) - (tag.len < other.len);
}

static bool is_in_slot_of_lock(enum rlock__key which, const struct rlock_name *name)
{
	char key[RLOCK_NAME_MAX + AROUND_MAX];
	size_t len = write_key(which, name, key);

	return compare_tags(tag_of(key, len), tag_of(name->text, name->len)) == 0;
}

bool rlock__key_has_one_slot(const struct rlock_name *name)
{
	/* A key of another client may be longer than the name of any lock. */
	return name->len <= RLOCK_NAME_MAX && is_in_slot_of_lock(RLOCK__KEY_HOLDS, name) &&
	       is_in_slot_of_lock(RLOCK__KEY_TIMEOUTS, name);
}

int rlock__key_compare_slots(const struct rlock_name *a, const struct rlock_name *b)
{
	return compare_tags(tag_of(a->text, a->len), tag_of(b->text, b->len));
}

/* ---- names that share keys ---- */

static bool is_same_key(enum rlock__key which, const struct rlock_name *name, enum rlock__key other,
			const struct rlock_name *other_name)
{
	char key[RLOCK_NAME_MAX + AROUND_MAX], other_key[RLOCK_NAME_MAX + AROUND_MAX];
	size_t len = write_key(which, name, key);

	return len == write_key(other, other_name, other_key) && memcmp(key, other_key, len) == 0;
}

/* Whether the lock called name is a key that belongs to other. */
static bool is_key_of(const struct rlock_name *name, const struct rlock_name *other)
{
	for (unsigned key = 0; key < RLOCK__KEY_CHANNEL; key++)
		if (is_same_key(RLOCK__KEY_LOCK, name, (enum rlock__key)key, other))
			return true;
	return false;
}

bool rlock_names_clash(const struct rlock_name *a, const struct rlock_name *b)
{
	if (a->len > RLOCK_NAME_MAX || b->len > RLOCK_NAME_MAX)
		return false;
	/* Two names that share one key beside the lock share all of these keys. */
	return is_same_key(RLOCK__KEY_HOLDS, a, RLOCK__KEY_HOLDS, b) || is_key_of(a, b) ||
	       is_key_of(b, a);
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
