/*
 * Renewing a hold. Every request names the hold's id: one that arrives after the release changes nothing.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "internal.h"

struct renewal {
	const struct rlock_conn *conn;
	const struct rlock_hold *hold;
	int64_t least_ttl_ms; /* among those that renewed */
};

static enum rlock_status read_renewal(void *ctx, size_t index, redisReply *reply)
{
	struct renewal *renewal = ctx;
	struct rlock__link *link = renewal->conn->links[index];
	const struct rlock__script *script = renewal->hold->row->renew->script;

	if (!rlock__are_integers(reply, 1))
		return rlock__fail_reply(link, script);
	if (reply->element[0]->integer != 0)
		return rlock__fail_lost(link, (size_t)reply->element[0]->integer - 1);
	if (!rlock__are_integers(reply, 2))
		return rlock__fail_reply(link, script);
	if (reply->element[1]->integer < renewal->least_ttl_ms)
		renewal->least_ttl_ms = reply->element[1]->integer;
	return RLOCK_OK;
}

enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold, int64_t lease_ms,
			      int64_t deadline_ms)
{
	const struct rlock__action *action = hold->row->renew;
	struct renewal renewal = { conn, hold, INT64_MAX };
	int64_t sent_ms = rlock_now_ms();
	struct rlock__inquiry inquiry;
	struct rlock__args args;
	enum rlock_status status = rlock__inquiry_init(&inquiry, conn, read_renewal, &renewal);

	if (status != RLOCK_OK)
		return status;
	rlock__action_keys(action, hold, &args);
	rlock__args_number(&args, lease_ms);
	rlock__args_text(&args, hold->id, strlen(hold->id));
	rlock__action_args(action, hold, &args);
	rlock__inquiry_begin_all(&inquiry, action->script, &args, deadline_ms);
	status = rlock__inquiry_await(&inquiry, conn->quorum, INT64_MAX);
	if (status == RLOCK_OK)
		status = rlock__inquiry_verdict(&inquiry, RLOCK_NOT_HELD);
	if (status == RLOCK_OK) {
		hold->sent_ms = sent_ms - rlock__drift_ms(conn, lease_ms);
		hold->lease_ms = lease_ms;
		hold->ttl_ms = renewal.least_ttl_ms;
	}
	rlock__drop_refused(&inquiry);
	rlock__args_free(&args);
	rlock__inquiry_free(&inquiry);
	return status;
}
