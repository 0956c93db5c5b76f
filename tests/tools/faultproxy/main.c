/*
 * A fault proxy for the tests: stands between a client and a Redis server and, on command, loses,
 * delays, holds or spoils what passes. It knows so much of the protocol that a fault hits the reply
 * to one certain request; what the requests mean is the tests' business.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "faultproxy.h"

struct loop {
	int listener, control_listener;
	const struct endpoint *target;
};

/* ---- loop ---- */

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

/* Until a command asks for the end. No connection is left then. */
static void loop_run(const struct loop *loop)
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

/* ---- main ---- */

static const char usage[] =
	"usage: faultproxy LISTEN TARGET CONTROL\n"
	"       faultproxy -c CONTROL COMMAND...\n"
	"LISTEN and TARGET are unix:PATH or tcp:ADDRESS:PORT (port 0 picks one), CONTROL is\n"
	"unix:PATH. Prints \"listen\" with the address, then \"ready\". With -c: sends one\n"
	"command and prints the answer, \"ok\" if there is no other; 1 if that is an error.\n"
	"\n"
	"pass                  no faults any more; what was held goes on\n"
	"delay MS              each piece from the server to a client waits\n"
	"far MS                the same, and so do the first ones of a new connection, up and down, for\n"
	"                      TCP's handshake: for its clients, the server is a round trip of MS away\n"
	"trickle on|off        replies go out a byte at a time, one in a millisecond\n"
	"cut                   close all connections now\n"
	"refuse on|off         close what connects at once\n"
	"blackhole on|off [up|down|both]\n"
	"                      let nothing through, to the server or from it, until off\n"
	"silence               let nothing more through on what is connected now; what connects\n"
	"                      later passes\n"
	"cut-before MATCH [N]  such a request is not forwarded: its connection is closed instead\n"
	"drop-reply MATCH [N]  the reply is awaited, thrown away, and the connection closed\n"
	"hold-reply MATCH [N]  the reply, and what follows it, waits for a release\n"
	"stall-reply MATCH [N] the reply is thrown away, and the connection closed a while later\n"
	"end-reply MATCH [N]   in its place the client sees an end, but is still heard\n"
	"garbage MATCH [N]     something that is no reply takes its place\n"
	"spare MATCH [N]       such a request passes, and uses up no rule that was given later\n"
	"at N up|down cut|flip|stop|late\n"
	"                      the next connection is closed before that byte (from 0) to or from\n"
	"                      the server, or the byte is inverted, or nothing passes from it on,\n"
	"                      or it and what follows it that way is late\n"
	"stall MS              how long a stalled reply is waited for, and how late what is late is\n"
	"                      (300)\n"
	"release               what was held goes on\n"
	"count                 connections=N requests=N replies=N dropped=N writes_up=N spoiled=N\n"
	"                      bytes_up=N bytes_down=N\n"
	"reset-count           all of these from 0\n"
	"state                 open=N held=N rules=N: connections, replies, rules not used up\n"
	"log FILE              append each request's words, escaped, as a line; - ends that\n"
	"quit\n"
	"\n"
	"MATCH is looked for in each word of a request, in any case; * is every request, and A!B\n"
	"one with A and without B. A rule\n"
	"is good for N of them (1). Before a connection is closed for a rule, the requests in\n"
	"front are answered. writes_up counts what was read from clients in one piece, that is,\n"
	"round trips; spoiled the faults of \"at\" that happened. Not understood: CLIENT REPLY,\n"
	"MONITOR. What is not the protocol, as TLS, passes, and only its bytes are counted.\n";

static int run_proxy(const char *listen_text, const char *target_text, const char *control)
{
	struct endpoint target;
	struct loop loop = { .target = &target };

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		die("signal", strerror(errno));
	endpoint_parse(&target, target_text);
	loop.listener = endpoint_listen(listen_text);
	loop.control_listener = endpoint_listen(control);
	endpoint_print(listen_text, loop.listener);
	(void)printf("ready\n");
	(void)fflush(stdout);
	loop_run(&loop);

	rules_clear();
	request_log_close();
	endpoint_remove(listen_text);
	endpoint_remove(control);
	return 0;
}

static int send_command(const char *control, int count, char **words)
{
	struct buffer text = { 0 };
	bool is_error;
	int i, fd = endpoint_connect(control);

	for (i = 0; i < count; i++) {
		buffer_add_text(&text, words[i]);
		buffer_add_text(&text, i + 1 < count ? " " : "\n");
	}
	if (send(fd, text.bytes, text.len, MSG_NOSIGNAL) != (ssize_t)text.len)
		die(control, strerror(errno));
	text.len = 0;
	while (parse_line_len(text.bytes, text.len) == 0)
		if (buffer_read(&text, fd) <= 0)
			die(control, "no answer");
	(void)fwrite(text.bytes, 1, text.len, stdout);
	is_error = strncmp(text.bytes, "error", strlen("error")) == 0;
	free(text.bytes);
	(void)close(fd);
	return is_error ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "-c") == 0)
		return send_command(argv[2], argc - 3, argv + 3);
	if (argc == 4)
		return run_proxy(argv[1], argv[2], argv[3]);
	(void)fputs(usage, stderr);
	return 64;
}
