/*
 * How connections begin and end. What passes on them is transfer.c's business, and what it means exchange.c's.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "conn.h"
#include "die.h"
#include "endpoint.h"

static struct conn *conns;

/* ---- one of them ---- */

void conn_open(int client, const struct endpoint *target)
{
	struct conn *conn = die_if_null(calloc(1, sizeof(*conn)));
	int one = 1;

	conn->client = client;
	conn->requests_end = &conn->requests;
	pieces_init(&conn->pieces);
	conn->server =
		socket(target->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connect(conn->server, (const struct sockaddr *)&target->addr, target->len) != 0) {
		conn->is_connecting = errno == EINPROGRESS;
		conn->is_dead = !conn->is_connecting;
	}
	/* Of no use, and no harm, on a unix socket. */
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(conn->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (conditions.is_far) {
		conn->up_from_us = clock_now_us() + conditions.delay_us;
		conn->down_from_us = conn->up_from_us + conditions.delay_us;
	}
	conn->spoiler = conditions.spoiler;
	conditions.spoiler.spoil = SPOIL_NONE;
	conn->next = conns;
	conns = conn;
}

static void conn_free(struct conn *conn)
{
	(void)close(conn->client);
	(void)close(conn->server);
	conn_drop_requests(conn);
	pieces_free(&conn->pieces);
	free(conn->up_in.bytes);
	free(conn->up_out.bytes);
	free(conn->down_in.bytes);
	free(conn);
}

void conn_half_close(struct conn *conn)
{
	(void)shutdown(conn->client, SHUT_WR);
	conn->is_half_closed = true;
}

/* ---- its requests ---- */

void conn_add_request(struct conn *conn, enum fault fault, size_t replies)
{
	struct request *request = die_if_null(calloc(1, sizeof(*request)));

	request->fault = fault;
	request->replies_left = replies;
	*conn->requests_end = request;
	conn->requests_end = &request->next;
}

void conn_drop_request(struct conn *conn)
{
	struct request *request = conn->requests;

	conn->requests = request->next;
	if (conn->requests == NULL)
		conn->requests_end = &conn->requests;
	free(request);
}

void conn_drop_requests(struct conn *conn)
{
	while (conn->requests != NULL)
		conn_drop_request(conn);
}

/* ---- all of them ---- */

struct conn *conn_first(void)
{
	return conns;
}

void conn_sweep(void)
{
	struct conn **at = &conns;

	while (*at != NULL) {
		struct conn *conn = *at;

		if (conn->is_dead) {
			*at = conn->next;
			conn_free(conn);
		} else {
			at = &conn->next;
		}
	}
}

void conn_cut_all(void)
{
	struct conn *conn;

	for (conn = conns; conn != NULL; conn = conn->next) {
		/* Before the answer to the command, which the sweep is not. */
		(void)shutdown(conn->client, SHUT_RDWR);
		(void)shutdown(conn->server, SHUT_RDWR);
		conn->is_dead = true;
	}
}
