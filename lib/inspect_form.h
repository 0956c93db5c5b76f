/*
 * The form of a reply of inspect.lua.
 */
#ifndef RLOCK_INSPECT_FORM_H
#define RLOCK_INSPECT_FORM_H

#include <stdbool.h>

struct redisReply;

/* Its elements. */
enum rlock__part {
	RLOCK__PART_STATE,
	RLOCK__PART_TYPE,
	RLOCK__PART_TTL,
	RLOCK__PART_NOW,
	RLOCK__PART_TOKEN,
	RLOCK__PART_HOLDER_TOTAL,
	RLOCK__PART_HOLDERS,
	RLOCK__PART_QUEUE_TOTAL,
	RLOCK__PART_QUEUE,
	RLOCK__PART_WAKE_TOTAL,
	RLOCK__PART_WAKE_SINCE,
	RLOCK__PART_OTHER_CLIENTS,
	RLOCK__PART_WRITER,
	RLOCK__PART_UNSEEN,
	RLOCK__PART_GROUND,
	RLOCK__PART_PERMITS,
	RLOCK__PART_FREE_PERMITS,
	RLOCK__PART_HELD_PERMITS,
	RLOCK__PART_COUNT
};

/*
 * Whether all of it, and of its lists, can be read as that of a lock, or of none; or of a key that is something else.
 */
bool rlock__inspect_form_is_lock(const struct redisReply *reply);
bool rlock__inspect_form_is_other(const struct redisReply *reply);

#endif
