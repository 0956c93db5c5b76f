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
#define KEPT ":lingering:" /* on the wire */
#define FIELD_MAX (RLOCK_OWNER_MAX + 64)
#define TOTAL_MAX 8 /* permits */
#define MINUTE_MS INT64_C(60000)
/* What ends within it may have ended already, or not yet. */
#define MOMENT_MS 20

/* ---- model.c: random numbers and the trace ---- */

/* 0 to below - 1, the same ones for the same seed. */
unsigned random_below(unsigned below);
/* True once in so many times. */
bool one_in(unsigned times);

/* A step that can't be done now does nothing, and says so by false. */
struct choice {
	unsigned weight;
	bool (*step)(void);
};

/* Does one of them, by their weights. */
bool random_step(const struct choice *choices, size_t count);

/* What is done now; printed when something differs. */
__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);
/* Counted under this constant, and printed at the end. */
void count_event(const char *what);
/* The server, or the library, does not do what it ought to: say so, and end. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);
void check_status(const char *what, enum rlock_status got, enum rlock_status want,
		  const struct rlock_conn *by);
/* A point in time that nothing is late for. */
int64_t deadline_of_wait(void);
/* Not at once, but in a moment, until patience ends. Says what was waited for when that is over. */
void pause_for(int64_t limit_ms, const char *what);
/* A field, shortened for the trace. */
const char *brief(const char *field);

/* ---- what is played ---- */

enum topology { SINGLE, SEVERAL, SENTINEL, CLUSTER };

extern enum rlock_kind kind; /* RLOCK_WRITE: of both sorts */
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
	struct redisContext *context, *ears, *monitor; /* of a user that no right is taken from */
};

extern struct server servers[SERVERS_MAX];
extern size_t server_count;

/* Again, too, when it was killed: without its data. */
void server_start(struct server *server);
void server_kill(struct server *server);
/* A sentinel that names the first server; its port. */
int sentinel_start(void);
void sentinel_name_master(const struct server *server);
void servers_end(void);

/* One command without an interest in its answer. */
__attribute__((format(printf, 2, 3))) void server_do(struct server *server, const char *format,
						     ...);
/* The answer is a number. */
__attribute__((format(printf, 2, 3))) long long server_number(struct server *server,
							      const char *format, ...);
/* Its reply; the caller frees it. */
__attribute__((format(printf, 2, 3))) struct redisReply *server_reply(struct server *server,
								      const char *format, ...);
/* Begin or cease to listen to a channel. */
void server_listen(struct server *server, bool is_on, const char *channel);

/* A request as a server got it. Zero-initialise. */
struct server_command {
	char **args;
	size_t *lens;
	size_t count;
};

void server_command_free(struct server_command *command);
/* The next script that the library ran there, up to now; server_command_free frees it. False: there is none. */
bool server_next_request(struct server *server, struct server_command *out);
/* Send it once more. What it replies does not matter. */
void server_send(struct server *server, const struct server_command *command);

/* ---- topology.c ---- */

struct world {
	struct server *at;    /* the server that has the lock; of several any */
	size_t quorum;        /* how many of the servers have to agree */
	unsigned long losses; /* how often one has lost its data */
	int64_t lost_ms;      /* when one did so last */
	int64_t taken_ms;     /* when it was last taken from its holders */
	bool is_moving;       /* the slot of the lock is on its way */
	bool was_restarted;   /* since all was broken: the queue may have been lost */
};

extern struct world world;

/* A server that has not run for longer than the longest lease of several servers may grant none. */
#define YOUNG_MS 6000
/* The server that has the lock; of several each that is there. */
bool has_lock_data(const struct server *server);

void topology_begin(void);
void topology_end(void);
/* A connection, by the default user, or by "USER:PASSWORD@". */
struct rlock_conn *conn_new(const char *login, int64_t timeout_ms, int cancel_fd);
int64_t random_lease_ms(void);
/* A server is killed, another one takes over, the slot moves: where there is such a step. */
bool step_trouble(void);

/* ---- snapshot.c: all that a server has at one moment ---- */

/* One hold, by its record. */
struct record {
	char id[RLOCK_HOLD_ID_MAX];
	char field[FIELD_MAX]; /* its owner's in the lock hash */
	const char *text;
	int64_t since_ms, end_ms, take;
};

/* One field of the lock hash. */
struct holder_field {
	const char *field;
	long count;
	bool is_writer, is_kept;
	int64_t ttl_ms; /* of a kept hold, or of the longest of a reader's timeouts; not above 0: it is over */
};

struct snapshot {
	struct redisReply *reply;
	const struct redisReply *lock, *holds, *queue, *deadlines, *waiters, *permits, *ends, *keys;
	const char *remembered; /* how the last holder ended, that was to be remembered */
	int64_t now_ms, token, total;
	bool has_counter;
	int64_t free; /* permits */
	struct record records[200];
	size_t record_count;
	struct holder_field holder_fields[100];
	size_t holder_field_count;
	bool is_writing; /* the mode; false without one */
	bool has_mode;
};

extern struct snapshot now;

/* Until the next look. While the slot moves nothing is seen. */
void take_snapshot(struct server *server);
void snapshot_print(void);
void snapshot_free(void);
/* What belongs to a field among pairs, NULL for none. */
const char *value_of(const struct redisReply *pairs, const char *field);
/* -1 without one, -2 when there is no such key. */
int64_t ttl_of(const char *key);
const struct record *record_of(const char *id);
/* Not one that ends in this moment. */
bool is_live(const struct record *record);
const struct holder_field *holder_field_of(const char *owner, const char *suffix);
/* Permits of ours that have not ended; of Java's, and ended ones. */
long long held_permits(void);
/* The number of a reader's timeout key, else 0. */
long timeout_number(const char *key, const char *owner);
/* The queue of a fair lock has that owner. */
bool is_queued(const char *owner);
bool is_held_by_any(void);

/* ---- invariants.c: what has to be so ---- */

/* A hold that a client has. */
struct relied {
	struct rlock_hold *handle; /* NULL: there is none */
	char id[RLOCK_HOLD_ID_MAX], owner[RLOCK_OWNER_MAX];
	enum rlock_kind kind;
	int64_t granted_ms, lasts_ms; /* between these the client relies on it */
	unsigned long losses;         /* when its last good request was sent */
	bool is_lost, is_kept, is_stop_requested;
};

#define HOLDS 12 /* at a time */
extern struct relied holds[HOLDS];

struct state {
	bool is_dirty; /* something was done by halves: records and lock may differ until all is broken by force */
	bool is_unheard; /* waiters were not notified of a release, and learn of it by their own clocks alone */
	bool is_partial; /* a part of it was deleted: the same, though each request does what it ought to */
	bool has_lapsed; /* a reader's time has passed, and not that of the lock's key */
	bool has_dead_waiter; /* there may be one in a queue that no client knows: that is dead in seconds */
	int64_t unheld;    /* permits of RSemaphore's */
	const char *right; /* that was taken away last */
};

extern struct state state;

struct relied *any_hold(bool is_there);
const struct relied *hold_of_id(const char *id);
void forget(struct relied *hold);
/* It was acquired by that time: there is no other that excludes it. The handle is the model's from now on. */
struct relied *rely_on(struct rlock_hold *handle, enum rlock_kind of_kind, int64_t answered_ms);
/* A good request was answered. */
void extend_hold(struct relied *hold);
/* All of it, on each server. */
void check_all(void);

#define SLOTS_MAX 64
/* Each permit of that hold is there for so long. */
bool has_permits(const struct record *record, int64_t left_ms);
/* The slots of a hold of a semaphore, which no other one has. */
void mark_slots(const struct record *record, bool is_used[SLOTS_MAX]);

/* ---- rules.c: what a request is to answer, by what the servers had before it ---- */

/* A status that means: that can't be said. */
#define ANY_STATUS ((enum rlock_status)100)

struct wish {
	struct rlock_hold_spec spec;
	struct rlock_request request;
	const char *inherited[1];
	char owner[RLOCK_OWNER_MAX], id[RLOCK_HOLD_ID_MAX];
};

/* Whether a request is foretold now. */
bool is_foretold(void);
enum rlock_status foretell_acquire(const struct wish *wish);
/* The owner that a request that succeeds re-enters; NULL: none. By the last look. */
const char *reentered_owner(const struct wish *wish);
enum rlock_status foretell_hold(const char *id, bool is_renewal);
/* The slots that a hold of so many permits is to get now, as rlock_hold_slots. False: that can't be said. */
bool foretell_slots(int64_t take, char out[64]);
void check_answer(const char *what, enum rlock_status got, enum rlock_status want, int64_t sent_ms,
		  const struct rlock_conn *by);

/* ---- disturb.c: rights, memory, and connections, during a request; requests that come again ---- */

enum disturbance { NONE, DENIED, DENIED_TO_USER, FULL, CUT, STOPPED };

/* The usual one; and one that is never disturbed. */
extern struct rlock_conn *conn, *steady_conn;
void disturb_begin(void);
void disturb_end(void);
/* The last one begins; the connection by which the request goes. */
struct rlock_conn *disturb(void);
void undisturb(void);
extern enum disturbance disturbance;
const char *disturbance_word(void);
/* The server lacks a right, or can't say what became of the request. */
bool is_status_open(void);
int64_t deadline_of_request(void);
void new_user_connection(void);
void reconnect(void);
/* How often that was. */
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
/* So that no waiter waits for a lock that is free. */
void wait_for_grants(void);
void cancel_all(void);
bool step_wait(void);
bool step_cancel(void);
/* That hold is, or will be, one of them. */
bool is_of_waiter(const char *id);
/* That hold was asked to stop: one of a waiter that has it, and was not yet heard of, or another one. */
void record_stop_request(const char *id);
/* Of a fair lock: the owner of any waiter; NULL: there is none. */
const char *any_waiting_owner(void);

/* ---- java.c: what Redisson's clients do, of a fair lock and of a semaphore ---- */

bool step_java(void);
/* At the head of the queue for a free lock stands a live waiter of Java's. */
bool is_javas_turn(void);
void java_forget(void);

#endif
