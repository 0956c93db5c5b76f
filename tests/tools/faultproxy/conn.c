/*
 * What the network is like, what has passed, what is on its way to a client, and how connections begin and end. What passes on
 * them is transfer.c's business, and what it means exchange.c's.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faultproxy.h"

/* ---- conditions ---- */

struct conditions conditions = { .stall_us = 300 * MS_US };

void conditions_clear(void)
{
	conditions = (struct conditions){ .stall_us = conditions.stall_us };
}

/* ---- counts ---- */

struct counts counts;

void counts_print(struct buffer *out)
{
	char text[256];

	(void)snprintf(
		text, sizeof(text),
		"connections=%lu requests=%lu replies=%lu dropped=%lu writes_up=%lu spoiled=%lu"
		" bytes_up=%lu bytes_down=%lu",
		counts.connections, counts.requests, counts.replies, counts.dropped,
		counts.writes_up, counts.spoiled, counts.bytes_up, counts.bytes_down);
	buffer_add_text(out, text);
}

void counts_reset(void)
{
	counts = (struct counts){ 0 };
}

/* ---- pieces ---- */

void pieces_init(struct pieces *pieces)
{
	pieces->first = NULL;
	pieces->end = &pieces->first;
}

void pieces_free(struct pieces *pieces)
{
	while (pieces->first != NULL)
		pieces_drop_first(pieces);
}

void pieces_add(struct pieces *pieces, const char *bytes, size_t len, int64_t due_us)
{
	struct piece *piece = die_if_null(malloc(sizeof(*piece) + len));

	piece->next = NULL;
	piece->due_us = due_us;
	piece->len = len;
	piece->sent = 0;
	memcpy(piece->bytes, bytes, len);
	*pieces->end = piece;
	pieces->end = &piece->next;
}

void pieces_drop_first(struct pieces *pieces)
{
	struct piece *piece = pieces->first;

	pieces->first = piece->next;
	if (pieces->first == NULL)
		pieces->end = &pieces->first;
	free(piece);
}

size_t pieces_count_held(const struct pieces *pieces)
{
	const struct piece *piece;
	size_t count = 0;

	for (piece = pieces->first; piece != NULL; piece = piece->next)
		count += piece->due_us == NEVER_US;
	return count;
}

void pieces_release_held(struct pieces *pieces)
{
	struct piece *piece;

	for (piece = pieces->first; piece != NULL; piece = piece->next)
		if (piece->due_us == NEVER_US)
			piece->due_us = 0;
}

/* ---- conn ---- */

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
