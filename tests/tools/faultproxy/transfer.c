/*
 * Reading and writing, as the conditions of the network allow, and spoiling single bytes. Requests and replies are
 * exchange.c's business, and polling is main.c's.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "faultproxy.h"

#define UP_MAX (1 << 20) /* read no more from a client while so much waits for the server */

/* ---- spoiling ---- */

/*
 * So many bytes have come, at the end of in, after count others of that way. False when nothing passes any more; what
 * stands before the byte is on its way to the other side then.
 */
static bool spoil(struct conn *conn, struct buffer *in, size_t len, size_t count, int to)
{
	const size_t position = conn->spoiler.position;
	const enum spoil how = conn->spoiler.spoil;
	char *byte;

	if (position < count || position >= count + len)
		return true;
	counts.spoiled++;
	conn->spoiler.spoil = SPOIL_NONE;
	byte = in->bytes + (in->len - len) + (position - count);
	if (how == SPOIL_FLIP) {
		*byte = (char)~*byte;
		return true;
	}
	(void)send(to, in->bytes, (size_t)(byte - in->bytes), MSG_NOSIGNAL);
	if (how == SPOIL_LATE) {
		buffer_take(in, (size_t)(byte - in->bytes));
		*(conn->spoiler.is_up ? &conn->up_from_us : &conn->down_from_us) =
			clock_now_us() + conditions.stall_us;
		return true;
	}
	in->len = 0;
	if (how == SPOIL_CUT)
		conn->is_dead = true;
	else
		conn->is_silent = true;
	return false;
}

/* So many bytes were read. False when they do not pass. */
static bool count_bytes(struct conn *conn, bool is_up, ssize_t len)
{
	size_t *count = is_up ? &conn->up_count : &conn->down_count;
	size_t before = *count;

	*count += (size_t)len;
	*(is_up ? &counts.bytes_up : &counts.bytes_down) += (unsigned long)len;
	if (conn->spoiler.spoil == SPOIL_NONE || conn->spoiler.is_up != is_up)
		return true;
	return spoil(conn, is_up ? &conn->up_in : &conn->down_in, (size_t)len, before,
		     is_up ? conn->server : conn->client);
}

/* ---- to the server ---- */

static void read_client(struct conn *conn)
{
	ssize_t len = buffer_read(&conn->up_in, conn->client);

	if (len > 0 && !count_bytes(conn, true, len))
		return;
	if (len > 0) {
		counts.writes_up++;
		exchange_take_up(conn);
	} else if (len == 0) {
		conn->has_no_more_up = true;
	} else if (!buffer_may_try_again(errno)) {
		conn->is_dead = true;
	}
}

static void write_server(struct conn *conn)
{
	ssize_t len;
	socklen_t err_len = sizeof(int);
	int err = 0;

	if (conn->is_connecting) {
		(void)getsockopt(conn->server, SOL_SOCKET, SO_ERROR, &err, &err_len);
		conn->is_connecting = false;
		conn->is_dead = err != 0;
		return;
	}
	len = send(conn->server, conn->up_out.bytes, conn->up_out.len, MSG_NOSIGNAL);
	if (len > 0)
		buffer_take(&conn->up_out, (size_t)len);
	else if (len < 0 && !buffer_may_try_again(errno))
		conn->up_out.len = 0; /* reading will tell; there may be last words */
}

/* ---- to the client ---- */

static void read_server(struct conn *conn)
{
	ssize_t len = buffer_read(&conn->down_in, conn->server);

	if (len > 0 && !count_bytes(conn, false, len))
		return;
	if (len > 0)
		exchange_take_down(conn);
	else if (len == 0 || !buffer_may_try_again(errno))
		conn->has_no_more_down = true;
}

/* When the first piece may go, NEVER_US for not at all. */
static int64_t due_us(const struct conn *conn)
{
	const struct piece *piece = conn->pieces.first;
	int64_t due_us;

	if (piece == NULL || conditions.holes_down || conn->is_silent)
		return NEVER_US;
	due_us = piece->due_us;
	if (due_us < conn->down_from_us)
		due_us = conn->down_from_us;
	return conditions.trickles && due_us < conn->next_byte_us ? conn->next_byte_us : due_us;
}

static void write_client(struct conn *conn)
{
	while (!conn->is_dead && due_us(conn) <= clock_now_us()) {
		struct piece *piece = conn->pieces.first;
		size_t left = piece->len - piece->sent;
		ssize_t len = (ssize_t)left;

		if (!conn->is_half_closed)
			len = send(conn->client, piece->bytes + piece->sent,
				   conditions.trickles && left > 0 ? 1 : left, MSG_NOSIGNAL);
		if (len < 0) {
			conn->is_dead = !buffer_may_try_again(errno);
			return;
		}
		piece->sent += (size_t)len;
		if (piece->sent == piece->len)
			pieces_drop_first(&conn->pieces);
		conn->next_byte_us = clock_now_us() + MS_US;
	}
}

/* ---- what main.c asks for ---- */

short transfer_client_events(const struct conn *conn, int64_t now_us)
{
	short events = 0;

	if (conn->is_silent)
		return 0;
	if (!conn->has_no_more_up && !conn->is_ending && !conditions.holes_up &&
	    conn->up_out.len < UP_MAX)
		events |= POLLIN;
	if (due_us(conn) <= now_us)
		events |= POLLOUT;
	return events;
}

short transfer_server_events(const struct conn *conn, int64_t now_us)
{
	short events = 0;

	if (conn->is_silent)
		return 0;
	if (!conn->has_no_more_down && !conn->is_connecting && !exchange_is_over(conn) &&
	    !conditions.holes_down)
		events |= POLLIN;
	if (conn->is_connecting ||
	    (conn->up_out.len > 0 && !conditions.holes_up && conn->up_from_us <= now_us))
		events |= POLLOUT;
	return events;
}

int64_t transfer_next_us(const struct conn *conn, int64_t now_us)
{
	int64_t next_us = due_us(conn);

	if (next_us <= now_us)
		next_us = NEVER_US;
	if (conn->up_from_us > now_us && conn->up_from_us < next_us)
		next_us = conn->up_from_us;
	return next_us;
}

void transfer_serve(struct conn *conn, const struct pollfd *client, const struct pollfd *server)
{
	const short in = POLLIN | POLLHUP | POLLERR, out = POLLOUT | POLLHUP | POLLERR;

	if ((server->events & POLLIN) != 0 && (server->revents & in) != 0)
		read_server(conn);
	if ((client->events & POLLIN) != 0 && (client->revents & in) != 0)
		read_client(conn);
	if ((server->events & POLLOUT) != 0 && (server->revents & out) != 0)
		write_server(conn);
	if ((client->events & POLLOUT) != 0 && (client->revents & out) != 0)
		write_client(conn);
}

void transfer_settle(struct conn *conn)
{
	if (conn->has_no_more_up && conn->up_out.len == 0 && !conn->is_up_shut &&
	    !conn->is_connecting && !conditions.holes_up) {
		(void)shutdown(conn->server, SHUT_WR);
		conn->is_up_shut = true;
	}
	if (conn->pieces.first == NULL && !conditions.holes_down &&
	    (conn->has_no_more_down || exchange_is_over(conn)))
		conn->is_dead = true;
}
