/*
 * What the files of the read/write lock's model share: how it ought to be, what changes that, and steps.
 */
#ifndef MODEL_READWRITE_H
#define MODEL_READWRITE_H

#include "model.h"

#define OWNERS 5
#define CONNS 3

/* Time-out keys that were left behind when the lock's own key was deleted. */
struct stray {
	char owner[FIELD_MAX];
	int count;
};

struct readwrite {
	struct book book;
	const char *mode; /* NULL: the lock is free */
	struct stray strays[PARTY_MAX];
	size_t stray_count;
	/* When the request was sent and answered that changes the book. */
	int64_t sent_ms, answered_ms;

	char owners[OWNERS][RLOCK_OWNER_MAX];
	struct rlock_conn *conns[CONNS];
};

extern struct readwrite rw;

/* ---- readwrite_rules.c ---- */

struct rlock_conn *rw_any_conn(void);
const char *rw_any_owner(void);
struct span rw_lease_span(int64_t lease_ms);
bool rw_is_held(const struct held *held);
/* A reader all of whose time-outs have ended: he counts as none, though others keep his field alive. */
bool rw_has_ended(const struct party *party);
/* Whether there is a writer yet, or one of his holds that lingers: else a write lock is a read lock. */
bool rw_is_writing(void);
/* Nobody holds it, and no hold is listed. */
void rw_set_free(void);
/* One hold more of a field of the lock hash. */
void rw_enter(const char *field, int64_t lease_ms, bool is_write);
/* That reader is gone, with all of his holds. */
void rw_drop(struct party *party);
void rw_drop_lingered(void);
/* One hold less of that party, which may be gone then, and the lock free. */
void rw_leave(struct party *party);
/* Somebody's hold is gone: who holds the lock yet, and for how long? */
void rw_settle(void);
/* Whether key is a time-out of that owner: its number, else 0. */
long rw_timeout_number(const char *key, const char *owner);
void rw_compare(void);

/* ---- readwrite_take.c ---- */

/* Whether the owner has that field, his name and the suffix, in the lock hash. */
bool rw_is_party(const char *owner, const char *suffix);

bool rw_step_read(void);
bool rw_step_write(void);
bool rw_step_enter(void);
bool rw_step_wait_a_moment(void);
bool rw_step_other_kind(void);

#endif
