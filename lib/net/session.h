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
	/*
	 * Wait for the owner to set address. In this state and the two after it, the password is fetched meanwhile: only the
	 * login needs it.
	 */
	RLOCK__SESSION_ADDRESS,
	RLOCK__SESSION_CONNECT, /* Find the IP address of a host name, and connect the socket. */
	RLOCK__SESSION_TLS,
	RLOCK__SESSION_PASSWORD, /* Only the password is missing for the login. */
	RLOCK__SESSION_OPEN,     /* The login is queued. */
};

/* The descriptors to poll for, and the deadline of the poll. */
struct rlock__polled {
	struct pollfd *fds;
	size_t count;
	int64_t until_ms;
};

/* A password that a source fetches. All zero: no fetch. */
struct rlock__password {
	void *fetch; /* what the source's begin returned; NULL: no fetch */
	int fd;      /* readable when the fetch can continue */
	/* After this time a new stream begins a new fetch. */
	int64_t end_ms;
	const char *text; /* belongs to the fetch; NULL: not fetched yet */
};

#define RLOCK__EARLY_ERROR_MAX 128

#define RLOCK__LOGIN_STEPS 5

/* The login on one stream. All zero: no login was sent. */
struct rlock__login {
	const char *steps[RLOCK__LOGIN_STEPS]; /* names of the commands */
	size_t count, answered;                /* steps that were sent; steps with a reply */
	enum rlock_status status; /* status of the first step that failed; else RLOCK_OK */
};

/* The server to connect to, and what its login needs. */
struct rlock__address {
	const struct rlock_url *server; /* The owner keeps the URL while the session is open. */
	bool needs_master;              /* The login fails at a replica. */
	bool is_asking; /* Send ASKING first: the slot of the next command is moving to this server. */
	/* What an error adds after the reason why a server is unreachable. NULL: nothing, the user's URL names the server. */
	const char *origin;
};

struct rlock__session {
	enum rlock__session_state state;
	/*
	 * Whether the session may read from the socket, which it does once. The owner sets this in each iteration: a flood of replies
	 * must not keep the owner from its other work.
	 */
	bool may_read;
	/* user, password and database of the login, and the parameters of TLS */
	const struct rlock_url *login_url;
	const char *client_name;                /* NULL: none */
	struct rlock__error *error;             /* gets failures and trace lines */
	struct rlock__tls_context *tls_context; /* NULL: not loaded yet */
	struct rlock__password password;
	struct rlock__address address; /* The owner sets it. */
	int64_t deadline_ms;           /* deadline of the reply to the command */
	/* Wait at least this long for the reply after the send, also beyond deadline_ms. */
	int64_t reply_min_ms;
	int64_t reach_end_ms; /* deadline for reaching the server, before the login */
	struct rlock__connector connector;
	struct rlock__stream stream;
	struct rlock__login login; /* on the stream */
	/* The error that the server sent instead of serving this stream: it explains why the stream is closed next. Empty: none. */
	char early_error[RLOCK__EARLY_ERROR_MAX];
	bool has_served; /* The stream has served a command. */
	/* A command on any stream was served: the URL's scheme is right. */
	bool has_ever_served;
	/*
	 * The reply to an abandoned request is outstanding, or the last reply was not confirmed: only rlock__request_fire may use
	 * the stream, because another request would take that reply for its own.
	 */
	bool is_stale;
	bool has_traced_name; /* The denial of CLIENT SETNAME was traced. */
	/* The server of the last address could not be reached: another server may serve the request. */
	bool is_unreachable;
	uint64_t server_number; /* identifies the last stream's server; 0: there was none */
	unsigned streams;       /* number of streams opened so far */
	/* The owner keeps the command until its reply; NULL: none. */
	const struct rlock__text *command;
	bool needs_login; /* Hold back the command until the login was accepted. */
	bool is_queued;   /* The command is in the stream's output. */
	bool was_sent;    /* The server may have received the command. */
};

/* Keep all that session points to until rlock__session_free. tls_context may be NULL. */
void rlock__session_init(struct rlock__session *session, const struct rlock_url *login_url,
			 const char *client_name, struct rlock__tls_context *tls_context,
			 struct rlock__error *error);
/* Load OpenSSL and read the certificates, once, if the URL asks for TLS. After a failure the next call tries again. */
enum rlock_status rlock__session_load_tls(struct rlock__session *session);
/* Close the session, and free what it has. A session that is all zero is accepted. */
void rlock__session_free(struct rlock__session *session);
/* Close the stream. A fetch of a password continues for the next stream. */
void rlock__session_close(struct rlock__session *session);
/* Close the stream, and end the fetch of a password. */
void rlock__session_end(struct rlock__session *session);

/*
 * Begin to open the session for a command that rlock__session_send has taken. The password is fetched until password_end_ms at most.
 * The session then waits for an address.
 */
enum rlock_status rlock__session_begin(struct rlock__session *session, int64_t password_end_ms);
/* Connect to the server of the address, which must be reached by reach_end_ms. Call it again for another address after a failure. */
void rlock__session_connect(struct rlock__session *session, int64_t reach_end_ms);
/*
 * Send a command, made by rlock__stream_format, when the session is open: in one write with the login, or after the login was
 * accepted (needs_login). The command must have at least one reply. False: out of memory.
 */
bool rlock__session_send(struct rlock__session *session, const struct rlock__text *command,
			 bool needs_login, int64_t deadline_ms);
/*
 * Continue without waiting. RLOCK_OK: *out is the next reply to the command, and the caller frees it; login.status may be that of a
 * denied login. RLOCK_BUSY: no reply yet. Else a failure: close the session, unless an undo must follow the command over it
 * (rlock__request_fire).
 */
enum rlock_status rlock__session_advance(struct rlock__session *session, struct redisReply **out);
/* Add what the session waits for to polled: at most two descriptors. */
void rlock__session_await(const struct rlock__session *session, struct rlock__polled *polled);
/* Whether a command can be sent without opening a stream. */
bool rlock__session_is_open(const struct rlock__session *session);
/* Whether the session is open, but its stream was cut. */
bool rlock__session_is_cut(const struct rlock__session *session);
/* End the command after its reply or failure. Drop the password, unless its fetch is not complete. */
void rlock__session_end_command(struct rlock__session *session);
/* Read the next reply to the login or the command, or a message of a subscription. RLOCK_BUSY: none yet. */
enum rlock_status rlock__session_read(struct rlock__session *session, struct redisReply **out);

#endif
