/*
 * The members of a hold.
 */
#ifndef RLOCK_HOLD_H
#define RLOCK_HOLD_H

#define RLOCK__KEPT                                                                                \
	":lingering:" /* on the wire: between an owner and the time until when its lock is kept */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/connection.h"
#include "rlock.h"

struct rlock__action;
struct rlock__error;
struct rlock__keys;
struct rlock__kind;

/*
 * The part of a record that the client writes, which scripts pass on as one text: "HOLDER NOTE". HOLDER is
 * PURPOSE.NAMES.BOOT.NAMESPACE.PID.START+, a struct rlock_record: BOOT in 16 hex digits, the other numbers decimal; '-' instead of
 * '+' if no process reads requests.
 */
#define RLOCK__RECORD_TEXT_MAX (RLOCK_NOTE_MAX + 128)

/* A hold id, a time, a kind, and how a command ended. */
#define RLOCK__RELEASED_ID_MAX (RLOCK_HOLD_ID_MAX + 128)

/* What the caller got of one name. */
struct rlock__acquired {
	char owner[RLOCK_OWNER_MAX];
	int64_t count, token;
	char *slots;   /* of permits, see rlock_hold_slots; NULL: none */
	int64_t total; /* of the permits of a semaphore, once it is known */
	bool has_total;
};

struct rlock_hold {
	enum rlock_kind kind;
	const struct rlock__kind *row;
	size_t name_count;
	struct rlock__keys *keys; /* one a name, which is the key of its lock */
	size_t *in_order,
		*by_slot; /* the indexes of the names, as they were given, and by their slot in a cluster */
	size_t slot_count;
	struct rlock__behind
		look; /* of several names: whether the lock of each is there (EXISTS) */
	struct rlock__acquired *acquired; /* one a name */
	char id[RLOCK_HOLD_ID_MAX];
	char owner[RLOCK_OWNER_MAX]; /* that acquires every name which is not re-entered */
	int64_t permits, take;       /* of a semaphore; else 0 */
	int64_t sent_ms, lease_ms, ttl_ms;
	bool is_stop_requested; /* to stop */
	size_t stop_name_index;
	char stop_requested_by[RLOCK_NOTE_MAX];
	struct rlock_record record;
	char record_text[RLOCK__RECORD_TEXT_MAX]; /* record and note, as a request sends them */
	int64_t remember_ms; /* for how long after the release; 0: not at all */
	/* The id as a release sends it; with what is to be remembered, once the end is known. */
	char released_id[RLOCK__RELEASED_ID_MAX];
	/* The owner may be in a queue at the place of that index: its release leaves the queues there, too. */
	bool may_be_queued[RLOCK_SERVERS_MAX];
};

/* Whether the nth name, in the order of their slots, is the first of its slot. */
bool rlock__hold_is_new_slot(const struct rlock_hold *hold, size_t nth);

/* The word for purpose in a record; empty for RLOCK_PURPOSE_UNKNOWN. */
const char *rlock__purpose_word(enum rlock_purpose purpose);

/*
 * Read what a client wrote into the record of that owner. Returns the note, which points into text. Without a HOLDER before it, as
 * where a user wrote over the record, all of text is the note, and the purpose is not known.
 */
struct rlock_name rlock__record_read(struct rlock_name owner, struct rlock_name text,
				     struct rlock_record *record_out);

/* Whether text can be that of rlock_hold_slots. */
bool rlock__hold_are_slots(const char *text);
/* Set that of the index-th name, from a server's "1,4". False: it has another form, or memory is out. */
bool rlock__hold_set_slots(struct rlock_hold *hold, size_t index, const char *text);

/* rlock_owner_check, with the reason in the text of error. */
enum rlock_status rlock__owner_check(struct rlock__error *error, const char *owner);

#endif
