/*
 * librlock: Redisson's locks, on Redis or Valkey, for C programs.
 *
 *	struct rlock_url *url = NULL;
 *	struct rlock_conn *conn = NULL;
 *	struct rlock_hold *hold = NULL;
 *	struct rlock_name name = { "nightly", 7 };
 *	struct rlock_request request = RLOCK_REQUEST_INIT;
 *	char why[RLOCK_ERROR_MAX];
 *
 *	if (rlock_url_parse("redis://127.0.0.1:6379", &url, why) != RLOCK_OK)
 *		errx(64, "%s", why);
 *	if (rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK)
 *		errx(71, "out of memory");
 *	request.names = &name;
 *	request.name_count = 1;
 *	request.wait_ms = 5000;
 *	if (rlock_acquire(conn, &request, &hold) != RLOCK_OK)
 *		errx(75, "%s", rlock_conn_error(conn));
 *	... the work; rlock_renew() at every third of the lease ...
 *	rlock_release(conn, hold, rlock_now_ms() + 5000);
 *	rlock_hold_free(hold);
 *	rlock_conn_free(conn);
 *	rlock_url_free(url);
 *
 * All times are milliseconds; a deadline is a point on rlock_now_ms()'s clock. A connection and its
 * holds belong to one thread at a time; there are no globals. The library never prints, forks,
 * exits or touches signals; hiredis writes without MSG_NOSIGNAL, so ignore SIGPIPE. After fork() the
 * child calls rlock_conn_after_fork_child() on what it inherited.
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

#define RLOCK_VERSION "0.1.0"

#define RLOCK_NAME_MAX 512   /* bytes of a lock's name */
#define RLOCK_OWNER_MAX 256  /* bytes of an owner, with the NUL */
#define RLOCK_HOLD_ID_MAX 33 /* 32 hex digits and a NUL */
#define RLOCK_NOTE_MAX 256   /* bytes of a note, with the NUL */
#define RLOCK_ERROR_MAX 512  /* bytes of an error text, with the NUL */
#define RLOCK_SERVERS_MAX 32 /* servers of a connection */

enum rlock_status {
	RLOCK_OK = 0,
	RLOCK_BUSY = 1,          /* somebody else holds it */
	RLOCK_NOT_HELD = 2,      /* the hold named is not there (any more) */
	RLOCK_CANCELLED = 3,     /* cancel_fd became readable while waiting */
	RLOCK_NOT_NOTIFIED = 4,  /* done, but the server refused to tell the waiters */
	RLOCK_ENET = -1,         /* no answer: the lock may or may not have changed hands */
	RLOCK_EAUTH = -2,        /* user or password refused */
	RLOCK_EACL = -3,         /* the user lacks a right; the text names it */
	RLOCK_EKIND = -4,        /* the key is something else */
	RLOCK_EDEADLOCK = -5,    /* the caller would wait for itself */
	RLOCK_EUNSUPPORTED = -6, /* this server, or this build, can't serve the request */
	RLOCK_EINVAL = -7,       /* a bad URL, name or number; nothing was sent */
	RLOCK_ENOMEM = -8,       /* out of memory here */
	RLOCK_ESYS = -9,         /* the operating system refused */
	RLOCK_ESERVER = -10,     /* an answer that makes no sense */
};

/* The constant's name without its prefix, in lower case; for logs. */
RLOCK_API const char *rlock_status_name(enum rlock_status status);

/* ---- time ---- */

/* Now, on CLOCK_BOOTTIME: it runs on while the machine sleeps, as a lease on the server does. */
RLOCK_API int64_t rlock_now_ms(void);

/*
 * poll(2) up to a deadline on the same clock; INT64_MAX waits for ever. The number of ready
 * descriptors, 0 at the deadline, -1 with errno. fds may be NULL when count is 0.
 */
struct pollfd;
RLOCK_API int rlock_poll(struct pollfd *fds, size_t count, int64_t deadline_ms);

/* ---- text ---- */

/*
 * Make bytes safe for a terminal: what isn't printable UTF-8, or would change the order of the text
 * around it, becomes \xNN for each byte. Cut, with "...", where out is full. Returns out, which
 * holds a NUL-terminated string; out_size is at least 8.
 */
RLOCK_API char *rlock_escape(const char *text, size_t len, char *out, size_t out_size);

/*
 * Percent-encoding of RFC 3986: all but unreserved characters and those in keep. Returns the length
 * that the whole needs, as snprintf does; out is NUL-terminated if out_size is not 0.
 */
RLOCK_API size_t rlock_percent_encode(const char *text, size_t len, const char *keep, char *out,
				      size_t out_size);

/*
 * The way back, in place. The new length, or -1, with text as it was, for a malformed escape or
 * %00. A NUL is put behind it, for which text[len] must be there.
 */
RLOCK_API long rlock_percent_decode(char *text, size_t len);

/* ---- where the server is ---- */

struct rlock_url;

enum rlock_scheme {
	RLOCK_SCHEME_REDIS,    /* redis://[user[:pass]@]host[:port][/db] */
	RLOCK_SCHEME_REDISS,   /* rediss://..., TLS */
	RLOCK_SCHEME_UNIX,     /* unix:///path[?db=N] */
	RLOCK_SCHEME_SENTINEL, /* redis+sentinel://h1[:p],h2,.../SERVICE[/db] */
	RLOCK_SCHEME_CLUSTER,  /* redis+cluster://h1[:p],h2,... */
	RLOCK_SCHEME_LOCAL,    /* local: */
};

/*
 * Read a URL. RLOCK_OK and an object that the caller frees, or RLOCK_EINVAL (RLOCK_ENOMEM) with the
 * reason in why; the reason never repeats a password.
 */
RLOCK_API enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
					    char why[RLOCK_ERROR_MAX]);
RLOCK_API void rlock_url_free(struct rlock_url *url);

RLOCK_API enum rlock_scheme rlock_url_scheme(const struct rlock_url *url);
/* The URL without user and password, normalised ("redis://host:port/db"): one server, one text. It
 * belongs to url. */
RLOCK_API const char *rlock_url_server(const struct rlock_url *url);
/* Whether a database was written in the URL. */
RLOCK_API bool rlock_url_has_db(const struct rlock_url *url);
/* RLOCK_EINVAL for a negative one, or for one that a cluster hasn't got. */
RLOCK_API enum rlock_status rlock_url_set_db(struct rlock_url *url, int db);
RLOCK_API bool rlock_url_has_password(const struct rlock_url *url);
/* A copy is made of password. */
RLOCK_API enum rlock_status rlock_url_set_password(struct rlock_url *url, const char *password);
/* Turns a local: URL into the unix socket that stands for it. RLOCK_EINVAL when path is too long
 * for a socket or not absolute, or when url is none of local:. */
RLOCK_API enum rlock_status rlock_url_set_socket(struct rlock_url *url, const char *path);
/*
 * Overwrites the password inside the text of a URL with '*', in place; the length stays. For argv.
 * Any text will do, a list of URLs too; what has no password is left as it is, but for malformed URLs: of those rather
 * too much is hidden than too little.
 */
RLOCK_API void rlock_url_hide_password(char *text);

/* ---- a connection ---- */

struct rlock_conn;

struct rlock_conn_opts {
	int64_t connect_timeout_ms; /* to connect, and for the answer to any one request */
	const char *client_name;    /* CLIENT SETNAME; NULL for none */
	int cancel_fd; /* readable ends every wait with RLOCK_CANCELLED; -1 for none; stays the
			  caller's */
	size_t quorum; /* how many of several servers must agree, more than half; 0: all */
};

#define RLOCK_CONN_OPTS_INIT                                                                       \
	{                                                                                          \
		5000, NULL, -1, 0                                                                  \
	}

/*
 * A connection to one server, or to several (up to RLOCK_SERVERS_MAX) on which a lock is taken together;
 * not opened yet: the first request does that, and opens it again after a failure. opts may be NULL. The
 * caller frees it; urls are copied. RLOCK_ENOMEM; RLOCK_EUNSUPPORTED for a scheme that this build can't connect to,
 * RLOCK_EINVAL for a quorum that can't be (*out is set all the same, for rlock_conn_error).
 */
RLOCK_API enum rlock_status rlock_conn_new(struct rlock_url *const *urls, size_t url_count,
					   const struct rlock_conn_opts *opts,
					   struct rlock_conn **out);
RLOCK_API void rlock_conn_free(struct rlock_conn *conn);

/* What the last failed call on conn met; lower case, one line, safe for a terminal. It belongs to
 * conn. */
RLOCK_API const char *rlock_conn_error(const struct rlock_conn *conn);
/* Which of the request's names that was about; 0 when it was none in particular. */
RLOCK_API size_t rlock_conn_error_name(const struct rlock_conn *conn);

/* Whether it was that the server cannot be reached: its URL may be wrong. Of several servers: false. */
RLOCK_API bool rlock_conn_error_is_unreachable(const struct rlock_conn *conn);

/* Change (or with -1 take away) what cancels a wait. */
RLOCK_API void rlock_conn_set_cancel(struct rlock_conn *conn, int cancel_fd);

/*
 * In the child of a fork(): let go of the parent's stream without a word to the server. The next
 * request opens one of the child's own.
 */
RLOCK_API void rlock_conn_after_fork_child(struct rlock_conn *conn);

/* Where this library reports its steps (connected, asked, answered), and with which server; NULL
 * for nowhere. */
typedef void (*rlock_trace_fn)(void *ctx, const char *server, const char *step);
RLOCK_API void rlock_conn_set_trace(struct rlock_conn *conn, rlock_trace_fn trace, void *ctx);

/* Connect and authenticate now, within the connection's timeout; for those who want to know. */
RLOCK_API enum rlock_status rlock_conn_ping(struct rlock_conn *conn);

/* ---- locks ---- */

enum rlock_kind {
	RLOCK_PLAIN, /* RLock */
	RLOCK_FAIR,  /* RFairLock */
	RLOCK_READ,  /* RReadWriteLock.readLock() */
	RLOCK_WRITE, /* RReadWriteLock.writeLock() */
	RLOCK_ANY,   /* none of them to be acquired: where a hold is looked for, whichever it is */
};

/* "plain", "fair", "read", "write". */
RLOCK_API const char *rlock_kind_name(enum rlock_kind kind);
/* The way back; false, and *out as it was, for what is none of these. */
RLOCK_API bool rlock_kind_parse(const char *text, size_t len, enum rlock_kind *out);

/* Whether a hold of kind is one of those wanted. A plain and a fair lock look alike on the server, and are one. */
RLOCK_API bool rlock_kind_is(enum rlock_kind kind, enum rlock_kind wanted);

/* A lock's name: any bytes but NUL and newline, 1 to RLOCK_NAME_MAX of them. */
struct rlock_name {
	const char *text;
	size_t len;
};

/* RLOCK_OK, or RLOCK_EINVAL with the reason, a constant, in *why. */
RLOCK_API enum rlock_status rlock_name_check(const struct rlock_name *name, const char **why);

/*
 * Whether two names, each of them checked, can't be locked together, nor at the same time by anybody: they
 * share keys, as "a" and "{a}" do, or the one is a key that belongs to the other. So do equal names.
 */
RLOCK_API bool rlock_names_clash(const struct rlock_name *a, const struct rlock_name *b);

/* A new owner, "UUID:NUMBER", unlike any before it. RLOCK_ESYS when the kernel has no random bytes.
 */
RLOCK_API enum rlock_status rlock_owner_new(unsigned long number, char out[RLOCK_OWNER_MAX]);

/*
 * What may be an owner: 1 to 255 letters, digits, '.', '_', '-' and ':', but for what stands beside the owners of a
 * lock on the server: "mode" and "seen", what ends in ":write", and what has ":lingering:" in it. RLOCK_OK, or
 * RLOCK_EINVAL with the reason, a constant, in *why.
 */
RLOCK_API enum rlock_status rlock_owner_check(const char *owner, const char **why);

/* One acquisition. Made by rlock_acquire, rlock_find or rlock_hold_new; the caller frees it. */
struct rlock_hold;

/* Why the lock is busy. The strings are valid during the call they are passed to. */
struct rlock_blocker {
	size_t name_index;
	int64_t ttl_ms;    /* -1: the key has no TTL */
	bool is_waiter;    /* owner does not hold the lock either, but is first in the queue */
	const char *owner; /* of the lock, as the server has it: escape it before printing */
	size_t owner_len;
	const char *note; /* empty when that owner gave none */
	size_t note_len;
};

struct rlock_request {
	enum rlock_kind kind;
	const struct rlock_name *names; /* all of them are acquired, or none; no two may clash */
	size_t name_count;
	int64_t lease_ms;  /* the lock expires this long after the last renewal */
	int64_t wait_ms;   /* 0: do not wait; -1: for ever */
	const char *owner; /* NULL: a new one; else see rlock_owner_check */
	/* Owners to re-enter, if they hold the lock at that moment; see rlock_owner_check, too. */
	const char *const *inherited;
	size_t inherited_count;
	const char *note; /* shown to waiters; NULL: none; cut at RLOCK_NOTE_MAX */
	bool issue_token; /* a fencing token */
	/* Called once, when a wait has lasted on_wait_ms; NULL: not called. */
	void (*on_wait)(void *ctx, const struct rlock_blocker *blocker);
	void *on_wait_ctx;
	int64_t on_wait_ms;
};

#define RLOCK_REQUEST_INIT                                                                         \
	{                                                                                          \
		RLOCK_PLAIN, NULL, 0, 30000, -1, NULL, NULL, 0, NULL, false, NULL, NULL, 1000      \
	}

/*
 * Take the locks. Of several servers all are asked at once, and what the quorum does not agree on is given
 * back everywhere; one that was started less than a lease ago, and may have forgotten a holder, counts
 * only when all must agree. Blocks for wait_ms, and for the connection's timeout when a server doesn't answer.
 * RLOCK_OK         *out is the hold; its lease is counted from before the request that took it
 * RLOCK_BUSY       the wait is over; the error text says who holds it
 * RLOCK_CANCELLED  nothing is held; the line was left
 * RLOCK_ENET       no server that can take a lock was reached in time, or it was lost while waiting
 *                  and not back when the wait (with none: 60 s) was over; or its answer was lost,
 *                  and a second of asking again brought none. Nothing stays held for longer than
 *                  one lease
 * other failures   nothing is held
 */
RLOCK_API enum rlock_status rlock_acquire(struct rlock_conn *conn,
					  const struct rlock_request *request,
					  struct rlock_hold **out);

/*
 * Push the lease forward: it then ends lease_ms after the call was sent. One request, answered by
 * deadline_ms or not at all.
 * RLOCK_OK        renewed
 * RLOCK_NOT_HELD  it expired, was broken or overwritten; do not go on as if it were held
 * RLOCK_ENET      unknown; try again until your own deadline
 */
RLOCK_API enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold,
					int64_t lease_ms, int64_t deadline_ms);

/*
 * Give the hold back. Tries again, over new connections, until deadline_ms or the lease's end.
 * RLOCK_OK        released (another hold of the same owner may still be there: rlock_hold_count)
 * RLOCK_NOT_NOTIFIED    released, but the user may not publish: waiters find out by themselves
 * RLOCK_NOT_HELD  it had been lost
 * RLOCK_ENET      not delivered: the lease ends by itself
 */
RLOCK_API enum rlock_status rlock_release(struct rlock_conn *conn, struct rlock_hold *hold,
					  int64_t deadline_ms);

/*
 * Instead of a release: leave the lock taken for left_ms more, and then let it end by itself. With
 * other holds of the same owner the lock may last longer. Tries again, and answers, as
 * rlock_release.
 */
RLOCK_API enum rlock_status rlock_keep_until(struct rlock_conn *conn, struct rlock_hold *hold,
					     int64_t left_ms, int64_t deadline_ms);

/*
 * The most recent hold of a kind, or of RLOCK_ANY, that owner has on name. RLOCK_OK and *out, or
 * RLOCK_NOT_HELD. Its lease is what the server says is left of it, or RLOCK_LEASE_LOST when the key was overwritten
 * with another type; count and token are 0. A fair lock is found as a plain one, which is renewed and given back
 * alike. RLOCK_EKIND when the key is no lock, and nothing says that it was the owner's.
 */
#define RLOCK_LEASE_LOST (-2)
RLOCK_API enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
				       const char *owner, enum rlock_kind kind,
				       struct rlock_hold **out);

/*
 * Break somebody's lock, if it is of that kind; RLOCK_ANY: of whatever kind. RLOCK_READ breaks the reads of an owner
 * that has the write lock, too, and leaves that. The holder is not asked, and finds out when it renews, if ever it
 * does. With holder not NULL only if that is who holds it now; of several readers only he loses it.
 * RLOCK_OK        broken (RLOCK_NOT_NOTIFIED: the waiters were not told); was_out says whose it was
 * RLOCK_NOT_HELD  nobody holds it
 * RLOCK_BUSY      somebody else than holder does; was_out says who
 */
RLOCK_API enum rlock_status rlock_break(struct rlock_conn *conn, const struct rlock_name *name,
					const char *holder, enum rlock_kind kind,
					char was_out[RLOCK_OWNER_MAX]);

/*
 * A hold known by its id, from a file or another process. names are copied. sent_ms and lease_ms
 * say how long it lasts at least: a release that finds it gone before sent_ms + lease_ms is told it
 * was lost.
 */
RLOCK_API enum rlock_status rlock_hold_new(enum rlock_kind kind, const struct rlock_name *names,
					   size_t name_count, const char *id, int64_t sent_ms,
					   int64_t lease_ms, struct rlock_hold **out);
RLOCK_API void rlock_hold_free(struct rlock_hold *hold);

RLOCK_API const char *rlock_hold_id(const struct rlock_hold *hold);
/* The owner of the index-th name: a fresh one, or the inherited one that was re-entered. */
RLOCK_API const char *rlock_hold_owner(const struct rlock_hold *hold, size_t index);
/* How many holds the owner had on that name right after the acquisition, this one included. */
RLOCK_API int64_t rlock_hold_count(const struct rlock_hold *hold, size_t index);
/* The fencing token drawn for that name, 0 for none. */
RLOCK_API int64_t rlock_hold_token(const struct rlock_hold *hold, size_t index);
/*
 * When the last good request for this hold was sent, and the lease it asked for: their sum is the time to count on.
 * So the first is earlier by what our clock and the server's may differ by over one lease, a thousandth of it and
 * 2 ms at least; with several servers by 1 % and 2 ms.
 */
RLOCK_API int64_t rlock_hold_sent_ms(const struct rlock_hold *hold);
RLOCK_API int64_t rlock_hold_lease_ms(const struct rlock_hold *hold);
/* For a hold that another process renewed: when that was last sent. */
RLOCK_API void rlock_hold_set_sent_ms(struct rlock_hold *hold, int64_t sent_ms);
/* What was left of the lease on the server when it was last renewed. */
RLOCK_API int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold);

#ifdef __cplusplus
}
#endif

#endif
