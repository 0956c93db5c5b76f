/*
 * librlock: Redisson's locks, on Redis or Valkey, for C programs.
 *
 *	struct rlock_url *url = NULL;
 *	struct rlock_conn *conn = NULL;
 *	struct rlock_hold *hold = NULL;
 *	struct rlock_name name = { "nightly", 7 };
 *	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
 *	struct rlock_request request = RLOCK_REQUEST_INIT;
 *	char why[RLOCK_ERROR_MAX];
 *
 *	if (rlock_url_parse("redis://127.0.0.1:6379", &url, why) != RLOCK_OK)
 *		errx(64, "%s", why);
 *	if (rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK)
 *		errx(71, "out of memory");
 *	spec.names = &name;
 *	spec.name_count = 1;
 *	if (rlock_hold_new(&spec, &hold) != RLOCK_OK)
 *		errx(71, "out of memory");
 *	request.wait_ms = 5000;
 *	if (rlock_acquire(conn, hold, &request) != RLOCK_OK)
 *		errx(75, "%s", rlock_conn_error(conn));
 *	... the work, with rlock_renew() at every third of the lease ...
 *	rlock_release(conn, hold, rlock_now_ms() + 5000);
 *	rlock_hold_free(hold);
 *	rlock_conn_free(conn);
 *	rlock_url_free(url);
 *
 * All times are milliseconds; a deadline is a time on the clock of rlock_now_ms(). A connection and its holds belong to
 * one thread at a time; there are no globals but OpenSSL's functions, which are looked up once, under a mutex. The library
 * never prints, forks, exits or touches signals, and causes no SIGPIPE. After fork() the child calls
 * rlock_conn_after_fork_child() on each connection of the thread that forked, and leaves alone those of other threads.
 *
 * This file is long since all that a caller has to know of a function stands here.
 */
#ifndef RLOCK_H
#define RLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RLOCK_API __attribute__((visibility("default")))
#else
#define RLOCK_API
#endif

#define RLOCK_VERSION "1.0.0"

#define RLOCK_NAME_MAX 512        /* bytes of a lock's name */
#define RLOCK_OWNER_MAX 256       /* bytes of an owner, with the NUL */
#define RLOCK_HOLD_ID_MAX 33      /* 32 hex digits and a NUL */
#define RLOCK_NOTE_MAX 256        /* bytes of a note, with the NUL */
#define RLOCK_ERROR_MAX 512       /* bytes of an error text, with the NUL */
#define RLOCK_SERVERS_MAX 32      /* servers of a connection */
#define RLOCK_PERMITS_MAX 1000000 /* permits of a semaphore */
#define RLOCK_TAKE_MAX 1000       /* permits of one hold */

enum rlock_status {
	RLOCK_OK = 0,
	RLOCK_BUSY = 1,          /* another owner holds it */
	RLOCK_NOT_HELD = 2,      /* the hold does not exist (any more) */
	RLOCK_CANCELLED = 3,     /* cancel_fd became readable while waiting, or on_event ended it */
	RLOCK_NOT_NOTIFIED = 4,  /* done, but the server did not allow notifying the waiters */
	RLOCK_ENET = -1,         /* no reply, or no quorum: the lock may have changed hands */
	RLOCK_EAUTH = -2,        /* user or password denied */
	RLOCK_EACL = -3,         /* the user lacks a right; the text names it */
	RLOCK_EKIND = -4,        /* the key is something else */
	RLOCK_EDEADLOCK = -5,    /* an upgrade of a read lock to a write lock would be a deadlock */
	RLOCK_EUNSUPPORTED = -6, /* this server, or this build, can't serve the request */
	RLOCK_EINVAL = -7,       /* a bad URL, name or number; nothing was sent */
	RLOCK_ENOMEM = -8,       /* out of memory here */
	RLOCK_ESYS = -9,         /* the operating system reported an error */
	RLOCK_ESERVER = -10,     /* an unexpected reply or error of the server */
};

/* The constant's name without its prefix, in lower case; for logs. */
RLOCK_API const char *rlock_status_name(enum rlock_status status);

/* ---- time ---- */

/* Now, on CLOCK_BOOTTIME: like a lease on the server it goes on while the machine is suspended. */
RLOCK_API int64_t rlock_now_ms(void);

/*
 * The deadline of a wait that lasts for at least span_ms from now. rlock_now_ms() + span_ms would be up to 1 ms too early,
 * since the clock is rounded down. A span_ms of 0 gives a deadline that has passed. INT64_MAX if the sum is greater.
 */
RLOCK_API int64_t rlock_deadline_ms(int64_t span_ms);

/*
 * poll(2) up to a deadline on the same clock; INT64_MAX: no deadline. Returns the number of ready descriptors, 0 at the
 * deadline, -1 with errno. fds may be NULL when count is 0.
 */
struct pollfd;
RLOCK_API int rlock_poll(struct pollfd *fds, size_t count, int64_t deadline_ms);

/* ---- text ---- */

/*
 * Make bytes safe for a terminal: what isn't printable UTF-8, would change the order of the text around it, or has no
 * width, so that two names look alike, becomes \xNN for each byte. The text is cut, with "...", where out is full.
 * Returns out, a string; out_size is at least 8.
 */
RLOCK_API char *rlock_escape(const char *text, size_t len, char *out, size_t out_size);

/* The character of UTF-8 at the start of text: how many bytes it has, and which it is. 0: it is none. */
RLOCK_API size_t rlock_character_read(const char *text, size_t len, uint32_t *character_out);

/*
 * Percent-encode, by RFC 3986, all but unreserved characters and those in keep. Returns the length of the whole result,
 * as snprintf does; out is NUL-terminated if out_size is not 0.
 */
RLOCK_API size_t rlock_percent_encode(const char *text, size_t len, const char *keep, char *out,
				      size_t out_size);

/*
 * Decode in place. Returns the new length, or -1, with text unchanged, for a malformed escape or %00. A NUL is put
 * after the result: text has room for len + 1 bytes.
 */
RLOCK_API long rlock_percent_decode(char *text, size_t len);

/* ---- where the server is ---- */

struct rlock_url;

enum rlock_scheme {
	RLOCK_SCHEME_REDIS,    /* redis://[user[:pass]@]host[:port][/db]; with TLS rediss:// */
	RLOCK_SCHEME_UNIX,     /* unix:///path[?db=N] */
	RLOCK_SCHEME_SENTINEL, /* redis+sentinel://h1[:p],h2,.../SERVICE[/db]; rediss+sentinel:// */
	RLOCK_SCHEME_CLUSTER,  /* redis+cluster://h1[:p],h2,...; rediss+cluster:// */
	RLOCK_SCHEME_LOCAL,    /* local: */
};

/*
 * Parse a URL. RLOCK_OK and an object that the caller frees, or RLOCK_EINVAL (RLOCK_ENOMEM) with the reason in why,
 * which never has a password in it.
 */
RLOCK_API enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
					    char why[RLOCK_ERROR_MAX]);
RLOCK_API void rlock_url_free(struct rlock_url *url);

RLOCK_API enum rlock_scheme rlock_url_scheme(const struct rlock_url *url);
/* The URL without user and password, normalised ("redis://host:port/db"): one server, one text. It belongs to url. */
RLOCK_API const char *rlock_url_server(const struct rlock_url *url);
/* Whether the URL names a database. */
RLOCK_API bool rlock_url_has_db(const struct rlock_url *url);
/* The number of the URL's database; 0 if it names none. */
RLOCK_API int rlock_url_db(const struct rlock_url *url);
/* RLOCK_EINVAL for a negative number, or another than 0 for a cluster. */
RLOCK_API enum rlock_status rlock_url_set_db(struct rlock_url *url, int db);
/* The user that logs in at the server; NULL when the URL names none, which is the server's "default". */
RLOCK_API const char *rlock_url_user(const struct rlock_url *url);
RLOCK_API bool rlock_url_has_password(const struct rlock_url *url);
/* Copies password. */
RLOCK_API enum rlock_status rlock_url_set_password(struct rlock_url *url, const char *password);

/*
 * Fetches a password whenever a connection is opened, for passwords that expire, as tokens do. The library waits for
 * it, while it connects: none of these functions may. A fetch ends with `end`, whether its password was used or not.
 */
struct rlock_password_source {
	/*
	 * Begin to fetch the password for server (see rlock_url_server), until deadline_ms at most. *fd_out: it becomes
	 * readable when advance can go on. NULL with errno: it can't be done now.
	 */
	void *(*begin)(void *ctx, const char *server, int64_t deadline_ms, int *fd_out);
	/*
	 * Go on. RLOCK_OK: *password_out is it, and belongs to the fetch. RLOCK_BUSY: not yet. Any other status: there
	 * is none, with the reason in why. After these it is called no more.
	 */
	enum rlock_status (*advance)(void *fetch, const char **password_out,
				     char why[RLOCK_ERROR_MAX]);
	/* Free it, and its descriptor. After a fork() the child calls it for its copy of the fetch. */
	void (*end)(void *fetch);
	void *ctx; /* for begin */
};

/* Copies source. It is not used while the URL has a password; the sentinels of a URL have a login of their own. */
RLOCK_API void rlock_url_set_password_source(struct rlock_url *url,
					     const struct rlock_password_source *source);
/*
 * The login at the sentinels, which get neither user nor password of the URL: these are the server's. Copies both;
 * NULL: none, or as set before. RLOCK_EINVAL for a URL without sentinels.
 */
RLOCK_API enum rlock_status rlock_url_set_sentinel_login(struct rlock_url *url, const char *user,
							 const char *password);

/*
 * Fetches the password of the sentinels if none was set, and again when they deny the last password. Copies source.
 * RLOCK_EINVAL for a URL without sentinels.
 */
RLOCK_API enum rlock_status
rlock_url_set_sentinel_password_source(struct rlock_url *url,
				       const struct rlock_password_source *source);

/*
 * For a NAT or containers: HOST:PORT=HOST:PORT,... Where sentinels or the nodes of a cluster name the first address, connect
 * to the second. RLOCK_EINVAL, with the reason in why, for another text or for a URL of one server.
 */
RLOCK_API enum rlock_status rlock_url_set_map(struct rlock_url *url, const char *map,
					      char why[RLOCK_ERROR_MAX]);

/* How a TLS connection is made; each is a parameter of a URL with TLS, too. */
enum rlock_tls_param {
	RLOCK_TLS_CACERT,    /* a file: the authorities that are trusted, instead of the system's */
	RLOCK_TLS_CACERTDIR, /* a directory of such files, named by openssl-rehash(1) */
	RLOCK_TLS_CERT,      /* a file: the client certificate, and those up to its authority */
	RLOCK_TLS_KEY,       /* a file: its key, if that is not in the file of the certificate */
	RLOCK_TLS_SNI,       /* the server's name in its certificate, if that is not the host */
};

#define RLOCK_TLS_PARAMS (RLOCK_TLS_SNI + 1)

RLOCK_API bool rlock_url_has_tls(const struct rlock_url *url);
/* NULL: not set. It belongs to url. */
RLOCK_API const char *rlock_url_tls(const struct rlock_url *url, enum rlock_tls_param param);
/* Copies value. RLOCK_EINVAL for a URL without TLS. */
RLOCK_API enum rlock_status rlock_url_set_tls(struct rlock_url *url, enum rlock_tls_param param,
					      const char *value);
/* Verify no certificate: a machine between here and the server can then read and change everything. */
RLOCK_API enum rlock_status rlock_url_set_insecure(struct rlock_url *url);

/*
 * Turns a local: URL into that of the unix socket of its server. Each time that a connection connects there, the server
 * has to be one of this user's. RLOCK_EINVAL when path is not absolute or too long for a socket, or when url is not
 * local:.
 */
RLOCK_API enum rlock_status rlock_url_set_socket(struct rlock_url *url, const char *path);
/*
 * Overwrites the password in the text of a URL with '*', in place, and the values of unknown parameters; the length
 * stays. For argv. The text may be anything, also a list of URLs; it is unchanged without a password, but in a malformed
 * URL more than the password may be hidden.
 */
RLOCK_API void rlock_url_hide_password(char *text);

/* ---- a connection ---- */

struct rlock_conn;

struct rlock_conn_opts {
	int64_t connect_timeout_ms; /* for one request: to connect, if need be, and to get the reply */
	const char *client_name;    /* CLIENT SETNAME; NULL: none */
	/* When it becomes readable every wait ends with RLOCK_CANCELLED; -1: none. It belongs to the caller. */
	int cancel_fd;
	size_t quorum; /* how many of several servers must agree, more than half; 0: all */
	/* How many replicas of each server must acknowledge a lock or a renewal (WAIT) before it counts. */
	size_t replicas;
};

#define RLOCK_CONN_OPTS_INIT                                                                       \
	{                                                                                          \
		5000, NULL, -1, 0, 0                                                               \
	}

/*
 * A connection to one server, or to several (up to RLOCK_SERVERS_MAX) on which a lock is acquired together. It is
 * opened by the first request, and again after a failure. The files of certificates are read here; where that fails, the
 * first request reads them again, and reports the failure. opts may be NULL. The caller frees it; urls are copied.
 * RLOCK_EUNSUPPORTED  a local: URL without a socket, see rlock_url_set_socket; *out is set, for rlock_conn_error
 * RLOCK_EINVAL        the quorum is at most half of the servers, or more than all; *out is set, too
 *                     or: no URL, or more than RLOCK_SERVERS_MAX; *out keeps its value
 */
RLOCK_API enum rlock_status rlock_conn_new(struct rlock_url *const *urls, size_t url_count,
					   const struct rlock_conn_opts *opts,
					   struct rlock_conn **out);
RLOCK_API void rlock_conn_free(struct rlock_conn *conn);

/* Why the last failed call on conn failed; lower case, one line, safe for a terminal. It belongs to conn. */
RLOCK_API const char *rlock_conn_error(const struct rlock_conn *conn);
/* The index of the request's name that the text is about; 0 when it is about none in particular. */
RLOCK_API size_t rlock_conn_error_name(const struct rlock_conn *conn);

/*
 * During each wait of a call for conn: when fd (-1: none) is readable, call on_event, which reads it. Where that returns
 * true the call goes on, with the same request over the same stream: only a deadline abandons a request. false ends the
 * call with RLOCK_CANCELLED. What an acquisition has to undo is still undone, for a second or so; on_event is called
 * meanwhile, and what it returns changes nothing. After false the next wait calls it once more, whether fd is readable or
 * not: it tells whether the call is to go on, not what it has read. A call may have its result before it waits again:
 * then that is what it returns. on_event may not call the library for conn. It replaces cancel_fd; with on_event NULL, fd
 * is one.
 */
RLOCK_API void rlock_conn_set_events(struct rlock_conn *conn, int fd, bool (*on_event)(void *ctx),
				     void *ctx);

/*
 * In the child of a fork(): close its copy of the parent's stream, without a byte to the server. The next request opens
 * a stream of the child's own. It goes before any other call for the connection, rlock_conn_free() included.
 */
RLOCK_API void rlock_conn_after_fork_child(struct rlock_conn *conn);

/* Called with each step of the library (connected, request sent, ...) and the server that it is about; NULL: none. */
typedef void (*rlock_trace_fn)(void *ctx, const char *server, const char *step);
RLOCK_API void rlock_conn_set_trace(struct rlock_conn *conn, rlock_trace_fn trace, void *ctx);

/* Connect and log in now, within the connection's timeout: whether the servers can be used. */
RLOCK_API enum rlock_status rlock_conn_ping(struct rlock_conn *conn);

/* ---- what a server is like ---- */

#define RLOCK_FACT_MAX 64

struct rlock_server_info {
	/* As rlock_url_server; of a cluster the node, with sentinels the master. */
	const char *server;
	const char *facts;        /* what it tells: for rlock_server_fact */
	char tls[RLOCK_FACT_MAX]; /* "TLSv1.3"; empty: the connection has no TLS */
	int64_t certificate_s; /* in how many seconds its certificate ends; -1: that is not known */
	size_t sentinels;      /* of the URL; 0: none */
	size_t sentinels_answered;
	size_t sentinels_named; /* of these, how many name the server */
	/* Why the sentinels, which name different masters, prevent every grant; NULL: they do not prevent one. */
	const char *disagreement;
	bool is_sharded; /* it is a proxy, which keeps keys on several servers */
};

/* The field of INFO, or "save" or "appendfsync" of CONFIG GET, safe for a terminal. False, and empty: the server does not tell. */
RLOCK_API bool rlock_server_fact(const char *facts, const char *name, char out[RLOCK_FACT_MAX]);

typedef void (*rlock_server_fn)(void *ctx, const struct rlock_server_info *info);

/*
 * What the index-th server tells by INFO and CONFIG GET, or each master of a cluster: on_server is called for each, also
 * where it denies both. RLOCK_OK, or the first failure.
 */
RLOCK_API enum rlock_status rlock_conn_server_info(struct rlock_conn *conn, size_t index,
						   rlock_server_fn on_server, void *ctx);
/* A look at two clocks: the server's at some moment between two times of ours. The first one connects. */
struct rlock_clock_look {
	int64_t server_us;                /* since 1970; -1: it does not tell */
	int64_t own_begin_us, own_end_us; /* on the clock of rlock_now_ms */
};

RLOCK_API enum rlock_status rlock_conn_look_at_clock(struct rlock_conn *conn, size_t index,
						     struct rlock_clock_look *out);

#define RLOCK_RIGHT_MAX 64

/*
 * A right that the user lacks, as ACL SETUSER takes it, with '?' for a blank and the like: "+hset",
 * "~rlock_holds:{nightly*}", "&redisson_rwlock:{nightly*}*".
 */
struct rlock_lack {
	const char *right;
	unsigned kinds;   /* 1U << enum rlock_kind, for each kind of lock that needs it */
	bool is_optional; /* without it locks work, though not as well: rlock(7) says how */
};

struct rlock_name;
typedef void (*rlock_lack_fn)(void *ctx, const struct rlock_lack *lack);

/*
 * Try, on the index-th server, each right that locks need whose names fit pattern: "nightly*", or one name; and those of
 * rlock_list, which are optional. It makes keys under a random name, and removes them. lacks is called for each right that
 * the user does not have. RLOCK_OK: all were tried. RLOCK_EINVAL: pattern is too long.
 */
RLOCK_API enum rlock_status rlock_conn_try_rights(struct rlock_conn *conn, size_t index,
						  const struct rlock_name *pattern,
						  rlock_lack_fn lacks, void *ctx);

/* The result of trying a lock on a server. */
struct rlock_lock_trial {
	const char *server; /* of a cluster the node that serves the slot */
	int moving_slot; /* the slot of the lock, if it is on its way to the node moves_to; -1: it is not */
	const char *moves_to;
	/* The first failure of a lock of each kind but a semaphore, each acquired and released. */
	enum rlock_status status;
	const char *why; /* status is not RLOCK_OK; valid during the call */
	/* Some kinds were acquired, and these not: bits 1 << enum rlock_kind. 0: all were acquired, or none. */
	unsigned failed_kinds;
	bool is_denied; /* a reply of the server says why */
	/*
	 * RLOCK_OK: a waiter can subscribe there, and is notified. RLOCK_NOT_NOTIFIED: the server publishes nothing, and a
	 * waiter tries when the TTL is over. Else a waiter can't subscribe, and polls, at least once a second. messages_why is
	 * the reason.
	 */
	enum rlock_status messages;
	const char *messages_why;
};

typedef void (*rlock_lock_trial_fn)(void *ctx, const struct rlock_lock_trial *trial);

/*
 * Acquire and release a lock on the index-th server, or on each node of a cluster and in a slot that leaves the node. This
 * finds what no right and no setting shows. The lock's name fits pattern, and no client uses that name; if the user has no
 * right to such a name, it begins with "rlock_check:". on_trial is called with each result. Its status is RLOCK_EACL if the
 * user lacks a right, which rlock_conn_try_rights names. RLOCK_OK: all were tried.
 */
RLOCK_API enum rlock_status rlock_conn_try_lock(struct rlock_conn *conn, size_t index,
						const struct rlock_name *pattern,
						rlock_lock_trial_fn on_trial, void *ctx);

/* ---- locks ---- */

enum rlock_kind {
	RLOCK_PLAIN,     /* RLock */
	RLOCK_FAIR,      /* RFairLock */
	RLOCK_READ,      /* RReadWriteLock.readLock() */
	RLOCK_WRITE,     /* RReadWriteLock.writeLock() */
	RLOCK_SEMAPHORE, /* RPermitExpirableSemaphore; its counter is that of RSemaphore, too */
	RLOCK_ANY, /* any kind: for rlock_find, rlock_break, rlock_kind_is, and where an inspection can't tell */
};

/* "plain", "fair", "read", "write", "sem"; "unknown" for RLOCK_ANY. */
RLOCK_API const char *rlock_kind_name(enum rlock_kind kind);
/* The kind of that name; false, and *out unchanged, for any other text. */
RLOCK_API bool rlock_kind_parse(const char *text, size_t len, enum rlock_kind *out);

/* Whether a hold of kind is of the kind wanted. A plain and a fair lock look alike on the server, and count as one. */
RLOCK_API bool rlock_kind_is(enum rlock_kind kind, enum rlock_kind wanted);

/*
 * A lock's name: 1 to RLOCK_NAME_MAX bytes, none of them NUL or newline. Pass only names that rlock_name_check has
 * accepted: the other functions rely on it.
 */
struct rlock_name {
	const char *text;
	size_t len;
};

/* RLOCK_OK, or RLOCK_EINVAL with the reason, a constant, in *why. */
RLOCK_API enum rlock_status rlock_name_check(const struct rlock_name *name, const char **why);

/*
 * Whether two names, both of them checked, can't be locked at the same time, by one owner or by two: they share keys,
 * as "a" and "{a}" do, or one of them is a key that belongs to the other. So do equal names.
 */
RLOCK_API bool rlock_names_clash(const struct rlock_name *a, const struct rlock_name *b);

/* A new owner, "UUID:NUMBER", with a random UUID. RLOCK_ESYS when the kernel has no random bytes. */
RLOCK_API enum rlock_status rlock_owner_new(unsigned long number, char out[RLOCK_OWNER_MAX]);

/*
 * What may be an owner: 1 to 255 letters, digits, '.', '_', '-' and ':', but not the names of fields beside the owners
 * on the server: "mode" and "seen", what ends in ":write", and what has ":lingering:" in it. RLOCK_OK, or RLOCK_EINVAL
 * with the reason, a constant, in *why.
 */
RLOCK_API enum rlock_status rlock_owner_check(const char *owner, const char **why);

/*
 * Until when rlock_keep_until keeps the lock of this owner, in milliseconds since 1970 by the clock of its server; -1: it
 * does not, a process may hold it.
 */
RLOCK_API int64_t rlock_owner_kept_until_ms(const char *owner, size_t len);

/* A new hold id, 32 hex digits. RLOCK_ESYS as above. */
RLOCK_API enum rlock_status rlock_hold_id_new(char out[RLOCK_HOLD_ID_MAX]);

/*
 * A process of some machine. pid is a process of the reader's machine only if boot and pid_namespace are the reader's own.
 * If that process did not start at start, another process got its pid.
 */
struct rlock_process {
	uint64_t boot;          /* the first 64 bits of the machine's boot id */
	uint64_t pid_namespace; /* the inode of /proc/PID/ns/pid */
	int64_t pid;            /* 0: no process, or an unknown one; all other members are 0, too */
	/* In ticks, from /proc/PID/stat. 0: not known, or not counted by the machine's own clock. */
	uint64_t start;
};

/* What a hold is for, which decides when it ends. */
enum rlock_purpose {
	RLOCK_PURPOSE_UNKNOWN, /* the server has no record of the hold, as of a Java client's */
	RLOCK_PURPOSE_COMMAND, /* a command that rlock runs */
	RLOCK_PURPOSE_PROCESS, /* a process that runs anyway (--pid) */
	RLOCK_PURPOSE_OWNER,   /* an owner id without a process (--owner) */
	RLOCK_PURPOSE_KEPT, /* nothing any more: rlock_keep_until keeps the lock for a time (--at-least) */
};

/* What the record of a hold, or of a wait, says about it. */
struct rlock_record {
	enum rlock_purpose purpose;
	/* How many names were acquired together with this one, which is counted. 0: not known. */
	size_t name_count;
	/* A process renews the hold, and after each renewal it reads requests of rlock_request_stop: rlock_hold_stop_requested_by. */
	bool reads_requests;
	struct rlock_process process; /* that the hold is for; pid 0: none, or it is not known */
};

/* What else is known of the last failed call on a connection. */
struct rlock_failure {
	size_t reply_len; /* of the server's own words, which end the text: a caller says more before them */
	bool is_unreachable; /* a server was, and its URL may be wrong; not when several had no quorum */
	bool is_transient; /* RLOCK_ENET, and a retry may succeed: the server starts or is busy, or a failover may be under way */
	bool lacks_password; /* RLOCK_ENET, since the source of the password had none */
	/*
	 * After RLOCK_BUSY: other owners hold the lock, or what is left of it. False: a server was started less than a
	 * lease ago, and may have lost the lock of another owner.
	 */
	bool has_holder;
	int64_t held_ms; /* for how long the owner that the text names has held it; -1: it is not known */
	int64_t kept_until_ms;      /* of that owner, see rlock_owner_kept_until_ms */
	struct rlock_record record; /* of that owner; also after RLOCK_EDEADLOCK by is_ancestor */
};

/* It belongs to conn. */
RLOCK_API const struct rlock_failure *rlock_conn_failure(const struct rlock_conn *conn);

/* One acquisition. Made by rlock_hold_new or rlock_find; the caller frees it. */
struct rlock_hold;

/*
 * What rlock_hold_new makes a hold of, by a copy: all that the hold's requests send, from the acquisition to the release.
 */
struct rlock_hold_spec {
	enum rlock_kind kind;
	const struct rlock_name *names; /* all of them are acquired, or none; no two may clash */
	size_t name_count;
	const char *id;    /* NULL: a new one; else one of rlock_hold_id_new */
	const char *owner; /* that acquires it, see rlock_owner_check; NULL: a new one */
	/*
	 * For a hold that was acquired already: the owner of each name, which may be an inherited one. With the owners a renewal
	 * acquires the lock again on one of several servers that has lost it. NULL: not acquired yet, or not known.
	 */
	const char *const *owners;
	const char *note; /* shown to waiters; NULL: none; cut at RLOCK_NOTE_MAX */
	/* NULL: RLOCK_PURPOSE_OWNER, without a process. Its name_count, if it is 0, is that of the spec. */
	const struct rlock_record *record;
	int64_t lease_ms; /* the lock expires this long after the last renewal */
	int64_t sent_ms;  /* of a hold that was acquired already: when its last renewal was sent */
	int64_t remember_ms; /* how long after the release rlock_inspect reports the holder; 0: not at all */
	/*
	 * Of a semaphore; 0 for a lock. permits: how many it has in all, used only where no client has made it yet, at
	 * most RLOCK_PERMITS_MAX. take: how many of them to acquire, at most RLOCK_TAKE_MAX. No hold is re-entered:
	 * each has permits of its own.
	 */
	int64_t permits, take;
};

#define RLOCK_HOLD_SPEC_INIT                                                                       \
	{                                                                                          \
		RLOCK_PLAIN, NULL, 0, NULL, NULL, NULL, NULL, NULL, 30000, 0, 0, 0, 0              \
	}

/* Why the lock is busy. The strings are valid during the call they are passed to. */
struct rlock_blocker {
	size_t name_index;
	/* -1: the key has no TTL; -2: the lock is free, and left to another waiter; -3: readers hold it, and a writer is next */
	int64_t ttl_ms;
	int64_t held_ms; /* for how long owner has held it, by its record; -1: it is not known */
	int64_t permits; /* of a semaphore: how many there are in all; 0: it is not known */
	size_t position; /* of the caller in the queue of a fair lock, from 1 on; 0: it is in none */
	bool is_waiter; /* the lock is left to owner, the next waiter, or empty when that is not known */
	/*
	 * As rlock_url_server: it was started less than a lease ago, and grants a lock when a lease has passed. NULL: an
	 * owner or another waiter comes first.
	 */
	const char *restarted_server;
	/* Of the lock, as the server has it: escape it before printing. Empty: there is none, or it is not known. */
	const char *owner;
	size_t owner_len;
	const char *note; /* empty when that owner gave none */
	size_t note_len;
	struct rlock_record record; /* of that owner */
};

#define RLOCK_SINCE_UNKNOWN (-1)

/* How to acquire a hold. */
struct rlock_request {
	int64_t wait_ms; /* 0: do not wait; -1: for ever */
	/*
	 * So that another process can go on with the wait when this one is killed; NULL: none will. *since_us is 0 at
	 * first, RLOCK_SINCE_UNKNOWN when a request may have been sent, and then since when the caller waits, as the
	 * server says. A call for a hold of the same spec, with that *since_us, has the position of the killed one
	 * in every queue, and is granted what that one was granted last. If it fails, it undoes what both have left on
	 * the servers.
	 */
	int64_t *since_us;
	/* Owners whose hold is re-entered, if one of them holds the lock at that moment; see rlock_owner_check, too. */
	const char *const *inherited;
	size_t inherited_count;
	/*
	 * Whether the process of a holder waits for the caller to end: RLOCK_EDEADLOCK then, at once. Not asked about those of
	 * a semaphore, since the permits of others may do. NULL: none does.
	 */
	bool (*is_ancestor)(void *ctx, const struct rlock_process *process);
	/*
	 * Whether that process has ended. The lock may then have passed to another owner, which no waiter far back in a queue
	 * is told: the server is asked once more before on_wait is called. NULL: it is not.
	 */
	bool (*has_ended)(void *ctx, const struct rlock_process *process);
	bool issue_token; /* a fencing token */
	/* Called when a wait has lasted on_wait_ms, and again each on_wait_again_ms, see below; NULL: not called. */
	void (*on_wait)(void *ctx, const struct rlock_blocker *blocker);
	int64_t on_wait_ms;
	int64_t on_wait_again_ms; /* 0: on_wait is called once */
	/* Called once for a semaphore whose total differs from permits of the spec, and stays as it is; NULL: not called. */
	void (*on_total)(void *ctx, size_t name_index, int64_t total);
	void *ctx; /* of all these functions */
};

#define RLOCK_REQUEST_INIT                                                                         \
	{                                                                                          \
		-1, NULL, NULL, 0, NULL, NULL, false, NULL, 1000, 0, NULL, NULL                    \
	}

/*
 * Acquire the locks of hold. The request goes to all servers at once; without a quorum it is undone on all of them. A server
 * that was started less than a lease ago may have lost another owner's lock: it counts only when all must agree. Blocks
 * for wait_ms, and for the connection's timeout when a server doesn't answer.
 * RLOCK_OK         acquired; the lease of the hold is counted from before the request was sent
 * RLOCK_BUSY       the wait is over; the error text names the owner that holds the lock
 * RLOCK_CANCELLED  nothing is held, and the caller is in no queue
 * RLOCK_EINVAL     an inherited owner that rlock_owner_check denies; a name whose keys are in several slots of a
 *                  cluster; a lease of less than 1 ms or more than 10000 days; of a semaphore: several servers, or
 *                  permits or take out of range; nothing was sent
 * RLOCK_ENET       no server that can grant a lock was reached in time; or it was lost during the wait, and was not
 *                  back at the end of the wait (with wait_ms -1: after 60 s); or its reply was lost, and so were those
 *                  to all retries within a second; or too few replicas acknowledged the lock. Nothing stays held for
 *                  longer than one lease
 * other failures   nothing is held
 * After a lost reply the same hold may be acquired again: no second hold is added. After any other failure the caller needs
 * another hold, since a release of the old one may still arrive.
 */
RLOCK_API enum rlock_status rlock_acquire(struct rlock_conn *conn, struct rlock_hold *hold,
					  const struct rlock_request *request);

/*
 * Renew a hold: its lease then ends lease_ms after the request was sent. Each server gets one request, which ends at
 * deadline_ms at the latest. Then the call may block for some seconds more: replicas and sentinels have to confirm the
 * renewal, and servers that have lost the lock acquire it again.
 * RLOCK_OK        renewed
 * RLOCK_NOT_HELD  it expired, was broken or overwritten; do not go on as if it were held
 * RLOCK_ENET      unknown; retry until your own deadline
 * RLOCK_EINVAL    a lease as rlock_acquire denies it; nothing was sent
 */
RLOCK_API enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold,
					int64_t lease_ms, int64_t deadline_ms);
/* rlock_renew with the retries of rlock_release, for a caller that has nothing else to do until deadline_ms. */
RLOCK_API enum rlock_status rlock_renew_until(struct rlock_conn *conn, struct rlock_hold *hold,
					      int64_t lease_ms, int64_t deadline_ms);

/*
 * Release the hold. Retries, over new streams, until deadline_ms or the lease's end; where one of these is near, or over
 * already, the first request still gets a second. RLOCK_CANCELLED: it is not known whether the hold was released.
 * RLOCK_OK            released (the owner may have other holds: rlock_hold_count)
 * RLOCK_NOT_NOTIFIED  released, but the user may not publish: waiters notice it by a retry
 * RLOCK_NOT_HELD      it had been lost
 * RLOCK_ENET          not delivered: the lease expires
 */
RLOCK_API enum rlock_status rlock_release(struct rlock_conn *conn, struct rlock_hold *hold,
					  int64_t deadline_ms);

/*
 * Instead of a release: keep the lock for left_ms more, and then let it expire. With other holds of the same owner it
 * may last longer. Retries and statuses are those of rlock_release; and RLOCK_EINVAL for more than 10000 days.
 */
RLOCK_API enum rlock_status rlock_keep_until(struct rlock_conn *conn, struct rlock_hold *hold,
					     int64_t left_ms, int64_t deadline_ms);

/*
 * Set how many permits the semaphore has in all. Held permits stay held: after a smaller total the number of free ones
 * may be below 0, until enough are released. Retries as rlock_release, until deadline_ms; after a lost reply *had_out may be
 * the new total.
 * RLOCK_OK     *had_out is how many it had; -1: there was no semaphore, and it was made
 * RLOCK_EINVAL permits is out of range, or there are several servers; nothing was sent
 */
RLOCK_API enum rlock_status rlock_resize(struct rlock_conn *conn, const struct rlock_name *name,
					 int64_t permits, int64_t deadline_ms, int64_t *had_out);

/*
 * The most recent hold of a kind, or of RLOCK_ANY, that owner has on name, with its record (rlock_hold_record) and note. Of
 * several servers a quorum is enough. Retries as rlock_release, until deadline_ms. RLOCK_OK and *out, or RLOCK_NOT_HELD. Its
 * lease is the TTL on the server, or RLOCK_LEASE_LOST when the key was overwritten with another type; count and token
 * are 0. A fair lock is found as a plain one, which is renewed and released alike. RLOCK_EKIND when the key is no lock,
 * and there is no sign that it was the owner's.
 */
#define RLOCK_LEASE_LOST (-2)
RLOCK_API enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
				       const char *owner, enum rlock_kind kind, int64_t deadline_ms,
				       struct rlock_hold **out);

/*
 * Break a lock of any owner, if it is of that kind; RLOCK_ANY: of whatever kind. RLOCK_READ breaks the read locks of an
 * owner that has the write lock, too, and leaves the write lock. The holder is not asked: it notices when it renews or
 * releases the lock. With owner not NULL the lock is broken only if that owner holds it; other readers keep theirs.
 * Of several servers a quorum is enough. Retries as rlock_release, until deadline_ms. Only holds that the servers' first
 * replies list are broken: an owner that acquires the lock after that keeps it.
 * RLOCK_OK        broken; owner_out is the owner it had, note its note, empty without one; both are escaped
 *                 (RLOCK_NOT_NOTIFIED: the same, but the waiters were not notified). An empty owner_out: no owner held
 *                 it, and note says what was removed, or that an earlier request may have broken it
 * RLOCK_NOT_HELD  no owner holds it
 * RLOCK_BUSY      another owner than the one given holds it, or it is a lock of another kind: owner_out, note
 * RLOCK_EKIND     the key is no lock
 */
RLOCK_API enum rlock_status rlock_break(struct rlock_conn *conn, const struct rlock_name *name,
					const char *owner, enum rlock_kind kind,
					int64_t deadline_ms, char owner_out[RLOCK_OWNER_MAX],
					char note[RLOCK_NOTE_MAX]);

/* A hold that rlock_request_stop has found. */
struct rlock_stop_hold {
	char id[RLOCK_HOLD_ID_MAX]; /* empty: the hold of a client that writes no records, as Java's */
	/* Escaped, and without ":write". Empty: permits of unknown holders. */
	char owner[RLOCK_OWNER_MAX];
	char note[RLOCK_NOTE_MAX]; /* escaped; empty: none */
	struct rlock_record record;
	int64_t ttl_ms; /* RLOCK_TIME_NONE: none. Without a record the TTL of the key */
	/* At least one server has a hold whose process reads requests. After RLOCK_OK that hold was asked. */
	bool can_be_asked;
};

/* A request, which rlock_request_stop sends and follows. Begin with { 0 }. */
struct rlock_stop_request {
	struct rlock_stop_hold *holds;
	size_t count;
	bool was_held; /* a call has found a hold: RLOCK_NOT_HELD means that all holds have ended since */
	bool is_answered; /* the servers have replied to a request, not only to the search */
};

/*
 * Ask the processes that renew the holds on name to end their work and to release the holds. A process finds the request, which is
 * stored beside its hold, by its next renewal: rlock_hold_stop_requested_by. If owner is not NULL, only its holds are asked. by names the
 * caller, as "user@host".
 *
 * The first call searches for the holds, then asks those that it found. Each further call with the same stop asks these holds only,
 * never a later holder, and leaves in stop those that have not ended. Of several servers a quorum is enough. Retries as rlock_release,
 * until deadline_ms. Free stop with rlock_stop_request_clear.
 * RLOCK_OK        stop has the holds; the earlier ones are freed
 * RLOCK_NOT_HELD  no hold is left, and stop has none
 * RLOCK_EKIND     the key is no lock
 * RLOCK_EACL      a right is missing that a mere holder does not need; no hold was asked
 * other failures  stop has the holds it had, or those that the search found; the request may have been stored all the same
 */
RLOCK_API enum rlock_status rlock_request_stop(struct rlock_conn *conn,
					       const struct rlock_name *name, const char *owner,
					       const char *by, int64_t deadline_ms,
					       struct rlock_stop_request *stop);
RLOCK_API void rlock_stop_request_clear(struct rlock_stop_request *stop);

/* ---- what the servers say of a name ---- */

/* Which client a holder or a waiter is, as far as what it left on the server tells. */
enum rlock_client {
	RLOCK_CLIENT_UNKNOWN, /* there are too many records to look at all, or no right to them */
	RLOCK_CLIENT_RLOCK,   /* rlock or librlock: there is a record of the hold, or of the wait */
	RLOCK_CLIENT_REDISSON, /* there is none, and the owner has Redisson's form, UUID:THREAD */
	RLOCK_CLIENT_OTHER,    /* there is none, and the owner has another form */
};

/* "unknown", "rlock", "redisson", "other". */
RLOCK_API const char *rlock_client_name(enum rlock_client client);

#define RLOCK_TIME_NONE (-1)    /* there is no TTL */
#define RLOCK_TIME_UNKNOWN (-2) /* the server has no record of it, or denies it */

/*
 * The members of the structs below that a server's reply has: one row each, in the order of the reply. The library's reader is
 * made of these rows, and the JSON of `rlock status`, so that a new member is one row. FIELD(type, member, key): key names the
 * member in that JSON; NULL: it is not there, or is within another member.
 *
 * BYTES     struct rlock_name: as the server has it, any bytes: escape it before printing
 * TEXT      const char *, one line, safe for a terminal; empty: none
 * NUMBERS   const char *: numbers with a blank between two; empty: none
 * NUMBER    int64_t
 * POSITIVE  int64_t; 0: none
 * TIME      int64_t, in ms; RLOCK_TIME_NONE or RLOCK_TIME_UNKNOWN
 * SIZE      size_t
 */
#define RLOCK_TYPE_BYTES struct rlock_name
#define RLOCK_TYPE_TEXT const char *
#define RLOCK_TYPE_NUMBERS const char *
#define RLOCK_TYPE_NUMBER int64_t
#define RLOCK_TYPE_POSITIVE int64_t
#define RLOCK_TYPE_TIME int64_t
#define RLOCK_TYPE_SIZE size_t
#define RLOCK_TYPE_BOOL bool
#define RLOCK_TYPE_KIND enum rlock_kind
#define RLOCK_TYPE_CLIENT enum rlock_client
#define RLOCK_MEMBER(type, member, key) RLOCK_TYPE_##type member;
/* LIST(item, member, count, key): count structs rlock_ITEM. OBJECT(item, member, key): one of them; NULL: none. */
#define RLOCK_MEMBER_LIST(item, member, count, key)                                                \
	const struct rlock_##item *member;                                                         \
	size_t count;
#define RLOCK_MEMBER_OBJECT(item, member, key) const struct rlock_##item *member;

#define RLOCK_HOLDER_FIELDS(FIELD)                                                                 \
	FIELD(BYTES, owner, "owner")  /* without the ":write" of a writer */                       \
	FIELD(NUMBER, count, "count") /* how many holds, or permits, the owner has */              \
	FIELD(CLIENT, client, "client")                                                            \
	FIELD(TIME, held_ms, "held_ms")   /* since its first hold */                               \
	FIELD(TIME, ttl_ms, "ttl_ms")     /* 0: expired, and counts no more */                     \
	FIELD(POSITIVE, token, "token")   /* the fencing token of its first hold */                \
	FIELD(NUMBERS, slots, "slots")    /* of its permits, as rlock_hold_slots */                \
	FIELD(BYTES, note, "note")        /* empty: none */                                        \
	FIELD(TIME, asked_ms, "asked_ms") /* age of a stop request */                              \
	FIELD(BYTES, asked_by, "asked_by")

struct rlock_holder {
	RLOCK_HOLDER_FIELDS(RLOCK_MEMBER)
	enum rlock_kind kind; /* RLOCK_PLAIN for a fair lock, too: they look alike */
	struct rlock_record record;
};

#define RLOCK_WAITER_FIELDS(FIELD)                                                                 \
	FIELD(BYTES, owner, "owner")                                                               \
	FIELD(CLIENT, client, "client")                                                            \
	FIELD(TIME, waits_ms, "waits_ms")                                                          \
	FIELD(BOOL, is_dead, "dead") /* no heartbeat in time: the next caller removes it */        \
	FIELD(BYTES, note, "note")   /* empty: none */

struct rlock_waiter {
	RLOCK_WAITER_FIELDS(RLOCK_MEMBER)
	struct rlock_record record;
};

enum rlock_state {
	RLOCK_STATE_FREE,
	RLOCK_STATE_HELD,
	RLOCK_STATE_OTHER, /* the key is no lock */
};

/* Something that one server did not show. */
#define RLOCK_UNSEEN_FIELDS(FIELD)                                                                 \
	FIELD(TEXT, what, "what") /* a word: "holders", "records", "queue", ... */                 \
	FIELD(TEXT, why, "why")

struct rlock_unseen {
	RLOCK_UNSEEN_FIELDS(RLOCK_MEMBER)
};

/* How the command of a hold ended. */
struct rlock_end {
	int64_t status;     /* -1: it did not exit, or that is not known */
	int64_t signal;     /* 0: none ended it */
	const char *reason; /* one line, safe for a terminal; empty: none */
};

/* The holder that held the lock last, if it was acquired with a remember_ms in its spec. */
#define RLOCK_LAST_FIELDS(FIELD)                                                                   \
	FIELD(TEXT, kind, "kind") /* as rlock_kind_name */                                         \
	FIELD(BYTES, owner, "owner")                                                               \
	FIELD(TIME, held_ms, "held_ms") /* how long it held the lock */                            \
	FIELD(TIME, ago_ms, "ago_ms")   /* since the end of that */                                \
	FIELD(TIME, status, "status")   /* of rlock_end */                                         \
	FIELD(POSITIVE, signal, "signal")                                                          \
	FIELD(TEXT, reason, "reason")                                                              \
	FIELD(BYTES, note, "note") /* empty: none */

struct rlock_last {
	RLOCK_LAST_FIELDS(RLOCK_MEMBER)
	struct rlock_record record;
};

/*
 * kind            RLOCK_FAIR: the name has a queue, which alone tells a fair lock from a plain one. RLOCK_ANY: free, and nothing tells
 *                 its kind
 * ttl_ms          of the key
 * token           the counter of fencing tokens
 * holders         those that have held for longest first: holder_count of the holder_total on the server
 * queue           of a fair lock, the head first: queue_count of queue_total
 * wake_total      our waiters that are in no queue of a fair lock
 * wake_ms         how long the first of these has waited
 * other_clients   that subscribe to the channel of the lock, as Java's waiters do
 * writer          waits for readers, and is next
 * ground          how the key is known for a lock: "record", of ours; "owners", of Redisson's form; "beside": a queue or a counter
 *                 of tokens. Empty: it has the form of a lock, and no more
 * permits         of a semaphore, in all; 0 for a lock
 * free_permits    less than 0 when the total was made less
 * unheld_permits  whose holder left no record, as Java's RSemaphore does
 */
#define RLOCK_INSPECTION_FIELDS(FIELD, LIST, OBJECT)                                               \
	FIELD(KIND, kind, "kind")                                                                  \
	FIELD(TIME, ttl_ms, "ttl_ms")                                                              \
	FIELD(POSITIVE, token, "token")                                                            \
	FIELD(SIZE, holder_total, "holder_count")                                                  \
	LIST(holder, holders, holder_count, "holders")                                             \
	FIELD(SIZE, queue_total, "queue_count")                                                    \
	LIST(waiter, queue, queue_count, "queue")                                                  \
	FIELD(SIZE, wake_total, "waiter_count")                                                    \
	FIELD(TIME, wake_ms, "waits_ms")                                                           \
	FIELD(SIZE, other_clients, "other_client_count")                                           \
	OBJECT(waiter, writer, "next_writer")                                                      \
	LIST(unseen, unseen, unseen_count, "unseen")                                               \
	FIELD(TEXT, ground, "ground")                                                              \
	FIELD(NUMBER, permits, NULL)                                                               \
	FIELD(NUMBER, free_permits, NULL)                                                          \
	FIELD(NUMBER, unheld_permits, NULL)                                                        \
	OBJECT(last, last, "last")

/* What one server says of a name. */
struct rlock_inspection {
	struct rlock_name name;
	const char *server;       /* as rlock_url_server; of a cluster the node */
	enum rlock_status status; /* other than RLOCK_OK: nothing below is known, but for error */
	const char *error;        /* one line, safe for a terminal; empty: none */
	enum rlock_state state;
	const char *type; /* of a key that is no lock; else empty */
	RLOCK_INSPECTION_FIELDS(RLOCK_MEMBER, RLOCK_MEMBER_LIST, RLOCK_MEMBER_OBJECT)
	void *memory; /* what the strings are in */
};

/*
 * What each server says of a name: one inspection for each URL, in their order. It changes nothing. A user with fewer
 * rights learns less: see unseen. Very long lists are cut: see the totals. Free all with rlock_inspections_free. A server that
 * has not answered by deadline_ms, or within the connection's timeout, has RLOCK_ENET.
 * RLOCK_OK      at least one server answered
 * other status  the failure of the first server; the inspections say the failure of each, or *out is as it was
 */
RLOCK_API enum rlock_status rlock_inspect(struct rlock_conn *conn, const struct rlock_name *name,
					  int64_t deadline_ms, struct rlock_inspection **out,
					  size_t *count_out);
RLOCK_API void rlock_inspections_free(struct rlock_inspection *inspections, size_t count);

/* How far rlock_list is. */
struct rlock_list_progress {
	uint64_t looked_at; /* about so many keys of any sort */
	uint64_t found;     /* so many locks */
	/* The server, at its end, as rlock_url_server; of a cluster the node: the user may not look at so many of its keys. */
	const char *server;
	uint64_t denied;
	const char *
		error; /* why; one line, safe for a terminal. Empty: it is not the end, or none was denied */
};

struct rlock_list_request {
	/*
	 * Of names, as the server's SCAN takes it: '*', '?', '[a-z]', '[^a-z]', and a backslash before such a character; with a NUL
	 * after its end.
	 */
	struct rlock_name pattern;
	/* Called with some locks at a time. They are valid during the call; the queue is counted only. */
	void (*on_locks)(void *ctx, const struct rlock_inspection *locks, size_t count);
	/* Called after each step, and at the end of each server that denied some keys; NULL: not called. */
	void (*on_progress)(void *ctx, const struct rlock_list_progress *progress);
	void *ctx;
	size_t holders_max; /* how many holders of each lock are listed; 0: a few. More take longer */
};

/*
 * Find the locks that are held on each server, or on all masters of a cluster. It goes through all keys, in slices that
 * hold up no other client, and keeps none of them; a lock that is there from the beginning to the end is found once,
 * any other may be missed. It changes nothing. Since any hash may have numbers in it, a lock is what has a hold record
 * of ours or a queue or a counter of tokens beside it, or owners that all have the form of Redisson's; see ground.
 * RLOCK_OK      all of them were gone through
 * RLOCK_EACL    as any failure; or each key that might be a lock was denied
 * other status  the first failure; the other servers were gone through all the same, but after RLOCK_CANCELLED
 */
RLOCK_API enum rlock_status rlock_list(struct rlock_conn *conn,
				       const struct rlock_list_request *request);

/*
 * Make a hold, for rlock_acquire; or one that was acquired already, from a file or by another process. Its fields say all
 * that any request for it sends.
 * RLOCK_OK      *out is the hold
 * RLOCK_EINVAL  no name, no such kind, or an owner or id that rlock_owner_check or rlock_hold_id_new does not allow
 * RLOCK_ESYS    the kernel has no random bytes for an owner or id
 */
RLOCK_API enum rlock_status rlock_hold_new(const struct rlock_hold_spec *spec,
					   struct rlock_hold **out);
RLOCK_API void rlock_hold_free(struct rlock_hold *hold);

RLOCK_API const char *rlock_hold_id(const struct rlock_hold *hold);
/*
 * The owner of the index-th name: that of the spec, or the inherited one that was re-entered. Empty before the
 * acquisition, and where the spec of an acquired hold has none.
 */
RLOCK_API const char *rlock_hold_owner(const struct rlock_hold *hold, size_t index);
/* How many holds the owner had on that name right after the acquisition, this one included. */
RLOCK_API int64_t rlock_hold_count(const struct rlock_hold *hold, size_t index);
/* It belongs to hold. */
RLOCK_API const struct rlock_record *rlock_hold_record(const struct rlock_hold *hold);
/* The fencing token issued for that name; 0: none. */
RLOCK_API int64_t rlock_hold_token(const struct rlock_hold *hold, size_t index);
/*
 * The slots of a hold of a semaphore, on the index-th name: numbers from 1 on, one for each permit, with a blank between two.
 * The lowest ones that no other hold has, which no other one gets before this one is released or its lease has ended. So they
 * are at most the total, unless that was reduced since. Empty for a lock, and before rlock_acquire.
 */
RLOCK_API const char *rlock_hold_slots(const struct rlock_hold *hold, size_t index);
/*
 * When the last successful request for this hold was sent, and its lease: until their sum the hold can be relied on. So
 * that it can, the first is set back by what our clock and the server's may differ by over one lease: a thousandth of
 * it, 2 ms at least; with several servers 1 % and 2 ms.
 */
RLOCK_API int64_t rlock_hold_sent_ms(const struct rlock_hold *hold);
RLOCK_API int64_t rlock_hold_lease_ms(const struct rlock_hold *hold);
/* For a hold that another process renews: when it sent its last successful renewal. */
RLOCK_API void rlock_hold_set_sent_ms(struct rlock_hold *hold, int64_t sent_ms);
/*
 * For a hold that another process has acquired since this one made it: the owner of the index-th name, as in owners of
 * the spec. RLOCK_EINVAL: see rlock_owner_check.
 */
RLOCK_API enum rlock_status rlock_hold_set_owner(struct rlock_hold *hold, size_t index,
						 const char *owner);
/*
 * For a hold that another process had begun to acquire when it was killed: rlock_release then leaves the queue of every
 * name, too, besides releasing what was granted. It returns RLOCK_NOT_HELD where nothing was.
 */
RLOCK_API void rlock_hold_set_queued(struct rlock_hold *hold);
/* Replace remember_ms of the spec, for example for a hold from rlock_find. */
RLOCK_API void rlock_hold_set_remember(struct rlock_hold *hold, int64_t ttl_ms);
/*
 * How the job ended: rlock_inspect reports this after the release, if the server's user has the right to the key where it is
 * stored. end is copied; its reason has no newline, and is cut when it is long.
 */
RLOCK_API void rlock_hold_set_end(struct rlock_hold *hold, const struct rlock_end *end);
/* The TTL on the server after the last renewal. */
RLOCK_API int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold);
/*
 * The sender of an rlock_request_stop that the last renewal has found beside the hold, escaped; the text belongs to hold. NULL: there is
 * no request. *name_index_out: the name that the request is for.
 */
RLOCK_API const char *rlock_hold_stop_requested_by(const struct rlock_hold *hold,
						   size_t *name_index_out);

#ifdef __cplusplus
}
#endif

#endif
