/*
 * The delivery of one request to all places, repeated over new streams until a quorum has answered, or until a deadline.
 */
#ifndef RLOCK_DELIVERY_H
#define RLOCK_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"
#include "rlock.h"

/*
 * Make one attempt, until end_ms at most. *may_change_out is false before the call. Set it if a further attempt makes sense
 * although the failure is not transient, because a place has not answered yet.
 */
typedef enum rlock_status (*rlock__attempt_fn)(void *ctx, int64_t end_ms, bool *may_change_out);

/*
 * Repeat attempt after transient failures, with growing pauses, until deadline_ms. Returns the last result. The first attempt
 * may take a second, and each further one twice as long as the one before: a server that does not answer must leave time for
 * an attempt over another stream. The first attempt has its full time even if deadline_ms is earlier.
 */
enum rlock_status rlock__retry(struct rlock_conn *conn, rlock__attempt_fn attempt, void *ctx,
			       int64_t deadline_ms);

struct rlock__delivery {
	struct rlock__broadcast broadcast;
	rlock__args_fn make;
	const void *ctx; /* the ctx of make */
	/* the time when the last request to each place was sent */
	int64_t sent_ms[RLOCK_SERVERS_MAX];
	/*
	 * is_repeated: an earlier request to the place may have been carried out. server_number: the server to which that
	 * request was sent.
	 */
	bool is_repeated[RLOCK_SERVERS_MAX];
	uint64_t server_number[RLOCK_SERVERS_MAX];
};

/* The caller keeps places until the delivery is freed. make is called with ctx, and read with read_ctx. */
void rlock__delivery_init(struct rlock__delivery *delivery, const struct rlock__places *places,
			  rlock__args_fn make, const void *ctx, rlock__read_fn read,
			  void *read_ctx);
void rlock__delivery_free(struct rlock__delivery *delivery);
/*
 * Run the delivery by rlock__retry. Returns the result of the quorum (rlock__broadcast_result), in which RLOCK_NOT_HELD is the
 * negative answer.
 */
enum rlock_status rlock__delivery_run(struct rlock__delivery *delivery, int64_t deadline_ms);
/*
 * Whether the server that has answered now may have carried out an earlier request, whose reply was lost. False for another
 * server, for example a new master, which may not have received that request.
 */
bool rlock__delivery_may_be_done(const struct rlock__delivery *delivery, size_t index);

#endif
