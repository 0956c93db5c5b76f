/*
 * Requests for an acquired hold: renew it, release it, or keep it until a time. Each request contains the hold id, so a
 * repeated request has no other effect than the first one, and a request that arrives after the release changes nothing. The
 * caller decides when to renew.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "conn.h"
#include "delivery.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "regain.h"
#include "request.h"
#include "rlock.h"

/* ---- renew: the reply ---- */

struct renewal {
	struct rlock_hold *hold;
	struct rlock__places places;
	int64_t lease_ms;
	int64_t min_ttl_ms; /* the lowest TTL of all replies so far */
};

/*
 * Read a stop request from the reply to a renewal: {index of the name, " SINCE_MS USER@HOST"}. False: the reply has another
 * form.
 */
static bool read_request(struct rlock_hold *hold, const struct rlock__place *place,
			 const redisReply *request)
{
	const redisReply *text;
	const char *by;

	if (!rlock__reply_is(request, "is") ||
	    !rlock__reply_read_index(place, request->element[0], &hold->stop_name_index))
		return false;
	text = request->element[1];
	by = text->len > 0 ? memchr(text->str + 1, ' ', text->len - 1) : NULL;
	by = by != NULL ? by + 1 : text->str;
	(void)rlock_escape(by, text->len - (size_t)(by - text->str), hold->stop_requested_by,
			   sizeof(hold->stop_requested_by));
	hold->is_stop_requested = true;
	return true;
}

static enum rlock_status read_renewal(void *ctx, struct rlock__connection *connection, size_t index,
				      redisReply *reply)
{
	struct renewal *renewal = ctx;
	size_t name_index;

	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0) {
		if (renewal->lease_ms < renewal->min_ttl_ms)
			renewal->min_ttl_ms = renewal->lease_ms;
		return RLOCK_OK;
	}
	if (!rlock__reply_is(reply, "i*"))
		return RLOCK_ESERVER;
	if (rlock__reply_read_index(&renewal->places.at[index], reply->element[0], &name_index))
		return rlock__reply_fail_lost(
			connection, reply->elements > 1 ? reply->element[1] : NULL, name_index);
	if (reply->element[0]->integer != 0 || !rlock__reply_is(reply, "ii*"))
		return RLOCK_ESERVER;
	if (reply->elements > 2 &&
	    !read_request(renewal->hold, &renewal->places.at[index], reply->element[2]))
		return RLOCK_ESERVER;
	if (reply->element[1]->integer < renewal->min_ttl_ms)
		renewal->min_ttl_ms = reply->element[1]->integer;
	return RLOCK_OK;
}

/* ---- renew: all of it ---- */

static const struct rlock__script *make_renew(const void *ctx, size_t index,
					      struct rlock__args *args)
{
	const struct renewal *renewal = ctx;
	const struct rlock_hold *hold = renewal->hold;
	const struct rlock__action *action = hold->row->renew;

	rlock__places_keys(&renewal->places, index, hold, action->keys, args);
	rlock__args_number(args, renewal->lease_ms);
	rlock__args_string(args, hold->id);
	rlock__places_args(&renewal->places, index, hold, action, args);
	return action->script;
}

/* RLOCK_OK: a quorum of servers has renewed the hold, and replicas and sentinels confirm it. */
static enum rlock_status broadcast_renewal(const struct renewal *renewal,
					   struct rlock__broadcast *broadcast, int64_t sent_ms,
					   int64_t deadline_ms)
{
	const struct rlock__places *places = &renewal->places;
	enum rlock_status status;

	rlock__broadcast_begin_all(broadcast, make_renew, renewal, deadline_ms);
	status = rlock__broadcast_await(broadcast, places->quorum, INT64_MAX);
	if (status != RLOCK_OK)
		return status;
	/* Wait a little for the other servers, because their replies show which of them have lost the lock. */
	status = rlock__broadcast_await(broadcast, 0, rlock_now_ms() + RLOCK__STRAGGLERS_MS);
	if (status != RLOCK_OK)
		return status;
	status = rlock__broadcast_result_of_hold(broadcast, sent_ms, deadline_ms);
	if (status != RLOCK_OK)
		return status;
	/*
	 * Do not query the sentinels again: if a server that is no longer the master carried out this renewal, the next one
	 * finds that out soon enough.
	 */
	return rlock__broadcast_acknowledge(broadcast, INT64_MIN, renewal->lease_ms);
}

/* Longest time for all requests of one regain, so that the next renewal is not late. */
#define REGAIN_MS 500

/* Acquire the hold again on the servers that replied that they have lost it. A quorum has the hold. */
static void regain(const struct renewal *renewal, const struct rlock__broadcast *renewed)
{
	bool is_lacking[RLOCK_SERVERS_MAX] = { false };

	for (size_t i = 0; i < renewal->places.count; i++)
		is_lacking[i] =
			renewed->answers[i].is_over && renewed->answers[i].status == RLOCK_NOT_HELD;
	rlock__regain(&renewal->places, renewal->hold, renewal->lease_ms, is_lacking,
		      rlock_now_ms() + REGAIN_MS);
}

enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold, int64_t lease_ms,
			      int64_t deadline_ms)
{
	struct renewal renewal = { .hold = hold, .lease_ms = lease_ms, .min_ttl_ms = INT64_MAX };
	int64_t sent_ms = rlock_now_ms();
	struct rlock__broadcast broadcast;
	enum rlock_status status = rlock__conn_check_lease(conn, lease_ms);

	if (status == RLOCK_OK)
		status = rlock__places_of_hold(&renewal.places, conn, hold);
	if (status != RLOCK_OK)
		return status;
	rlock__broadcast_init(&broadcast, &renewal.places, read_renewal, &renewal);
	status = broadcast_renewal(&renewal, &broadcast, sent_ms, deadline_ms);
	if (status == RLOCK_OK) {
		hold->sent_ms = sent_ms - rlock__conn_drift_ms(conn, lease_ms);
		hold->lease_ms = lease_ms;
		hold->ttl_ms = renewal.min_ttl_ms;
		if (rlock__broadcast_count(&broadcast, RLOCK_NOT_HELD) > 0)
			regain(&renewal, &broadcast);
	}
	rlock__broadcast_close_failed(&broadcast);
	rlock__broadcast_free(&broadcast);
	return status;
}

struct renewing {
	struct rlock_conn *conn;
	struct rlock_hold *hold;
	int64_t lease_ms;
};

static enum rlock_status attempt_renewal(void *ctx, int64_t end_ms, bool *may_change_out)
{
	const struct renewing *renewing = ctx;

	(void)may_change_out;
	return rlock_renew(renewing->conn, renewing->hold, renewing->lease_ms, end_ms);
}

enum rlock_status rlock_renew_until(struct rlock_conn *conn, struct rlock_hold *hold,
				    int64_t lease_ms, int64_t deadline_ms)
{
	struct renewing renewing = { conn, hold, lease_ms };

	return rlock__retry(conn, attempt_renewal, &renewing, deadline_ms);
}

/* ---- release: the reply ---- */

/*
 * The result of a release for one name. In place of this number, the reply can have an error (the name was released, but its
 * waiters were not notified), or a text (the type of the value that has overwritten the lock).
 */
enum release_result {
	RELEASE_NO_SUCH_HOLD = 0,
	RELEASE_OTHERS_LEFT = 1,
	RELEASE_FREE = 2,
	RELEASE_LOST = 3,
	RELEASE_RESULTS, /* the number of results */
};

static int64_t lease_end_ms(const struct rlock_hold *hold)
{
	return rlock__time_add(hold->sent_ms, hold->lease_ms);
}

struct release {
	const struct rlock_hold *hold;
	int64_t left_ms; /* keep the hold for this many ms; 0: release it */
	struct rlock__places places;
	struct rlock__delivery delivery;
};

/* Whether reply is the short one of sem_release.lua, a number: the only name was released. */
static bool is_short_release(const redisReply *reply, size_t count)
{
	return count == 1 && reply->type == REDIS_REPLY_INTEGER && reply->integer == RELEASE_FREE;
}

static bool are_results(const redisReply *reply, size_t count)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER &&
		    reply->element[i]->type != REDIS_REPLY_STRING &&
		    reply->element[i]->type != REDIS_REPLY_ERROR)
			return false;
	return true;
}

/*
 * If the server does not have the hold: whether an earlier request, whose reply was lost, may have released it. False if no
 * such request was sent. False also if the lease may have ended, because then the hold may have been lost.
 */
static bool may_be_done(const struct release *release, size_t index)
{
	return rlock__delivery_may_be_done(&release->delivery, index) &&
	       rlock_now_ms() < lease_end_ms(release->hold);
}

/* Combine the results of all names into one status. */
static enum rlock_status read_results(void *ctx, struct rlock__connection *connection, size_t index,
				      redisReply *reply)
{
	struct release *release = ctx;
	const struct rlock__places *places = &release->places;
	const struct rlock__script *script = release->delivery.broadcast.answers[index].call.script;
	enum rlock_status status = RLOCK_OK;

	if (is_short_release(reply, places->at[index].name_count))
		return RLOCK_OK;
	if (!are_results(reply, places->at[index].name_count))
		return RLOCK_ESERVER;
	for (size_t i = 0; i < reply->elements; i++) {
		const redisReply *result = reply->element[i];
		size_t name_index = places->at[index].names[i];

		if (result->type == REDIS_REPLY_ERROR) {
			status = RLOCK_NOT_NOTIFIED;
			(void)rlock__server_error(&connection->error, result->str, result->len,
						  script->body);
			connection->error.name_index = name_index;
			continue;
		}
		if (result->type == REDIS_REPLY_STRING)
			return rlock__reply_fail_lost(connection, result, name_index);
		if (result->integer < 0 || result->integer >= RELEASE_RESULTS)
			return RLOCK_ESERVER;
		if (result->integer == RELEASE_LOST ||
		    (result->integer == RELEASE_NO_SUCH_HOLD && !may_be_done(release, index)))
			return rlock__reply_fail_lost(connection, NULL, name_index);
	}
	return status;
}

/* ---- release: the arguments ---- */

static const struct rlock__script *make_release(const void *ctx, size_t index,
						struct rlock__args *args)
{
	const struct release *release = ctx;

	return rlock__places_release(&release->places, index, release->hold, release->left_ms,
				     args);
}

/* ---- release: deliver ---- */

/* Send the release until it is answered, deadline_ms has passed, or the lease has ended. */
static enum rlock_status deliver(struct release *release, struct rlock_conn *conn,
				 int64_t deadline_ms)
{
	enum rlock_status status = rlock__places_of_hold(&release->places, conn, release->hold);

	if (status != RLOCK_OK)
		return status;
	rlock__delivery_init(&release->delivery, &release->places, make_release, release,
			     read_results, release);
	status = rlock__delivery_run(&release->delivery,
				     rlock__time_min(deadline_ms, lease_end_ms(release->hold)));
	rlock__delivery_free(&release->delivery);
	return status;
}

enum rlock_status rlock_release(struct rlock_conn *conn, struct rlock_hold *hold,
				int64_t deadline_ms)
{
	struct release release = { .hold = hold };

	return deliver(&release, conn, deadline_ms);
}

/*
 * Added to the time of a kept lock, so that it does not end too early. The caller's clock and the server's are both rounded
 * down, which can cost up to 1 ms each.
 */
#define KEEP_ROUNDING_MS 2

enum rlock_status rlock_keep_until(struct rlock_conn *conn, struct rlock_hold *hold,
				   int64_t left_ms, int64_t deadline_ms)
{
	struct release release = { .hold = hold };
	enum rlock_status status = RLOCK_OK;

	if (left_ms > 0)
		status = rlock__conn_check_lease(conn, left_ms);
	if (status != RLOCK_OK)
		return status;
	if (left_ms > 0)
		release.left_ms = left_ms + KEEP_ROUNDING_MS;
	return deliver(&release, conn, deadline_ms);
}
