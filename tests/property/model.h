/*
 * What the parts of the model share: chance, the story so far, the server as it is, and the lock as it ought
 * to be.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define LOCK "job"
/* An owner, and what may follow it in a field of the lock hash. */
#define FIELD_MAX (RLOCK_OWNER_MAX + 64)
#define MINUTE_MS INT64_C(60000)

/* ---- model.c: chance ---- */

/* 0 to below - 1, the same ones for the same seed. */
unsigned chance(unsigned below);
/* True once in so many times. */
bool one_in(unsigned times);
/* Leases that differ by more than the time that all steps take. */
int64_t chance_lease_ms(void);

/* A step that can't be done now does nothing, and says so by false. */
struct choice {
	unsigned weight;
	bool (*step)(void);
};

/* One of them, by their weights. */
bool chance_step(const struct choice *choices, size_t count);

/* ---- model.c: the story ---- */

/* What is done now; printed when something differs. */
__attribute__((format(printf, 1, 2))) void story(const char *format, ...);
/* Counted under this constant, and printed at the end. */
void tally(const char *what);
/* The server, or the library, does not do what it ought to: say so, and end. */
__attribute__((format(printf, 1, 2), noreturn)) void differs(const char *format, ...);
void check_status(const char *what, enum rlock_status got, enum rlock_status want,
		  const struct rlock_conn *conn);

/* ---- model.c: connections ---- */

struct rlock_conn *conn_new(int cancel_fd);
/* One of that user and password, "USER:PASSWORD"; NULL when the server listens to no port, as such a URL needs. */
struct rlock_conn *conn_new_for(const char *login);
/* A point in time that no answer is late for. */
int64_t patience(void);

/* ---- server.c: raw commands, and the server as it is ---- */

struct redisReply;

void server_open(const char *socket_path);
void server_close(void);
/* 0: it listens to none. */
long long server_port(void);
/* Begin or cease to listen to a channel. */
void server_listen(bool is_on, const char *channel);
/* One command without an interest in its answer. */
__attribute__((format(printf, 1, 2))) void server_do(const char *format, ...);
/* The answer is a number. */
__attribute__((format(printf, 1, 2))) long long server_number(const char *format, ...);

/* Its reply; the caller frees it. */
__attribute__((format(printf, 1, 2))) struct redisReply *server_reply(const char *format, ...);

/* From now on these commands are those of another user, and no right that is taken from the default one is missing. */
void server_become_root(void);

/* A request as the server got it. Zero-initialise. */
struct words {
	char **texts;
	size_t *lens;
	size_t count;
};

void words_free(struct words *words);
/* From now on, remember the scripts that the library runs. */
void server_watch(void);
/* The next one of those, up to now; words_free frees it. False: there is none. */
bool server_next_request(struct words *out);
/* Send it once more. What it replies does not matter. */
void server_send(const struct words *words);

/* All there is, of one moment. */
struct shot {
	int64_t before_ms, after_ms; /* that moment, on our clock */
	int64_t time_ms;             /* and on the server's */
	const struct redisReply *lock, *holds, *queue, *deadlines, *waiters, *keys;
	struct redisReply *reply;
};

/* The one there is until the next is acquired. */
const struct shot *shot_take(void);
/* What belongs to a field among pairs, NULL for none. */
const char *shot_value(const struct redisReply *pairs, const char *field);
/* TTL of a key: -1 without one, -2 when there is no such key. */
int64_t shot_ttl_ms(const struct shot *of, const char *key);
void shot_print(void);

/* ---- expected.c: the lock as it ought to be ---- */

/* A point on rlock_now_ms()'s clock, which is known to lie between two others. */
struct span {
	int64_t lo, hi;
};

/* What a request that was sent and answered at these times makes of a lease. */
struct span span_of(int64_t sent_ms, int64_t answered_ms, int64_t lease_ms);
struct span span_max(struct span a, struct span b);
struct span span_min(struct span a, struct span b);
/* Whether a TTL that was requested and answered at these times ends within the span. */
bool span_has(struct span span, int64_t before_ms, int64_t after_ms, int64_t ttl_ms);
bool span_has_shot(struct span span, const struct shot *shot, int64_t ttl_ms);

/* One field of the lock hash. */
struct party {
	char field[FIELD_MAX];
	int count;
	bool is_writer, is_kept;
	bool is_over;    /* its timeouts have expired, or its kept hold has ended */
	struct span end; /* of a reader's holds; of a kept hold */
};

/* A hold that we had once, and may have still. */
struct held {
	struct rlock_hold *handle;
	char field[FIELD_MAX]; /* of its owner */
	struct span end;       /* the latest that was requested */
	bool is_listed, is_kept;
	bool is_told; /* to stop */
};

#define PARTY_MAX 40
#define HELD_MAX 32

struct expected {
	struct party parties[PARTY_MAX];
	size_t party_count;
	struct held holds[HELD_MAX];
	struct span end; /* of the lock */
};

/* The party, or NULL. */
struct party *expected_party(struct expected *expected, const char *field);
/* One count more; the party is made if need be. */
struct party *expected_join(struct expected *expected, const char *field);
/* One count less; with its last the party is removed. */
void expected_leave(struct expected *expected, struct party *party);
/* The party loses all its holds. */
void expected_remove(struct expected *expected, struct party *party);
/* So do those whose kept holds have ended. Whether there were any. */
bool expected_remove_ended(struct expected *expected, bool are_writers);
/* No party holds the lock any more, and no hold is listed. */
void expected_clear(struct expected *expected);
void expected_unlist(struct expected *expected);
void expected_free(struct expected *expected);

bool expected_has_room(const struct expected *expected);
size_t expected_listed(const struct expected *expected);
/* A new hold, which replaces one that isn't listed. It owns handle from now on. */
struct held *expected_add(struct expected *expected, struct rlock_hold *handle, const char *field,
			  struct span end);
/* Any hold that is listed, or that isn't; NULL when there is none. */
struct held *expected_any(struct expected *expected, bool is_listed);
/* The end of the one that lasts longest of the listed holds of that field, or of all; 0 without any. */
struct span expected_longest(const struct expected *expected, const char *field);

/* That hold is kept until a time within the span. Its new party, which has one hold more; its old party still has its
 * count. */
struct party *expected_keep(struct expected *expected, struct held *held, struct span span);
/* Waits until kept holds that end before this time have ended: they are over. */
void expected_await_end(struct expected *expected, int64_t end_ms);

/*
 * Ask the holders of one owner, or all, to stop: each listed hold of a party that is_held, and is not kept, and no other, has
 * a request after it. All of the model's read requests, by this process.
 */
extern const struct rlock_process expected_process;
void expected_stop(struct expected *expected, struct rlock_conn *conn,
		   bool (*is_held)(const struct held *held));
/* A renewal has found that request, if there is one. */
void expected_check_told(const struct held *held);

/* Fields, counts, listed holds, and TTLs are as expected. mode: NULL for none. */
void expected_check(struct expected *expected, const struct shot *shot, const char *mode);
void expected_print(const struct expected *expected);

/* A field, short enough to be read in the story. */
const char *brief(const char *field);

/* ---- acquire.c: threads that wait for a lock ---- */

struct waiter;

struct waiter *waiter_new(void);
void waiter_free(struct waiter *waiter);
/* Have it call rlock_acquire. The request is copied, and so is its owner. */
void waiter_begin(struct waiter *waiter, const struct rlock_request *request);
bool waiter_has_ended(struct waiter *waiter);
void waiter_cancel(struct waiter *waiter);

/* How it ended. The hold is the caller's. */
struct ended {
	enum rlock_status status;
	struct rlock_hold *hold;
	int64_t ended_ms;
	int64_t lease_ms;
	bool wanted_token;
};

/* Wait for that, within reason; the waiter may be used again then. */
struct ended waiter_await(struct waiter *waiter);

/* ---- the kinds ---- */

struct model {
	const char *name;
	void (*begin)(void);
	void (*step)(void);
	void (*end)(void);
	void (*print)(void);
};

/* semaphore.c: no two holds have one slot, and what says which are in use has each of them. */
void semaphore_check_slots(const char *holds, const char *permits);

extern const struct model readwrite_model, fair_model, semaphore_model;
extern const struct model disturbed_plain_model, disturbed_fair_model, disturbed_readwrite_model,
	disturbed_semaphore_model;

#endif
