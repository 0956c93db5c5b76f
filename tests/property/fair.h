/*
 * What the files of the fair lock's model share: how it ought to be, what changes that, and the steps.
 */
#ifndef MODEL_FAIR_H
#define MODEL_FAIR_H

#include "model.h"

#define WAITERS 6
#define STRANGERS 3
#define LINE_MAX (WAITERS + STRANGERS + 1)
#define CONNS 2

#define QUEUE "redisson_lock_queue:{" LOCK "}"
#define DEADLINES "redisson_lock_timeout:{" LOCK "}"
#define OUR_WAITERS "rlock_waiters:{" LOCK "}"
#define COUNTER "redisson_lock_token:{" LOCK "}"
#define CHANNEL "redisson_lock__channel:{" LOCK "}"

/* One in the line. */
struct place {
	char owner[RLOCK_OWNER_MAX];
	struct waiter *waiter; /* NULL: a stranger */
	bool is_dead;          /* dropped by whoever comes by when he is the head */
	bool has_deadline;
	bool was_put_back; /* his deadline was set into the past */
};

struct fair {
	struct book book;
	struct place line[LINE_MAX];
	size_t line_len;
	int64_t last_token; /* 0: none was ever drawn */
	/* But by one who gave up, perhaps, when he had just got it. */
	bool may_have_drawn;
	/* How often the lock went to the next who was told, and took its time. */
	unsigned long grants, slow_grants;
	/* When the request was sent and answered that changes the book. */
	int64_t sent_ms, answered_ms;

	struct waiter *waiters[WAITERS];
	struct rlock_conn *conns[CONNS]; /* of those who don't wait */
};

extern struct fair fair;

/* ---- fair_line.c: the line ---- */

struct rlock_conn *fair_any_conn(void);
bool fair_is_free(void);
struct place *fair_place_of(const char *owner);
bool fair_is_waiting(const struct waiter *waiter);
size_t fair_count_ours(void);
/* At the end of it; waiter is NULL for a stranger. */
struct place *fair_step_in(const char *owner, struct waiter *waiter);
void fair_step_out(struct place *place);
/* The dead at the head go. */
void fair_prune(void);
/* Where the first is who is not dead; line_len when there is nobody. */
size_t fair_next_in_line(void);
bool fair_is_one_of_ours_next(void);

/* ---- fair_line.c: who holds the lock ---- */

struct span fair_lease_span(int64_t lease_ms);
bool fair_is_held(const struct held *held);
/* One hold more, by a request whose times are known. */
void fair_taken(struct rlock_hold *hold, int64_t lease_ms, bool draws);
/* A waiter who was in the line has it now. */
void fair_granted(struct place *place, const struct ended *ended);
/* The lock may be free: it goes to the head of the line then, if that is one of ours. */
void fair_settle(void);
/* The same, but nobody was told: who is next has to find out by himself. */
void fair_settle_untold(void);

/* ---- fair_line.c: comparison ---- */

/* Dead heads may have been dropped by some waiter who looked after himself. */
void fair_follow_prunes(const struct shot *shot);
bool fair_is_in_queue(const struct shot *shot, const char *owner);
void fair_compare(void);

/* ---- fair_hold.c ---- */

struct rlock_request fair_request_for(const char *owner);
void fair_new_owner(char owner[RLOCK_OWNER_MAX]);
/* Somebody tries who has no place in the line, and does not want one. */
void fair_newcomer(void);
/* The lock was given back by somebody who told nobody: one of ours who is next finds out, or is told by a
 * newcomer. */
void fair_find_out(void);
bool fair_is_strangers(const struct party *party);
/* The lock may be free then: fair_settle is up to the caller. */
void fair_release(struct held *held);

bool fair_step_newcomer(void);
bool fair_step_plain(void);
bool fair_step_other_kind(void);
bool fair_step_enter(void);
bool fair_step_release(void);
bool fair_step_release_again(void);
bool fair_step_renew(void);
bool fair_step_linger(void);
bool fair_step_break(void);
bool fair_step_find(void);

/* ---- fair_wait.c ---- */

/* NULL when all of them wait. */
struct waiter *fair_idle_waiter(void);
struct place *fair_any_of_ours(void);
/* That owner comes into the line again. */
void fair_await_entry(const char *owner);

bool fair_step_wait(void);
bool fair_step_give_up(void);
bool fair_step_come_again(void);
bool fair_step_wait_a_moment(void);
bool fair_step_race_of_cancel(void);
bool fair_step_race_of_deadline(void);
bool fair_step_lose(void);
bool fair_step_lose_and_give_up(void);
bool fair_step_lease_ends(void);

/* ---- fair_stranger.c ---- */

bool fair_step_stranger_comes(void);
bool fair_step_dead_stranger_comes(void);
bool fair_step_stranger_goes(void);
bool fair_step_stranger_takes(void);
bool fair_step_stranger_releases(void);
bool fair_step_stranger_is_late(void);
bool fair_step_put_back(void);
bool fair_step_drop(void);
bool fair_step_dead_of_ours(void);

#endif
