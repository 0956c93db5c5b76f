/*
 * Which holder of a lock has held it for longest. lib/inspect.c decides which holders have expired.
 */
#include "holders.h"

bool holder_is_kept(const struct rlock_holder *holder)
{
	return holder->record.purpose == RLOCK_PURPOSE_KEPT;
}

const struct rlock_holder *holders_find_oldest(const struct rlock_inspection *locks, size_t count,
					       bool with_kept)
{
	const struct rlock_holder *oldest = NULL;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < locks[i].holder_count; j++) {
			const struct rlock_holder *holder = &locks[i].holders[j];

			if (!rlock_holder_has_expired(holder) &&
			    (with_kept || !holder_is_kept(holder)) &&
			    (oldest == NULL || holder->held_ms > oldest->held_ms))
				oldest = holder;
		}
	return oldest;
}
