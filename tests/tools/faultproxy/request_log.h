/*
 * The file in which requests are written down.
 */
#ifndef FAULTPROXY_REQUEST_LOG_H
#define FAULTPROXY_REQUEST_LOG_H

#include <stddef.h>

/* From now on append to that file. NULL, or why it cannot be opened: the one before stays then. */
const char *request_log_open(const char *path);
void request_log_close(void);

/* A line with its words, escaped; nothing when there is no file. */
void request_log_add(const char *request, size_t len);

#endif
