/*
 * The only file that writes to stderr. Every message is one line, "rlock: ...", in one write.
 */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>
#include <stdint.h>

/* Once, when the options have been read: what --quiet silences and --verbose adds. */
void say_setup(bool quiet, bool verbose);

/* No message waits for room behind that time; INT64_MAX: each for as long as any. */
void say_not_after(int64_t deadline_ms);

/* A failure, or a lost lock: never silenced. */
__attribute__((format(printf, 1, 2))) void say_error(const char *format, ...);

/* Something went wrong, but the command's status stands. Never silenced. */
__attribute__((format(printf, 1, 2))) void say_warning(const char *format, ...);

/* Busy, progress: silenced by --quiet. */
__attribute__((format(printf, 1, 2))) void say_note(const char *format, ...);

/* A step: only with --verbose. */
__attribute__((format(printf, 1, 2))) void say_step(const char *format, ...);

/* Whether steps are wanted, for callers that would have to do work to describe one. */
bool say_is_verbose(void);

#endif
