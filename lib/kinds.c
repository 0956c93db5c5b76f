/*
 * The table of lock kinds: their scripts, the keys that each script gets, and the channel that wakes waiters. Also the wire
 * format of all keys and channels of a name. Only two other files contain a part of it: list.c finds names by their keys, and check.c
 * makes a key to try rights. The scripts themselves are in lua/.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kinds.h"
#include "rlock.h"

/* How a key or channel is made of the name: PREFIX:{NAME}:SUFFIX. wire: RedissonObject.prefixName and suffixName. */
static const struct {
	const char *prefix; /* NULL: none */
	bool is_wrapped;    /* The name is put in braces, unless it contains an opening brace. */
	const char *suffix; /* NULL: none */
} forms[] = {
	[RLOCK__KEY_LOCK] = { NULL, false, NULL },
	[RLOCK__KEY_HOLDS] = { "rlock_holds", true, NULL },
	[RLOCK__KEY_COUNTER] = { "redisson_lock_token", true, NULL },
	[RLOCK__KEY_QUEUE] = { "redisson_lock_queue", true, NULL },
	[RLOCK__KEY_DEADLINES] = { "redisson_lock_timeout", true, NULL },
	[RLOCK__KEY_WAITERS] = { "rlock_waiters", true, NULL },
	[RLOCK__KEY_WRITER] = { "rlock_writer", true, NULL },
	[RLOCK__KEY_ENDS] = { "rlock_ends", true, NULL },
	[RLOCK__KEY_WAKE_QUEUE] = { "rlock_queue", true, NULL },
	[RLOCK__KEY_TURN] = { "rlock_turn", true, NULL },
	[RLOCK__KEY_PERMITS] = { NULL, true, "timeout" },
	[RLOCK__KEY_TOTAL] = { "rlock_total", true, NULL },
	[RLOCK__KEY_LAST] = { "rlock_last", true, NULL },
	[RLOCK__KEY_TIMEOUTS] = { NULL, true, NULL },
	[RLOCK__KEY_CHANNEL] = { "redisson_lock__channel", true, NULL },
	[RLOCK__KEY_READWRITE_CHANNEL] = { "redisson_rwlock", true, NULL },
	[RLOCK__KEY_SEMAPHORE_CHANNEL] = { "redisson_sc", true, NULL },
};

#define AROUND_MAX 32 /* enough for the longest prefix or suffix, with colon, braces and NUL */

/*
 * Write a key of name to out, which has room for the name and AROUND_MAX bytes. Returns the length of the key. wire: if the
 * name contains an opening brace, it is not put in braces, as in Redisson, even if it has no closing brace.
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

bool rlock__keys_make(struct rlock__keys *keys, const struct rlock_name *name)
{
	char *end = malloc(RLOCK__KEY_COUNT * (1 + name->len + AROUND_MAX));

	keys->memory = end;
	if (end == NULL)
		return false;
	for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++) {
		*end++ = '+';
		keys->of[key].text = end;
		keys->of[key].len = write_key((enum rlock__key)key, name, end);
		end += keys->of[key].len + 1;
	}
	return true;
}

/* ---- slots of a cluster ---- */

/* The part of a key that decides its slot: the text between the first braces. If there is none, or it is empty, the whole key. */
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
	/* name can be the key of another client, and so longer than the name of any lock. */
	return name->len <= RLOCK_NAME_MAX && is_in_slot_of_lock(RLOCK__KEY_HOLDS, name) &&
	       is_in_slot_of_lock(RLOCK__KEY_TIMEOUTS, name);
}

#define CRC16_POLYNOMIAL 0x1021U

/* wire: CRC16 of the XMODEM protocol, modulo the number of slots. */
unsigned rlock__key_slot(const struct rlock_name *name)
{
	struct rlock_name tag = tag_of(name->text, name->len);
	unsigned crc = 0;

	for (size_t i = 0; i < tag.len; i++) {
		crc ^= (unsigned)(unsigned char)tag.text[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc << 1 ^ ((crc & 0x8000U) != 0 ? CRC16_POLYNOMIAL : 0)) & 0xFFFFU;
	}
	return crc % RLOCK__SLOTS;
}

int rlock__key_compare_slots(const struct rlock_name *a, const struct rlock_name *b)
{
	return compare_tags(tag_of(a->text, a->len), tag_of(b->text, b->len));
}

/* ---- names that share keys ---- */

/* Whether bytes are one of the keys of name, from the key first on. */
static bool is_key_of(const char *bytes, size_t len, enum rlock__key first,
		      const struct rlock_name *name)
{
	char key[RLOCK_NAME_MAX + AROUND_MAX];

	for (unsigned which = first; which < RLOCK__KEY_CHANNEL; which++)
		if (write_key((enum rlock__key)which, name, key) == len &&
		    memcmp(key, bytes, len) == 0)
			return true;
	return false;
}

bool rlock_names_clash(const struct rlock_name *a, const struct rlock_name *b)
{
	char holds[RLOCK_NAME_MAX + AROUND_MAX];

	if (a->len > RLOCK_NAME_MAX || b->len > RLOCK_NAME_MAX)
		return false;
	/* Names that share one side key share all of them. So of the side keys compare only the holds hash. */
	return is_key_of(holds, write_key(RLOCK__KEY_HOLDS, a, holds), RLOCK__KEY_HOLDS, b) ||
	       is_key_of(a->text, a->len, RLOCK__KEY_LOCK, b) ||
	       is_key_of(b->text, b->len, RLOCK__KEY_LOCK, a);
}

enum rlock_status rlock_name_check(const struct rlock_name *name, const char **why)
{
	const char *reason = NULL;

	if (name->len == 0)
		reason = "a name has at least one byte";
	else if (name->len > RLOCK_NAME_MAX)
		reason = "a name has at most 512 bytes";
	else if (memchr(name->text, '\n', name->len) != NULL)
		reason = "a name can't contain a newline";
	else if (memchr(name->text, '\0', name->len) != NULL)
		reason = "a name can't contain a NUL byte";
	if (reason == NULL)
		return RLOCK_OK;
	*why = reason;
	return RLOCK_EINVAL;
}

/* ---- kinds ---- */

#define KEY(which) (1U << RLOCK__KEY_##which)
#define HASH_KEYS (KEY(LOCK) | KEY(HOLDS))
#define QUEUE_KEYS (KEY(QUEUE) | KEY(DEADLINES) | KEY(WAITERS))
#define WAKE_ARGS (KEY(WAKE_QUEUE) | KEY(TURN))
#define NOTIFY_ARGS (WAKE_ARGS | KEY(CHANNEL))
#define READWRITE_KEYS (HASH_KEYS | KEY(ENDS))
#define READWRITE_ARGS (WAKE_ARGS | KEY(READWRITE_CHANNEL) | KEY(TIMEOUTS))
#define SEMAPHORE_KEYS (HASH_KEYS | KEY(ENDS) | KEY(PERMITS))
#define SEMAPHORE_ARGS (WAKE_ARGS | KEY(SEMAPHORE_CHANNEL))

/* Define an action, and declare its script, which lua/embed.sh defines. scope: static; or empty, if other files use the action. */
#define ACTION_BY(scope, action, script, keys, args, release_keys)                                 \
	extern const struct rlock__script rlock__script_##script;                                  \
	scope const struct rlock__action action = { &rlock__script_##script, keys, args,           \
						    release_keys }
#define ACTION(name, keys, args, release_keys)                                                     \
	ACTION_BY(static, name, name, keys, args, release_keys)

ACTION(plain_acquire, HASH_KEYS | KEY(COUNTER), NOTIFY_ARGS, QUEUE_KEYS);
ACTION(fair_acquire, HASH_KEYS | KEY(COUNTER) | QUEUE_KEYS, NOTIFY_ARGS, 0);
/* Plain and fair locks are released by one script, because waiters of both kinds may wait for the same lock. */
ACTION(plain_release, HASH_KEYS, QUEUE_KEYS | NOTIFY_ARGS, 0);
/* The renewal of plain, fair and write locks, which have one owner at a time. */
ACTION(plain_renew, HASH_KEYS, 0, 0);

ACTION(read_acquire, READWRITE_KEYS | KEY(WRITER), READWRITE_ARGS, 0);
ACTION(write_acquire, READWRITE_KEYS | KEY(WRITER), READWRITE_ARGS, 0);
/*
 * ENDS is in ARGV, not in KEYS. A write lock does not have that key, and a request with a missing key among KEYS fails while
 * the slot is moved.
 */
ACTION(readwrite_release, HASH_KEYS, KEY(ENDS) | READWRITE_ARGS, 0);
ACTION(read_renew, READWRITE_KEYS, KEY(TIMEOUTS), 0);

ACTION(sem_acquire, SEMAPHORE_KEYS | KEY(TOTAL), SEMAPHORE_ARGS, 0);
ACTION(sem_release, SEMAPHORE_KEYS, SEMAPHORE_ARGS, 0);
ACTION(sem_renew, SEMAPHORE_KEYS, 0, 0);

ACTION_BY(, rlock__action_resize, sem_resize, SEMAPHORE_KEYS | KEY(TOTAL), SEMAPHORE_ARGS, 0);
ACTION_BY(, rlock__action_find, find, HASH_KEYS, KEY(PERMITS), 0);
ACTION_BY(, rlock__action_stop, stop, HASH_KEYS, KEY(PERMITS) | KEY(TOTAL), 0);
ACTION_BY(, rlock__action_break, break, HASH_KEYS | QUEUE_KEYS | KEY(ENDS),
	  WAKE_ARGS | KEY(CHANNEL) | KEY(READWRITE_CHANNEL) | KEY(SEMAPHORE_CHANNEL) |
		  KEY(TIMEOUTS) | KEY(PERMITS) | KEY(TOTAL),
	  0);

static const struct rlock__kind kinds[] = {
	[RLOCK_PLAIN] = { "plain", &plain_acquire, &plain_release, &plain_renew,
			  RLOCK__KEY_CHANNEL },
	[RLOCK_FAIR] = { "fair", &fair_acquire, &plain_release, &plain_renew, RLOCK__KEY_CHANNEL },
	[RLOCK_READ] = { "read", &read_acquire, &readwrite_release, &read_renew,
			 RLOCK__KEY_READWRITE_CHANNEL },
	[RLOCK_WRITE] = { "write", &write_acquire, &readwrite_release, &plain_renew,
			  RLOCK__KEY_READWRITE_CHANNEL },
	[RLOCK_SEMAPHORE] = { "sem", &sem_acquire, &sem_release, &sem_renew,
			      RLOCK__KEY_SEMAPHORE_CHANNEL },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct rlock__kind *rlock__kind(enum rlock_kind kind)
{
	size_t row = (size_t)kind;

	return row < COUNT(kinds) ? &kinds[row] : NULL;
}

const char *rlock_kind_name(enum rlock_kind kind)
{
	const struct rlock__kind *row = rlock__kind(kind);

	return row != NULL ? row->name : "unknown";
}

bool rlock_kind_parse(const char *text, size_t len, enum rlock_kind *out)
{
	for (size_t row = 0; row < COUNT(kinds); row++) {
		if (strlen(kinds[row].name) != len || memcmp(kinds[row].name, text, len) != 0)
			continue;
		*out = (enum rlock_kind)row;
		return true;
	}
	return false;
}

bool rlock_kind_is(enum rlock_kind kind, enum rlock_kind wanted)
{
	if (kind == RLOCK_FAIR)
		kind = RLOCK_PLAIN;
	if (wanted == RLOCK_FAIR)
		wanted = RLOCK_PLAIN;
	return wanted == RLOCK_ANY || kind == wanted;
}
