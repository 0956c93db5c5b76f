/*
 * One request over all routes of some names. "Server" is said here of what is at the end of a route.
 */
#ifndef RLOCK_BROADCAST_H
#define RLOCK_BROADCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/request.h"
#include "rlock.h"
#include "script.h"

struct redisReply;
struct rlock__routes;
struct rlock_conn;

/* The request to one server, and what became of it. */
struct rlock__answer {
	struct rlock__args args;
	struct rlock__call call;
	struct rlock__result result;
	enum rlock_status status; /* of the result, or what its reply was read as */
	bool is_sent, is_over;
};

/* How long to wait for those of several servers that can't change the result any more. */
#define RLOCK__STRAGGLERS_MS 100

/*
 * Turns a reply of the index-th server into a status; unless that is RLOCK_OK, the server's connection has the text. After
 * RLOCK_OK and RLOCK_NOT_NOTIFIED the server has done what was asked.
 */
typedef enum rlock_status (*rlock__read_fn)(void *ctx, size_t index, struct redisReply *reply);

/*
 * Fills args with what the index-th server is sent, and returns the script for them. Free args with rlock__args_free.
 */
typedef const struct rlock__script *(*rlock__args_fn)(const void *ctx, size_t index,
						      struct rlock__args *args);

struct rlock__broadcast {
	const struct rlock__routes *routes;
	struct rlock__answer *answers; /* one a route */
	rlock__read_fn read;           /* NULL: any reply is RLOCK_OK */
	void *ctx;
	bool needs_login; /* before anything is sent */
};

/* routes must stay until the broadcast is freed. */
enum rlock_status rlock__broadcast_init(struct rlock__broadcast *broadcast,
					const struct rlock__routes *routes, rlock__read_fn read,
					void *ctx);
void rlock__broadcast_free(struct rlock__broadcast *broadcast);
/* Send to one server, or to all. An earlier answer of the server is freed. */
void rlock__broadcast_begin(struct rlock__broadcast *broadcast, size_t index, rlock__args_fn make,
			    const void *ctx, int64_t deadline_ms);
void rlock__broadcast_begin_all(struct rlock__broadcast *broadcast, rlock__args_fn make,
				const void *ctx, int64_t deadline_ms);
/*
 * Wait until all servers have answered; with enough > 0 until that many have done it, or can't any more; but not longer
 * than until_ms. Requests without an answer stay under way. RLOCK_CANCELLED, RLOCK_ESYS: they are abandoned.
 */
enum rlock_status rlock__broadcast_await(struct rlock__broadcast *broadcast, size_t enough,
					 int64_t until_ms);
/* Whether a server answered with status; then the connection has the error of the first that did. */
bool rlock__broadcast_copy_error(struct rlock__broadcast *broadcast, enum rlock_status status);
size_t rlock__broadcast_count(const struct rlock__broadcast *broadcast, enum rlock_status status);
/* How many servers have done what was asked. */
size_t rlock__broadcast_done(const struct rlock__broadcast *broadcast);
/*
 * The quorum's result: RLOCK_OK when enough servers have done it, or RLOCK_NOT_NOTIFIED if one of them said so; negative
 * (RLOCK_NOT_HELD, say) when so many gave that answer that the others are too few; else the failure that prevented a
 * quorum. If it is not RLOCK_OK, the connection has its error.
 */
enum rlock_status rlock__broadcast_result(struct rlock__broadcast *broadcast,
					  enum rlock_status negative);
/* Log in anew next time where a server denied the request: it may have answered before it had loaded its users. */
void rlock__broadcast_close_failed(struct rlock__broadcast *broadcast);
/*
 * All of it in one call, for a lock that another process may have acquired; ctx is for read. A server where it is not
 * held has nothing to do: RLOCK_OK when one server did what was asked, and enough others did it or hold nothing;
 * RLOCK_NOT_NOTIFIED as above.
 * RLOCK_BUSY: another owner holds the lock on one of them.
 */
enum rlock_status rlock__broadcast_run(struct rlock_conn *conn, const struct rlock_name *name,
				       const struct rlock__script *script, struct rlock__args *args,
				       rlock__read_fn read, void *ctx);

#endif
