/*
 * Messages for people; message.c alone writes to stderr. Each is one line, "rlock: ...", in one write; so is a line of
 * the log.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once, when the options have been read: what --quiet silences and --verbose adds. */
void message_setup(bool quiet, bool verbose);

/* No message waits for room beyond that time; INT64_MAX: each waits its full time. */
void message_set_deadline(int64_t deadline_ms);

/* A failure, or a lost lock: never silenced. */
__attribute__((format(printf, 1, 2))) void message_error(const char *format, ...);

/* The same for want of memory. EXIT_SYSTEM, which is what follows. */
int message_out_of_memory(void);

/* Something went wrong, but the command's status stands. Never silenced. */
__attribute__((format(printf, 1, 2))) void message_warning(const char *format, ...);

/* News of a wait, or of a lock that was broken or not found: silenced by --quiet. */
__attribute__((format(printf, 1, 2))) void message_info(const char *format, ...);

/* A step: only with --verbose. */
__attribute__((format(printf, 1, 2))) void message_debug(const char *format, ...);

/*
 * How far something is, on one line of a terminal that the next message takes; elsewhere nothing. Silenced by --quiet.
 */
__attribute__((format(printf, 1, 2))) void message_progress(const char *format, ...);
/* Before anything else is written to that terminal. */
void message_progress_clear(void);

/* A line as it is, with its newline: of the log for operators, or of our renewer. Never silenced. */
void message_line(const char *line, size_t len);
/* Have another process write the lines: the renewer, which has none of the caller's streams. NULL: standard error. */
void message_set_writer(void (*write_line)(const char *line, size_t len));

/* Whether steps are wanted, for callers that would have to do work to describe one. */
bool message_is_verbose(void);

#endif
