/*
 * Messages for people; message.c alone writes to stderr. Each is one line, "rlock: ...", in one write; so is a line of
 * the log. The exit codes are here, too.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"

/* Once, when the options have been read: what --quiet silences and --verbose adds. */
void message_setup(bool quiet, bool verbose);

/* Once, when they are known: the names that message_error_of_lock puts first, fit to be shown. */
void message_set_names(const char *names);

/* No message waits for room beyond that time; INT64_MAX: each waits its full time. */
void message_set_deadline(int64_t deadline_ms);

enum message_level {
	MESSAGE_ERROR,   /* a failure, or a lost lock: never silenced */
	MESSAGE_WARNING, /* something went wrong, but the command's status stands: never silenced */
	MESSAGE_INFO, /* news of a wait, or of a lock that was broken or not found: silenced by --quiet */
	MESSAGE_DEBUG, /* a step: only with --verbose */
};
__attribute__((format(printf, 2, 3))) void message_print(enum message_level level,
							 const char *format, ...);
#define message_error(...) message_print(MESSAGE_ERROR, __VA_ARGS__)
/* An error that stops what is done with the locks of this call. */
__attribute__((format(printf, 1, 2))) void message_error_of_lock(const char *format, ...);
#define message_warning(...) message_print(MESSAGE_WARNING, __VA_ARGS__)
#define message_info(...) message_print(MESSAGE_INFO, __VA_ARGS__)
#define message_debug(...) message_print(MESSAGE_DEBUG, __VA_ARGS__)

/* An error for want of memory. EXIT_SYSTEM, which is what follows. */
int message_out_of_memory(void);

/*
 * How far something is, on one line of a terminal that the next message takes; elsewhere nothing. Silenced by --quiet.
 * It is written by the process that calls it, never by the writer of message_set_writer, and waits for no room.
 */
__attribute__((format(printf, 1, 2))) void message_progress(const char *format, ...);
/* How many bytes of it fit, all else is cut; 0: nothing is shown. */
size_t message_progress_room(void);
/* Before anything else is written to that terminal. */
void message_progress_clear(void);
/* A last line stands in its place and stays; text NULL: what is shown stays. False: nothing was shown. */
bool message_progress_end(const char *text);

/*
 * News of a wait where that line cannot be shown: as message_info, but by the process that calls it, so that it stands
 * before what that process starts next. Lines that the writer has may come later.
 */
__attribute__((format(printf, 1, 2))) void message_news(const char *format, ...);

/* Cut text to room bytes, of which an ellipsis takes the last ones. */
void message_cut(char *text, size_t room);

/* Whether news of a wait are read as they come: on a terminal, or in the log of a CI job. */
bool message_is_watched(void);

/* A line as it is, with its newline: of the log for operators, or of our renewer. Never silenced. */
void message_line(const char *line, size_t len);
/* Have another process write the lines: the renewer, which has none of the caller's streams. NULL: standard error. */
void message_set_writer(void (*write_line)(const char *line, size_t len));

/* Whether steps are wanted, for callers that would have to do work to describe one. */
bool message_is_verbose(void);

/* ---- exit codes ---- */

/* What each means is in exit_texts. */
enum exit_code {
	EXIT_NOT_HELD = 1,
	EXIT_USAGE = 64,
	EXIT_UNREACHABLE = 69,
	EXIT_FAULT = 70,
	EXIT_SYSTEM = 71,
	EXIT_CONFLICT = 75, /* --conflict-exit-code changes it */
	EXIT_LOST = 76,
	EXIT_DENIED = 77,
	EXIT_CONFIG = 78,
	EXIT_ENDED = 124,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* A line of the help for each exit code, and for 0, in their order. */
struct exit_text {
	int code;
	const char *text;
};

extern const struct exit_text exit_texts[];
extern const size_t exit_text_count;

/* The code for a failure of the library. RLOCK_BUSY gives EXIT_CONFLICT, RLOCK_NOT_HELD EXIT_LOST. */
int exit_code_of(enum rlock_status status);

/* ---- failures of the library ---- */

/* The longest that the program adds. */
#define FAILURE_ADDED_MAX 1040
#define FAILURE_TEXT_MAX (RLOCK_ERROR_MAX + FAILURE_ADDED_MAX)

/*
 * Why a call of the library failed, with what the program adds to it (may be empty) before the server's own words, which
 * stay last. Returns out.
 */
char *failure_print(const struct rlock_conn *conn, const char *added, char out[FAILURE_TEXT_MAX]);

#endif
