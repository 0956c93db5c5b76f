/*
 * A session: one stream to one server whose address is known, from the DNS query to the replies, within one deadline.
 */
#ifndef RLOCK_NET_SESSION_H
#define RLOCK_NET_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream.h"
#include "rlock.h"

struct redisReply;
struct rlock__error;
struct rlock__tls_context;
struct rlock_url;

enum rlock__session_state {
	RLOCK__SESSION_CLOSED,
	RLOCK__SESSION_ADDRESS, /* the owner is to say to which server; the password may be fetched meanwhile, and later */
	RLOCK__SESSION_CONNECT, /* after a DNS query, if need be */
	RLOCK__SESSION_TLS,
	RLOCK__SESSION_PASSWORD, /* all else is ready for the login */
	RLOCK__SESSION_OPEN,     /* that is queued */
};

/* What is polled for, and until when. */
struct rlock__polled {
	struct pollfd *fds;
	size_t count;
	int64_t until_ms;
};

/* A password that a source fetches. All zero: none is fetched. */
struct rlock__password {
	void *fetch;      /* the source's; NULL: none */
	int fd;           /* of the fetch */
	int64_t end_ms;   /* of the fetch: a later stream needs a new one */
	const char *text; /* belongs to the fetch; NULL: it is under way */
};

#define RLOCK__EARLY_ERROR_MAX 128

#define RLOCK__LOGIN_STEPS 5

/* On one stream. All zero: nothing was sent. */
struct rlock__login {
	const char *steps[RLOCK__LOGIN_STEPS]; /* the names of the commands */
	size_t count, answered;                /* steps sent, and replies read */
	enum rlock_status status;              /* the first step that failed */
};

/* To which server, and what its login has to tell. */
struct rlock__address {
	const struct rlock_url *server; /* the owner's, for as long as the session is open */
	bool needs_master;              /* a replica fails the login */
	bool is_asking; /* the next command is for a slot that is on its way to this server */
	/* What a text adds where the server can't be reached; NULL: nothing, since the user's URL names it. */
	const char *origin;
};

struct rlock__session {
	enum rlock__session_state state;
	/* Once: the owner sets it whenever it goes on, so that no server that sends all the time keeps it. */
	bool may_read;
	const struct rlock_url
		*login_url;         /* user, password and database, and the parameters of TLS */
	const char *client_name;    /* NULL: none */
	struct rlock__error *error; /* for the texts of failures and the steps */
	struct rlock__tls_context *tls_context; /* NULL: not needed yet */
	struct rlock__password password;
	struct rlock__address address; /* which the owner sets */
	int64_t deadline_ms;           /* of the command */
	int64_t reply_min_ms; /* how long its reply is awaited at least, from when it was sent */
	int64_t reach_end_ms; /* until when the server is to be reached, before the login */
	struct rlock__connector connector;
	struct rlock__stream stream;
	struct rlock__login login; /* on that stream */
	char early_error
		[RLOCK__EARLY_ERROR_MAX]; /* an error that came first on it, in place of a reply */
	bool has_served;                  /* a command on it */
	bool has_ever_served; /* a command on any stream: so the URL has the right scheme */
	bool is_stale; /* a reply is outstanding, and not waited for: only fire and forget can use it */
	bool has_traced_name;   /* that a server denies it */
	bool is_unreachable;    /* the server of the last address was: another one may do */
	uint64_t server_number; /* of the last stream's server; 0: there was none */
	unsigned streams;       /* how many were opened */
	const struct rlock__text *command; /* the owner's, until its reply has come; NULL: none */
	bool needs_login; /* the command is held back until the login is accepted */
	bool is_queued;   /* the command is on the stream */
	bool was_sent;    /* the server may have seen the command */
};

/* What session refers to stays the owner's; tls_context may be NULL. */
void rlock__session_init(struct rlock__session *session, const struct rlock_url *login_url,
			 const char *client_name, struct rlock__tls_context *tls_context,
			 struct rlock__error *error);
/* Load OpenSSL and read the certificates, once, if the URL asks for TLS. After a failure the next call tries again. */
enum rlock_status rlock__session_load_tls(struct rlock__session *session);
/* Close it, and free what it has. All zero is freed, too. */
void rlock__session_free(struct rlock__session *session);
/* Close the stream. A password that is fetched is kept for the next one. */
void rlock__session_close(struct rlock__session *session);
/* The same, and end what fetches a password. */
void rlock__session_end(struct rlock__session *session);

/*
 * Begin to open it, for a command that was sent; the password is fetched for as long as until password_end_ms. It awaits an
 * address then.
 */
enum rlock_status rlock__session_begin(struct rlock__session *session, int64_t password_end_ms);
/* To the server of its address, which is to be reached until reach_end_ms; again when it was not. */
void rlock__session_connect(struct rlock__session *session, int64_t reach_end_ms);
/*
 * Send a command, as rlock__stream_format has made it, once the session is open: in one write with the login, unless that
 * is to be accepted before. It has to have several replies, or one. false: out of memory.
 */
bool rlock__session_send(struct rlock__session *session, const struct rlock__text *command,
			 bool needs_login, int64_t deadline_ms);
/*
 * Go on, as far as possible without waiting. RLOCK_OK: *out is the next reply to the command, which the caller frees;
 * login.status may tell that the login was denied. RLOCK_BUSY: there is none yet. Else it has failed, and is closed, unless
 * the command is under way.
 */
enum rlock_status rlock__session_advance(struct rlock__session *session, struct redisReply **out);
/* What to poll for: at most two descriptors are added. */
void rlock__session_await(const struct rlock__session *session, struct rlock__polled *polled);
/* Whether a command can be queued. */
bool rlock__session_is_open(const struct rlock__session *session);
/* The command is over; the password is not needed any more, unless it is still fetched. */
void rlock__session_end_command(struct rlock__session *session);
/* The next reply, of the login, of the command, or a message of a subscription. RLOCK_BUSY: none has come. */
enum rlock_status rlock__session_read(struct rlock__session *session, struct redisReply **out);

#endif
