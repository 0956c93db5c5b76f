/*
 * Repeats an output in place. Each is made in memory and written in one piece, so that whatever ends the process leaves
 * a whole state on the terminal.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exits.h"
#include "base/message.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/wall_clock.h"
#include "lib/rlock.h"
#include "watch.h"

#define TO_TOP "\033[H"
#define CLEAR_LINE "\033[K\n"
#define CLEAR_BELOW "\033[J"
#define CLEAR_ALL "\033[2J"

/* When it was printed, since a picture that stands still would look the same. */
static void print_head(int64_t every_ms)
{
	char when[WALL_CLOCK_TEXT_MAX], every[DURATION_TEXT_MAX];

	(void)printf("%s, every %s" CLEAR_LINE, wall_clock_print(false, when),
		     duration_print(every_ms, every));
}

/* As many lines as there is room for: more would scroll the first ones away. */
static void show(const char *text, size_t room, int64_t every_ms, bool is_first)
{
	(void)printf("%s" TO_TOP, is_first ? CLEAR_ALL : "");
	print_head(every_ms);
	for (size_t line = 2; *text != '\0' && line < room; line++) {
		size_t len = strcspn(text, "\n");

		(void)printf("%.*s" CLEAR_LINE, (int)len, text);
		text += len + (text[len] == '\n');
	}
	(void)printf(CLEAR_BELOW);
}

static int print_once(int64_t every_ms, bool is_first, watch_print_fn print, void *ctx)
{
	size_t room = terminal_lines(), size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int code;

	if (out == NULL)
		return message_out_of_memory();
	code = print(ctx, out);
	if (fclose(out) != 0) {
		free(text);
		return message_out_of_memory();
	}
	if (room > 0)
		show(text, room, every_ms, is_first);
	else
		(void)fputs(text, stdout);
	free(text);
	return output_end(code);
}

int watch_run(int64_t every_ms, watch_print_fn print, void *ctx)
{
	bool is_first = true;

	for (;;) {
		int64_t next_ms = rlock_now_ms() + every_ms;
		int code = print_once(every_ms, is_first, print, ctx);

		if (code > EXIT_NOT_HELD && code != EXIT_UNREACHABLE)
			return code;
		is_first = false;
		(void)rlock_poll(NULL, 0, next_ms);
	}
}
