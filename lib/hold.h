/*
 * The members of struct rlock_hold, and the part of a hold record that the client writes.
 */
#ifndef RLOCK_HOLD_H
#define RLOCK_HOLD_H

/* wire: in the owner of a kept hold, the text between the former owner and the time when the hold ends. */
#define RLOCK__KEPT ":lingering:"

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
 * Size of the part of a record that the client writes: "HOLDER NOTE". For the scripts this is one text. HOLDER is a struct
 * rlock_record in the form PURPOSE.KIND.NAMES.BOOT.NAMESPACE.PID.START+. BOOT has 16 hex digits; the other numbers are
 * decimal. The last byte is '-' instead of '+' if no process reads stop requests.
 */
#define RLOCK__RECORD_TEXT_MAX (RLOCK_NOTE_MAX + 128)

/* Size of released_id: a hold id, a time, a kind, and how a command ended. */
#define RLOCK__RELEASED_ID_MAX (RLOCK_HOLD_ID_MAX + 128)

/* What a server has granted for one name. */
struct rlock__acquired {
	char owner[RLOCK_OWNER_MAX];
	int64_t count, token;
	char *slots;    /* a semaphore's slots, as rlock_hold_slots returns them; NULL: none */
	int64_t total;  /* total of a semaphore's permits, if has_total */
	bool has_total; /* a reply contained the total */
};

struct rlock_hold {
	enum rlock_kind kind;
	const struct rlock__kind *row;
	size_t name_count;
	struct rlock__keys *keys; /* one for each name */
	/* Indexes of the names. in_order: in the caller's order. by_slot: in the order of their slots in a cluster. */
	size_t *in_order, *by_slot;
	size_t slot_count; /* number of different slots of the names */
	/* For several names: EXISTS for the lock of each name, sent after the acquire request in the same write. */
	struct rlock__pipelined exists_checks;
	struct rlock__acquired *acquired; /* one for each name */
	char id[RLOCK_HOLD_ID_MAX];
	char owner[RLOCK_OWNER_MAX]; /* the owner that acquires each name that is not re-entered */
	int64_t permits, take;       /* for a semaphore; else 0 */
	int64_t sent_ms, lease_ms, ttl_ms;
	bool is_stop_requested; /* a renewal has found a stop request (rlock_request_stop) */
	size_t stop_name_index; /* index of the name that the stop request is for */
	char stop_requested_by[RLOCK_NOTE_MAX];
	struct rlock_record record;
	/* record and note in the form in which requests send them */
	char record_text[RLOCK__RECORD_TEXT_MAX];
	/* For how many ms the server remembers the holder after the release; 0: not at all. */
	int64_t remember_ms;
	/* The id as a release sends it. rlock_hold_set_end adds what the server must remember after the release. */
	char released_id[RLOCK__RELEASED_ID_MAX];
	/* For each place: the owner may be in a queue there, so the request that releases or keeps the hold also leaves the queue. */
	bool may_be_queued[RLOCK_SERVERS_MAX];
};

/* Whether the nth name of by_slot, counted from 0, is the first one of its slot. */
bool rlock__hold_is_new_slot(const struct rlock_hold *hold, size_t nth);

/* The word for purpose in a record; empty for RLOCK_PURPOSE_UNKNOWN. */
const char *rlock__purpose_word(enum rlock_purpose purpose);

/*
 * Parse "HOLDER NOTE", a part of the owner's record. Returns the note, which points into text. If text does not begin with a
 * HOLDER, because a user wrote over the record, all of text is the note, and the purpose is unknown.
 */
struct rlock_name rlock__record_read(struct rlock_name owner, struct rlock_name text,
				     struct rlock_record *record_out);
/*
 * The kind of a hold whose lock has the form of kind on the server. A fair lock has the form of a plain one, so only the
 * record shows that it is fair.
 */
enum rlock_kind rlock__record_kind(const struct rlock_record *record, enum rlock_kind kind);

/* Whether text has the form that rlock_hold_slots returns: numbers and blanks. */
bool rlock__hold_are_slots(const char *text);
/* Set the slots of the index-th name from the server's form, "1,4". False: text has another form, or out of memory. */
bool rlock__hold_set_slots(struct rlock_hold *hold, size_t index, const char *text);

/* As rlock_owner_check, but store the reason in the text of error. */
enum rlock_status rlock__owner_check(struct rlock__error *error, const char *owner);

#endif
