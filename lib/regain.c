/*
 * Acquire a hold on servers that lack it while a quorum has it. Such a server restarted without its data, or granted the lock to
 * another caller for a moment. The lock is held all the time, so a regain comes before every waiter. held.c and acquire_try.c choose
 * the servers; the scripts of an acquisition acquire the hold.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "regain.h"
#include "request.h"

/*
 * The options of an acquire script, one byte for each of these (lua/inc/request.lua): no token is issued; the caller waits;
 * the caller is not subscribed to its own channel; the reservation of another waiter is over; the wait began at the time 1,
 * which means a regain.
 */
#define OPTIONS "01011"

struct regain {
	const struct rlock_hold *hold;
	int64_t lease_ms, begun_ms, end_ms;
	const char *owner;              /* the owner for which the current request acquires */
	struct rlock__places places;    /* each with the names of owner alone */
	bool is_due[RLOCK_SERVERS_MAX]; /* A request for owner must be sent to the place. */
	/* The place lacked the hold, and has granted the names of each owner so far. */
	bool is_granted[RLOCK_SERVERS_MAX];
	bool is_repeated;
};

/* Acquire a fair lock by the script of a plain lock, because the waiters in its queue must not come first. */
static const struct rlock__script *make_regain(const void *ctx, size_t index,
					       struct rlock__args *args)
{
	const struct regain *regain = ctx;
	const struct rlock_hold *hold = regain->hold;
	enum rlock_kind kind = hold->kind == RLOCK_FAIR ? RLOCK_PLAIN : hold->kind;
	const struct rlock__action *action = rlock__kind(kind)->acquire;

	rlock__places_keys(&regain->places, index, hold, action->keys, args);
	rlock__args_number(args, regain->lease_ms);
	rlock__args_string(args, regain->owner);
	rlock__args_string(args, hold->id);
	rlock__args_string(args, hold->record_text);
	rlock__args_string(args, OPTIONS);
	rlock__places_args(&regain->places, index, hold, action, args);
	args->is_repeated = regain->is_repeated;
	return action->script;
}

/* RLOCK_BUSY: another caller has the lock, so a later request may succeed. RLOCK_EKIND: a later request would fail, too. */
static enum rlock_status read_reply(void *ctx, struct rlock__connection *connection, size_t index,
				    redisReply *reply)
{
	bool is_list = rlock__reply_is(reply, "i*");
	int64_t result = is_list                              ? reply->element[0]->integer
			 : reply->type == REDIS_REPLY_INTEGER ? reply->integer
							      : -1;

	(void)ctx;
	(void)index;
	if (result > 0)
		return RLOCK_OK;
	return rlock__fail(&connection->error, result == 0 ? RLOCK_BUSY : RLOCK_EKIND,
			   "not acquired again here");
}

/* Whether the sentinels, if any, confirm the place's server as the master. A regain is a grant, which only a master can give. */
static bool is_master(const struct regain *regain, size_t index)
{
	return rlock__request_confirm(regain->places.at[index].connection, regain->begun_ms,
				      regain->end_ms) == RLOCK_OK;
}

/* Send one request to each place that is due. True: a place replied "busy", and is still due. */
static bool send_once(struct regain *regain)
{
	struct rlock__broadcast broadcast;
	enum rlock_status status;
	bool is_busy = false;

	rlock__broadcast_init(&broadcast, &regain->places, read_reply, NULL);
	for (size_t i = 0; i < regain->places.count; i++)
		if (regain->is_due[i] && is_master(regain, i))
			rlock__broadcast_begin(&broadcast, i, make_regain, regain, regain->end_ms);
	status = rlock__broadcast_await(&broadcast, 0, regain->end_ms);
	for (size_t i = 0; i < regain->places.count; i++) {
		const struct rlock__answer *answer = &broadcast.answers[i];

		/*
		 * Clear is_granted also where nothing was sent, because the sentinels confirm no master there. Otherwise a
		 * place that has granted nothing would count for the quorum.
		 */
		if (!regain->is_due[i])
			continue;
		regain->is_granted[i] = answer->is_over && answer->status == RLOCK_OK;
		regain->is_due[i] =
			status == RLOCK_OK && answer->is_over && answer->status == RLOCK_BUSY;
		is_busy = is_busy || regain->is_due[i];
	}
	rlock__broadcast_free(&broadcast);
	regain->is_repeated = true;
	return is_busy;
}

/*
 * Repeat the requests to busy places, until regain->end_ms. Another caller that has the lock at such a place has no quorum,
 * and releases it in a moment. The script reserves the lock for us, so that a later request succeeds.
 */
static void send_until_free(struct regain *regain)
{
	struct rlock_conn *conn = regain->places.conn;
	int64_t pause_ms = 0;

	while (send_once(regain))
		if (rlock__conn_pause(conn, &pause_ms, regain->end_ms) != RLOCK_OK ||
		    rlock_now_ms() >= regain->end_ms)
			return;
}

/* Whether the index-th name is the first one with its owner. False also if the name has no owner. */
static bool is_new_owner(const struct rlock_hold *hold, size_t index)
{
	const char *owner = hold->acquired[index].owner;

	for (size_t i = 0; i < index; i++)
		if (strcmp(hold->acquired[i].owner, owner) == 0)
			return false;
	return owner[0] != '\0';
}

/*
 * Send one request for each owner, because a script acquires all its names for one owner, but re-entered names have the owner
 * of an ancestor.
 */
void rlock__regain(const struct rlock__places *places, const struct rlock_hold *hold,
		   int64_t lease_ms, bool is_lacking[RLOCK_SERVERS_MAX], int64_t end_ms)
{
	struct regain regain = {
		.hold = hold,
		.lease_ms = lease_ms,
		.begun_ms = rlock_now_ms(),
		.end_ms = end_ms,
		.places = *places,
	};
	size_t *names = calloc(hold->name_count, sizeof(*names));

	if (names == NULL)
		return;
	for (size_t i = 0; i < places->count; i++)
		regain.is_granted[i] = is_lacking[i];

	for (size_t first = 0; first < hold->name_count; first++) {
		size_t count = 0;

		if (!is_new_owner(hold, first))
			continue;
		regain.owner = hold->acquired[first].owner;
		for (size_t i = first; i < hold->name_count; i++)
			if (strcmp(hold->acquired[i].owner, regain.owner) == 0)
				names[count++] = i;
		for (size_t i = 0; i < places->count; i++) {
			regain.places.at[i].names = names;
			regain.places.at[i].name_count = count;
			regain.is_due[i] = regain.is_granted[i];
		}
		send_until_free(&regain);
	}
	for (size_t i = 0; i < places->count; i++)
		is_lacking[i] = is_lacking[i] && !regain.is_granted[i];
	free(names);
}
