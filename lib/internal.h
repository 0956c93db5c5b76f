/*
 * What the files of lib/ share with one another and with nobody else.
 */
#ifndef RLOCK_INTERNAL_H
#define RLOCK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

/* Bytes with a length; text is malloc'ed unless it says otherwise. */
struct rlock__text {
	char *text;
	size_t len;
};

static inline int64_t rlock__sooner(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

/* start_ms + span_ms, where either may have come from outside. */
static inline int64_t rlock__later(int64_t start_ms, int64_t span_ms)
{
	if (span_ms > 0 && start_ms > INT64_MAX - span_ms)
		return INT64_MAX;
	if (span_ms < 0 && start_ms < INT64_MIN - span_ms)
		return INT64_MIN;
	return start_ms + span_ms;
}

/* ---- clock.c ---- */

/* From 0 to most_ms, so that not all that wait do the next thing in step. */
int64_t rlock__jitter_ms(int64_t most_ms);

/* ---- url.c ---- */

struct rlock_url {
	enum rlock_scheme scheme;
	char *user;     /* NULL: none */
	char *password; /* NULL: none */
	/* redis, rediss: decoded, an IPv6 address without its brackets; sentinel, cluster: what
	 * server has between scheme and database; else NULL */
	char *host;
	int port;   /* redis, rediss */
	char *path; /* unix: the socket; else NULL */
	int db;
	bool has_db;
	char *server; /* what rlock_url_server tells; made anew when the database changes */
};

#define RLOCK__SCHEMES (RLOCK_SCHEME_LOCAL + 1)

#define RLOCK__SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* What a URL begins with, without the ':'. */
const char *rlock__scheme_name(enum rlock_scheme scheme);
/* The percent-encoded text, malloc'ed; NULL when out of memory. */
char *rlock__url_encode(const char *text, const char *keep);
/* "host:port" as it stands in a URL, malloc'ed; NULL when out of memory. */
char *rlock__url_endpoint(const char *host, int port);
/* Secrets don't stay behind in freed memory. */
void rlock__secret_free(char *secret);
/* A deep copy; NULL when out of memory. */
struct rlock_url *rlock__url_copy(const struct rlock_url *url);

/* ---- lookup.c: host names to addresses ---- */

struct addrinfo;
struct rlock__question; /* one that was asked */

/*
 * RLOCK_OK: *out is a list that freeaddrinfo frees, for a number, which needs no resolver; or it is
 * NULL, and the answer to *question_out is on its way. RLOCK_ESYS, with *why_out a constant.
 */
enum rlock_status rlock__question_ask(const char *host, int port, struct addrinfo **out,
				      struct rlock__question **question_out, const char **why_out);
/* Readable when the answer is there. */
int rlock__question_fd(const struct rlock__question *question);
/* The answer that is there, once: RLOCK_OK and a list, or RLOCK_ENET. */
enum rlock_status rlock__question_answer(struct rlock__question *question, struct addrinfo **out,
					 const char **why_out);
/* Answered or not. */
void rlock__question_let_go(struct rlock__question *question);
/* The same in the child of a fork(), which the thread that asks did not come along to. */
void rlock__question_disown(struct rlock__question *question);

/* ---- connect.c ---- */

struct pollfd;
struct rlock__attempt; /* a connection that is being made */

struct rlock__connected {
	enum rlock_status status; /* RLOCK_OK, RLOCK_ENET, RLOCK_ESYS, RLOCK_EINVAL */
	int fd; /* connected, non-blocking, close-on-exec, from now on the caller's; or -1 */
	const char *why; /* it failed; until the next call */
};

/* To a redis:// or unix:// URL, which stays the caller's; NULL when out of memory. */
struct rlock__attempt *rlock__attempt_new(const struct rlock_url *url, int64_t deadline_ms);
void rlock__attempt_free(struct rlock__attempt *attempt);
/* The same in the child of a fork(). */
void rlock__attempt_disown(struct rlock__attempt *attempt);
/*
 * Begin, or go on, as far as that goes without waiting; is_ready: what it awaits was polled, and is
 * there. true: it is over, and *out says how.
 */
bool rlock__attempt_advance(struct rlock__attempt *attempt, bool is_ready,
			    struct rlock__connected *out);
/* What it awaits, and until when at the latest. */
void rlock__attempt_await(const struct rlock__attempt *attempt, struct pollfd *out,
			  int64_t *until_ms);

/* ---- reader.c: replies, and how much of one there may be ---- */

struct redisContext;
struct redisReply;
struct rlock__reader;

/* Takes over stream; NULL when out of memory, and it is the caller's still. */
struct rlock__reader *rlock__reader_new(struct redisContext *stream);
/* Closes the stream. */
void rlock__reader_free(struct rlock__reader *reader);
/* Take what has come, once. false: the stream is broken, and says why. */
bool rlock__reader_fill(struct rlock__reader *reader);
/* The next reply that is there as a whole, or NULL. false: there will be none; why is in the stream, unless
 * it is an excess. */
bool rlock__reader_next(struct rlock__reader *reader, struct redisReply **out);
/* What the server said too much of; NULL: nothing. */
const char *rlock__reader_excess(const struct rlock__reader *reader);

/* ---- link.c: one stream ---- */

struct rlock__link;

/* As rlock_conn_new says it, for one server. */
enum rlock_status rlock__link_new(const struct rlock_url *url, const struct rlock_conn_opts *opts,
				  struct rlock__link **out);
void rlock__link_free(struct rlock__link *link);
const char *rlock__link_error(const struct rlock__link *link);
size_t rlock__link_error_name(const struct rlock__link *link);
void rlock__link_set_cancel(struct rlock__link *link, int cancel_fd);
void rlock__link_disown(struct rlock__link *link);
void rlock__link_set_trace(struct rlock__link *link, rlock_trace_fn trace, void *ctx);
enum rlock_status rlock__link_ping(struct rlock__link *link);

/* Sets the connection's error text and returns status, so that a failure is one line. */
__attribute__((format(printf, 3, 4))) enum rlock_status
rlock__fail(struct rlock__link *link, enum rlock_status status, const char *format, ...);
void rlock__fail_name(struct rlock__link *link, size_t name_index);

struct rlock__command {
	int argc;
	const char **argv;
	size_t *lengths;
	bool needs_login; /* not to be sent before user and database are known to be right */
};

/* How a request ended. */
struct rlock__outcome {
	enum rlock_status status;
	bool was_sent;            /* the server may have seen the command */
	struct redisReply *reply; /* the caller frees it; NULL: none */
};

/*
 * A request, in steps that never wait: begin it, then advance and poll in turns until it is over.
 * Each connection has one at a time; those of several go on side by side.
 *
 * Begin: connects first if need be, with the login in the same write. The command is copied. What
 * fails at once is told by the first advance. A request that was still under way there is given up:
 * if its answer has come meanwhile, the stream is used on, else it is closed and opened anew.
 */
void rlock__link_begin(struct rlock__link *link, const struct rlock__command *command,
		       int64_t deadline_ms);
/* Subscribe, over a new stream; what was sent there before is forgotten. It is over, without a
 * reply, when all channels are acknowledged. */
void rlock__link_subscribe_begin(struct rlock__link *link, const struct rlock__text *channels,
				 size_t count, int64_t deadline_ms);
/*
 * Go on, as far as the last poll allows. true: it is over, and *out says how; else *out says nothing.
 * RLOCK_OK: there is a reply, maybe an error reply. When the login was refused and the command ran
 * all the same, its reply is there and the status says why the login was refused; the stream then
 * serves one more command, to take back what was done. After RLOCK_ENET and RLOCK_CANCELLED only a
 * last word may follow on that stream; the next request opens another.
 */
bool rlock__link_advance(struct rlock__link *link, struct rlock__outcome *out);
/* Between begin and the advance that says it is over. */
bool rlock__link_is_under_way(const struct rlock__link *link);
/* End a request that is under way, as a cancelled one, without an outcome. For who does not come back
 * to it: a begin, a last word and a close do the same where they must. */
void rlock__link_give_up(struct rlock__link *link);

/* Descriptors that one call can poll; connections that have nothing under way count too. */
#define RLOCK__POLL_MAX 64

/*
 * Poll for what is under way on links, for others (cancel_fd, subscriptions), and until until_ms at
 * the latest. Returns as rlock_poll does, as soon as there is something to do for one of them: what
 * that is among others is in their revents, and what is under way on links is then to be advanced. A
 * connection whose answer is left for later is left out.
 */
int rlock__links_poll(struct rlock__link *const *links, size_t link_count, struct pollfd *others,
		      size_t other_count, int64_t until_ms);
/* The same for one connection and its cancel_fd. What goes wrong ends the request: advance tells. */
void rlock__link_poll(struct rlock__link *link);

/* Begin, and advance to the end. RLOCK_CANCELLED when cancel_fd becomes readable meanwhile. */
enum rlock_status rlock__link_command(struct rlock__link *link,
				      const struct rlock__command *command, int64_t deadline_ms,
				      bool *was_sent, struct redisReply **out);

/* Write a command without waiting for anything, and close: the last word on a stream given up. */
void rlock__link_last_word(struct rlock__link *link, const struct rlock__command *command);

/* Ends what is under way as well. */
void rlock__link_close(struct rlock__link *link);
bool rlock__link_is_open(const struct rlock__link *link);
int rlock__link_cancel_fd(const struct rlock__link *link);
const struct rlock_url *rlock__link_url(const struct rlock__link *link);
/* Another connection to the same server, for a subscription. */
enum rlock_status rlock__link_twin(const struct rlock__link *link, struct rlock__link **out);
/* Subscribe, and wait for the acknowledgements. */
enum rlock_status rlock__link_subscribe(struct rlock__link *link,
					const struct rlock__text *channels, size_t count,
					int64_t deadline_ms);
/* The descriptor to poll for messages; -1 when closed. */
int rlock__link_fd(const struct rlock__link *link);
/* Read what has come. RLOCK_OK and the number of messages, or RLOCK_ENET. Never blocks. */
enum rlock_status rlock__link_drain(struct rlock__link *link, size_t *messages_out);
__attribute__((format(printf, 2, 3))) void rlock__trace(struct rlock__link *link,
							const char *format, ...);

/* ---- script.c ---- */

struct rlock__script {
	const char *name;
	const char *sha1;
	const char *body;
};

/*
 * Turns an error reply of the server into a status, and the connection's text into a line with a
 * remedy. script is what was run, NULL when it was a plain command.
 */
enum rlock_status rlock__refusal(struct rlock__link *link, const char *error, size_t len,
				 const struct rlock__script *script);

#define RLOCK__ARGS_HEAD 3 /* EVALSHA, the script, the number of keys */

/* The words of one EVALSHA: keys first, then arguments. Filled by rlock__args_*, freed by
 * rlock__args_free. */
struct rlock__args {
	const char **argv;
	size_t *lengths;
	char **owned; /* those of argv that were made here */
	size_t count, capacity;
	size_t key_count;
	bool is_out_of_memory; /* sticky: checked once, when sent */
	bool needs_login;
	char key_count_text[24];
};

void rlock__args_init(struct rlock__args *args);
void rlock__args_free(struct rlock__args *args);
void rlock__args_key(struct rlock__args *args,
		     struct rlock__text key); /* takes key.text; NULL is noticed */
/* An argument that is a key's or channel's name. Takes text.text; NULL is noticed. */
void rlock__args_owned(struct rlock__args *args, struct rlock__text text);
void rlock__args_text(struct rlock__args *args, const char *text, size_t len); /* text must stay */
void rlock__args_number(struct rlock__args *args, int64_t number);

/* A script that is under way on link. */
struct rlock__call {
	struct rlock__link *link;
	const struct rlock__script *script;
	struct rlock__args *args;
	int64_t deadline_ms;
	bool has_text;            /* the script's text went along */
	enum rlock_status status; /* not RLOCK_OK: it could not even begin */
};

/*
 * EVALSHA, and EVAL where the server does not know the script, in steps as those of a request.
 * Several calls may share their args, which stay until the last of them is over or given up.
 */
void rlock__script_begin(struct rlock__call *call, struct rlock__link *link,
			 const struct rlock__script *script, struct rlock__args *args,
			 int64_t deadline_ms);
/* As rlock__link_advance; an error reply has become a status too. */
bool rlock__script_advance(struct rlock__call *call, struct rlock__outcome *out);

/* Begin, and advance to the end. */
enum rlock_status rlock__script_run(struct rlock__link *link, const struct rlock__script *script,
				    struct rlock__args *args, int64_t deadline_ms, bool *was_sent,
				    struct redisReply **out);
/* The same with the script's text from the start. */
enum rlock_status rlock__script_run_text(struct rlock__link *link,
					 const struct rlock__script *script,
					 struct rlock__args *args, int64_t deadline_ms,
					 bool *was_sent, struct redisReply **out);
/* Send it and close, without waiting for an answer. */
void rlock__script_last_word(struct rlock__link *link, const struct rlock__script *script,
			     struct rlock__args *args);

extern const struct rlock__script rlock__script_plain_acquire;
extern const struct rlock__script rlock__script_plain_release;
extern const struct rlock__script rlock__script_plain_renew;
extern const struct rlock__script rlock__script_plain_linger;
extern const struct rlock__script rlock__script_fair_acquire;
extern const struct rlock__script rlock__script_fair_leave;
extern const struct rlock__script rlock__script_fair_return;
extern const struct rlock__script rlock__script_read_acquire;
extern const struct rlock__script rlock__script_write_acquire;
extern const struct rlock__script rlock__script_write_leave;
extern const struct rlock__script rlock__script_readwrite_release;
extern const struct rlock__script rlock__script_readwrite_renew;
extern const struct rlock__script rlock__script_readwrite_linger;
extern const struct rlock__script rlock__script_find;
extern const struct rlock__script rlock__script_break;

/* ---- conn.c: one server, or several that must agree ---- */

struct rlock_conn {
	struct rlock__link **links;
	size_t link_count;
	size_t quorum;   /* how many of them must agree, more than half */
	size_t decisive; /* the link whose error text counts */
	int cancel_fd;
};

/* ---- ask.c: the same request to all of them ---- */

/* What one of them said. */
struct rlock__answer {
	struct rlock__call call;
	struct rlock__outcome outcome;
	enum rlock_status status; /* the outcome's, or what its reply was read as */
	bool is_asked, is_over;
};

/* How long those of several servers are waited for that can't change the outcome any more. */
#define RLOCK__REST_MS 100

/* Turns a reply of the index-th server into a status; of one that is negative the link has the text. */
typedef enum rlock_status (*rlock__read_fn)(void *ctx, size_t index, struct redisReply *reply);

struct rlock__inquiry {
	struct rlock_conn *conn;
	struct rlock__answer *answers; /* one a link */
	rlock__read_fn read;           /* NULL: any reply will do */
	void *ctx;
};

enum rlock_status rlock__inquiry_init(struct rlock__inquiry *inquiry, struct rlock_conn *conn,
				      rlock__read_fn read, void *ctx);
void rlock__inquiry_free(struct rlock__inquiry *inquiry);
/* Ask one, or all. args must stay until all is over. An earlier answer of that link is forgotten. */
void rlock__inquiry_begin(struct rlock__inquiry *inquiry, size_t index,
			  const struct rlock__script *script, struct rlock__args *args,
			  int64_t deadline_ms);
void rlock__inquiry_begin_all(struct rlock__inquiry *inquiry, const struct rlock__script *script,
			      struct rlock__args *args, int64_t deadline_ms);
/*
 * Until all have answered; with enough > 0 until so many have agreed (RLOCK_OK), or so many can't; but
 * not longer than until_ms. An answer that is not there then is left outstanding. RLOCK_CANCELLED,
 * RLOCK_ESYS: what was under way has been given up.
 */
enum rlock_status rlock__inquiry_await(struct rlock__inquiry *inquiry, size_t enough,
				       int64_t until_ms);
/* Whether one gave this answer; the first of them says then what the error text is. */
bool rlock__inquiry_decide_by(struct rlock__inquiry *inquiry, enum rlock_status status);
/* By how much less than lease_ms a lease is counted on: what our clock and a server's may differ by meanwhile. */
int64_t rlock__drift_ms(const struct rlock_conn *conn, int64_t lease_ms);
size_t rlock__inquiry_count(const struct rlock__inquiry *inquiry, enum rlock_status status);
/*
 * What it all comes to: RLOCK_OK when the quorum has agreed; refusal (RLOCK_NOT_HELD, say) when so many
 * gave that answer that it can't; else the failure that stands in the way, with its text in conn.
 */
enum rlock_status rlock__inquiry_verdict(struct rlock__inquiry *inquiry, enum rlock_status refusal);

/* ---- keys.c: every key and channel name ---- */

enum rlock__key {
	RLOCK__KEY_LOCK,      /* NAME: Redisson's hash of every kind */
	RLOCK__KEY_HOLDS,     /* rlock_holds:{NAME}: our hold ids */
	RLOCK__KEY_COUNTER,   /* redisson_lock_token:{NAME}: RFencedLock's counter */
	RLOCK__KEY_QUEUE,     /* redisson_lock_queue:{NAME}: RFairLock's line */
	RLOCK__KEY_DEADLINES, /* redisson_lock_timeout:{NAME}: and until when who stands in it */
	RLOCK__KEY_WAITERS,   /* rlock_waiters:{NAME}: signs of life of ours in that line */
	RLOCK__KEY_WRITER,    /* rlock_writer:{NAME}: one of ours who waits to write */
	RLOCK__KEY_ENDS,      /* rlock_ends:{NAME}: when our readers end */
	RLOCK__KEY_CHANNEL,   /* redisson_lock__channel:{NAME}: RLock's channel */
	RLOCK__KEY_READWRITE_CHANNEL, /* redisson_rwlock:{NAME}: RReadWriteLock's channel */
	RLOCK__KEY_TIMEOUTS,          /* {NAME}: what the keys of RReadLock's holds begin with */
	RLOCK__KEY_COUNT,
};

/* The key or channel that belongs to name; malloc'ed, NULL in .text when out of memory. */
struct rlock__text rlock__key(enum rlock__key which, const struct rlock_name *name);

/* ---- owner.c ---- */

enum rlock_status rlock__hold_id_new(char out[RLOCK_HOLD_ID_MAX]);
/* rlock_owner_check, with the reason in the connection's text. */
enum rlock_status rlock__check_owner(struct rlock__link *link, const char *owner);

/* ---- kind.c ---- */

/* A script, and what it is told of each name: bits 1 << enum rlock__key, in that order. */
struct rlock__action {
	const struct rlock__script *script;
	unsigned keys;
	unsigned args; /* that are no keys: channels, and what keys begin with */
};

/* One row a kind: which script does what, and what wakes a waiter. */
struct rlock__kind {
	const char *name;
	const struct rlock__action *acquire, *release, *renew, *linger;
	/* For a kind whose waiters leave something on the server: takes that away, too; or NULL. */
	const struct rlock__action *leave;
	/* For a kind whose waiters have a place: gives back what was granted, and keeps it; or NULL. */
	const struct rlock__action *return_;
	enum rlock__key channel;
	bool has_own_channel; /* each waiter listens to CHANNEL:OWNER */
};

/* NULL for what is no kind. */
const struct rlock__kind *rlock__kind(enum rlock_kind kind);

/* ---- hold.c ---- */

struct rlock__taken {
	char owner[RLOCK_OWNER_MAX];
	int64_t count, token;
};

struct rlock_hold {
	enum rlock_kind kind;
	const struct rlock__kind *row;
	size_t name_count;
	struct rlock_name *names;
	struct rlock__taken *taken; /* one a name */
	char id[RLOCK_HOLD_ID_MAX];
	int64_t sent_ms, lease_ms, ttl_ms;
	char note[RLOCK_NOTE_MAX];
	char asker
		[RLOCK_OWNER_MAX]; /* for whom it was asked, and who may stand in lines; or empty */
};

/* The keys of every name of hold for action; free them, and what is added, with rlock__args_free. */
void rlock__action_keys(const struct rlock__action *action, const struct rlock_hold *hold,
			struct rlock__args *args);
/* And behind the arguments of its own what it is told of each name besides. */
void rlock__action_args(const struct rlock__action *action, const struct rlock_hold *hold,
			struct rlock__args *args);
/* Whether reply is an array of at least count integers. */
bool rlock__are_integers(const struct redisReply *reply, size_t count);
/* Which name an element of a reply speaks of, which counts them from 1. False when it is none of them. */
bool rlock__read_index(const struct rlock_hold *hold, const struct redisReply *element,
		       size_t *index_out);
enum rlock_status rlock__fail_reply(struct rlock__link *link, const struct rlock__script *script);
/* The key of that name is something else; type is what the script said of it. */
enum rlock_status rlock__fail_kind(struct rlock__link *link, const struct redisReply *type,
				   size_t name_index);
/* The arguments that give hold back, and leave every line; the script that takes them. */
const struct rlock__script *rlock__release_args(const struct rlock_hold *hold,
						struct rlock__args *args);
/* A hold that isn't there any more; type is what the script said of its key's new value, or NULL. */
enum rlock_status rlock__fail_lost(struct rlock__link *link, const struct redisReply *type,
				   size_t name_index);
/* A pause before the next try: twice as long each time, from 20 ms to 1 s, with jitter. */
enum rlock_status rlock__pause(struct rlock_conn *conn, int64_t *pause_ms, int64_t deadline_ms);
/* A login that was refused is tried anew next time: a server may be asked before its users are loaded. */
void rlock__drop_refused(struct rlock__inquiry *inquiry);

/* ---- try.c: one try to take a lock on all servers; wait.c: until one succeeds ---- */

#define RLOCK__SINCE_MAX 24

/* How one server stands to a lock that is being taken. */
struct rlock__stand {
	enum rlock_status status;         /* what it said to the last try */
	bool is_granted;                  /* it is taken there, though maybe not counted */
	bool may_be_held;                 /* a try went out whose answer we don't know */
	bool left_traces;                 /* in the line, or a claim to the next turn */
	struct rlock__link *subscription; /* NULL until the lock was found busy */
	int64_t look_ms; /* when it wants us to try again at the latest, from now; -1: never */
	int64_t ttl_ms;
	bool is_waiter, is_young;
	size_t name_index;
	char holder[RLOCK_OWNER_MAX];
	size_t holder_len;
	char note[RLOCK_NOTE_MAX];
	size_t note_len;
};

struct rlock__waiter {
	struct rlock_conn *conn;
	const struct rlock_request *request;
	struct rlock_hold *hold; /* filled when the lock was had */
	char owner[RLOCK_OWNER_MAX];
	char since
		[RLOCK__SINCE_MAX]; /* what the server says of when we came; goes out with each try */
	struct rlock__stand *stands; /* one a link */
	struct rlock__text *channels;
	size_t channel_count;
	int64_t deadline_ms;
	int64_t progress_at_ms;
	int64_t give_up_ms; /* when a server that can't be reached is given up; 0: it answers */
	int64_t pause_ms;
	int tries_contended;
	bool was_reached;
	bool is_busy; /* that is what the last try was told */
};

/*
 * RLOCK_OK: waiter->hold has it on as many servers as must agree. RLOCK_BUSY: on all of them it was
 * given back. Else why not, with the text in the connection.
 */
enum rlock_status rlock__try(struct rlock__waiter *waiter);
/* The arguments of an acquisition, for owner; what the others are, lua/inc/request.lua says. */
void rlock__acquire_args(const struct rlock__action *action, const struct rlock_hold *hold,
			 const char *owner, const char *since, int64_t least_uptime_ms,
			 bool listens, const struct rlock_request *request,
			 struct rlock__args *args);
/* Whether the waiter is subscribed on every server now. */
bool rlock__listens(const struct rlock__waiter *waiter);
/* Until when one may take that begins now. */
int64_t rlock__try_deadline(const struct rlock__waiter *waiter, int64_t now_ms);
/* Take back whatever the tries may have left behind. */
void rlock__try_leave(struct rlock__waiter *waiter);

#endif
