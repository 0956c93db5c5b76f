/*
 * A table of commands, and a function for each; and the clients of the control socket, which send them. The rules and conditions
 * that are set here take effect in exchange.c and transfer.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faultproxy.h"

/* ---- commands ---- */

/* Each gives NULL or what is wrong; what it puts into answer takes the place of "ok". */
typedef const char *command_fn(struct buffer *answer, int argc, char **argv);

static bool is_over;

/* ---- connections ---- */

static const char *do_release(struct buffer *answer, int argc, char **argv)
{
	struct conn *conn;

	(void)answer, (void)argc, (void)argv;
	for (conn = conn_first(); conn != NULL; conn = conn->next)
		pieces_release_held(&conn->pieces);
	return NULL;
}

static const char *do_pass(struct buffer *answer, int argc, char **argv)
{
	rules_clear();
	conditions_clear();
	return do_release(answer, argc, argv);
}

static const char *do_delay(struct buffer *answer, int argc, char **argv)
{
	long ms;

	(void)answer, (void)argc;
	if (!parse_number(argv[1], &ms))
		return "not a number of milliseconds";
	conditions.delay_us = ms * MS_US;
	conditions.is_far = strcmp(argv[0], "far") == 0;
	return NULL;
}

static const char *do_stall(struct buffer *answer, int argc, char **argv)
{
	long ms;

	(void)answer, (void)argc;
	if (!parse_number(argv[1], &ms))
		return "not a number of milliseconds";
	conditions.stall_us = ms * MS_US;
	return NULL;
}

static const char *do_trickle(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc;
	return parse_switch(argv[1], &conditions.trickles) ? NULL : "neither on nor off";
}

static const char *do_refuse(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc;
	return parse_switch(argv[1], &conditions.refuses) ? NULL : "neither on nor off";
}

static const char *do_blackhole(struct buffer *answer, int argc, char **argv)
{
	const char *way = argc > 2 ? argv[2] : "both";
	bool up = strcmp(way, "down") != 0, down = strcmp(way, "up") != 0;
	bool is_on;

	(void)answer;
	if (!parse_switch(argv[1], &is_on))
		return "neither on nor off";
	if (strcmp(way, "up") != 0 && strcmp(way, "down") != 0 && strcmp(way, "both") != 0)
		return "neither up nor down nor both";
	if (up)
		conditions.holes_up = is_on;
	if (down)
		conditions.holes_down = is_on;
	return NULL;
}

static const char *do_silence(struct buffer *answer, int argc, char **argv)
{
	struct conn *conn;

	(void)answer, (void)argc, (void)argv;
	for (conn = conn_first(); conn != NULL; conn = conn->next)
		conn->is_silent = true;
	return NULL;
}

static const char *do_cut(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc, (void)argv;
	conn_cut_all();
	return NULL;
}

static const char *do_rule(struct buffer *answer, int argc, char **argv)
{
	static const struct {
		const char *name;
		enum fault fault;
	} faults[] = {
		{ "cut-before", FAULT_CUT },  { "drop-reply", FAULT_DROP },
		{ "hold-reply", FAULT_HOLD }, { "stall-reply", FAULT_STALL },
		{ "end-reply", FAULT_END },   { "garbage", FAULT_GARBAGE },
		{ "spare", FAULT_NONE },
	};
	long times = 1;
	size_t i = 0;

	(void)answer;
	if (argc > 2 && (!parse_number(argv[2], &times) || times == 0))
		return "not a number of times";
	while (strcmp(argv[0], faults[i].name) != 0)
		i++;
	rules_add(faults[i].fault, argv[1], times);
	return NULL;
}

static const char *do_at(struct buffer *answer, int argc, char **argv)
{
	static const char *const spoils[] = { [SPOIL_CUT] = "cut",
					      [SPOIL_FLIP] = "flip",
					      [SPOIL_STOP] = "stop",
					      [SPOIL_LATE] = "late" };
	long position;

	(void)answer, (void)argc;
	if (!parse_number(argv[1], &position))
		return "not a number of bytes";
	if (strcmp(argv[2], "up") != 0 && strcmp(argv[2], "down") != 0)
		return "neither up nor down";
	for (int i = SPOIL_CUT; i <= SPOIL_LATE; i++) {
		if (strcmp(argv[3], spoils[i]) != 0)
			continue;
		conditions.spoiler = (struct spoiler){ .spoil = (enum spoil)i,
						       .is_up = strcmp(argv[2], "up") == 0,
						       .position = (size_t)position };
		return NULL;
	}
	return "neither cut nor flip nor stop nor late";
}

static const char *do_count(struct buffer *answer, int argc, char **argv)
{
	(void)argc, (void)argv;
	counts_print(answer);
	return NULL;
}

static const char *do_reset_count(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc, (void)argv;
	counts_reset();
	return NULL;
}

static const char *do_state(struct buffer *answer, int argc, char **argv)
{
	size_t open = 0, held = 0;
	const struct conn *conn;
	char text[96];

	(void)argc, (void)argv;
	for (conn = conn_first(); conn != NULL; conn = conn->next) {
		open++;
		held += pieces_count_held(&conn->pieces);
	}
	(void)snprintf(text, sizeof(text), "open=%zu held=%zu rules=%zu", open, held,
		       rules_count());
	buffer_add_text(answer, text);
	return NULL;
}

static const char *do_log(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc;
	if (strcmp(argv[1], "-") != 0)
		return request_log_open(argv[1]);
	request_log_close();
	return NULL;
}

static const char *do_quit(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc, (void)argv;
	is_over = true;
	return NULL;
}

static const struct {
	const char *name;
	int args_min, args_max;
	command_fn *run;
} commands[] = {
	{ "pass", 0, 0, do_pass },       { "delay", 1, 1, do_delay },
	{ "far", 1, 1, do_delay },       { "trickle", 1, 1, do_trickle },
	{ "silence", 0, 0, do_silence }, { "cut", 0, 0, do_cut },
	{ "refuse", 1, 1, do_refuse },   { "blackhole", 1, 2, do_blackhole },
	{ "cut-before", 1, 2, do_rule }, { "drop-reply", 1, 2, do_rule },
	{ "hold-reply", 1, 2, do_rule }, { "stall-reply", 1, 2, do_rule },
	{ "end-reply", 1, 2, do_rule },  { "garbage", 1, 2, do_rule },
	{ "spare", 1, 2, do_rule },      { "at", 3, 3, do_at },
	{ "stall", 1, 1, do_stall },     { "release", 0, 0, do_release },
	{ "count", 0, 0, do_count },     { "reset-count", 0, 0, do_reset_count },
	{ "state", 0, 0, do_state },     { "log", 1, 1, do_log },
	{ "quit", 0, 0, do_quit },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))
#define WORDS_MAX 5 /* one more than any command takes */

const char *commands_run(char *line, struct buffer *answer)
{
	char *argv[WORDS_MAX];
	char *save = NULL, *word;
	int argc = 0;
	size_t i;

	for (word = strtok_r(line, " \t\r\n", &save); word != NULL && argc < WORDS_MAX;
	     word = strtok_r(NULL, " \t\r\n", &save))
		argv[argc++] = word;
	for (i = 0; argc > 0 && i < COMMAND_COUNT; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (argc - 1 < commands[i].args_min || argc - 1 > commands[i].args_max)
			return "wrong number of arguments";
		return commands[i].run(answer, argc, argv);
	}
	return "unknown command";
}

bool commands_want_end(void)
{
	return is_over;
}

/* ---- control ---- */

static struct control *controls;

void control_open(int fd)
{
	struct control *control = die_if_null(calloc(1, sizeof(*control)));

	control->fd = fd;
	control->next = controls;
	controls = control;
}

struct control *control_first(void)
{
	return controls;
}

static void answer_line(struct control *control, char *line)
{
	struct buffer answer = { 0 };
	const char *wrong = commands_run(line, &answer);

	if (wrong != NULL) {
		answer.len = 0;
		buffer_add_text(&answer, "error ");
		buffer_add_text(&answer, wrong);
	} else if (answer.len == 0) {
		buffer_add_text(&answer, "ok");
	}
	buffer_add_text(&answer, "\n");
	if (send(control->fd, answer.bytes, answer.len, MSG_NOSIGNAL) != (ssize_t)answer.len)
		control->is_dead = true;
	free(answer.bytes);
}

void control_read(struct control *control)
{
	struct buffer *in = &control->in;
	ssize_t got = buffer_read(in, control->fd);
	size_t len;

	if (got == 0 || (got < 0 && !buffer_may_try_again(errno)))
		control->is_dead = true;
	while ((len = parse_line_len(in->bytes, in->len)) > 0) {
		in->bytes[len - 1] = '\0';
		answer_line(control, in->bytes);
		buffer_take(in, len);
	}
}

void control_sweep(void)
{
	struct control **at = &controls;

	while (*at != NULL) {
		struct control *control = *at;

		if (control->is_dead) {
			*at = control->next;
			(void)close(control->fd);
			free(control->in.bytes);
			free(control);
		} else {
			at = &control->next;
		}
	}
}

void control_end_all(void)
{
	struct control *control;

	for (control = controls; control != NULL; control = control->next)
		control->is_dead = true;
}
