/*
 * One stream to one server, and a request over it.
 */
#ifndef RLOCK_NET_CONNECTION_H
#define RLOCK_NET_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct pollfd;
struct redisReply;
struct rlock__text;
struct rlock_url;

struct rlock__connection;

/* As rlock_conn_new says it, for one server. */
enum rlock_status rlock__connection_new(const struct rlock_url *url,
					const struct rlock_conn_opts *opts,
					struct rlock__connection **out);
void rlock__connection_free(struct rlock__connection *connection);
const char *rlock__connection_error(const struct rlock__connection *connection);
size_t rlock__connection_error_name(const struct rlock__connection *connection);
void rlock__connection_set_cancel(struct rlock__connection *connection, int cancel_fd);
void rlock__connection_disown(struct rlock__connection *connection);
void rlock__connection_set_trace(struct rlock__connection *connection, rlock_trace_fn trace,
				 void *ctx);
enum rlock_status rlock__connection_ping(struct rlock__connection *connection);

/* Sets the connection's error text and returns status, so that a failure is one line. */
__attribute__((format(printf, 3, 4))) enum rlock_status
rlock__fail(struct rlock__connection *connection, enum rlock_status status, const char *format,
	    ...);
void rlock__fail_name(struct rlock__connection *connection, size_t name_index);
/* The same for an error reply of the server; script as rlock__refusal has it. */
enum rlock_status rlock__fail_refused(struct rlock__connection *connection, const char *error,
				      size_t len, const char *script);

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
void rlock__connection_begin(struct rlock__connection *connection,
			     const struct rlock__command *command, int64_t deadline_ms);
/* Subscribe, over a new stream; what was sent there before is forgotten. It is over, without a
 * reply, when all channels are acknowledged. */
void rlock__connection_subscribe_begin(struct rlock__connection *connection,
				       const struct rlock__text *channels, size_t count,
				       int64_t deadline_ms);
/*
 * Go on, as far as the last poll allows. true: it is over, and *out says how; else *out says nothing.
 * RLOCK_OK: there is a reply, maybe an error reply. When the login was refused and the command ran
 * all the same, its reply is there and the status says why the login was refused; the stream then
 * serves one more command, to take back what was done. After RLOCK_ENET and RLOCK_CANCELLED only a
 * last word may follow on that stream; the next request opens another.
 */
bool rlock__connection_advance(struct rlock__connection *connection, struct rlock__outcome *out);
/* Between begin and the advance that says it is over. */
bool rlock__connection_is_under_way(const struct rlock__connection *connection);
/* End a request that is under way, as a cancelled one, without an outcome. For who does not come back
 * to it: a begin, a last word and a close do the same where they must. */
void rlock__connection_give_up(struct rlock__connection *connection);

/* Descriptors that one call can poll; connections that have nothing under way count too. */
#define RLOCK__POLL_MAX 64

/*
 * Poll for what is under way on connections, for others (cancel_fd, subscriptions), and until until_ms at
 * the latest. Returns as rlock_poll does, as soon as there is something to do for one of them: what
 * that is among others is in their revents, and what is under way on connections is then to be advanced. A
 * connection whose answer is left for later is left out.
 */
int rlock__connections_poll(struct rlock__connection *const *connections, size_t connection_count,
			    struct pollfd *others, size_t other_count, int64_t until_ms);
/* The same for one connection and its cancel_fd. What goes wrong ends the request: advance tells. */
void rlock__connection_poll(struct rlock__connection *connection);

/* Begin, and advance to the end. RLOCK_CANCELLED when cancel_fd becomes readable meanwhile. */
enum rlock_status rlock__connection_command(struct rlock__connection *connection,
					    const struct rlock__command *command,
					    int64_t deadline_ms, bool *was_sent,
					    struct redisReply **out);

/* Write a command without waiting for anything, and close: the last word on a stream given up. */
void rlock__connection_last_word(struct rlock__connection *connection,
				 const struct rlock__command *command);

/* Ends what is under way as well. */
void rlock__connection_close(struct rlock__connection *connection);
bool rlock__connection_is_open(const struct rlock__connection *connection);
int rlock__connection_cancel_fd(const struct rlock__connection *connection);
const struct rlock_url *rlock__connection_url(const struct rlock__connection *connection);
/* Another connection to the same server, for a subscription. */
enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out);
/* Subscribe, and wait for the acknowledgements. */
enum rlock_status rlock__connection_subscribe(struct rlock__connection *connection,
					      const struct rlock__text *channels, size_t count,
					      int64_t deadline_ms);
/* The descriptor to poll for messages; -1 when closed. */
int rlock__connection_fd(const struct rlock__connection *connection);
/* Read what has come. RLOCK_OK and the number of messages, or RLOCK_ENET. Never blocks. */
enum rlock_status rlock__connection_drain(struct rlock__connection *connection,
					  size_t *messages_out);
__attribute__((format(printf, 2, 3))) void rlock__trace(struct rlock__connection *connection,
							const char *format, ...);

#endif
