/*
 * What the files of the read/write lock's model share: how it ought to be, what changes that, and steps.
 */
#ifndef MODEL_READWRITE_H
#define MODEL_READWRITE_H

#include "model.h"

#define OWNERS 5
#define CONNS 3

/* Timeout keys that stayed when the lock's own key was deleted. */
struct leftover {
	char owner[FIELD_MAX];
	int count;
};

struct readwrite {
	struct expected expected;
	const char *mode; /* NULL: the lock is free */
	struct leftover leftovers[PARTY_MAX];
	size_t leftover_count;
	/* When the request that changes the model was sent and answered. */
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
/* A reader all of whose timeouts have expired counts as none, though other readers keep its field alive. */
bool rw_has_ended(const struct party *party);
/* Whether there is still a writer, or a kept hold of one: else a write lock is a read lock. */
bool rw_is_writing(void);
/* No owner holds it, and no hold is listed. */
void rw_set_free(void);
/* One hold more of a field of the lock hash. */
void rw_acquired(const char *field, int64_t lease_ms, bool is_write);
/* Removes readers whose kept holds have ended. */
void rw_remove_ended_kept(void);
/* One hold less of that party, which may be its last, and the lock's. */
void rw_leave(struct party *party);
/* A hold was removed: which holds are left, and how long do they last? */
void rw_settle(void);
/* Whether key is a timeout of that owner: its number, else 0. */
long rw_timeout_number(const char *key, const char *owner);
void rw_compare(void);

/* ---- readwrite_acquire.c ---- */

/* Whether the owner has that field, its name and the suffix, in the lock hash. */
bool rw_is_party(const char *owner, const char *suffix);

bool rw_step_read(void);
bool rw_step_write(void);
bool rw_step_reenter(void);
bool rw_step_wait_a_moment(void);
bool rw_step_other_kind(void);

#endif
