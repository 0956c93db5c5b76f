/*
 * The proxy's side of the control socket: a line is a command, and gets a line for an answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands.h"
#include "control.h"
#include "die.h"
#include "parse.h"

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
