/*
 * Taking a lock: try, subscribe, try again, sleep until woken or until the holder's time runs out.
 * Knows nothing of what the scripts do to a key; a reply that was lost is asked for again under the
 * same hold id.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* A waiter whose server went away goes on for so long when it has no wait time of its own. */
#define LOST_SERVER_MS 60000
/* A stream that broke before the first answer came: who does not wait resolves so long what became of his
 * request. */
#define LOST_REPLY_MS 1000
/* A try gets at least this long, even when the wait is about to end. */
#define TRY_MIN_MS 250
/* The sleep of a waiter: not shorter (an expiry of 0 must not spin), not longer (a subscription may
 * be dead without knowing), and when the key has no time to live. */
#define SLEEP_MIN_MS 10
#define SLEEP_MAX_MS 30000
#define SLEEP_NO_TTL_MS 5000
#define LOOK_JITTER 16
/* How often an answer that took too much of the lease is asked for again. */
#define SLOW_ANSWERS_MAX 3
#define UNDO_MS 1000
#define SINCE_MAX 24

struct waiter {
	struct rlock_conn *conn;
	const struct rlock_request *request;
	struct rlock_hold *hold; /* filled when the lock was had */
	char owner[RLOCK_OWNER_MAX];
	struct rlock_conn *subscription; /* NULL until the lock was found busy */
	struct rlock__text *channels;
	size_t channel_count;
	int64_t deadline_ms;
	int64_t progress_at_ms;
	int64_t give_up_ms; /* when a server that can't be reached is given up; 0: it answers */
	int64_t pause_ms;
	bool was_reached;
	bool is_busy;          /* that is what the last try was told */
	bool may_be_held;      /* a try went out whose answer we don't know */
	bool left_traces;      /* in the line, or a claim to the next turn */
	char since[SINCE_MAX]; /* what the server says of when we came; goes out with each try */
	int64_t look_ms; /* when it wants us to try again at the latest, from now; -1: never */
	struct {
		int64_t ttl_ms;
		bool is_waiter;
		size_t name_index;
		char holder[RLOCK_OWNER_MAX];
		size_t holder_len;
		char note[RLOCK_NOTE_MAX];
		size_t note_len;
	} blocker;
};

/* ---- one try ---- */

static void acquire_args(struct waiter *waiter, struct rlock__args *args)
{
	const struct rlock_request *request = waiter->request;
	const struct rlock_hold *hold = waiter->hold;
	const char *note = request->note != NULL ? request->note : "";

	rlock__call_keys(hold->row->acquire, hold, args);
	rlock__args_number(args, request->lease_ms);
	rlock__args_text(args, waiter->owner, strlen(waiter->owner));
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__args_text(args, note, strnlen(note, RLOCK_NOTE_MAX - 1));
	rlock__args_text(args, request->draw_token ? "1" : "0", 1);
	rlock__args_text(args, request->wait_ms != 0 ? "1" : "0", 1);
	rlock__args_text(args, waiter->since, strlen(waiter->since));
	rlock__call_args(hold->row->acquire, hold, args);
	for (size_t i = 0; i < request->inherited_count; i++)
		rlock__args_text(args, request->inherited[i], strlen(request->inherited[i]));
}

static size_t copy_string(const redisReply *from, char *to, size_t to_size)
{
	size_t len = from->len < to_size - 1 ? from->len : to_size - 1;

	memcpy(to, from->str, len);
	to[len] = '\0';
	return len;
}

/* What the scripts that acquire answer, in their first number. */
enum acquire_result {
	ACQUIRE_NEVER = -2,
	ACQUIRE_OTHER_KIND = -1,
	ACQUIRE_BUSY = 0,
	ACQUIRE_DONE = 1,
};

#define VALUES_PER_NAME 3
#define TTL_OF_A_WAITER (-2)

static bool is_acquired(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	       reply->element[0]->type == REDIS_REPLY_INTEGER &&
	       reply->element[0]->integer == ACQUIRE_DONE;
}

static enum rlock_status read_taken(struct waiter *waiter, const redisReply *reply)
{
	struct rlock_hold *hold = waiter->hold;

	if (reply->elements != 1 + VALUES_PER_NAME * hold->name_count)
		return rlock__fail_reply(waiter->conn, hold->row->acquire->script);
	for (size_t i = 0; i < hold->name_count; i++) {
		redisReply *const *values = &reply->element[1 + VALUES_PER_NAME * i];

		if (values[0]->type != REDIS_REPLY_STRING ||
		    values[0]->len >= sizeof(hold->taken[i].owner) ||
		    values[1]->type != REDIS_REPLY_INTEGER ||
		    values[2]->type != REDIS_REPLY_INTEGER)
			return rlock__fail_reply(waiter->conn, hold->row->acquire->script);
		(void)copy_string(values[0], hold->taken[i].owner, sizeof(hold->taken[i].owner));
		hold->taken[i].count = values[1]->integer;
		hold->taken[i].token = values[2]->integer;
	}
	return RLOCK_OK;
}

static bool is_busy_reply(const redisReply *reply)
{
	static const int types[] = { REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
				     REDIS_REPLY_STRING,  REDIS_REPLY_STRING,  REDIS_REPLY_INTEGER,
				     REDIS_REPLY_STRING };
	const size_t count = sizeof(types) / sizeof(types[0]);

	if (reply->elements != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (reply->element[i]->type != types[i])
			return false;
	return true;
}

static enum rlock_status read_busy(struct waiter *waiter, const redisReply *reply)
{
	redisReply *const *element = reply->element;

	if (!is_busy_reply(reply))
		return rlock__fail_reply(waiter->conn, waiter->hold->row->acquire->script);
	waiter->blocker.name_index = (size_t)element[1]->integer - 1;
	waiter->blocker.ttl_ms = element[2]->integer;
	waiter->blocker.is_waiter = element[2]->integer == TTL_OF_A_WAITER;
	waiter->blocker.holder_len =
		copy_string(element[3], waiter->blocker.holder, sizeof(waiter->blocker.holder));
	waiter->blocker.note_len =
		copy_string(element[4], waiter->blocker.note, sizeof(waiter->blocker.note));
	waiter->look_ms = element[5]->integer;
	(void)copy_string(element[6], waiter->since, sizeof(waiter->since));
	return RLOCK_BUSY;
}

static enum rlock_status read_answer(struct waiter *waiter, const redisReply *reply)
{
	size_t name_index;

	if (is_acquired(reply))
		return read_taken(waiter, reply);
	if (!rlock__are_integers(reply, 1) || reply->elements < 2 ||
	    reply->element[1]->type != REDIS_REPLY_INTEGER)
		return rlock__fail_reply(waiter->conn, waiter->hold->row->acquire->script);
	name_index = (size_t)reply->element[1]->integer - 1;
	switch (reply->element[0]->integer) {
	case ACQUIRE_BUSY:
		return read_busy(waiter, reply);
	case ACQUIRE_NEVER:
		(void)rlock__fail(
			waiter->conn, RLOCK_ENEVER,
			"it is held for reading by its owner, who would wait for himself: "
			"give the read lock back first");
		rlock__fail_name(waiter->conn, name_index);
		return RLOCK_ENEVER;
	case ACQUIRE_OTHER_KIND:
		if (reply->elements == 3)
			return rlock__fail_kind(waiter->conn, reply->element[2], name_index);
		break;
	default:
		break;
	}
	return rlock__fail_reply(waiter->conn, waiter->hold->row->acquire->script);
}

/* What takes a try back, granted or not, and whatever it left behind. */
static const struct rlock__script *leave_args(const struct waiter *waiter, struct rlock__args *args)
{
	const struct rlock_hold *hold = waiter->hold;
	bool has_leave = hold->row->leave != NULL;
	const struct rlock__call *call = has_leave ? hold->row->leave : hold->row->release;

	rlock__call_keys(call, hold, args);
	rlock__args_text(args, hold->id, strlen(hold->id));
	if (has_leave)
		rlock__args_text(args, waiter->owner, strlen(waiter->owner));
	rlock__call_args(call, hold, args);
	return call->script;
}

/*
 * The login was refused, but the try behind it in the same write took place, as the default user or
 * in another database: take it back on that stream, before anybody is told of the refusal.
 */
static void undo_stray(struct waiter *waiter, const redisReply *reply)
{
	const struct rlock__script *script;
	struct rlock__args args;
	redisReply *undone = NULL;
	char error[RLOCK_ERROR_MAX];
	bool was_sent;

	if (is_acquired(reply) || waiter->hold->row->leave != NULL) {
		memcpy(error, rlock_conn_error(waiter->conn), sizeof(error));
		script = leave_args(waiter, &args);
		(void)rlock__script_run_text(waiter->conn, script, &args, rlock_now_ms() + UNDO_MS,
					     &was_sent, &undone);
		if (undone != NULL)
			freeReplyObject(undone);
		rlock__args_free(&args);
		(void)rlock__fail(waiter->conn, RLOCK_EAUTH, "%s", error);
	}
	rlock__conn_close(waiter->conn);
}

static int64_t try_deadline(const struct waiter *waiter, int64_t now_ms)
{
	int64_t least_ms = now_ms + TRY_MIN_MS;

	if (waiter->request->wait_ms <= 0)
		return INT64_MAX; /* the connection's own time-out counts */
	return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
}

static enum rlock_status try_once(struct waiter *waiter)
{
	const struct rlock__script *script = waiter->hold->row->acquire->script;
	int64_t sent_ms = rlock_now_ms();
	struct rlock__args args;
	redisReply *reply = NULL;
	enum rlock_status status;
	bool was_sent;

	acquire_args(waiter, &args);
	status = rlock__script_run(waiter->conn, script, &args, try_deadline(waiter, sent_ms),
				   &was_sent, &reply);
	rlock__args_free(&args);
	if (status == RLOCK_OK)
		status = read_answer(waiter, reply);
	else if (reply != NULL)
		undo_stray(waiter, reply);
	if (reply != NULL)
		freeReplyObject(reply);
	/* An error may have come in the middle of several names. */
	if (status < 0 || status == RLOCK_CANCELLED)
		waiter->may_be_held = waiter->may_be_held || was_sent;
	else
		waiter->may_be_held = false;
	if (waiter->hold->row->leave != NULL && waiter->request->wait_ms != 0)
		waiter->left_traces = was_sent && status != RLOCK_OK;
	waiter->is_busy = status == RLOCK_BUSY;
	if (status == RLOCK_OK) {
		waiter->hold->sent_ms = sent_ms;
		waiter->hold->lease_ms = waiter->request->lease_ms;
		waiter->hold->ttl_ms = waiter->request->lease_ms;
	}
	return status;
}

/*
 * A lock whose answer was long under way has little of its lease left. The same request again
 * pushes it forward (and takes it anew, should it have run out).
 */
static enum rlock_status try_until_fresh(struct waiter *waiter)
{
	for (int slow_answers = 0;; slow_answers++) {
		enum rlock_status status = try_once(waiter);
		int64_t age_ms;

		if (status != RLOCK_OK)
			return status;
		age_ms = rlock_now_ms() - waiter->hold->sent_ms;
		if (age_ms <= waiter->request->lease_ms / 3)
			return RLOCK_OK;
		if (slow_answers < SLOW_ANSWERS_MAX)
			continue;
		(void)rlock_release(waiter->conn, waiter->hold, rlock_now_ms() + UNDO_MS);
		return rlock__fail(waiter->conn, RLOCK_ENET, "%s answers too slowly for this lease",
				   rlock_url_server(rlock__conn_url(waiter->conn)));
	}
}

/* ---- between the tries ---- */

static struct rlock__text channel_of(const struct waiter *waiter, const struct rlock_name *name)
{
	struct rlock__text channel = rlock__key(waiter->hold->row->channel, name), own;
	size_t owner_len = strlen(waiter->owner);

	if (channel.text == NULL || !waiter->hold->row->has_own_channel)
		return channel;
	own.len = channel.len + 1 + owner_len;
	own.text = realloc(channel.text, own.len + 1);
	if (own.text == NULL) {
		free(channel.text);
		return own;
	}
	own.text[channel.len] = ':';
	memcpy(own.text + channel.len + 1, waiter->owner, owner_len + 1);
	return own;
}

static enum rlock_status subscribe(struct waiter *waiter)
{
	const struct rlock_hold *hold = waiter->hold;
	enum rlock_status status = RLOCK_OK;

	if (waiter->subscription == NULL)
		status = rlock__conn_twin(waiter->conn, &waiter->subscription);
	if (waiter->channels == NULL && status == RLOCK_OK) {
		waiter->channels = calloc(hold->name_count, sizeof(*waiter->channels));
		if (waiter->channels == NULL)
			return rlock__fail(waiter->conn, RLOCK_ENOMEM, "out of memory");
		for (size_t i = 0; i < hold->name_count; i++) {
			waiter->channels[i] = channel_of(waiter, &hold->names[i]);
			if (waiter->channels[i].text == NULL)
				return rlock__fail(waiter->conn, RLOCK_ENOMEM, "out of memory");
			waiter->channel_count++;
		}
	}
	if (status == RLOCK_OK)
		status = rlock__conn_subscribe(waiter->subscription, waiter->channels,
					       waiter->channel_count,
					       try_deadline(waiter, rlock_now_ms()));
	if (status < 0)
		(void)rlock__fail(waiter->conn, status, "%s",
				  waiter->subscription != NULL
					  ? rlock_conn_error(waiter->subscription)
					  : "out of memory");
	return status;
}

static void tell_progress(struct waiter *waiter)
{
	const struct rlock_blocker blocker = {
		.name_index = waiter->blocker.name_index,
		.ttl_ms = waiter->blocker.ttl_ms,
		.is_waiter = waiter->blocker.is_waiter,
		.holder = waiter->blocker.holder,
		.holder_len = waiter->blocker.holder_len,
		.note = waiter->blocker.note,
		.note_len = waiter->blocker.note_len,
	};

	waiter->progress_at_ms = INT64_MAX;
	waiter->request->progress(waiter->request->progress_ctx, &blocker);
}

/* Until the holder's time runs out, or the server wants to hear of us; those that wait not all in step. */
static int64_t sleep_end(const struct waiter *waiter, int64_t now_ms)
{
	int64_t sleep_ms = waiter->blocker.ttl_ms + 1, look_ms = waiter->look_ms;

	if (waiter->blocker.ttl_ms < 0)
		sleep_ms = SLEEP_NO_TTL_MS;
	if (look_ms >= 0)
		sleep_ms = rlock__sooner(waiter->blocker.is_waiter ? look_ms : sleep_ms,
					 look_ms + now_ms % (look_ms / LOOK_JITTER + 1));
	if (sleep_ms < SLEEP_MIN_MS)
		sleep_ms = SLEEP_MIN_MS;
	else if (sleep_ms > SLEEP_MAX_MS)
		sleep_ms = SLEEP_MAX_MS;
	return rlock__sooner(now_ms + sleep_ms, waiter->deadline_ms);
}

/* RLOCK_OK: time for another try. RLOCK_BUSY: the wait is over. */
static enum rlock_status sleep_until_woken(struct waiter *waiter)
{
	int64_t end_ms = sleep_end(waiter, rlock_now_ms());
	struct pollfd fds[] = {
		{ rlock__conn_fd(waiter->subscription), POLLIN, 0 },
		{ rlock__conn_cancel_fd(waiter->conn), POLLIN, 0 },
	};

	for (;;) {
		int64_t until_ms =
			end_ms < waiter->progress_at_ms ? end_ms : waiter->progress_at_ms;
		size_t messages = 0;

		if (rlock_poll(fds, 2, until_ms) < 0)
			return rlock__fail(waiter->conn, RLOCK_ESYS, "cannot wait: %s",
					   strerror(errno));
		if (fds[1].revents != 0)
			return RLOCK_CANCELLED;
		if (fds[0].revents != 0) {
			enum rlock_status status =
				rlock__conn_drain(waiter->subscription, &messages);

			if (status != RLOCK_OK)
				return rlock__fail(waiter->conn, status, "%s",
						   rlock_conn_error(waiter->subscription));
			if (messages > 0) {
				rlock__trace(waiter->conn, "woken");
				return RLOCK_OK;
			}
		}
		if (rlock_now_ms() >= waiter->progress_at_ms)
			tell_progress(waiter);
		if (rlock_now_ms() >= end_ms)
			return end_ms >= waiter->deadline_ms ? RLOCK_BUSY : RLOCK_OK;
	}
}

/*
 * Until when a server that can't be reached is asked again. One that was down from the start is not,
 * but within a wait time. A request that went out before its stream broke is: it may have been granted.
 */
static int64_t give_up_at(const struct waiter *waiter, int64_t now_ms)
{
	bool has_lost_reply = waiter->may_be_held && !rlock__conn_is_open(waiter->conn);
	int64_t least_ms = has_lost_reply ? now_ms + LOST_REPLY_MS : now_ms;

	if (waiter->request->wait_ms >= 0)
		return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
	return waiter->was_reached ? now_ms + LOST_SERVER_MS : least_ms;
}

/* The server can't be reached: RLOCK_OK to try once more, else the status to give up with. */
static enum rlock_status hold_out(struct waiter *waiter)
{
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status;

	if (waiter->give_up_ms == 0) {
		waiter->pause_ms = 0;
		waiter->give_up_ms = give_up_at(waiter, now_ms);
	}
	if (waiter->subscription != NULL)
		rlock__conn_close(waiter->subscription);
	status = RLOCK_OK;
	if (now_ms < waiter->give_up_ms)
		status = rlock__pause(waiter->conn, &waiter->pause_ms, waiter->give_up_ms);
	if (status != RLOCK_OK || rlock_now_ms() < waiter->give_up_ms)
		return status;
	/* It was in time, and said that the lock is taken; only the listening failed. */
	return waiter->is_busy && waiter->request->wait_ms >= 0 ? RLOCK_BUSY : RLOCK_ENET;
}

static enum rlock_status fail_busy(struct waiter *waiter)
{
	const char *how = waiter->blocker.is_waiter ? "kept for" : "held by";
	char holder[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX + 64];
	enum rlock_status status;

	(void)rlock_escape(waiter->blocker.holder, waiter->blocker.holder_len, holder,
			   sizeof(holder));
	(void)rlock_escape(waiter->blocker.note, waiter->blocker.note_len, note, sizeof(note));
	if (note[0] != '\0')
		status = rlock__fail(waiter->conn, RLOCK_BUSY, "%s %s (%s)", how, note, holder);
	else
		status = rlock__fail(waiter->conn, RLOCK_BUSY, "%s %s", how, holder);
	rlock__fail_name(waiter->conn, waiter->blocker.name_index);
	return status;
}

/* What a busy lock asks for: a subscription the first time, then sleep. RLOCK_OK: try again. */
static enum rlock_status wait_turn(struct waiter *waiter)
{
	waiter->was_reached = true;
	if (rlock_now_ms() >= waiter->deadline_ms)
		return RLOCK_BUSY;
	if (waiter->subscription == NULL || !rlock__conn_is_open(waiter->subscription))
		return subscribe(waiter);
	/* Only now all is well again: a server that answers, but lets nobody listen, is no server. */
	waiter->give_up_ms = 0;
	return sleep_until_woken(waiter);
}

static enum rlock_status wait_loop(struct waiter *waiter)
{
	assert(waiter->hold != NULL);
	for (;;) {
		enum rlock_status status = try_until_fresh(waiter);

		if (status == RLOCK_BUSY)
			status = wait_turn(waiter);
		else if (status == RLOCK_OK)
			return status;
		if (status == RLOCK_ENET)
			status = hold_out(waiter);
		if (status != RLOCK_OK)
			return status;
	}
}

/* ---- all of it ---- */

/*
 * A try that went out and wasn't answered may yet be granted, and one that was refused may stand in the line:
 * its undoing goes out behind it. A server that can't be reached has our sign of life run out.
 */
static void leave(struct waiter *waiter)
{
	const struct rlock__script *script;
	struct rlock__args args;

	if (!waiter->may_be_held && !waiter->left_traces)
		return;
	if (!rlock__conn_is_open(waiter->conn))
		return;
	script = leave_args(waiter, &args);
	rlock__script_last_word(waiter->conn, script, &args);
	rlock__args_free(&args);
}

static enum rlock_status waiter_init(struct waiter *waiter, struct rlock_conn *conn,
				     const struct rlock_request *request)
{
	char id[RLOCK_HOLD_ID_MAX];
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status = rlock__hold_id_new(id);

	waiter->conn = conn;
	waiter->request = request;
	waiter->deadline_ms = request->wait_ms < 0 ? INT64_MAX : now_ms + request->wait_ms;
	waiter->progress_at_ms =
		request->progress != NULL ? now_ms + request->progress_ms : INT64_MAX;
	if (status == RLOCK_OK && request->owner == NULL)
		status = rlock_owner_new((unsigned long)getpid(), waiter->owner);
	if (status != RLOCK_OK)
		return rlock__fail(conn, status, "cannot get random bytes: %s", strerror(errno));
	if (request->owner != NULL) {
		size_t len = strlen(request->owner);

		if (len == 0 || len >= RLOCK_OWNER_MAX || strpbrk(request->owner, " \n") != NULL)
			return rlock__fail(conn, RLOCK_EINVAL, "not an owner");
		memcpy(waiter->owner, request->owner, len + 1);
	}
	status = rlock_hold_new(request->kind, request->names, request->name_count, id, 0, 0,
				&waiter->hold);
	if (status == RLOCK_EINVAL)
		return rlock__fail(conn, RLOCK_EUNSUPPORTED,
				   "this version has no %s locks, or no name was given",
				   rlock_kind_name(request->kind));
	if (status != RLOCK_OK)
		return rlock__fail(conn, status, "out of memory");
	return RLOCK_OK;
}

static void waiter_free(struct waiter *waiter)
{
	for (size_t i = 0; i < waiter->channel_count; i++)
		free(waiter->channels[i].text);
	free(waiter->channels);
	rlock_conn_free(waiter->subscription);
	rlock_hold_free(waiter->hold);
}

enum rlock_status rlock_acquire(struct rlock_conn *conn, const struct rlock_request *request,
				struct rlock_hold **out)
{
	struct waiter waiter = { 0 };
	enum rlock_status status = waiter_init(&waiter, conn, request);

	if (status == RLOCK_OK)
		status = wait_loop(&waiter);
	if (status == RLOCK_OK) {
		*out = waiter.hold;
		waiter.hold = NULL;
	} else {
		leave(&waiter);
		if (status == RLOCK_BUSY)
			status = fail_busy(&waiter);
	}
	waiter_free(&waiter);
	return status;
}
