/*
 * Descriptors: whether one is readable, and how a process closes what it inherited.
 */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>
#include <stddef.h>

/* Close all but these, which are sorted in place; negative ones are ignored. Async-signal-safe. */
void fds_close_but(int *kept, size_t count);

/* Whether the descriptor is readable now: of a pidfd, whether its process has ended. False for a negative one. */
bool fd_is_ready(int fd);

#endif
