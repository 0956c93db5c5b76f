/*
 * Messages to stderr, and the exit codes. Only message.c writes to stderr: each message is one line, "rlock: ...", in one
 * write. A line of the log is one write as well.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"

/* Set, once, what --quiet silences and --verbose adds. */
void message_setup(bool quiet, bool verbose);

/* Set, once, the escaped names that message_error_of_lock puts first. */
void message_set_names(const char *names);

/* Do not let a message wait for room after deadline_ms; INT64_MAX: no such limit. */
void message_set_deadline(int64_t deadline_ms);
/* The deadline that message_set_deadline has set. */
int64_t message_deadline(void);

enum message_level {
	MESSAGE_ERROR, /* a failure, or a lost lock: never silenced */
	/* something went wrong that does not change the command's exit status: never silenced */
	MESSAGE_WARNING,
	/* progress of a wait, or a lock that was broken or not found: silenced by --quiet */
	MESSAGE_INFO,
	MESSAGE_DEBUG, /* a step: only with --verbose */
};
__attribute__((format(printf, 2, 3))) void message_print(enum message_level level,
							 const char *format, ...);
#define message_error(...) message_print(MESSAGE_ERROR, __VA_ARGS__)
/* Print an error about the locks of this call, after their names. */
__attribute__((format(printf, 1, 2))) void message_error_of_lock(const char *format, ...);
#define message_warning(...) message_print(MESSAGE_WARNING, __VA_ARGS__)
#define message_info(...) message_print(MESSAGE_INFO, __VA_ARGS__)
#define message_debug(...) message_print(MESSAGE_DEBUG, __VA_ARGS__)

/* Report that memory is short. Returns EXIT_SYSTEM. */
int message_out_of_memory(void);

/*
 * Show progress on one line of a terminal, which the next message overwrites. Without a terminal print nothing. --quiet
 * silences it. The calling process writes the line, not the writer of message_set_writer, and never waits for room.
 */
__attribute__((format(printf, 1, 2))) void message_progress(const char *format, ...);
/* The number of bytes of progress that fit on the line; message_progress cuts the rest. 0: progress is not shown. */
size_t message_progress_room(void);
/* Erase the progress line, before anything else writes to that terminal. */
void message_progress_clear(void);
/* Replace the progress line by text, which stays; NULL: the shown line stays. False: no progress line was shown. */
bool message_progress_end(const char *text);

/*
 * Print news of a wait where progress cannot be shown. It is printed as message_info does, except that the calling
 * process writes the line, and not the writer of message_set_writer. So the line comes before the output of what this
 * process starts next.
 */
__attribute__((format(printf, 1, 2))) void message_news(const char *format, ...);

/*
 * Whether somebody probably reads messages as they come: on a terminal, or in the log of a CI job.
 */
bool message_is_watched(void);

/* Write a line of the log, or of the renewer, unchanged; it must end with a newline. --quiet does not silence it. */
void message_line(const char *line, size_t len);
/*
 * Let write_line write the messages; NULL: write to stderr. The renewer has none of the caller's streams, so its
 * messages are sent to the front.
 */
void message_set_writer(void (*write_line)(const char *line, size_t len));

/* Whether --verbose was given, for callers that must compute what they would print. */
bool message_is_verbose(void);

/* ---- exit codes ---- */

/* exit_texts explains each code. */
enum exit_code {
	EXIT_NOT_HELD = 1,
	EXIT_USAGE = 64,
	EXIT_UNREACHABLE = 69,
	EXIT_FAULT = 70,
	EXIT_SYSTEM = 71,
	EXIT_CONFLICT = 75, /* changed by --conflict-exit-code */
	EXIT_LOST = 76,
	EXIT_DENIED = 77,
	EXIT_CONFIG = 78,
	EXIT_ENDED = 124,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* The help of each exit code, in ascending order. */
struct exit_text {
	int code;
	const char *text;
};

extern const struct exit_text exit_texts[];
extern const size_t exit_text_count;

/*
 * The exit code for a status of the library. RLOCK_BUSY gives EXIT_CONFLICT, RLOCK_NOT_HELD gives EXIT_LOST.
 */
int exit_code_of(enum rlock_status status);

/* ---- failures of the library ---- */

/* Longest text that the program adds to an error text of the library. */
#define FAILURE_ADDED_MAX 1040
#define FAILURE_TEXT_MAX (RLOCK_ERROR_MAX + FAILURE_ADDED_MAX)

/*
 * Print why a call of the library failed. If added is not empty, insert it before the server's own words, which stay
 * last. Returns out.
 */
char *failure_print(const struct rlock_conn *conn, const char *added, char out[FAILURE_TEXT_MAX]);

#endif
