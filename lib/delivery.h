/*
 * The delivery of one request to all places: it is repeated over new streams until the quorum has answered, or a deadline is there.
 */
#ifndef RLOCK_DELIVERY_H
#define RLOCK_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"
#include "rlock.h"

/*
 * One attempt, which takes until end_ms at most. *may_change_out, which is false, becomes true where a failure that is not
 * transient is not the end: a place has not answered yet.
 */
typedef enum rlock_status (*rlock__attempt_fn)(void *ctx, int64_t end_ms, bool *may_change_out);

/*
 * Repeat attempt after transient failures, with growing pauses, until deadline_ms. The last result. The first attempt may take
 * a second, each further one twice as long: a server that does not answer must leave time for another stream. The first one, and one that
 * begins after the deadline, gets its full time.
 */
enum rlock_status rlock__retry(struct rlock_conn *conn, rlock__attempt_fn attempt, void *ctx,
			       int64_t deadline_ms);

struct rlock__delivery {
	struct rlock__broadcast broadcast;
	rlock__args_fn make;
	const void *ctx;                    /* of make */
	int64_t sent_ms[RLOCK_SERVERS_MAX]; /* when the last one was, to each place */
	/* An earlier request may have been carried out there, by this server. */
	bool is_repeated[RLOCK_SERVERS_MAX];
	uint64_t server_number[RLOCK_SERVERS_MAX];
};

/* places must stay until the delivery is freed. read gets read_ctx, and make gets ctx. */
void rlock__delivery_init(struct rlock__delivery *delivery, const struct rlock__places *places,
			  rlock__args_fn make, const void *ctx, rlock__read_fn read,
			  void *read_ctx);
void rlock__delivery_free(struct rlock__delivery *delivery);
/* Send the request to the places that have not answered, by rlock__retry. The quorum's result, with RLOCK_NOT_HELD as the negative. */
enum rlock_status rlock__delivery_run(struct rlock__delivery *delivery, int64_t deadline_ms);
/*
 * Whether the server that answers may have carried out an earlier request, whose reply was lost. A new master may never have
 * heard of it.
 */
bool rlock__delivery_may_be_done(const struct rlock__delivery *delivery, size_t index);

#endif
