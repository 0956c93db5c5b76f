/*
 * topology.c and sentinels.c by random steps, with sentinels that this file plays: they fail over, gossip, are partitioned, forget the
 * service, and get another master. No grant may be confirmed without agreeing replies, two clients may never be confirmed on two masters,
 * and a grant must be confirmed when all agree again.
 *
 * SENTINELS_SEED repeats a failure, whose name has the seed; SENTINELS_STEPS is the number of steps for each number of sentinels.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/session.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

#include "unit.h"

#define SERVICE "mymaster"
#define SENTINELS_MAX 5
#define MASTERS 3
#define MASTER_PORT 7001
#define CLIENTS 2
#define STEPS 60
/* Largest number of connections to a sentinel, including those whose end the client has not noticed yet. */
#define CONNECTIONS_MAX 16
/* Wait this long where a reply may never come. */
#define SHORT_MS 30
/* Time within which replies must come, also on a busy machine. */
#define LONG_MS 10000

enum mode { ANSWERS, IS_SLOW, IS_SILENT, IS_DOWN, MODES };

struct connection {
	int fd; /* -1: none */
	size_t len;
	char request[256];
	int64_t reply_at_ms; /* 0: the request is not complete */
};

static struct sentinel {
	int fd, port;
	enum mode mode;
	bool is_known;  /* it knows the service */
	bool has_names; /* it names hosts, not addresses */
	unsigned master;
	int epoch;
	bool has_replied; /* it has replied to the last query with told_master, told_epoch */
	unsigned told_master;
	int told_epoch;
	struct connection connections[CONNECTIONS_MAX];
} sentinels[SENTINELS_MAX];

static size_t count;
static unsigned long seed;
static uint64_t state;

static unsigned random_below(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(state >> 33) % below;
}

/* ---- the sentinels ---- */

static void start(struct sentinel *sentinel)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*sentinel = (struct sentinel){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
				       .is_known = true };
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		sentinel->connections[i].fd = -1;
	CHECK(sentinel->fd >= 0 &&
		      bind(sentinel->fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		      listen(sentinel->fd, 64) == 0 &&
		      getsockname(sentinel->fd, (struct sockaddr *)&address, &len) == 0,
	      "a sentinel listens");
	sentinel->port = ntohs(address.sin_port);
}

static void disconnect(struct connection *connection)
{
	if (connection->fd >= 0)
		(void)close(connection->fd);
	*connection = (struct connection){ .fd = -1 };
}

static void stop(struct sentinel *sentinel)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		disconnect(&sentinel->connections[i]);
	(void)close(sentinel->fd);
}

static void accept_all(struct sentinel *sentinel)
{
	int fd;

	while ((fd = accept4(sentinel->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct connection *connection = sentinel->connections;

		while (connection < sentinel->connections + CONNECTIONS_MAX - 1 &&
		       connection->fd >= 0)
			connection++;
		disconnect(connection);
		connection->fd = fd;
		if (sentinel->mode == IS_DOWN)
			disconnect(connection);
	}
}

static void print_text(FILE *out, const char *text)
{
	(void)fprintf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void reply(struct sentinel *sentinel, int fd)
{
	char text[1024] = "", host[32], port[16], epoch[16], run_id[48];
	FILE *out = fmemopen(text, sizeof(text), "w");

	if (out == NULL)
		return;
	(void)snprintf(host, sizeof(host), sentinel->has_names ? "master%u.example" : "127.0.0.1",
		       sentinel->master);
	(void)snprintf(port, sizeof(port), "%u", MASTER_PORT + sentinel->master);
	(void)snprintf(epoch, sizeof(epoch), "%d", sentinel->epoch);
	(void)snprintf(run_id, sizeof(run_id), "%040u", sentinel->master + 1);
	if (sentinel->is_known) {
		(void)fputs("*2\r\n", out);
		print_text(out, host);
		print_text(out, port);
		(void)fputs("*8\r\n", out);
		print_text(out, "ip");
		print_text(out, host);
		print_text(out, "port");
		print_text(out, port);
		print_text(out, "runid");
		print_text(out, run_id);
		print_text(out, "config-epoch");
		print_text(out, epoch);
	} else {
		(void)fputs("*-1\r\n-ERR No such master with that name\r\n", out);
	}
	(void)fclose(out);
	sentinel->has_replied =
		sentinel->is_known && send(fd, text, strlen(text), MSG_NOSIGNAL) > 0;
	if (!sentinel->is_known)
		(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
	sentinel->told_master = sentinel->master;
	sentinel->told_epoch = sentinel->epoch;
}

static void serve_connection(struct sentinel *sentinel, struct connection *connection)
{
	static const char last[] = "\r\nMASTER\r\n$8\r\n" SERVICE "\r\n";
	ssize_t got = recv(connection->fd, connection->request + connection->len,
			   sizeof(connection->request) - 1 - connection->len, 0);
	char next;

	/* Do not reply after the client has closed the connection: this vote would count as one that the client has seen. */
	if (got == 0 || (got > 0 && recv(connection->fd, &next, 1, MSG_PEEK) == 0)) {
		disconnect(connection);
		return;
	}
	if (got > 0) {
		connection->len += (size_t)got;
		connection->request[connection->len] = '\0';
	}
	if (connection->reply_at_ms == 0 && strstr(connection->request, last) != NULL)
		connection->reply_at_ms =
			rlock_now_ms() + (sentinel->mode == IS_SLOW ? SHORT_MS / 2 : 0);
	if (sentinel->mode == IS_SILENT || connection->reply_at_ms == 0 ||
	    rlock_now_ms() < connection->reply_at_ms)
		return;
	reply(sentinel, connection->fd);
	disconnect(connection);
}

static void serve(void)
{
	for (size_t i = 0; i < count; i++) {
		accept_all(&sentinels[i]);
		for (size_t j = 0; j < CONNECTIONS_MAX; j++)
			if (sentinels[i].connections[j].fd >= 0)
				serve_connection(&sentinels[i], &sentinels[i].connections[j]);
	}
}

/* ---- faults ---- */

static void let_one_be(void)
{
	sentinels[random_below((unsigned)count)].mode = random_below(MODES);
}

static void heal(void)
{
	for (size_t i = 0; i < count; i++)
		sentinels[i].mode = ANSWERS;
}

static int latest_epoch(void)
{
	int epoch = 0;

	for (size_t i = 0; i < count; i++)
		if (sentinels[i].is_known && sentinels[i].epoch > epoch)
			epoch = sentinels[i].epoch;
	return epoch;
}

/* Fail over to another master. At first only the sentinel that leads the failover knows the new master. */
static void fail_over(void)
{
	struct sentinel *leader = &sentinels[random_below((unsigned)count)];
	int epoch = latest_epoch() + 1;

	if (!leader->is_known)
		return;
	leader->master = random_below(MASTERS);
	leader->epoch = epoch;
}

static void gossip(void)
{
	const struct sentinel *from = &sentinels[random_below((unsigned)count)];
	struct sentinel *to = &sentinels[random_below((unsigned)count)];

	if (!from->is_known || !to->is_known || from->epoch <= to->epoch)
		return;
	to->master = from->master;
	to->epoch = from->epoch;
}

static void remove_service(void)
{
	sentinels[random_below((unsigned)count)].is_known = false;
}

/* Remove the service and monitor it again, as by SENTINEL REMOVE and MONITOR: the epoch starts again from 0. */
static void monitor(void)
{
	struct sentinel *sentinel = &sentinels[random_below((unsigned)count)];

	sentinel->is_known = true;
	sentinel->master = random_below(MASTERS);
	sentinel->epoch = 0;
}

/* Let two leaders have the same epoch, as after a change of the number of sentinels: different majorities elected them. */
static void split_epoch(void)
{
	struct sentinel *sentinel = &sentinels[random_below((unsigned)count)];

	sentinel->epoch = latest_epoch();
	sentinel->master = random_below(MASTERS);
}

static void spell_otherwise(void)
{
	struct sentinel *sentinel = &sentinels[random_below((unsigned)count)];

	sentinel->has_names = !sentinel->has_names;
}

static void agree(void)
{
	unsigned master = random_below(MASTERS);

	for (size_t i = 0; i < count; i++) {
		sentinels[i].is_known = true;
		sentinels[i].master = master;
	}
}

static void change(void)
{
	static void (*const changes[])(void) = { let_one_be, let_one_be,     heal,
						 fail_over,  gossip,         gossip,
						 monitor,    remove_service, split_epoch,
						 agree,      spell_otherwise };

	changes[random_below(COUNT_OF(changes))]();
}

/* ---- the rule ---- */

/* Whether these replies allow a grant on master, by the rule in rlock.conf(5). */
static bool may_grant(const bool *has_answer, const unsigned *masters, const int *epochs,
		      unsigned master)
{
	size_t named = 0, answered = 0;
	int epoch = -1, other_epoch = -1;

	for (size_t i = 0; i < count; i++) {
		int *of = masters[i] == master ? &epoch : &other_epoch;

		if (!has_answer[i])
			continue;
		answered++;
		named += masters[i] == master;
		if (epochs[i] > *of)
			*of = epochs[i];
	}
	if (count < 3)
		return named > 0 && named == answered;
	return named > count / 2 && epoch >= other_epoch;
}

/* Whether the replies to the last query allow a grant on master. */
static bool allows_grant(unsigned master)
{
	bool has_answer[SENTINELS_MAX];
	unsigned masters[SENTINELS_MAX];
	int epochs[SENTINELS_MAX];

	for (size_t i = 0; i < count; i++) {
		has_answer[i] = sentinels[i].has_replied;
		masters[i] = sentinels[i].told_master;
		epochs[i] = sentinels[i].told_epoch;
	}
	return may_grant(has_answer, masters, epochs, master);
}

/*
 * The master on which a grant must be confirmed, by what the sentinels know now. MASTERS: there is none, or it depends on which
 * sentinels reply in time.
 */
static unsigned grantable(void)
{
	bool has_answer[SENTINELS_MAX];
	unsigned masters[SENTINELS_MAX];
	int epochs[SENTINELS_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct sentinel *sentinel = &sentinels[i];

		/* If this sentinel's reply may arrive in time or not, nothing can be predicted. */
		if (sentinel->mode == IS_SLOW || (count < 3 && sentinel->mode == IS_SILENT))
			return MASTERS;
		has_answer[i] = sentinel->is_known && sentinel->mode == ANSWERS;
		masters[i] = sentinel->master;
		epochs[i] = sentinel->epoch;
	}
	for (unsigned master = 0; master < MASTERS; master++)
		if (may_grant(has_answer, masters, epochs, master))
			return master;
	return MASTERS;
}

/* ---- clients ---- */

static struct client {
	struct rlock_url *url;
	struct rlock__error error;
	struct rlock__session session;
	struct rlock__topology *topology;
} clients[CLIENTS];

static void client_init(struct client *client)
{
	char text[256] = "redis+sentinel://";
	struct rlock_url_error error = { .why = "" };
	size_t len = strlen(text);

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s127.0.0.1:%d",
					i > 0 ? "," : "", sentinels[i].port);
	(void)snprintf(text + len, sizeof(text) - len, "/" SERVICE);
	*client = (struct client){ .url = NULL };
	CHECK(rlock_url_parse(text, &client->url, &error) == RLOCK_OK, "the URL is valid %s",
	      error.why);
	client->error.server = rlock_url_server(client->url);
	rlock__session_init(&client->session, client->url, NULL, NULL, &client->error);
	client->topology = rlock__topology_new(client->url, &client->session);
	CHECK(client->topology != NULL, "a topology is created");
}

static void client_clear(struct client *client)
{
	rlock__topology_free(client->topology);
	rlock__session_free(&client->session);
	rlock_url_free(client->url);
}

static unsigned master_of(const struct client *client)
{
	const struct rlock_url *server = rlock__topology_server(client->topology);

	return (unsigned)server->endpoints.items[0].port - MASTER_PORT;
}

/* Drive the query to its end. is_disturbed: the sentinels can change during the query. */
static enum rlock_status finish(struct client *client, bool is_disturbed)
{
	enum rlock_status status;
	bool was_served = false;

	while ((status = rlock__topology_advance(client->topology)) == RLOCK_BUSY) {
		struct pollfd fds[2 * SENTINELS_MAX + SENTINELS_MAX];
		struct rlock__polled polled = { fds, 0, INT64_MAX };

		if (is_disturbed && was_served && random_below(2) == 0) {
			change();
			is_disturbed = false;
		}
		serve();
		was_served = true;
		rlock__topology_await(client->topology, &polled);
		/* Poll for 1 ms only: the sentinels must be served again. */
		(void)poll(fds, (nfds_t)polled.count, 1);
	}
	return status;
}

static void forget_replies(void)
{
	for (size_t i = 0; i < count; i++)
		sentinels[i].has_replied = false;
}

/* Find the master, and confirm a grant there. Returns that master; MASTERS: not confirmed. */
static unsigned grant(struct client *client, bool is_disturbed, int64_t patience_ms)
{
	enum rlock_status status;

	forget_replies();
	if (rlock__topology_begin(client->topology, rlock_now_ms() + patience_ms) != RLOCK_BUSY ||
	    finish(client, is_disturbed) != RLOCK_OK)
		return MASTERS;
	forget_replies();
	if (rlock__topology_confirm(client->topology, INT64_MAX, rlock_now_ms() + patience_ms,
				    true) != RLOCK_BUSY)
		return MASTERS;
	status = finish(client, is_disturbed);
	return status == RLOCK_OK ? master_of(client) : MASTERS;
}

static bool is_renewable(struct client *client)
{
	forget_replies();
	return rlock__topology_confirm(client->topology, INT64_MAX, rlock_now_ms() + LONG_MS,
				       false) == RLOCK_BUSY &&
	       finish(client, false) == RLOCK_OK;
}

struct result {
	unsigned grants, refusals;
	/*
	 * Numbers of errors. unfounded: a grant was confirmed although it should not. doubled: two clients got grants on
	 * different masters. dead, lost: a grant, a renewal was not confirmed although it should.
	 */
	unsigned unfounded, doubled, dead, lost;
};

static void step(struct result *result)
{
	unsigned expected, granted[CLIENTS];

	for (unsigned left = random_below(3); left > 0; left--)
		change();
	expected = grantable();
	for (size_t i = 0; i < CLIENTS; i++) {
		granted[i] = grant(&clients[i], false, expected < MASTERS ? LONG_MS : SHORT_MS);
		result->grants += granted[i] < MASTERS;
		result->refusals += granted[i] == MASTERS;
		result->unfounded += granted[i] < MASTERS && !allows_grant(granted[i]);
		result->dead += expected < MASTERS && granted[i] != expected;
		result->lost += expected < MASTERS && !is_renewable(&clients[i]);
	}
	for (size_t i = 1; i < CLIENTS && count >= 3; i++)
		result->doubled +=
			granted[0] < MASTERS && granted[i] < MASTERS && granted[i] != granted[0];
	/* The sentinels can change during this grant, so compare it with the replies that the client received. */
	granted[0] = grant(&clients[0], true, SHORT_MS);
	result->unfounded += granted[0] < MASTERS && !allows_grant(granted[0]);
}

static void play(size_t sentinel_count)
{
	const char *steps = getenv("SENTINELS_STEPS");
	long left = steps != NULL ? strtol(steps, NULL, 10) : STEPS;
	struct result result = { 0 };

	count = sentinel_count;
	for (size_t i = 0; i < count; i++)
		start(&sentinels[i]);
	for (size_t i = 0; i < CLIENTS; i++)
		client_init(&clients[i]);
	while (left-- > 0)
		step(&result);
	heal();
	agree();
	for (size_t i = 0; i < CLIENTS; i++)
		result.dead += grant(&clients[i], false, LONG_MS) != sentinels[0].master;
	CHECK_NUMBER(result.unfounded, 0,
		     "%zu sentinels: replies that disagree confirm no grant (seed %lu)", count,
		     seed);
	CHECK_NUMBER(result.doubled, 0,
		     "%zu sentinels: no two clients are confirmed on two masters (seed %lu)", count,
		     seed);
	CHECK_NUMBER(result.dead, 0,
		     "%zu sentinels: when all agree, a grant is confirmed (seed %lu)", count, seed);
	CHECK_NUMBER(result.lost, 0,
		     "%zu sentinels: when all agree, a renewal is confirmed (seed %lu)", count,
		     seed);
	CHECK(result.grants > 0 && (count == 1 || result.refusals > 0),
	      "%zu sentinels: some grants are confirmed, and some are not: %u and %u (seed %lu)",
	      count, result.grants, result.refusals, seed);
	for (size_t i = 0; i < CLIENTS; i++)
		client_clear(&clients[i]);
	for (size_t i = 0; i < count; i++)
		stop(&sentinels[i]);
}

void test_sentinels(void)
{
	static const size_t counts[] = { 1, 2, 3, 5 };
	const char *given = getenv("SENTINELS_SEED");

	seed = given != NULL ? strtoul(given, NULL, 10) : (unsigned long)rlock_now_ms() % 1000000;
	state = seed;
	/* tests/run.sh repeats this line at its end when a test has failed. */
	(void)printf("# seed: SENTINELS_SEED=%lu\n", seed);
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		play(counts[i]);
}
