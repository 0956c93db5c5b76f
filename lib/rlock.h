/*
 * librlock: Redisson's locks, on Redis or Valkey, for C programs.
 *
 *	struct rlock_url *url = NULL;
 *	struct rlock_conn *conn = NULL;
 *	struct rlock_hold *hold = NULL;
 *	struct rlock_name name = { "nightly", 7 };
 *	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
 *	struct rlock_request request = RLOCK_REQUEST_INIT;
 *	struct rlock_url_error error;
 *
 *	if (rlock_url_parse("redis://127.0.0.1:6379", &url, &error) != RLOCK_OK)
 *		errx(64, "%s", error.why);
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
 * one thread at a time. The only globals are OpenSSL's functions, which the library looks up once, under a mutex. The library
 * never prints, forks, exits or touches signals, and causes no SIGPIPE. After fork() the child calls
 * rlock_conn_close_streams() on each connection of the thread that forked, and does not touch connections of other threads.
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
	RLOCK_BUSY = 1,          /* another owner holds the lock */
	RLOCK_NOT_HELD = 2,      /* the hold does not exist (any more) */
	RLOCK_CANCELLED = 3,     /* cancel_fd became readable, or on_event ended the call */
	RLOCK_NOT_NOTIFIED = 4,  /* done, but the server did not allow notifying the waiters */
	RLOCK_ENET = -1,         /* no quorum of replies: the request may have taken effect */
	RLOCK_EAUTH = -2,        /* user or password denied */
	RLOCK_EACL = -3,         /* the user lacks a right; the text names it */
	RLOCK_EKIND = -4,        /* the key is no lock, or a lock of another kind */
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

/* Now, on CLOCK_BOOTTIME: this clock runs while the machine is suspended, as a lease on the server does. */
RLOCK_API int64_t rlock_now_ms(void);

/*
 * The deadline of a wait that lasts for at least span_ms from now. rlock_now_ms() + span_ms could be up to 1 ms too early,
 * because the clock is rounded down. A span_ms of 0 gives a deadline that has passed. INT64_MAX if the sum is greater.
 */
RLOCK_API int64_t rlock_deadline_ms(int64_t span_ms);

/*
 * poll(2) up to a deadline on the clock of rlock_now_ms; INT64_MAX: no deadline. Returns the number of ready descriptors, 0 at
 * the deadline, -1 with errno. fds may be NULL when count is 0.
 */
struct pollfd;
RLOCK_API int rlock_poll(struct pollfd *fds, size_t count, int64_t deadline_ms);

/* ---- text ---- */

/*
 * Make bytes safe for a terminal. Each byte of a character becomes \xNN if the character is no printable UTF-8, reorders the text
 * around it, or has no width (two names could look alike). If out is full, the text is cut and ends in "...". Returns out, a
 * string; out_size is at least 8.
 */
RLOCK_API char *rlock_escape(const char *text, size_t len, char *out, size_t out_size);

/* Decode the UTF-8 character at the start of text. Returns its length in bytes; 0: text does not begin with one. */
RLOCK_API size_t rlock_character_read(const char *text, size_t len, uint32_t *character_out);

/*
 * Percent-encode (RFC 3986) all bytes except unreserved characters and those in keep. Returns the length of the whole result,
 * as snprintf does; out is NUL-terminated if out_size is not 0.
 */
RLOCK_API size_t rlock_percent_encode(const char *text, size_t len, const char *keep, char *out,
				      size_t out_size);

/*
 * Percent-decode text in place, and put a NUL after the result: text has room for len + 1 bytes. Returns the new length.
 * -1, and text is unchanged: a malformed escape, or %00.
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

/* Mistakes in a URL for which a program may have a better explanation than the library. */
enum rlock_url_mistake {
	RLOCK_URL_MISTAKE_OTHER,
	RLOCK_URL_MISTAKE_DATABASE,  /* the database is not a number */
	RLOCK_URL_MISTAKE_PARAMETER, /* the query has an unknown parameter */
};

/* Why a text was refused. */
struct rlock_url_error {
	enum rlock_url_mistake mistake;
	/* Where the text has that database, or the name of that parameter. */
	size_t part_at, part_len;
	/* Length of why without the example at its end, so that a caller can replace the example. */
	size_t reason_len;
	/* The reason in words, for people. It never contains a password. */
	char why[RLOCK_ERROR_MAX];
};

/* Parse a URL into an object that the caller frees. RLOCK_EINVAL or RLOCK_ENOMEM: error has the reason. */
RLOCK_API enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
					    struct rlock_url_error *error);
RLOCK_API void rlock_url_free(struct rlock_url *url);

RLOCK_API enum rlock_scheme rlock_url_scheme(const struct rlock_url *url);
/* The URL without user and password, normalised ("redis://host:port/db"): equal for equal servers. The text belongs to url. */
RLOCK_API const char *rlock_url_server(const struct rlock_url *url);
/* Whether the URL names a database. */
RLOCK_API bool rlock_url_has_db(const struct rlock_url *url);
/* The number of the URL's database; 0 if it names none. */
RLOCK_API int rlock_url_db(const struct rlock_url *url);
/* Set the number of the URL's database. RLOCK_EINVAL: db is negative; or it is not 0, and url is that of a cluster. */
RLOCK_API enum rlock_status rlock_url_set_db(struct rlock_url *url, int db);
/* The user for the login. NULL: the URL names none, and the server takes its user "default". */
RLOCK_API const char *rlock_url_user(const struct rlock_url *url);
RLOCK_API bool rlock_url_has_password(const struct rlock_url *url);
/* Set the password for the login. The text is copied. */
RLOCK_API enum rlock_status rlock_url_set_password(struct rlock_url *url, const char *password);

/*
 * Functions that fetch a password whenever a connection is opened, for passwords that expire, such as tokens. They must not
 * block: the library polls fd_out while it connects. Each fetch is freed by end, whether its password was used or not.
 */
struct rlock_password_source {
	/*
	 * Begin to fetch the password for server (see rlock_url_server), until deadline_ms at most. Returns the fetch; NULL with
	 * errno: it cannot begin now. *fd_out is a descriptor that becomes readable when advance has something to do.
	 */
	void *(*begin)(void *ctx, const char *server, int64_t deadline_ms, int *fd_out);
	/*
	 * Continue the fetch. RLOCK_BUSY: not complete yet. RLOCK_OK: *password_out is the password, and belongs to the fetch.
	 * Any other status: there is no password, and why has the reason. After a status other than RLOCK_BUSY the library does
	 * not call advance again.
	 */
	enum rlock_status (*advance)(void *fetch, const char **password_out,
				     char why[RLOCK_ERROR_MAX]);
	/* Free the fetch and its descriptor. After a fork() the child calls this for its copy of the fetch. */
	void (*end)(void *fetch);
	void *ctx; /* the ctx of begin */
};

/*
 * Set the source of the password for the login. source is copied. It is not used if the URL contains a password, nor for the
 * sentinels, which have a login of their own.
 */
RLOCK_API void rlock_url_set_password_source(struct rlock_url *url,
					     const struct rlock_password_source *source);
/*
 * Set the login for the sentinels, because user and password of the URL are for the master only. Both are copied; a NULL
 * leaves the value that was set before. RLOCK_EINVAL: the URL has no sentinels.
 */
RLOCK_API enum rlock_status rlock_url_set_sentinel_login(struct rlock_url *url, const char *user,
							 const char *password);

/*
 * Set the source of the sentinels' password, which is used if no password was set for them. The password is fetched again when
 * a sentinel denies the last one. source is copied. RLOCK_EINVAL: the URL has no sentinels.
 */
RLOCK_API enum rlock_status
rlock_url_set_sentinel_password_source(struct rlock_url *url,
				       const struct rlock_password_source *source);

/*
 * For a NAT or containers: map is HOST:PORT=HOST:PORT,... If a sentinel or a node of a cluster names the first address, connect to
 * the second. RLOCK_EINVAL: map has another form, or url is of a single server; error has the reason.
 */
RLOCK_API enum rlock_status rlock_url_set_map(struct rlock_url *url, const char *map,
					      struct rlock_url_error *error);

/* Parameters of a TLS connection. A URL with TLS can also contain each of them. */
enum rlock_tls_param {
	RLOCK_TLS_CACERT,    /* file of trusted authorities, instead of the system's */
	RLOCK_TLS_CACERTDIR, /* directory of such files, named by openssl-rehash(1) */
	RLOCK_TLS_CERT,      /* file of the client certificate, followed by its chain */
	RLOCK_TLS_KEY, /* file of the client's key; not set: the key is in the certificate's file */
	RLOCK_TLS_SNI, /* name in the server's certificate; not set: the host */
};

#define RLOCK_TLS_PARAMS (RLOCK_TLS_SNI + 1)

RLOCK_API bool rlock_url_has_tls(const struct rlock_url *url);
/* The value of a TLS parameter, which belongs to url. NULL: the parameter is not set. */
RLOCK_API const char *rlock_url_tls(const struct rlock_url *url, enum rlock_tls_param param);
/* Set a TLS parameter; value is copied. RLOCK_EINVAL: the URL is one without TLS. */
RLOCK_API enum rlock_status rlock_url_set_tls(struct rlock_url *url, enum rlock_tls_param param,
					      const char *value);
/* Do not verify the server's certificate: a machine between here and the server can then read and change everything. */
RLOCK_API enum rlock_status rlock_url_set_insecure(struct rlock_url *url);

/*
 * Turn a local: URL into the URL of its server's unix socket. Each connect then checks that the server runs as this user.
 * RLOCK_EINVAL: path is not absolute or too long for a socket, or url is not local:.
 */
RLOCK_API enum rlock_status rlock_url_set_socket(struct rlock_url *url, const char *path);
/*
 * Overwrite the password in a URL, and the values of unknown parameters, by '*' in place; the length stays the same. Use
 * this on argv, which other users can see. text can be anything, for example a list of URLs. In a malformed URL more than the
 * password may be overwritten.
 */
RLOCK_API void rlock_url_hide_password(char *text);

/* ---- a connection ---- */

struct rlock_conn;

struct rlock_conn_opts {
	int64_t connect_timeout_ms; /* for one request: to connect, if necessary, and to get the reply */
	const char *client_name; /* name for CLIENT SETNAME; NULL: none */
	/* The caller's descriptor: while it is readable, every wait ends with RLOCK_CANCELLED. -1: none. */
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
 * Make a connection to one server, or to several (up to RLOCK_SERVERS_MAX) on which each lock is acquired together. The first
 * request opens it, and so does the first one after a failure. Files of certificates are read here; if that fails, the first
 * request reads them again and reports the failure. opts may be NULL. urls are copied. The caller frees *out.
 * RLOCK_EUNSUPPORTED  a local: URL without a socket, see rlock_url_set_socket; *out is set, for rlock_conn_error
 * RLOCK_EINVAL        the quorum is at most half of the servers, or more than all of them; *out is set, too.
 *                     Or: there is no URL, or more than RLOCK_SERVERS_MAX; *out keeps its value
 */
RLOCK_API enum rlock_status rlock_conn_new(struct rlock_url *const *urls, size_t url_count,
					   const struct rlock_conn_opts *opts,
					   struct rlock_conn **out);
RLOCK_API void rlock_conn_free(struct rlock_conn *conn);

/* Why the last failed call on conn failed: lower case, one line, safe for a terminal. The text belongs to conn. */
RLOCK_API const char *rlock_conn_error(const struct rlock_conn *conn);
/* The index of the name that this text is about; 0 also if it is about no name in particular. */
RLOCK_API size_t rlock_conn_error_name(const struct rlock_conn *conn);

/*
 * During each wait of a call on conn: when fd (-1: none) is readable, call on_event, which reads from fd. If on_event returns
 * true, the call continues with the same request over the same stream. If it returns false, the call ends with
 * RLOCK_CANCELLED, unless its result came at the same moment.
 *
 * An acquisition that ends in this way is still undone, for about a second; on_event is called during that time, and its
 * result is ignored. After false the next wait calls on_event again, whether fd is readable or not. So on_event must return
 * its decision, not whether it has read something. on_event must not call the library for conn. fd replaces cancel_fd. With
 * on_event NULL, fd is used as cancel_fd.
 */
RLOCK_API void rlock_conn_set_events(struct rlock_conn *conn, int fd, bool (*on_event)(void *ctx),
				     void *ctx);

/*
 * Close this process's streams to the servers without sending a byte. The next request opens new ones. After a fork() only one of
 * the two processes may use the streams. The other one, in most programs the child, calls this before any other function for the
 * connection, rlock_conn_free() included.
 */
RLOCK_API void rlock_conn_close_streams(struct rlock_conn *conn);

/* Called at each step of the library (connected, request sent, ...) with the server concerned; NULL: not called. */
typedef void (*rlock_trace_fn)(void *ctx, const char *server, const char *step);
RLOCK_API void rlock_conn_set_trace(struct rlock_conn *conn, rlock_trace_fn trace, void *ctx);

/* Connect and log in now, within the connection's timeout. RLOCK_OK: the servers can be used. */
RLOCK_API enum rlock_status rlock_conn_ping(struct rlock_conn *conn);

/* ---- what a server is like ---- */

#define RLOCK_FACT_MAX 64

struct rlock_server_info {
	/* The server's URL, in the form of rlock_url_server: in a cluster the node, with sentinels the master. */
	const char *server;
	const char *facts;        /* the server's replies, for rlock_server_fact */
	char tls[RLOCK_FACT_MAX]; /* "TLSv1.3"; empty: the connection has no TLS */
	int64_t certificate_s; /* seconds until the server's certificate expires; -1: not known */
	size_t sentinels;      /* number of sentinels in the URL */
	size_t sentinels_answered;
	size_t sentinels_named; /* number of sentinels that name this server */
	/* Why the sentinels, which name different masters, prevent every grant; NULL: they do not prevent one. */
	const char *disagreement;
	bool is_sharded; /* a proxy that distributes keys over several servers */
};

/*
 * Copy one of the facts, safe for a terminal: a field of INFO, or "save" or "appendfsync" of CONFIG GET. False, and out is empty: the
 * server did not return it.
 */
RLOCK_API bool rlock_server_fact(const char *facts, const char *name, char out[RLOCK_FACT_MAX]);

typedef void (*rlock_server_fn)(void *ctx, const struct rlock_server_info *info);

/*
 * Ask the index-th server, or each master of a cluster, for INFO and CONFIG GET, and call on_server for each server, also if it
 * denies both. RLOCK_OK, or the first failure.
 */
RLOCK_API enum rlock_status rlock_conn_server_info(struct rlock_conn *conn, size_t index,
						   rlock_server_fn on_server, void *ctx);
/* The server's clock, which was read at some moment between two times of our clock. */
struct rlock_clock_reading {
	int64_t server_us;                /* since 1970; -1: the server denies TIME */
	int64_t own_begin_us, own_end_us; /* on the clock of rlock_now_ms */
};

RLOCK_API enum rlock_status rlock_conn_read_clock(struct rlock_conn *conn, size_t index,
						  struct rlock_clock_reading *out);

#define RLOCK_RIGHT_MAX 64

/*
 * A right that the user lacks, as ACL SETUSER takes it: "+hset", "~rlock_holds:{nightly*}", "&redisson_rwlock:{nightly*}*". A byte
 * that ACL SETUSER cannot take, such as a blank, is '?'.
 */
struct rlock_lack {
	const char *right;
	/* 1U << enum rlock_kind, for each kind of lock that needs it; 0: only rlock_list needs it */
	unsigned kinds;
	bool is_optional; /* locks work without it, but with drawbacks, which rlock(7) lists */
};

struct rlock_name;
typedef void (*rlock_lack_fn)(void *ctx, const struct rlock_lack *lack);

/*
 * Try on the index-th server each right that is needed for locks with names that fit pattern ("nightly*", or one name), and the
 * optional rights of rlock_list. This writes keys under a random name, and removes them. lacks is called for each right that the user
 * does not have. RLOCK_OK: all rights were tried. RLOCK_EINVAL: pattern is too long.
 */
RLOCK_API enum rlock_status rlock_conn_try_rights(struct rlock_conn *conn, size_t index,
						  const struct rlock_name *pattern,
						  rlock_lack_fn lacks, void *ctx);

/* The result of acquiring and releasing locks on a server. */
struct rlock_lock_trial {
	const char *server; /* address; in a cluster, of the node that serves the slot */
	int moving_slot; /* slot of the lock, if it is being moved to the node moves_to; -1: it is not */
	const char *moves_to;
	/*
	 * RLOCK_OK: at least one lock was acquired and released, and locks of other kinds failed at most for missing rights.
	 * Semaphores are not tried. RLOCK_EACL: rights are missing for each kind. Any other status: the first failure that is
	 * no missing right.
	 */
	enum rlock_status status;
	const char *why; /* the reason if status is not RLOCK_OK; valid during the call */
	/*
	 * Bits 1 << enum rlock_kind of the kinds that failed because the server lacks a command, while another kind was
	 * acquired. 0: there are no such kinds, or no kind was acquired.
	 */
	unsigned failed_kinds;
	bool is_denied; /* the server itself denied the lock: why has its reply */
	/*
	 * RLOCK_OK: a waiter can subscribe there, and is notified. RLOCK_NOT_NOTIFIED: the server publishes nothing, and a waiter
	 * retries when the TTL has expired. Other values: a waiter cannot subscribe, and polls at least once a second. messages_why
	 * has the reason.
	 */
	enum rlock_status messages;
	const char *messages_why;
};

typedef void (*rlock_lock_trial_fn)(void *ctx, const struct rlock_lock_trial *trial);

/*
 * Acquire and release locks on the index-th server, or on each node of a cluster and in a slot that is leaving the node. This
 * finds servers that deny locks for reasons that no right and no setting shows. The locks have a name that fits pattern and
 * that no client uses, or one that begins with "rlock_check:" if the user has no right to such a name. on_trial is called with
 * each result. rlock_conn_try_rights names the rights that the user lacks. RLOCK_OK: all were tried.
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
	RLOCK_SEMAPHORE, /* RPermitExpirableSemaphore; RSemaphore uses the same counter */
	/* Any kind: for rlock_find, rlock_break and rlock_kind_is, and in an inspection an unknown kind. */
	RLOCK_ANY,
};

/* "plain", "fair", "read", "write", "sem"; "unknown" for RLOCK_ANY. */
RLOCK_API const char *rlock_kind_name(enum rlock_kind kind);
/* The kind of that name; false, and *out unchanged, for any other text. */
RLOCK_API bool rlock_kind_parse(const char *text, size_t len, enum rlock_kind *out);

/* Whether kind is the kind wanted. A plain and a fair lock look alike on the server, and count as one kind. */
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
 * Whether two checked names cannot be locked at the same time, not even by different owners: they are equal, share keys as "a" and
 * "{a}" do, or one is a key that belongs to the other.
 */
RLOCK_API bool rlock_names_clash(const struct rlock_name *a, const struct rlock_name *b);

/* A new owner, "UUID:NUMBER", with a random UUID. RLOCK_ESYS when the kernel has no random bytes. */
RLOCK_API enum rlock_status rlock_owner_new(unsigned long number, char out[RLOCK_OWNER_MAX]);

/*
 * Check an owner: 1 to 255 letters, digits, '.', '_', '-' and ':'. The names of other fields in hashes of owners are not allowed: "mode",
 * "seen", a text that ends in ":write", and one that contains ":lingering:". RLOCK_OK, or RLOCK_EINVAL with the reason, a constant,
 * in *why.
 */
RLOCK_API enum rlock_status rlock_owner_check(const char *owner, const char **why);

/*
 * If owner is the owner of a kept lock (rlock_keep_until), return the time when that ends, in milliseconds since 1970 by the server's
 * clock. -1: any other owner, whose process may hold the lock.
 */
RLOCK_API int64_t rlock_owner_kept_until_ms(const char *owner, size_t len);

/* A new hold id, 32 hex digits. RLOCK_ESYS: the kernel has no random bytes. */
RLOCK_API enum rlock_status rlock_hold_id_new(char out[RLOCK_HOLD_ID_MAX]);
/* Whether id has the form of a hold id. */
RLOCK_API bool rlock_hold_id_is_valid(const char *id);

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
	RLOCK_PURPOSE_KEPT, /* no job any more: rlock_keep_until keeps the lock for a time (--at-least) */
};

/* What the record of a hold, or of a wait, says about it. */
struct rlock_record {
	enum rlock_purpose purpose;
	/* The number of names that were acquired in one call, including this one. 0: not known. */
	size_t name_count;
	/* A process renews the hold, and reads stop requests after each renewal (rlock_hold_stop_requested_by). */
	bool reads_requests;
	/* The process that the hold is for. pid 0: none, or not known. */
	struct rlock_process process;
	enum rlock_kind kind; /* RLOCK_ANY: not known. rlock_hold_new sets it to that of the spec */
};

/* What else is known of the last failed call on a connection. */
struct rlock_failure {
	/* Length of the server's own words at the end of the error text, so that a caller can insert text before them. */
	size_t reply_len;
	/* A server was not reached, so its URL may be wrong. False if several servers had no quorum. */
	bool is_unreachable;
	/* After RLOCK_ENET: a retry may succeed, since the server is starting or busy, or a failover may be in progress. */
	bool is_transient;
	bool lacks_password; /* after RLOCK_ENET: the password source had no password */
	/*
	 * After RLOCK_ENET: the server replied that it does not have the hold, and the sentinels do not confirm that it is the
	 * master. So the request has changed nothing there. False if several servers had no quorum.
	 */
	bool is_loss_unconfirmed;
	bool is_readwrite; /* after RLOCK_EKIND: the key is a read or write lock */
	/*
	 * After RLOCK_BUSY: other owners hold the lock, or permits of it. False: the lock looks free, but a server was restarted
	 * less than a lease ago, and may have lost the lock of another owner.
	 */
	bool has_holder;
	/* The next members are about the owner that the error text names. record is also set if is_ancestor caused an RLOCK_EDEADLOCK. */
	int64_t held_ms;       /* how long the owner has held the lock; -1: not known */
	int64_t kept_until_ms; /* rlock_owner_kept_until_ms */
	struct rlock_record record;
};

/* The result belongs to conn. */
RLOCK_API const struct rlock_failure *rlock_conn_failure(const struct rlock_conn *conn);

/* One acquisition. Made by rlock_hold_new or rlock_find; the caller frees it. */
struct rlock_hold;

/* What a hold consists of. rlock_hold_new copies everything that requests need from the acquisition to the release. */
struct rlock_hold_spec {
	enum rlock_kind kind;
	const struct rlock_name *names; /* all of them are acquired, or none; no two may clash */
	size_t name_count;
	const char *id; /* NULL: a new one; else one of rlock_hold_id_new */
	/* The owner that acquires the names (rlock_owner_check). NULL: a new one. */
	const char *owner;
	/*
	 * For a hold that was acquired already: the owner of each name, which may be an inherited one. A renewal needs the owners to
	 * acquire the lock again on one of several servers that has lost it. NULL: not acquired yet, or not known.
	 */
	const char *const *owners;
	const char *note; /* shown to waiters; NULL: none; cut at RLOCK_NOTE_MAX */
	/* NULL: RLOCK_PURPOSE_OWNER, without a process. If its name_count is 0, name_count of this spec is stored. */
	const struct rlock_record *record;
	int64_t lease_ms; /* the lock expires this long after the last renewal */
	int64_t sent_ms;  /* for a hold that was acquired already: when its last renewal was sent */
	int64_t remember_ms; /* how long after the release rlock_inspect reports the holder; 0: not at all */
	/*
	 * For a semaphore; 0 for a lock. permits: total of a semaphore that does not exist yet, at most RLOCK_PERMITS_MAX; an existing one
	 * keeps its total. take: permits to acquire, at most RLOCK_TAKE_MAX. Holds of a semaphore are not re-entered: each has
	 * permits of its own.
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
	/* -1: the key has no TTL. -2: the lock is free, and reserved for another waiter. -3: readers hold it, and a writer is next. */
	int64_t ttl_ms;
	int64_t held_ms; /* how long owner has held the lock, as its record says; -1: not known */
	int64_t permits; /* total of a semaphore; 0: not known */
	size_t position; /* the caller's position in the queue of a fair lock, from 1 on; 0: in no queue */
	/* owner does not hold the lock, but is the waiter that gets it next; owner is empty if that waiter is not known. */
	bool is_waiter;
	/*
	 * Not NULL: no owner and no waiter comes first, but this server (see rlock_url_server) was restarted less than a lease ago,
	 * and grants no lock before a lease has passed.
	 */
	const char *restarted_server;
	/* The owner that holds the lock, as the server has it: escape it before printing. Empty: none, or not known. */
	const char *owner;
	size_t owner_len;
	const char *note; /* of that owner; empty: none */
	size_t note_len;
	struct rlock_record record; /* of that owner */
};

#define RLOCK_SINCE_UNKNOWN (-1)

/* The hold ids that a process must know to continue the wait of a killed one. */
struct rlock_hold_ids {
	char id[RLOCK_HOLD_ID_MAX]; /* of the last attempt */
	/* of an earlier attempt, until the servers have confirmed that its hold was released; empty: none */
	char earlier_id[RLOCK_HOLD_ID_MAX];
};

/* How to acquire a hold. */
struct rlock_request {
	int64_t wait_ms; /* 0: do not wait; -1: for ever */
	/*
	 * Memory that lets another process continue the wait if this process is killed; NULL: no process will. *since_us is 0
	 * before the first request, and RLOCK_SINCE_UNKNOWN when a request may have been sent. When a reply has shown it,
	 * *since_us is the start of the wait by the server's clock, in microseconds since 1970.
	 * A call with a hold of the same spec and this *since_us takes over the killed caller's position in every queue, and
	 * the lock if it was granted last. If the call fails, it undoes what both callers have left on the servers.
	 */
	int64_t *since_us;
	/*
	 * Memory for the same purpose, or NULL. rlock_acquire stores the id of the hold there before it uses a new one. The call that
	 * continues the wait needs that id (rlock_hold_set_id), and undoes the hold with the earlier one.
	 */
	struct rlock_hold_ids *hold_ids;
	/* Owners that are re-entered: if one of them holds the lock, the call adds a hold to it. See rlock_owner_check. */
	const char *const *inherited;
	size_t inherited_count;
	/*
	 * Whether the process of a holder waits for the caller to end. True: the call ends immediately with RLOCK_EDEADLOCK. Not called for
	 * a semaphore, where other holders may release permits. NULL: no holder waits for the caller.
	 */
	bool (*is_ancestor)(void *ctx, const struct rlock_process *process);
	/*
	 * Whether the process of a holder has ended. True: another attempt is made before on_wait is called, because the
	 * lock may have passed to another owner without a message to this waiter. NULL: no such attempt is made.
	 */
	bool (*has_ended)(void *ctx, const struct rlock_process *process);
	bool issue_token; /* issue a fencing token */
	/* Called when the wait has lasted on_wait_ms, then every on_wait_again_ms; NULL: not called. */
	void (*on_wait)(void *ctx, const struct rlock_blocker *blocker);
	int64_t on_wait_ms;
	int64_t on_wait_again_ms; /* 0: on_wait is called once */
	/*
	 * Called once for each semaphore that has another total than permits of the spec; the semaphore keeps its total. NULL:
	 * not called.
	 */
	void (*on_total)(void *ctx, size_t name_index, int64_t total);
	void *ctx; /* for all these functions */
};

#define RLOCK_REQUEST_INIT                                                                         \
	{                                                                                          \
		-1, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, 1000, 0, NULL, NULL              \
	}

/*
 * Acquire the locks of hold. The request goes to all servers in parallel; without a quorum it is undone on all of them. A server that
 * was restarted less than a lease ago may have lost another owner's lock, and counts only if all servers must agree. Blocks for
 * wait_ms at most, or longer by the connection's timeout if a server does not answer.
 * RLOCK_OK         acquired; the lease of the hold is counted from before the request was sent
 * RLOCK_BUSY       the wait is over; the error text names the owner that holds the lock
 * RLOCK_CANCELLED  nothing is held, and the caller is in no queue
 * RLOCK_EINVAL     an inherited owner that rlock_owner_check denies; a name whose keys are in several slots of a
 *                  cluster; a lease of less than 1 ms or more than 10000 days; for a semaphore: several servers, or
 *                  permits or take out of range; nothing was sent
 * RLOCK_ENET       one of four failures, after which nothing stays held for longer than one lease:
 *                  no server that can grant a lock was reached in time;
 *                  the server was lost during the wait, and was still lost at its end (with wait_ms -1: for 60 s);
 *                  the replies to the request and to its retries were lost for a second;
 *                  too few replicas acknowledged the lock
 * other failures   nothing is held
 * After a lost reply the caller may acquire the same hold again: the server adds no second one. After any other failure the caller
 * needs a new hold, because a release of the old one may still arrive at a server.
 */
RLOCK_API enum rlock_status rlock_acquire(struct rlock_conn *conn, struct rlock_hold *hold,
					  const struct rlock_request *request);
/*
 * Ask whether rlock_acquire with wait_ms 0 would find the lock busy. Nothing is acquired, and no queue is joined. Call this before an
 * expensive preparation, such as the start of another process. Ignores wait_ms and since_us of the request.
 * RLOCK_BUSY      it is busy; the error and rlock_conn_failure are those of rlock_acquire
 * RLOCK_OK        it was not busy at that moment
 * other failures  it is not known whether the lock is busy: unlike rlock_acquire, this call does not retry. The streams are
 *                 closed
 */
RLOCK_API enum rlock_status rlock_probe(struct rlock_conn *conn, struct rlock_hold *hold,
					const struct rlock_request *request, int64_t deadline_ms);

/*
 * Renew a hold: its lease then ends lease_ms after the request was sent. Each server gets one request, until deadline_ms at most. The
 * call may then block for some seconds more, while replicas and sentinels confirm the renewal, and while servers that have lost the
 * lock acquire it again.
 * RLOCK_OK        renewed
 * RLOCK_NOT_HELD  the hold expired, was broken or overwritten: do not continue as if you held the lock
 * RLOCK_ENET      it is not known whether the hold was renewed: retry until your own deadline
 * RLOCK_EINVAL    a lease that rlock_acquire does not allow; nothing was sent
 */
RLOCK_API enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold,
					int64_t lease_ms, int64_t deadline_ms);
/* Renew as rlock_renew does, but retry as rlock_release does. Use this only if the caller can block until deadline_ms. */
RLOCK_API enum rlock_status rlock_renew_until(struct rlock_conn *conn, struct rlock_hold *hold,
					      int64_t lease_ms, int64_t deadline_ms);

/*
 * Release the hold. Retries over new streams until deadline_ms or the end of the lease; the first request gets a second even if one
 * of these has passed. RLOCK_CANCELLED: it is not known whether the hold was released.
 * RLOCK_OK            released (the owner may have other holds: rlock_hold_count)
 * RLOCK_NOT_NOTIFIED  released, but the user has no right to publish: waiters find out by polling
 * RLOCK_NOT_HELD      the hold had been lost before
 * RLOCK_ENET          not delivered: the lock expires with its lease
 */
RLOCK_API enum rlock_status rlock_release(struct rlock_conn *conn, struct rlock_hold *hold,
					  int64_t deadline_ms);

/*
 * Instead of a release: keep the lock for another left_ms, then let it expire. Other holds of the same owner may keep the lock for
 * longer. If left_ms is not positive, the hold is released. Retries and statuses are those of rlock_release. RLOCK_EINVAL:
 * left_ms is more than 10000 days.
 */
RLOCK_API enum rlock_status rlock_keep_until(struct rlock_conn *conn, struct rlock_hold *hold,
					     int64_t left_ms, int64_t deadline_ms);

/*
 * Set the total of the semaphore's permits. Held permits stay held: if the total becomes smaller, the number of free ones may be below
 * 0 until enough are released. Retries as rlock_release, until deadline_ms. If a reply was lost, *had_out may be
 * the new total, because the request was repeated.
 * RLOCK_OK     *had_out is the total before; -1: the semaphore did not exist, and was made
 * RLOCK_EINVAL permits is out of range, or there are several servers; nothing was sent
 */
RLOCK_API enum rlock_status rlock_resize(struct rlock_conn *conn, const struct rlock_name *name,
					 int64_t permits, int64_t deadline_ms, int64_t *had_out);

/*
 * Find the most recent hold of that kind (RLOCK_ANY: of any kind) and purpose (RLOCK_PURPOSE_UNKNOWN: for any purpose) that owner
 * has on name. With several servers a quorum must reply. Retries as rlock_release, until deadline_ms.
 * RLOCK_OK        *out has the hold's record and note. Its lease is the TTL on the server, or RLOCK_LEASE_LOST if the key was overwritten
 *                 with another type; count and token are 0. The kind is RLOCK_FAIR if the record says so; both kinds are released alike
 * RLOCK_NOT_HELD  owner has no such hold
 * RLOCK_EKIND     the key is no lock, and nothing shows that it was the owner's
 */
#define RLOCK_LEASE_LOST (-2)
RLOCK_API enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
				       const char *owner, enum rlock_kind kind,
				       enum rlock_purpose purpose, int64_t deadline_ms,
				       struct rlock_hold **out);

/*
 * Break a lock of that kind (RLOCK_ANY: of any kind) of any owner. RLOCK_READ also breaks the read locks of an owner that has the
 * write lock, but not the write lock itself. The holder is not asked: it finds out when it renews or releases the lock. If owner is not
 * NULL, only the lock of that owner is broken; other readers keep theirs. With several servers a quorum must reply. Retries as
 * rlock_release, until deadline_ms. Only holds that the servers' first replies list are broken: an owner that acquires the lock after
 * that keeps it.
 * RLOCK_OK        broken: owner_out held the lock, and note is its note or empty; both are escaped. If owner_out is empty, no
 *                 owner held the lock, and note contains what was removed, or that an earlier request, whose reply was
 *                 lost, may have broken the lock
 * RLOCK_NOT_NOTIFIED  as RLOCK_OK, but the waiters were not notified
 * RLOCK_NOT_HELD  no owner holds the lock
 * RLOCK_BUSY      owner_out, with its note, holds the lock, and is not the owner given; or the lock is of another kind
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
	/* The TTL of the hold, or of the key if the hold has no record. RLOCK_TIME_NONE: there is none. */
	int64_t ttl_ms;
	/* On at least one server the hold has a process that reads stop requests. After RLOCK_OK the hold was asked. */
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
 * Ask the processes that renew the holds on name to end their work and to release the holds. The request is stored next to each
 * hold, and the process finds it by its next renewal (rlock_hold_stop_requested_by). If owner is not NULL, only the holds of
 * that owner are asked. by is the caller, as "user@host".
 *
 * The first call searches for the holds, then asks those that it found. Each further call with the same stop asks only these
 * holds, never a later holder, and leaves in stop those that have not ended. With several servers a quorum must reply. Retries
 * as rlock_release, until deadline_ms. Free stop with rlock_stop_request_clear.
 * RLOCK_OK        stop has the holds that have not ended; those of the call before are freed
 * RLOCK_NOT_HELD  no hold is left, and stop has none
 * RLOCK_EKIND     the key is no lock
 * RLOCK_EACL      a right is missing that each holder needs, too; no hold was asked
 * other failures  stop has the holds of the call before, or those that the search found; the request may have been stored all
 *                 the same
 */
RLOCK_API enum rlock_status rlock_request_stop(struct rlock_conn *conn,
					       const struct rlock_name *name, const char *owner,
					       const char *by, int64_t deadline_ms,
					       struct rlock_stop_request *stop);
RLOCK_API void rlock_stop_request_clear(struct rlock_stop_request *stop);

/* ---- what the servers say of a name ---- */

/* The program that a holder or a waiter uses, judged by its records on the server. */
enum rlock_client {
	RLOCK_CLIENT_UNKNOWN, /* the records were not read: there are too many, or the user has no right to them */
	RLOCK_CLIENT_RLOCK,    /* rlock or librlock: the hold, or the wait, has a record */
	RLOCK_CLIENT_REDISSON, /* no record, and the owner has Redisson's form, UUID:THREAD */
	RLOCK_CLIENT_OTHER,    /* no record, and the owner has another form */
};

/* "unknown", "rlock", "redisson", "other". */
RLOCK_API const char *rlock_client_name(enum rlock_client client);

#define RLOCK_TIME_NONE (-1) /* there is no TTL */
#define RLOCK_TIME_UNKNOWN                                                                         \
	(-2) /* the server has no record with that time, or denies access to it */

/*
 * The members that the structs below take from a server's reply: one row each, in the order of the reply. These rows also generate the
 * library's reader and the JSON of `rlock status`, so that a new member is one row. FIELD(type, member, key): key is the member's
 * name in the JSON; NULL: it has no name of its own there.
 *
 * BYTES     struct rlock_name: any bytes, as the server has them. Escape them before printing
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
/*
 * LIST(item, member, count, key): member points to count structs rlock_ITEM. OBJECT(item, member, key): member points to one
 * struct rlock_ITEM; NULL: there is none.
 */
#define RLOCK_MEMBER_LIST(item, member, count, key)                                                \
	const struct rlock_##item *member;                                                         \
	size_t count;
#define RLOCK_MEMBER_OBJECT(item, member, key) const struct rlock_##item *member;

#define RLOCK_HOLDER_FIELDS(FIELD)                                                                 \
	FIELD(BYTES, owner, "owner")  /* without a writer's suffix ":write" */                     \
	FIELD(NUMBER, count, "count") /* how many holds, or permits, the owner has */              \
	FIELD(CLIENT, client, "client")                                                            \
	FIELD(TIME, held_ms, "held_ms")   /* since its first hold */                               \
	FIELD(TIME, ttl_ms, "ttl_ms")     /* see rlock_holder_has_expired */                       \
	FIELD(POSITIVE, token, "token")   /* the fencing token of its first hold */                \
	FIELD(NUMBERS, slots, "slots")    /* of its permits, as rlock_hold_slots */                \
	FIELD(BYTES, note, "note")        /* empty: none */                                        \
	FIELD(TIME, asked_ms, "asked_ms") /* age of a stop request */                              \
	FIELD(BYTES, asked_by, "asked_by")

struct rlock_holder {
	RLOCK_HOLDER_FIELDS(RLOCK_MEMBER)
	/* RLOCK_FAIR only if the record shows it; without a record RLOCK_PLAIN */
	enum rlock_kind kind;
	struct rlock_record record;
};

/*
 * Whether the holder has a ttl_ms of 0, and is no longer a holder: a reader, or the owner of a permit. Such a holder stays on the
 * server until another request removes it. A holder of any other kind holds the lock until the server deletes the key.
 */
RLOCK_API bool rlock_holder_has_expired(const struct rlock_holder *holder);

#define RLOCK_WAITER_FIELDS(FIELD)                                                                 \
	FIELD(BYTES, owner, "owner")                                                               \
	FIELD(CLIENT, client, "client")                                                            \
	FIELD(TIME, waits_ms, "waits_ms")                                                          \
	FIELD(BOOL, is_dead, "dead") /* had no heartbeat in time, so the next caller removes it */ \
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

/* A part of an inspection that a server did not show. */
#define RLOCK_UNSEEN_FIELDS(FIELD)                                                                 \
	FIELD(TEXT, what, "what") /* a word: "holders", "records", "queue", ... */                 \
	FIELD(TEXT, why, "why")

struct rlock_unseen {
	RLOCK_UNSEEN_FIELDS(RLOCK_MEMBER)
};

/* How the command of a hold ended. */
struct rlock_end {
	int64_t status;     /* exit status; -1: the command did not exit, or its end is not known */
	int64_t signal;     /* the signal that ended the command; 0: none */
	const char *reason; /* one line, safe for a terminal; empty: none */
};

/* The last holder of a lock, if its spec had a remember_ms. */
#define RLOCK_LAST_FIELDS(FIELD)                                                                   \
	FIELD(TEXT, kind, "kind") /* as rlock_kind_name */                                         \
	FIELD(BYTES, owner, "owner")                                                               \
	FIELD(TIME, held_ms, "held_ms") /* how long the lock was held */                           \
	FIELD(TIME, ago_ms, "ago_ms")   /* how long ago the hold ended */                          \
	FIELD(TIME, status, "status")   /* as in rlock_end */                                      \
	FIELD(POSITIVE, signal, "signal")                                                          \
	FIELD(TEXT, reason, "reason")                                                              \
	FIELD(BYTES, note, "note") /* empty: none */

struct rlock_last {
	RLOCK_LAST_FIELDS(RLOCK_MEMBER)
	struct rlock_record record;
};

/*
 * kind            RLOCK_FAIR: the name has a queue, or a holder's record says so. A fair lock of Redisson has no record, so without a
 *                 queue it is RLOCK_PLAIN. RLOCK_ANY: free, and nothing shows the kind
 * ttl_ms          the TTL of the key
 * token           the counter of fencing tokens
 * holders         the holders, the longest one first: holder_count of the holder_total on the server
 * queue           the waiters for a fair lock, the head first: queue_count of the queue_total on the server
 * wake_total      number of rlock's waiters for other kinds
 * wake_ms         how long the first of these wake_total waiters has waited
 * other_clients   number of connections that subscribe to the lock's channel and are not rlock's, such as Java's waiters
 * writer          the writer that has the next turn, and waits for the readers to release
 * ground          why the key counts as a lock: "record": rlock has a record of a hold. "owners": all owners have Redisson's form.
 *                 "beside": the name has a queue or a token counter. Empty: the key looks like a lock, but nothing else shows
 *                 that it is one
 * permits         total of a semaphore; 0 for a lock
 * free_permits    number of free permits: below 0 if the total was made smaller while permits were held
 * unheld_permits  permits in use without a record of their holder: Java's RSemaphore writes none
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

/* What one server has under a name. */
struct rlock_inspection {
	struct rlock_name name;
	const char *server;       /* in the form of rlock_url_server; in a cluster the node */
	enum rlock_status status; /* not RLOCK_OK: only error is known */
	const char *error;        /* one line, safe for a terminal; empty: none */
	enum rlock_state state;
	const char *type; /* type of a key that is no lock; else empty */
	RLOCK_INSPECTION_FIELDS(RLOCK_MEMBER, RLOCK_MEMBER_LIST, RLOCK_MEMBER_OBJECT)
	void *memory; /* has all strings; rlock_inspections_free frees it */
};

/*
 * Read what each server has under a name: one inspection for each URL, in their order. Nothing is changed. If the user lacks rights,
 * unseen lists what is missing. Long lists are cut: compare the totals. Free all with rlock_inspections_free. A server that has not
 * answered by deadline_ms, or within the connection's timeout, has status RLOCK_ENET.
 * RLOCK_OK      at least one server answered
 * other status  no server answered, and this is the failure of the first one; each inspection has the failure of its own server.
 *               Or the call failed before that, and *out is unchanged
 */
RLOCK_API enum rlock_status rlock_inspect(struct rlock_conn *conn, const struct rlock_name *name,
					  int64_t deadline_ms, struct rlock_inspection **out,
					  size_t *count_out);
RLOCK_API void rlock_inspections_free(struct rlock_inspection *inspections, size_t count);

/* The progress of rlock_list. */
struct rlock_list_progress {
	uint64_t keys_read; /* number of keys of all types that were read, approximately */
	uint64_t locks_found;
	/*
	 * In the report after the last key of a server that denied keys: the server's URL, in a cluster that of the node, and
	 * how many of its keys the user was denied.
	 */
	const char *server;
	uint64_t keys_denied;
	/* Why keys were denied: one line, safe for a terminal. Empty: no key was denied, or the server has more keys. */
	const char *error;
};

struct rlock_list_request {
	/*
	 * Which names to list, in the form of the server's SCAN: '*', '?', '[a-z]', '[^a-z]'; a backslash quotes such a character. The
	 * rules for the text are those for a name. A NUL must follow the text.
	 */
	struct rlock_name pattern;
	/* Called with some locks at a time, which are valid during the call. Only queue_total is known of the queue. */
	void (*on_locks)(void *ctx, const struct rlock_inspection *locks, size_t count);
	/* Called after each step, and after the last key of each server that denied keys; NULL: not called. */
	void (*on_progress)(void *ctx, const struct rlock_list_progress *progress);
	void *ctx;
	size_t holders_max; /* how many holders to list for each lock; 0: a few. More holders take longer */
	bool with_remembered; /* also list free locks whose last holder the server remembers; this takes another scan */
};

/*
 * Find the locks that are held on each server, or on all masters of a cluster. With with_remembered also find free locks whose
 * last holder the server remembers. The call scans all keys, in slices that are too short to delay other clients. A lock that
 * is held during the whole scan is found once; other locks may be missed. Nothing is changed. Any hash of numbers could be a
 * lock, so a key is listed only if something else shows that it is one: see ground.
 * RLOCK_OK      all keys were scanned
 * RLOCK_EINVAL  rlock_name_check does not allow the pattern; nothing was sent
 * RLOCK_EACL    a right is missing; or the user was denied each key that might be a lock
 * RLOCK_ENET    as other status; or slots of a cluster kept moving, or one was on its way to a node without slots, so locks that
 *               were held all the time may be missing
 * other status  the first failure; the remaining servers were scanned, except after RLOCK_CANCELLED
 */
RLOCK_API enum rlock_status rlock_list(struct rlock_conn *conn,
				       const struct rlock_list_request *request);

/*
 * Make a hold: one for rlock_acquire, or one that another process has acquired already. The requests for a hold send what spec has.
 * RLOCK_OK      *out is the hold
 * RLOCK_EINVAL  no name, no such kind, an owner that rlock_owner_check does not allow, or an id that is not 32 hex digits
 * RLOCK_ESYS    the kernel has no random bytes for an owner or id
 */
RLOCK_API enum rlock_status rlock_hold_new(const struct rlock_hold_spec *spec,
					   struct rlock_hold **out);
RLOCK_API void rlock_hold_free(struct rlock_hold *hold);

RLOCK_API const char *rlock_hold_id(const struct rlock_hold *hold);
/*
 * The owner of the index-th name: the owner of the spec, or the inherited one that was re-entered. Empty before the acquisition, and
 * if the spec of an acquired hold has no owners.
 */
RLOCK_API const char *rlock_hold_owner(const struct rlock_hold *hold, size_t index);
/* The number of holds that the owner had on the index-th name right after the acquisition, including this one. */
RLOCK_API int64_t rlock_hold_count(const struct rlock_hold *hold, size_t index);
/* The record that the hold has, or will have, on the server. It belongs to hold. */
RLOCK_API const struct rlock_record *rlock_hold_record(const struct rlock_hold *hold);
/* The fencing token that was issued for the index-th name; 0: none. */
RLOCK_API int64_t rlock_hold_token(const struct rlock_hold *hold, size_t index);
/*
 * The slots of a semaphore's hold on the index-th name: a number from 1 on for each permit, with a blank between two. No other hold has
 * one of these numbers until this hold is released or its lease has ended. They were the lowest free ones, so none is above the
 * total of that moment. Empty for a lock, and before rlock_acquire.
 */
RLOCK_API const char *rlock_hold_slots(const struct rlock_hold *hold, size_t index);
/*
 * The time when the last successful acquisition or renewal of this hold was sent, and the lease. Until their sum you can rely on
 * the hold. The time is set back, because our clock and the server's may run at different speeds: by a thousandth of the lease,
 * and by at least 2 ms; with several servers by 1 % of the lease and 2 ms.
 */
RLOCK_API int64_t rlock_hold_sent_ms(const struct rlock_hold *hold);
RLOCK_API int64_t rlock_hold_lease_ms(const struct rlock_hold *hold);
/* For a hold that another process renews: set the time when that process sent its last successful renewal. */
RLOCK_API void rlock_hold_set_sent_ms(struct rlock_hold *hold, int64_t sent_ms);
/*
 * For a hold that another process has acquired or waited for after rlock_hold_new: set its id, as rlock_hold_id has returned it there; NULL: a new
 * one. RLOCK_EINVAL: it is no id of rlock_hold_id_new. RLOCK_ESYS: the system has no random numbers.
 */
RLOCK_API enum rlock_status rlock_hold_set_id(struct rlock_hold *hold, const char *id);
/*
 * For a hold that another process has acquired after rlock_hold_new: set the owner of the index-th name, as owners of the spec does.
 * RLOCK_EINVAL: rlock_owner_check does not allow that owner.
 */
RLOCK_API enum rlock_status rlock_hold_set_owner(struct rlock_hold *hold, size_t index,
						 const char *owner);
/*
 * For a hold that another process was acquiring when it was killed: rlock_release then also leaves the queue of every name.
 * rlock_release returns RLOCK_NOT_HELD if no lock had been granted.
 */
RLOCK_API void rlock_hold_set_queued(struct rlock_hold *hold);
/* Replace remember_ms of the spec, for example for a hold from rlock_find. */
RLOCK_API void rlock_hold_set_remember(struct rlock_hold *hold, int64_t ttl_ms);
/*
 * Set how the job ended. With a remember_ms the release stores this for rlock_inspect, if the user has the right to
 * the key of the last holder. end is copied; its reason must not contain a newline, and is cut if it is long.
 */
RLOCK_API void rlock_hold_set_end(struct rlock_hold *hold, const struct rlock_end *end);
/* The TTL in ms that the servers replied to the last renewal: the lowest one, if there are several servers. */
RLOCK_API int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold);
/*
 * The sender (escaped) of a stop request that a renewal has found for this hold; NULL: none was found. The text belongs to hold.
 * *name_index_out: the index of the name that the request is for.
 */
RLOCK_API const char *rlock_hold_stop_requested_by(const struct rlock_hold *hold,
						   size_t *name_index_out);

#ifdef __cplusplus
}
#endif

#endif
