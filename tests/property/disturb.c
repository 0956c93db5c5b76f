/*
 * Faults during a request: a right is missing, the server's memory is full, the connection is cut, or the server is stopped for
 * longer than the client waits. Also requests that arrive a second time, immediately or much later.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "model.h"

/* The timeout of short_conn: longer than a request takes. A server can stay stopped for longer than this. */
#define SHORT_TIMEOUT_MS 150

enum disturbance disturbance;
/* from disturb() to undisturb() */
static bool is_disturbed;
unsigned long cuts;
struct rlock_conn *conn, *steady_conn;

/* user_conn: a connection of the user from whom rights are taken. short_conn: one with a short timeout, for a stopped server. */
static struct rlock_conn *user_conn, *short_conn;

/* ---- rights ---- */

static const char *const rights[] = {
	"-hset",   "-hdel",    "-hincrby", "-hget",      "-hvals",   "-hexists", "-hgetall",
	"-hkeys",  "-hlen",    "-del",     "-pexpire",   "-pttl",    "-exists",  "-type",
	"-zadd",   "-zrem",    "-zrange",  "-zcard",     "-zscore",  "-lrem",    "-lindex",
	"-rpush",  "-linsert", "-lpos",    "-lrange",    "-publish", "-get",     "-set",
	"-incrby", "-info",    "-time",    "-subscribe", "-pubsub",  "-hscan",
};

/* The keys of LOCK. */
static const char *const keys[] = {
	"~job",
	"~{job}:*",
	"~rlock_holds:*",
	"~rlock_ends:*",
	"~rlock_queue:*",
	"~rlock_turn:*",
	"~rlock_writer:*",
	"~rlock_waiters:*",
	"~rlock_total:*",
	"~rlock_last:*",
	"~redisson_lock_token:*",
	"~redisson_lock_queue:*",
	"~redisson_lock_timeout:*",
};

static const char *user(void)
{
	return disturbance == DENIED_TO_USER ? "limited" : "default";
}

/* Grant the right to all keys but one. */
static void deny_key(size_t denied)
{
	server_do(world.at, "ACL SETUSER %s resetkeys", user());
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (i != denied)
			server_do(world.at, "ACL SETUSER %s %s", user(), keys[i]);
	state.right = keys[denied];
}

static void take_right(void)
{
	size_t which = random_below(COUNT_OF(rights) + COUNT_OF(keys) + 1);

	state.right = "resetchannels";
	/*
	 * Often take the right to PEXPIRE: the scripts call it in many places, and a key that they leave without a TTL would last
	 * for ever.
	 */
	if (one_in(3))
		state.right = "-pexpire";
	else if (which < COUNT_OF(rights))
		state.right = rights[which];
	else if (which < COUNT_OF(rights) + COUNT_OF(keys)) {
		deny_key(which - COUNT_OF(rights));
		return;
	}
	server_do(world.at, "ACL SETUSER %s %s", user(), state.right);
}

/* ---- connections ---- */

static struct {
	pthread_t thread;
	struct server server; /* a copy of the server */
	unsigned after_us;
} helper;

static void sleep_us(unsigned us)
{
	struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };

	(void)nanosleep(&time, NULL);
}

static void *cut(void *ctx)
{
	(void)ctx;
	sleep_us(helper.after_us);
	server_do(&helper.server, "CLIENT KILL USER default");
	server_do(&helper.server, "CLIENT KILL USER waiting");
	return NULL;
}

static void *go_on(void *ctx)
{
	(void)ctx;
	sleep_us(helper.after_us);
	(void)kill(helper.server.pid, SIGCONT);
	return NULL;
}

static void help(void *(*run)(void *ctx), unsigned after_us)
{
	helper.server = *world.at;
	helper.after_us = after_us;
	if (pthread_create(&helper.thread, NULL, run, NULL) != 0)
		fail("no thread");
}

/* ---- all of them ---- */

struct rlock_conn *disturb(void)
{
	static const enum disturbance all[] = {
		DENIED, DENIED, DENIED_TO_USER, FULL, FULL, CUT, CUT
	};

	/*
	 * Do not take a right from one of several servers: that server then does a part of the request, and the result can be any
	 * status.
	 */
	disturbance = !one_in(3) ? NONE : one_in(25) ? STOPPED : all[random_below(COUNT_OF(all))];
	if (topology == SEVERAL && (disturbance == DENIED || disturbance == DENIED_TO_USER))
		disturbance = CUT;
	if (world.is_moving)
		disturbance = STOPPED;
	state.right = "";
	is_disturbed = true;
	switch (disturbance) {
	case DENIED:
	case DENIED_TO_USER:
		take_right();
		break;
	case FULL:
		server_do(world.at, "CONFIG SET maxmemory 1");
		break;
	case CUT:
		help(cut, random_below(600));
		break;
	case STOPPED:
		if (world.is_moving)
			return short_conn;
		(void)kill(world.at->pid, SIGSTOP);
		help(go_on, SHORT_TIMEOUT_MS * 1000 / 2 * (1 + random_below(3)));
		return short_conn;
	default:
		break;
	}
	return disturbance == DENIED_TO_USER ? user_conn : conn;
}

void undisturb(void)
{
	is_disturbed = false;
	if (disturbance == FULL)
		server_do(world.at, "CONFIG SET maxmemory 0");
	else if (disturbance == DENIED || disturbance == DENIED_TO_USER)
		server_do(world.at, "ACL SETUSER %s allkeys allchannels +@all", user());
	else if (disturbance == CUT || (disturbance == STOPPED && !world.is_moving))
		(void)pthread_join(helper.thread, NULL);
	if (disturbance == CUT || disturbance == STOPPED)
		reconnect();
}

/*
 * Send PING over all connections, so that those that were cut connect again. Otherwise the library would notice the cut only at
 * the next request, and would repeat that request.
 */
void reconnect(void)
{
	struct rlock_conn *all[] = { conn, steady_conn, user_conn, short_conn };

	cuts++;
	for (size_t i = 0; i < COUNT_OF(all); i++)
		for (int tries = 0; tries < 3 && rlock_conn_ping(all[i]) != RLOCK_OK;)
			tries++;
}

/*
 * Called before each request of the library. A request that fails half-way is undone by the next one, which a client that is
 * killed does not send. So check what each request has left, if it can fail half-way.
 */
static void check_between_requests(void *ctx, const char *server, const char *step)
{
	(void)ctx;
	(void)server;
	(void)step;
	if (is_disturbed &&
	    (disturbance == DENIED || disturbance == DENIED_TO_USER || disturbance == FULL))
		check_ttls(world.at);
}

const char *disturbance_word(void)
{
	static const char *const names[] = { "",
					     "denied ",
					     "denied to a user ",
					     "on a full server ",
					     "cut off ",
					     "while the server is stopped " };

	return names[disturbance];
}

bool is_status_open(void)
{
	return disturbance != NONE && disturbance != CUT;
}

/* If the user lacks a right or the server is stopped, retries cannot succeed: then allow only 100 ms. */
int64_t deadline_of_request(void)
{
	return disturbance == NONE || disturbance == FULL || disturbance == CUT
		       ? deadline_of_wait()
		       : rlock_now_ms() + 100;
}

void new_user_connection(void)
{
	rlock_conn_free(user_conn);
	user_conn = conn_new("limited:secret@", 20000, -1);
	rlock_conn_set_trace(user_conn, check_between_requests, NULL);
}

void disturb_begin(void)
{
	state.right = "";
	conn = conn_new("", 20000, -1);
	rlock_conn_set_trace(conn, check_between_requests, NULL);
	steady_conn = conn_new("steady:secret@", 20000, -1);
	short_conn = conn_new("", SHORT_TIMEOUT_MS, -1);
	new_user_connection();
}

/* ---- requests that arrive again ---- */

/* The last requests of the library, as the server received them. */
static struct server_command requests[64];
static size_t request_count;

void disturb_end(void)
{
	rlock_conn_free(conn);
	rlock_conn_free(steady_conn);
	rlock_conn_free(user_conn);
	rlock_conn_free(short_conn);
	for (size_t i = 0; i < COUNT_OF(requests); i++)
		server_command_free(&requests[i]);
}

/*
 * Whether the options of the request (lua/inc/request.lua) allow it to join a queue. Such a request is not sent again: it could
 * add a waiter for which no thread waits.
 */
static bool may_join(const struct server_command *command)
{
	size_t options = 3 + strtoul(command->args[2], NULL, 10) + 4;

	return command->count > options && strspn(command->args[options], "01") >= 4 &&
	       command->args[options][1] == '1';
}

void collect_requests(void)
{
	struct server_command command;

	while (server_next_request(world.at, &command)) {
		struct server_command *place = &requests[request_count % COUNT_OF(requests)];

		if (may_join(&command)) {
			server_command_free(&command);
			continue;
		}
		server_command_free(place);
		*place = command;
		request_count++;
	}
}

/*
 * Discard the newest requests, so that they are not sent again. Otherwise an old request to break the lock, for example, could
 * break holds that clients rely on.
 */
void drop_requests(void)
{
	struct server_command command;

	while (server_next_request(world.at, &command))
		server_command_free(&command);
}

static bool replay(size_t index, const char *what)
{
	trace("%s", what);
	count_event(what);
	server_send(world.at, &requests[index % COUNT_OF(requests)]);
	return true;
}

/*
 * Send the newest request again. Not with several servers: a caller without a quorum undoes its attempt and repeats it with the
 * same hold id, so a late copy of the attempt could grant or undo that hold.
 */
bool step_resend(void)
{
	return topology != SEVERAL && request_count > 0 && replay(request_count - 1, "resends");
}

bool step_replay(void)
{
	size_t kept = request_count < COUNT_OF(requests) ? request_count : COUNT_OF(requests);

	return topology != SEVERAL && kept > 0 &&
	       replay(request_count - 1 - random_below((unsigned)kept),
		      "replays of an early request");
}
