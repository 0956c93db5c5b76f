/*
 * What the files of the fair lock's model share: how it ought to be, what changes that, and the steps.
 */
#ifndef MODEL_FAIR_H
#define MODEL_FAIR_H

#include "model.h"

#define WAITERS 6
#define JAVA_WAITERS 3
#define QUEUE_MAX (WAITERS + JAVA_WAITERS + 1)
#define CONNS 2

#define QUEUE "redisson_lock_queue:{" LOCK "}"
#define DEADLINES "redisson_lock_timeout:{" LOCK "}"
#define OUR_WAITERS "rlock_waiters:{" LOCK "}"
#define TURN "rlock_turn:{" LOCK "}"
#define COUNTER "redisson_lock_token:{" LOCK "}"
#define LAST "rlock_last:{" LOCK "}"
#define CHANNEL "redisson_lock__channel:{" LOCK "}"

/* One owner in the queue. */
struct queued {
	char owner[RLOCK_OWNER_MAX];
	struct waiter *waiter; /* NULL: Java's */
	bool is_javas;         /* a live thread, which listens */
	bool is_dead;          /* the next request removes it when it is the head */
	bool has_deadline;
	bool is_set_back; /* its deadline was set to the past */
};

struct fair {
	struct expected expected;
	struct queued queue[QUEUE_MAX];
	size_t queue_len;
	int64_t last_token; /* 0: none was issued so far */
	/* A waiter that was cancelled may have acquired the lock just before. */
	bool may_have_issued;
	/* How often a waiter that was notified acquired the lock, and how often that was slow. */
	unsigned long grants, slow_grants;
	/* How many releases were to be remembered, and which of them is; 0: none. */
	int64_t remember_count, remembered;
	/* When the request that changes the model was sent and answered. */
	int64_t sent_ms, answered_ms;

	struct waiter *waiters[WAITERS];
	struct rlock_conn *conns[CONNS]; /* of newcomers and holders */
};

extern struct fair fair;

/* ---- fair_queue.c: the queue ---- */

struct rlock_conn *fair_any_conn(void);
bool fair_is_free(void);
struct queued *fair_queued(const char *owner);
bool fair_is_waiting(const struct waiter *waiter);
size_t fair_count_ours(void);
/* At the end of it; waiter is NULL for one of Java's. */
struct queued *fair_enqueue(const char *owner, struct waiter *waiter);
void fair_dequeue(struct queued *queued);
/* Begin or cease to listen for a thread of Java's. */
void fair_listen(bool is_on, const char *owner);
/* Dead waiters at the head are removed. */
void fair_prune(void);
/* The first position whose owner is alive; queue_len when there is none. */
size_t fair_next_index(void);
bool fair_is_ours_next(void);

/* ---- fair_queue.c: the holders ---- */

struct span fair_lease_span(int64_t lease_ms);
bool fair_is_held(const struct held *held);
/* One hold more, by a request whose times are known. */
void fair_acquired(struct rlock_hold *hold, int64_t lease_ms, bool wants_token);
/* A waiter of the queue holds the lock now. */
void fair_granted(struct queued *queued, const struct ended *ended);
/* The lock may be free: the head of the queue then acquires it, if it is ours. */
void fair_settle(void);
/* The same, but the head was not notified, and has to find out. */
void fair_settle_not_notified(void);

/* ---- fair_queue.c: comparison ---- */

/* A waiter of ours may have removed dead heads with its sign of life. */
void fair_follow_prunes(const struct shot *shot);
bool fair_is_in_queue(const struct shot *shot, const char *owner);
void fair_compare(void);

/* ---- fair_hold.c ---- */

struct rlock_request fair_request_for(const char *owner);
void fair_new_owner(char owner[RLOCK_OWNER_MAX]);
/* A request that is not in the queue, and does not join it. */
void fair_newcomer(void);
/* The lock became free without a message: a head that is ours finds out, or a newcomer notifies it. */
void fair_find_out(void);
bool fair_is_javas(const struct party *party);
/* The lock may be free then: fair_settle is up to the caller. */
void fair_release(struct held *held);

bool fair_step_newcomer(void);
bool fair_step_plain(void);
bool fair_step_other_kind(void);
bool fair_step_reenter(void);
bool fair_step_release(void);
bool fair_step_release_again(void);
bool fair_step_renew(void);
bool fair_step_keep_until(void);
bool fair_step_stop(void);
bool fair_step_break(void);
bool fair_step_find(void);

/* ---- fair_wait.c ---- */

/* NULL when all of them wait. */
struct waiter *fair_idle_waiter(void);
struct queued *fair_any_of_ours(void);
/* That owner joins the queue again. */
void fair_await_return(const char *owner);

bool fair_step_wait(void);
bool fair_step_cancel(void);
bool fair_step_requeue(void);
bool fair_step_wait_a_moment(void);
bool fair_step_race_of_cancel(void);
bool fair_step_race_of_deadline(void);
bool fair_step_lose(void);
bool fair_step_lose_and_cancel(void);
bool fair_step_lease_ends(void);

/* ---- fair_java.c ---- */

bool fair_step_java_joins(void);
bool fair_step_dead_java_joins(void);
bool fair_step_java_leaves(void);
bool fair_step_java_acquires(void);
bool fair_step_java_releases(void);
bool fair_step_java_is_late(void);
bool fair_step_set_deadline_back(void);
bool fair_step_remove_heads(void);
bool fair_step_dead_of_ours(void);

#endif
