/*
 * A line of the log: fields in one of two formats. Which fields there are is event_log.c's.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

/* Begin with out and is_json, and all else zero. Whether out took all of it is for the caller to check. */
struct log_line {
	FILE *out;
	bool is_json; /* an object; else key=value, quoted where that is needed */
	bool has_fields;
	struct json json;
};

void log_line_begin(struct log_line *line);
/* With a newline. */
void log_line_end(struct log_line *line);

/* Any bytes. */
void log_line_bytes(struct log_line *line, const char *key, const char *bytes, size_t len);
void log_line_text(struct log_line *line, const char *key, const char *text);
void log_line_number(struct log_line *line, const char *key, int64_t number);

#endif
