/*
 * The topologies and their faults: a single server that loses its data; three servers, one of which is down for a while and comes
 * back empty; a master that a sentinel names, and its replica, which takes over; and two nodes of a cluster, between which the slot
 * of the lock moves.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define SLOTS 16384
struct world world = { .quorum = 1 };

static int sentinel_port;

/* ---- several servers ---- */

static void lose_data(void)
{
	world.losses++;
	world.lost_ms = rlock_now_ms();
	world.was_restarted = true;
	for (size_t i = 0; i < HOLDS && topology == SINGLE; i++)
		holds[i].is_lost = holds[i].handle != NULL;
}

static bool restart_the_only(void)
{
	trace("the server is killed, and comes back empty");
	count_event("times the server lost its data");
	/* Unsubscribe first: Valkey 8 refuses UNSUBSCRIBE from a client that is not subscribed. */
	java_forget();
	server_kill(&servers[0]);
	lose_data();
	server_start(&servers[0]);
	return true;
}

static void choose_server(void)
{
	do
		world.at = &servers[random_below((unsigned)server_count)];
	while (world.at->pid == 0);
}

static bool kill_or_restart_one(void)
{
	struct server *server = NULL;

	for (size_t i = 0; i < server_count; i++)
		if (servers[i].pid == 0 || rlock_now_ms() - servers[i].began_ms < YOUNG_MS)
			server = &servers[i];
	if (server != NULL && server->pid != 0)
		return false;
	if (server != NULL) {
		trace("a server comes back, empty");
		server_start(server);
		return true;
	}
	server = &servers[random_below((unsigned)server_count)];
	trace("a server is killed");
	count_event("times one of several servers was killed");
	server_kill(server);
	lose_data();
	choose_server();
	return true;
}

static void await_age(struct server *server)
{
	int64_t limit_ms = deadline_of_wait();

	while (rlock_now_ms() - server->began_ms < YOUNG_MS)
		pause_for(limit_ms, "for a server to be old enough");
}

/* ---- a master and its replica ---- */

static void await_replica(struct server *master)
{
	int64_t limit_ms = deadline_of_wait();

	/* Write over this connection before WAIT, which only waits for the writes of its own connection. */
	do {
		server_do(master, "SET sync 1 PX 1");
		pause_for(limit_ms, "for a replica");
	} while (server_number(master, "WAIT 1 1000") < 1);
}

static void follow(struct server *replica, const struct server *master)
{
	server_do(replica, "REPLICAOF 127.0.0.1 %d", master->port);
}

static bool fail_over(void)
{
	struct server *old = world.at, *new = old == &servers[0] ? &servers[1] : &servers[0];
	static const char *const users[] = { "default", "limited", "steady", "waiting" };
	bool is_killed = one_in(2);

	trace("%s, and the replica takes over", is_killed ? "the master is killed" : "failover");
	count_event(is_killed ? "times a replica took over from a dead master"
			      : "times a replica took over");
	drop_requests();
	await_replica(old);
	if (is_killed)
		server_kill(old);
	server_do(new, "REPLICAOF NO ONE");
	world.at = new;
	sentinel_name_master(new);
	if (is_killed)
		server_start(old);
	follow(old, new);
	/* Close the clients' connections to the old master, as a sentinel does. */
	for (size_t i = 0; i < COUNT_OF(users); i++)
		server_do(old, "CLIENT KILL USER %s", users[i]);
	await_replica(new);
	return true;
}

/* ---- a cluster ---- */

static int slot(void)
{
	return (int)server_number(world.at, "CLUSTER KEYSLOT " LOCK);
}

static void server_id(struct server *server, char out[41])
{
	redisReply *reply = server_reply(server, "CLUSTER MYID");

	(void)snprintf(out, 41, "%s", reply->str);
	freeReplyObject(reply);
}

static void move_keys(struct server *from, const struct server *to, int count)
{
	redisReply *keys = server_reply(from, "CLUSTER GETKEYSINSLOT %d %d", slot(), count);

	for (size_t i = 0; i < keys->elements; i++)
		server_do(from, "MIGRATE 127.0.0.1 %d %s 0 5000 REPLACE", to->port,
			  keys->element[i]->str);
	freeReplyObject(keys);
}

static long epoch_of(struct server *server)
{
	static const char label[] = "cluster_current_epoch:";
	redisReply *info = server_reply(server, "CLUSTER INFO");
	const char *found = strstr(info->str, label);
	long epoch = found != NULL ? strtol(found + sizeof(label) - 1, NULL, 10) : 0;

	freeReplyObject(info);
	return epoch;
}

/* Move the slot of the lock to the other node, with requests in between. */
static bool move_slot(void)
{
	struct server *from = world.at, *to = from == &servers[0] ? &servers[1] : &servers[0];
	char from_id[41], to_id[41];
	int64_t limit_ms = deadline_of_wait();

	/*
	 * Wait until both nodes know the current epoch, so that the new owner of the slot gets a higher epoch than the old one.
	 */
	while (epoch_of(from) != epoch_of(to))
		pause_for(limit_ms, "for the nodes to know of the last move");
	trace("the slot moves");
	count_event("times the slot moved");
	drop_requests();
	server_id(from, from_id);
	server_id(to, to_id);
	server_do(to, "CLUSTER SETSLOT %d IMPORTING %s", slot(), from_id);
	server_do(from, "CLUSTER SETSLOT %d MIGRATING %s", slot(), to_id);
	world.is_moving = true;
	for (unsigned left = random_below(3); left > 0; left--) {
		move_keys(from, to, one_in(2) ? 1 : 100);
		if (step_hold())
			count_event("requests while the slot moved");
	}
	move_keys(from, to, 100);
	server_do(to, "CLUSTER SETSLOT %d NODE %s", slot(), to_id);
	server_do(from, "CLUSTER SETSLOT %d NODE %s", slot(), to_id);
	world.is_moving = false;
	world.at = to;
	drop_requests();
	return true;
}

/* Give a node half of all slots. */
static void add_slots(struct server *server, int first)
{
	struct server_command command = { .args = calloc(SLOTS / 2 + 2, sizeof(char *)),
					  .lens = calloc(SLOTS / 2 + 2, sizeof(size_t)) };
	char text[16];

	for (int i = -2; i < SLOTS / 2; i++) {
		(void)snprintf(text, sizeof(text), "%d", first + i);
		command.args[command.count] = strdup(i == -2   ? "CLUSTER"
						     : i == -1 ? "ADDSLOTS"
							       : text);
		command.lens[command.count] = strlen(command.args[command.count]);
		command.count++;
	}
	server_send(server, &command);
	server_command_free(&command);
}

static bool is_up(struct server *server)
{
	redisReply *info = server_reply(server, "CLUSTER INFO");
	bool is_ok = strstr(info->str, "cluster_state:ok") != NULL;

	freeReplyObject(info);
	return is_ok;
}

static void join_nodes(void)
{
	int64_t limit_ms = deadline_of_wait();

	for (int i = 0; i < 2; i++) {
		server_do(&servers[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
		add_slots(&servers[i], i * SLOTS / 2);
	}
	server_do(&servers[1], "CLUSTER MEET 127.0.0.1 %d", servers[0].port);
	while (!is_up(&servers[0]) || !is_up(&servers[1]))
		pause_for(limit_ms, "for a cluster");
	world.at = &servers[slot() / (SLOTS / 2)];
}

/* ---- all of them ---- */

bool has_lock_data(const struct server *server)
{
	return topology == SEVERAL ? server->pid != 0 : server == world.at;
}

void topology_begin(void)
{
	static const size_t counts[] = {
		[SINGLE] = 1, [SEVERAL] = 3, [SENTINEL] = 2, [CLUSTER] = 2
	};

	for (server_count = 0; server_count < counts[topology]; server_count++)
		server_start(&servers[server_count]);
	world.at = &servers[0];
	world.quorum = topology == SEVERAL ? 2 : 1;
	if (topology == CLUSTER)
		join_nodes();
	for (size_t i = 0; i < server_count && topology == SEVERAL; i++)
		await_age(&servers[i]);
	if (topology != SENTINEL)
		return;
	follow(&servers[1], &servers[0]);
	await_replica(&servers[0]);
	sentinel_port = sentinel_start();
}

void topology_end(void)
{
	servers_end();
}

static struct rlock_url *parse(const char *text)
{
	struct rlock_url *url = NULL;
	struct rlock_url_error error;

	if (rlock_url_parse(text, &url, &error) != RLOCK_OK)
		fail("'%s': %s", text, error.why);
	return url;
}

struct rlock_conn *conn_new(const char *login, int64_t timeout_ms, int cancel_fd)
{
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	struct rlock_conn *made = NULL;
	struct rlock_url *urls[SERVERS_MAX];
	size_t count = 1;
	char text[256];

	(void)snprintf(text, sizeof(text), "redis://%s127.0.0.1:%d", login, servers[0].port);
	if (topology == SENTINEL)
		(void)snprintf(text, sizeof(text), "redis+sentinel://%s127.0.0.1:%d/mymaster",
			       login, sentinel_port);
	else if (topology == CLUSTER)
		(void)snprintf(text, sizeof(text), "redis+cluster://%s127.0.0.1:%d,127.0.0.1:%d",
			       login, servers[0].port, servers[1].port);
	urls[0] = parse(text);
	for (; topology == SEVERAL && count < server_count; count++) {
		(void)snprintf(text, sizeof(text), "redis://%s127.0.0.1:%d", login,
			       servers[count].port);
		urls[count] = parse(text);
	}
	opts.cancel_fd = cancel_fd;
	opts.connect_timeout_ms = timeout_ms;
	opts.quorum = topology == SEVERAL ? world.quorum : 0;
	if (rlock_conn_new(urls, count, &opts, &made) != RLOCK_OK)
		fail("no connection");
	for (size_t i = 0; i < count; i++)
		rlock_url_free(urls[i]);
	return made;
}

/*
 * A random lease. Two different leases differ by more time than all steps take. But with several servers leases are short: a
 * restarted server does not count until it has run for as long as the lease of the request.
 */
int64_t random_lease_ms(void)
{
	static const int64_t minutes[] = { 10, 20, 30, 45, 60 };

	if (topology == SEVERAL)
		return 2000 + 500 * (int64_t)random_below(4);
	return minutes[random_below(COUNT_OF(minutes))] * MINUTE_MS;
}

static bool trouble(void)
{
	switch (topology) {
	case SEVERAL:
		return kill_or_restart_one();
	case SENTINEL:
		return fail_over();
	case CLUSTER:
		return move_slot();
	default:
		return one_in(4) && restart_the_only();
	}
}

bool step_topology(void)
{
	if (!trouble())
		return false;
	reconnect();
	return true;
}
