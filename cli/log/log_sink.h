/*
 * Where the lines of the log go. A line that cannot be written now is dropped: no lock is held up for its log.
 */
#ifndef LOG_SINK_H
#define LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>

/* A line is never longer, its newline included: a FIFO takes so much in one piece. */
#define LOG_LINE_MAX 4096

/*
 * Name the sink: "syslog", "stderr" or a file, which is opened to see that it can be. 0, or the exit code after one
 * line by message_error.
 */
int log_sink_setup(const char *target);

bool log_sink_is_open(void);

/* Write a line, in one piece. The first one that fails is reported by message_warning. priority is one of syslog(3). */
void log_sink_write(const char *line, size_t len, int priority);

/* Have another process write the lines: rlock those of its renewer, which has none of the caller's streams. */
typedef void (*log_sink_writer)(const char *line, size_t len, int priority);
void log_sink_set_writer(log_sink_writer writer);

#endif
