/*
 * One poll for all descriptors: the two listeners, the clients of the control socket, and both sides of each connection.
 * What there is to do with a connection transfer.c says.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "conn.h"
#include "control.h"
#include "counts.h"
#include "die.h"
#include "loop.h"
#include "transfer.h"

static int accept_from(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void accept_client(const struct loop *loop)
{
	int fd = accept_from(loop->listener);

	if (fd < 0)
		return;
	counts.connections++;
	if (conditions.refuses)
		(void)close(fd);
	else
		conn_open(fd, loop->target);
}

static void accept_control(const struct loop *loop)
{
	int fd = accept_from(loop->control_listener);

	if (fd >= 0)
		control_open(fd);
}

/* ---- the poll set ---- */

static size_t count_descriptors(void)
{
	const struct control *control;
	const struct conn *conn;
	size_t count = 2;

	for (control = control_first(); control != NULL; control = control->next)
		count++;
	for (conn = conn_first(); conn != NULL; conn = conn->next)
		count += 2;
	return count;
}

/* One descriptor of the set; without events it is left out, or a hang-up would keep us busy. */
static void want(struct pollfd *slot, int fd, short events)
{
	*slot = (struct pollfd){ .fd = events != 0 ? fd : -1, .events = events };
}

/* Fill the set, in the order in which serve() reads it. Until when to wait. */
static int64_t gather(const struct loop *loop, struct pollfd *set, int64_t now_us)
{
	const struct conn *conn;
	const struct control *control;
	int64_t until_us = NEVER_US;

	want(set++, loop->listener, POLLIN);
	want(set++, loop->control_listener, POLLIN);
	for (control = control_first(); control != NULL; control = control->next)
		want(set++, control->fd, POLLIN);
	for (conn = conn_first(); conn != NULL; conn = conn->next) {
		int64_t next_us = transfer_next_us(conn, now_us);

		want(set++, conn->client, transfer_client_events(conn, now_us));
		want(set++, conn->server, transfer_server_events(conn, now_us));
		if (next_us < until_us)
			until_us = next_us;
	}
	return until_us;
}

static void serve(const struct loop *loop, const struct pollfd *set)
{
	const struct pollfd *listener = set++, *control_listener = set++;
	struct control *control;
	struct conn *conn;
	bool was_commanded = false;

	for (control = control_first(); control != NULL; control = control->next, set++) {
		if (set->revents != 0) {
			control_read(control);
			was_commanded = true;
		}
	}
	/* New ones go to the front of their list, so they are accepted when that has been read. */
	if (control_listener->revents != 0)
		accept_control(loop);
	if (was_commanded)
		return; /* what is in set was wanted before the command; it will come again */
	for (conn = conn_first(); conn != NULL; conn = conn->next, set += 2)
		transfer_serve(conn, set, set + 1);
	if (listener->revents != 0)
		accept_client(loop);
}

/* ---- the loop ---- */

/* Free what is dead. */
static void sweep(void)
{
	struct conn *conn;

	for (conn = conn_first(); conn != NULL; conn = conn->next)
		transfer_settle(conn);
	conn_sweep();
	control_sweep();
}

static void await(struct pollfd *set, size_t count, int64_t left_us, bool has_end)
{
	struct timespec timeout = { .tv_sec = left_us / (1000 * MS_US),
				    .tv_nsec = left_us % (1000 * MS_US) * 1000 };

	if (ppoll(set, count, has_end ? &timeout : NULL, NULL) < 0 && errno != EINTR)
		die("poll", strerror(errno));
}

void loop_run(const struct loop *loop)
{
	struct pollfd *set = NULL;

	while (!commands_want_end()) {
		int64_t now_us = clock_now_us(), until_us;
		size_t count = count_descriptors();

		set = die_if_null(realloc(set, count * sizeof(*set)));
		until_us = gather(loop, set, now_us);
		await(set, count, until_us - now_us, until_us != NEVER_US);
		serve(loop, set);
		sweep();
	}
	free(set);
	conn_cut_all();
	control_end_all();
	sweep();
}
