/*
 * What the parts of the model share: random numbers, the trace, servers, snapshots of their data, invariants, and steps.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rlock.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define LOCK "job"
#define WRITE ":write"
#define KEPT ":lingering:" /* part of the field of a hold that --at-least keeps */
#define FIELD_MAX (RLOCK_OWNER_MAX + 64)
#define TOTAL_MAX 8 /* largest total of permits */
#define MINUTE_MS INT64_C(60000)
/* If a hold ends within this time, the checks accept both that it has ended and that it has not. */
#define MOMENT_MS 20

/* ---- model.c: random numbers and the trace ---- */

/* A number from 0 to below - 1. The same seed gives the same numbers. */
unsigned random_below(unsigned below);
/* True at random, on average once in `times` calls. */
bool one_in(unsigned times);

/* A step, and how often it is chosen. False: the step is not possible now, and did nothing. */
struct choice {
	unsigned weight;
	bool (*step)(void);
};

/* Choose one of the steps at random, by their weights, and take it. False: the step was not possible. */
bool random_step(const struct choice *choices, size_t count);

/* Record what is done now. The last records are printed when a check fails. */
__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);
/* Count an event by its name, a constant. The counts are printed at the end. */
void count_event(const char *what);
/* Print this error of the server or of the library, with the last steps, and exit. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);
void check_status(const char *what, enum rlock_status got, enum rlock_status want,
		  const struct rlock_conn *by);
/* The deadline of a wait for something that must happen. It is so late that only a defect can miss it. */
int64_t deadline_of_wait(void);
/* Sleep briefly, for loops that poll. If limit_ms has passed, fail with a message that names `what`. */
void pause_for(int64_t limit_ms, const char *what);
/* A field, shortened for the trace. */
const char *brief(const char *field);

/* ---- the kind of lock and the servers of this run ---- */

enum topology { SINGLE, SEVERAL, SENTINEL, CLUSTER };

extern enum rlock_kind kind; /* RLOCK_WRITE: read and write locks */
extern enum topology topology;

bool is_semaphore(void);
bool is_readwrite(void);
bool is_fair(void);

/* ---- servers.c: processes, and raw commands ---- */

struct redisReply;
struct redisContext;

#define SERVERS_MAX 3

struct server {
	char dir[128];
	int port;
	pid_t pid;
	int64_t began_ms;
	struct redisContext *context, *subscriber, *monitor; /* of a user who keeps all rights */
};

extern struct server servers[SERVERS_MAX];
extern size_t server_count;

/* Start a server. One that was killed starts without its data. */
void server_start(struct server *server);
void server_kill(struct server *server);
/* Start a sentinel that names the first server. Returns its port. */
int sentinel_start(void);
void sentinel_name_master(const struct server *server);
void servers_end(void);

/* Run a command, and ignore the reply. */
__attribute__((format(printf, 2, 3))) void server_do(struct server *server, const char *format,
						     ...);
/* Run a command whose reply is a number. */
__attribute__((format(printf, 2, 3))) long long server_number(struct server *server,
							      const char *format, ...);
/* Run a command. The caller frees the reply. */
__attribute__((format(printf, 2, 3))) struct redisReply *server_reply(struct server *server,
								      const char *format, ...);
/* Subscribe to a channel, or unsubscribe. */
void server_subscribe(struct server *server, bool is_on, const char *channel);

/* A request as a server received it. Zero-initialise. */
struct server_command {
	char **args;
	size_t *lens;
	size_t count;
};

void server_command_free(struct server_command *command);
/* The next script that the library has run on this server; server_command_free frees it. False: there is none. */
bool server_next_request(struct server *server, struct server_command *out);
/* Send the request again, and ignore the reply. */
void server_send(struct server *server, const struct server_command *command);

/* ---- topology.c ---- */

struct world {
	struct server *at;    /* the server that has the lock; of several, any */
	size_t quorum;        /* how many servers must agree */
	unsigned long losses; /* how often a server has lost its data */
	int64_t lost_ms;      /* when a server last lost its data */
	int64_t taken_ms;     /* when a step last broke the lock, or deleted a key */
	bool is_moving;       /* the slot of the lock moves to another node */
	bool was_restarted;   /* since the lock was last broken: the queue may have been lost */
};

extern struct world world;

/*
 * One of several servers does not count for a majority until it has run for as long as the lease of the request, by its uptime in
 * whole seconds. This is more than the longest lease of random_lease_ms.
 */
#define YOUNG_MS 6000
/* Whether this server stores the lock. With several servers, each one that runs does. */
bool has_lock_data(const struct server *server);

void topology_begin(void);
void topology_end(void);
/* A connection by the default user, or by "USER:PASSWORD@". */
struct rlock_conn *conn_new(const char *login, int64_t timeout_ms, int cancel_fd);
int64_t random_lease_ms(void);
/* A fault of the topology: a server is killed, another one takes over, or the slot moves. */
bool step_topology(void);

/* ---- snapshot.c: everything that a server has at one moment ---- */

/* The record of a hold. */
struct record {
	char id[RLOCK_HOLD_ID_MAX];
	char field[FIELD_MAX]; /* the owner's field in the lock hash */
	const char *text;
	int64_t since_ms, end_ms, take;
};

/* One field of the lock hash. */
struct holder_field {
	const char *field;
	long count;
	bool is_writer, is_kept;
	int64_t ttl_ms; /* of a kept hold, or of the longest timeout key of a reader; 0 or less: expired */
};

struct snapshot {
	struct redisReply *reply;
	const struct redisReply *lock, *holds, *queue, *deadlines, *waiters, *permits, *ends, *keys;
	const char *remembered; /* how the last holder ended, if it is remembered */
	int64_t now_ms, token, total;
	bool has_counter;
	int64_t free; /* permits */
	struct record records[200];
	size_t record_count;
	struct holder_field holder_fields[100];
	size_t holder_field_count;
	bool is_writing; /* the mode is "write"; false if it is "read", or if there is no mode */
	bool has_mode;
};

extern struct snapshot now;

/* Read everything that the server has into `now`. While the slot moves, `now` stays as it is. */
void take_snapshot(struct server *server);
void snapshot_print(void);
void snapshot_free(void);
/* The value of a field in a list of pairs; NULL: no such field. */
const char *value_of(const struct redisReply *pairs, const char *field);
/* The TTL of a key; -1: none, -2: no such key. */
int64_t ttl_of(const char *key);
const struct record *record_of(const char *id);
/* Whether the hold lasts for longer than MOMENT_MS. */
bool is_live(const struct record *record);
const struct holder_field *holder_field_of(const char *owner, const char *suffix);
/*
 * The number of permits in the set of holders' permits, ours and Redisson's, also of expired ones that no request has reclaimed
 * yet. Those of RSemaphore are not in it.
 */
long long held_permits(void);
/* The number in the name of a reader's timeout key; 0: another key. */
long timeout_number(const char *key, const char *owner);
/* Whether the queue of a fair lock has this owner. */
bool is_queued(const char *owner);
bool is_held_by_any(void);

/* ---- invariants.c: what must be true after each step ---- */

/* A hold that a client relies on. */
struct relied {
	struct rlock_hold *handle; /* NULL: no hold */
	char id[RLOCK_HOLD_ID_MAX], owner[RLOCK_OWNER_MAX];
	enum rlock_kind kind;
	int64_t granted_ms, lasts_ms; /* from when and until when the client relies on it */
	unsigned long losses;         /* world.losses when its last good request was sent */
	bool is_lost, is_kept, is_stop_requested;
};

#define HOLDS 12 /* largest number of holds at one time */
extern struct relied holds[HOLDS];

struct state {
	bool is_dirty; /* a request failed half-way: records and lock may contradict each other until step_clean */
	bool is_unnotified; /* a release did not notify the waiters: they find the free lock by polling */
	bool is_partial; /* a step deleted a key: records and lock may contradict each other, although no request failed */
	bool has_lapsed; /* a reader has expired, but the lock's key lasts as long as before */
	bool has_dead_waiter; /* a queue may have a waiter whose client no longer waits: it counts as dead within seconds */
	int64_t rsemaphore_permits; /* permits that RSemaphore has acquired */
	const char *right;          /* the right that was last taken away */
};

extern struct state state;

struct relied *any_hold(bool is_there);
const struct relied *hold_of_id(const char *id);
void forget(struct relied *hold);
/*
 * Record a hold that was acquired at answered_ms or before. Fail if a hold that excludes it is relied on at that time. The model
 * owns the handle from now on.
 */
struct relied *rely_on(struct rlock_hold *handle, enum rlock_kind of_kind, int64_t answered_ms);
/* Record that a request has acquired or renewed the hold: its lease now ends later. */
void extend_hold(struct relied *hold);
/* Check all invariants on each server. */
void check_all(void);
/* Check that each key of the server has a TTL, except for those to which Redisson gives none. */
void check_ttls(struct server *server);

#define SLOTS_MAX 64
/* Whether each permit of this hold lasts for at least left_ms more. */
bool has_permits(const struct record *record, int64_t left_ms);
/* Mark the slots of a hold. Fail if one is marked already. */
void mark_slots(const struct record *record, bool is_used[SLOTS_MAX]);

/* ---- rules.c: what a request must return, by the servers' data before it ---- */

/* In place of a status: the result cannot be predicted, so any status is right. */
#define ANY_STATUS ((enum rlock_status)100)

/* A request to acquire the lock. */
struct wish {
	struct rlock_hold_spec spec;
	struct rlock_request request;
	const char *inherited[1];
	char owner[RLOCK_OWNER_MAX], id[RLOCK_HOLD_ID_MAX];
};

/* Whether a kept hold of the last snapshot ends about now, so that it cannot be predicted whether a request finds it. */
bool ends_kept_hold_now(void);

/* Whether the result of a request can be predicted now. */
bool is_predictable(void);
enum rlock_status predict_acquire(const struct wish *wish);
/* The owner whose hold a successful request re-enters, by the last snapshot; NULL: none. */
const char *reentered_owner(const struct wish *wish);
enum rlock_status predict_hold(const char *id, bool is_renewal);
/*
 * Predict the slots that a hold of `take` permits must get now. out: as rlock_hold_slots returns them. False: they cannot be
 * predicted.
 */
bool predict_slots(int64_t take, char out[64]);
/*
 * Check that a request had the predicted result. sent_ms: a time before the prediction, since on a busy machine a short lease can end
 * between that and the request. is_short_wait: the request had a wait of a few milliseconds, so the library gives up a server earlier.
 */
void check_answer(const char *what, enum rlock_status got, enum rlock_status want, int64_t sent_ms,
		  bool is_short_wait, const struct rlock_conn *by);

/* ---- disturb.c: faults during a request, and requests that arrive twice ---- */

enum disturbance { NONE, DENIED, DENIED_TO_USER, FULL, CUT, STOPPED };

/* The connection of most requests, and one that has no faults. */
extern struct rlock_conn *conn, *steady_conn;
void disturb_begin(void);
void disturb_end(void);
/* Begin a random fault, or none, before a request; undisturb ends it. Returns the connection for the request. */
struct rlock_conn *disturb(void);
void undisturb(void);
extern enum disturbance disturbance;
const char *disturbance_word(void);
/*
 * Whether the current fault allows a request to end with any status: a right is missing, the server's memory is full, or the
 * server is stopped.
 */
bool is_status_open(void);
int64_t deadline_of_request(void);
void new_user_connection(void);
void reconnect(void);
/* How often reconnect was called, after a fault that cuts connections. */
extern unsigned long cuts;

void collect_requests(void);
void drop_requests(void);
bool step_resend(void);
bool step_replay(void);

/* ---- hold.c: steps of holders ---- */

extern const struct rlock_name name;
extern const struct rlock_record holder_record;
enum rlock_kind any_kind(void);
void wish_init(struct wish *wish, enum rlock_kind of_kind);
void release_all(void);
bool step_hold(void);

/* ---- waiters.c ---- */

void waiters_begin(void);
void waiters_end(void);
size_t waiting(void);
/* Wait until no thread waits for a lock that is free. */
void wait_for_grants(void);
void cancel_all(void);
bool step_wait(void);
bool step_cancel(void);
/*
 * Whether this is the hold of a waiter: it waits for the hold, or has acquired it and the model does not know that yet. The library
 * gives a hold another id if an earlier attempt was undone, so the owner counts as well.
 */
bool is_of_waiter(const struct record *record);
/* If this is the hold of a waiter, whose grant the model does not know yet, record that it was asked to stop. */
void record_stop_request(const char *id);
/* The owner of a random waiter for a fair lock; NULL: no thread waits. */
const char *any_waiting_owner(void);

/* ---- java.c: what Redisson's clients do with a fair lock and a semaphore ---- */

/* Whether this run has clients of Redisson's. */
bool has_java_clients(void);
bool step_java(void);
/* Whether the head of the queue is a live waiter of Redisson's: if the lock is free, only that waiter may acquire it. */
bool is_javas_turn(void);
void java_forget(void);

#endif
