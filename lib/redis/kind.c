/*
 * The table of lock kinds: which scripts a kind has, which keys each gets, and which channel wakes a waiter.
 * What the scripts do is for lua/.
 */
#include <string.h>

#include "redis/args.h"
#include "redis/keys.h"
#include "redis/kind.h"
#include "redis/script.h"
#include "rlock.h"

#define KEY(which) (1U << RLOCK__KEY_##which)
#define HASH_KEYS (KEY(LOCK) | KEY(HOLDS))
#define QUEUE_KEYS (KEY(QUEUE) | KEY(DEADLINES) | KEY(WAITERS))
#define WAKE_ARGS (KEY(WAKE_QUEUE) | KEY(TURN))
#define NOTIFY_ARGS (WAKE_ARGS | KEY(CHANNEL))
#define READWRITE_KEYS (HASH_KEYS | KEY(ENDS))
#define READWRITE_ARGS (WAKE_ARGS | KEY(READWRITE_CHANNEL) | KEY(TIMEOUTS))
#define SEMAPHORE_KEYS (HASH_KEYS | KEY(ENDS) | KEY(PERMITS))
#define SEMAPHORE_ARGS (WAKE_ARGS | KEY(SEMAPHORE_CHANNEL))

static const struct rlock__action plain_acquire = { &rlock__script_plain_acquire,
						    HASH_KEYS | KEY(COUNTER), NOTIFY_ARGS,
						    QUEUE_KEYS };
static const struct rlock__action fair_acquire = { &rlock__script_fair_acquire,
						   HASH_KEYS | KEY(COUNTER) | QUEUE_KEYS,
						   NOTIFY_ARGS, 0 };
static const struct rlock__action fair_return = { &rlock__script_fair_return,
						  HASH_KEYS | QUEUE_KEYS, NOTIFY_ARGS, 0 };
static const struct rlock__action fair_leave = { &rlock__script_fair_leave, HASH_KEYS | QUEUE_KEYS,
						 NOTIFY_ARGS, 0 };
static const struct rlock__action plain_leave = { &rlock__script_plain_leave,
						  HASH_KEYS | QUEUE_KEYS, NOTIFY_ARGS, 0 };
static const struct rlock__action plain_return = { &rlock__script_plain_return,
						   HASH_KEYS | QUEUE_KEYS, NOTIFY_ARGS, 0 };
/* The release of both kinds, since waiters of both may wait for one lock. */
static const struct rlock__action plain_release = { &rlock__script_plain_release,
						    HASH_KEYS | QUEUE_KEYS, NOTIFY_ARGS, 0 };
static const struct rlock__action plain_keep_until = { &rlock__script_plain_keep_until,
						       HASH_KEYS | QUEUE_KEYS, NOTIFY_ARGS, 0 };
/* Of all kinds that have one owner at a time. */
static const struct rlock__action plain_renew = { &rlock__script_plain_renew, HASH_KEYS, 0, 0 };

static const struct rlock__action read_acquire = { &rlock__script_read_acquire,
						   READWRITE_KEYS | KEY(WRITER), READWRITE_ARGS,
						   0 };
static const struct rlock__action write_acquire = { &rlock__script_write_acquire,
						    READWRITE_KEYS | KEY(WRITER), READWRITE_ARGS,
						    0 };
static const struct rlock__action write_leave = { &rlock__script_write_leave,
						  READWRITE_KEYS | KEY(WRITER), READWRITE_ARGS, 0 };
static const struct rlock__action write_return = { &rlock__script_write_return,
						   READWRITE_KEYS | KEY(WRITER), READWRITE_ARGS,
						   0 };
static const struct rlock__action readwrite_release = { &rlock__script_readwrite_release,
							READWRITE_KEYS, READWRITE_ARGS, 0 };
static const struct rlock__action readwrite_keep_until = { &rlock__script_readwrite_keep_until,
							   READWRITE_KEYS, READWRITE_ARGS, 0 };
static const struct rlock__action read_renew = { &rlock__script_read_renew, READWRITE_KEYS,
						 KEY(TIMEOUTS), 0 };

static const struct rlock__action sem_acquire = { &rlock__script_sem_acquire,
						  SEMAPHORE_KEYS | KEY(TOTAL), SEMAPHORE_ARGS, 0 };
static const struct rlock__action sem_release = { &rlock__script_sem_release, SEMAPHORE_KEYS,
						  SEMAPHORE_ARGS, 0 };
static const struct rlock__action sem_leave = { &rlock__script_sem_leave, SEMAPHORE_KEYS,
						SEMAPHORE_ARGS, 0 };
static const struct rlock__action sem_return = { &rlock__script_sem_return, SEMAPHORE_KEYS,
						 SEMAPHORE_ARGS, 0 };
static const struct rlock__action sem_renew = { &rlock__script_sem_renew, SEMAPHORE_KEYS, 0, 0 };
static const struct rlock__action sem_keep_until = { &rlock__script_sem_keep_until, SEMAPHORE_KEYS,
						     SEMAPHORE_ARGS, 0 };
static const struct rlock__action sem_resize = { &rlock__script_sem_resize,
						 SEMAPHORE_KEYS | KEY(TOTAL), SEMAPHORE_ARGS, 0 };

static const struct rlock__kind kinds[] = {
	[RLOCK_PLAIN] = { "plain", &plain_acquire, &plain_release, &plain_renew, &plain_keep_until,
			  &plain_leave, &plain_return, RLOCK__KEY_CHANNEL,
			  RLOCK__LISTEN_IN_WAKE_QUEUE },
	[RLOCK_FAIR] = { "fair", &fair_acquire, &plain_release, &plain_renew, &plain_keep_until,
			 &fair_leave, &fair_return, RLOCK__KEY_CHANNEL, RLOCK__LISTEN_AS_OWNER },
	[RLOCK_READ] = { "read", &read_acquire, &readwrite_release, &read_renew,
			 &readwrite_keep_until, &write_leave, &write_return,
			 RLOCK__KEY_READWRITE_CHANNEL, RLOCK__LISTEN_IN_WAKE_QUEUE },
	[RLOCK_WRITE] = { "write", &write_acquire, &readwrite_release, &plain_renew,
			  &readwrite_keep_until, &write_leave, &write_return,
			  RLOCK__KEY_READWRITE_CHANNEL, RLOCK__LISTEN_IN_WAKE_QUEUE },
	[RLOCK_SEMAPHORE] = { "sem", &sem_acquire, &sem_release, &sem_renew, &sem_keep_until,
			      &sem_leave, &sem_return, RLOCK__KEY_SEMAPHORE_CHANNEL,
			      RLOCK__LISTEN_IN_WAKE_QUEUE },
};

const struct rlock__action *rlock__kind_resize(void)
{
	return &sem_resize;
}

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

void rlock__kind_arg(enum rlock_kind kind, struct rlock__args *args)
{
	const char *text = "";

	if (kind != RLOCK_ANY)
		text = rlock_kind_name(kind == RLOCK_FAIR ? RLOCK_PLAIN : kind);
	rlock__args_text(args, text, strlen(text));
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
