/*
 * The table of lock kinds: which script does what, and which channel wakes a waiter.
 * A kind without a row is not in this version.
 */
#include "internal.h"

static const struct rlock__kind kinds[] = {
	[RLOCK_PLAIN] = {
		.acquire = &rlock__script_plain_acquire,
		.release = &rlock__script_plain_release,
		.renew = &rlock__script_plain_renew,
		.linger = &rlock__script_plain_linger,
		.find = &rlock__script_plain_find,
		.break_ = &rlock__script_plain_break,
		.channel = RLOCK__KEY_CHANNEL,
		.release_message = "0", /* wire: LockPubSub.UNLOCK_MESSAGE */
	},
};

static const char *const names[] = {
	[RLOCK_PLAIN] = "plain",
	[RLOCK_FAIR] = "fair",
	[RLOCK_READ] = "read",
	[RLOCK_WRITE] = "write",
};

const struct rlock__kind *rlock__kind(enum rlock_kind kind)
{
	size_t row = (size_t)kind;

	return row < sizeof(kinds) / sizeof(kinds[0]) ? &kinds[row] : NULL;
}

const char *rlock_kind_name(enum rlock_kind kind)
{
	size_t row = (size_t)kind;

	return row < sizeof(names) / sizeof(names[0]) ? names[row] : "unknown";
}
