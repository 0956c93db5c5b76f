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
 * Make one attempt, until end_ms at most. *may_change_out is false before; set it if a further attempt makes sense although the
 * failure is not transient: a place has not answered yet.
 */
typedef enum rlock_status (*rlock__attempt_fn)(void *ctx, int64_t end_ms, bool *may_change_out);

/*
 * Repeat attempt after transient failures, with growing pauses, until deadline_ms, and return the last result. The first attempt may
 * take a second, and each further one twice the time before: a server that does not answer must leave time for another stream.
 * The first attempt has its full time even if the deadline is earlier.
 */
enum rlock_status rlock__retry(struct rlock_conn *conn, rlock__attempt_fn attempt, void *ctx,
			       int64_t deadline_ms);

struct rlock__delivery {
	struct rlock__broadcast broadcast;
	rlock__args_fn make;
	const void *ctx;                    /* for make */
	int64_t sent_ms[RLOCK_SERVERS_MAX]; /* time of the last request to each place */
	/*
	 * is_repeated: an earlier request to the place may have been carried out. server_number: the server that may
	 * have done so.
	 */
	bool is_repeated[RLOCK_SERVERS_MAX];
	uint64_t server_number[RLOCK_SERVERS_MAX];
};

/* Keep places until the delivery is freed. make is called with ctx, and read with read_ctx. */
void rlock__delivery_init(struct rlock__delivery *delivery, const struct rlock__places *places,
			  rlock__args_fn make, const void *ctx, rlock__read_fn read,
			  void *read_ctx);
void rlock__delivery_free(struct rlock__delivery *delivery);
/* Run the delivery by rlock__retry. Returns the quorum's result, in which RLOCK_NOT_HELD counts as an answer. */
enum rlock_status rlock__delivery_run(struct rlock__delivery *delivery, int64_t deadline_ms);
/*
 * Whether the server that answered may have carried out an earlier request, whose reply was lost. False for a new master, which may
 * not have received that request.
 */
bool rlock__delivery_may_be_done(const struct rlock__delivery *delivery, size_t index);

#endif
