/*
 * A request to one server: a command, and the reply to it.
 */
#ifndef RLOCK_NET_REQUEST_H
#define RLOCK_NET_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct pollfd;
struct redisReply;
struct rlock__connection;

struct rlock__command {
	int argc;
	const char **argv;
	size_t *lengths;
	bool needs_login; /* not to be sent before user and database are known to be right */
};

/* How a request ended. */
struct rlock__result {
	enum rlock_status status;
	bool was_sent;            /* the server may have seen the command */
	struct redisReply *reply; /* the caller frees it; NULL: none */
};

/*
 * A request, in steps that never wait: begin it, then advance and poll in turns until it is over.
 * Each connection has one at a time; those of several go on side by side.
 *
 * Begin: connects first if need be, with the login in the same write. The command is copied. What
 * fails at once is told by the first advance. A request that was still under way there is abandoned:
 * if its answer has come meanwhile, the stream is used on, else it is closed and opened anew.
 */
void rlock__request_begin(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms);
/*
 * Go on, as far as the last poll allows. true: it is over, and *out says how; else *out says nothing.
 * RLOCK_OK: there is a reply, maybe an error reply. When the login was denied and the command ran
 * all the same, its reply is there and the status says why the login was denied; the stream then
 * serves one more command, to take back what was done. After RLOCK_ENET and RLOCK_CANCELLED only a
 * last word may follow on that stream; the next request opens another.
 */
bool rlock__request_advance(struct rlock__connection *connection, struct rlock__result *out);
/* Between begin and the advance that says it is over. */
bool rlock__request_is_under_way(const struct rlock__connection *connection);
/* End a request that is under way, as a cancelled one, without an result. For who does not come back
 * to it: a begin, a last word and a close do the same where they must. */
void rlock__request_abandon(struct rlock__connection *connection);

/* Descriptors that one call can poll; connections that have nothing under way count too. */
#define RLOCK__POLL_MAX 64

/*
 * Poll for what is under way on connections, for others (cancel_fd, subscriptions), and until until_ms
 * at the latest. Returns as rlock_poll does, as soon as there is something to do for one of them: what
 * that is among others is in their revents, and what is under way on connections is then to be advanced.
 * A connection whose answer is left for later is left out.
 */
int rlock__request_poll_all(struct rlock__connection *const *connections, size_t connection_count,
			    struct pollfd *others, size_t other_count, int64_t until_ms);
/* The same for one connection and its cancel_fd. What goes wrong ends the request: advance tells. */
void rlock__request_poll(struct rlock__connection *connection);
/* Advance and poll to the end. RLOCK_CANCELLED when cancel_fd becomes readable meanwhile. */
struct rlock__result rlock__request_await(struct rlock__connection *connection);

/* Whether the server answers. */
enum rlock_status rlock__request_ping(struct rlock__connection *connection);
/* Write a command without waiting for anything, and close: the last word on a stream given up. */
void rlock__request_fire_and_forget(struct rlock__connection *connection,
				    const struct rlock__command *command);

/*
 * Begin one that may have several replies, on a connection that has no request: take_reply is given each, until it
 * returns true and says how the request ends. NULL: as rlock__request_begin, the first reply is the result's.
 */
void rlock__request_start(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms,
			  bool (*take_reply)(struct rlock__connection *, const struct redisReply *,
					     enum rlock_status *status_out));

#endif
