/*
 * What is asked of open descriptors, and done to all of them.
 */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>
#include <stddef.h>

/* Close all but these, which are sorted in place; negative ones are ignored. Async-signal-safe. */
void fds_close_but(int *kept, size_t count);

/* Whether the descriptor is readable now: of a pidfd, whether its process has ended. False for a negative one. */
bool fds_is_ready(int fd);

/* Whether the open file is still the one of that name below dir_fd, which is no link. */
bool fds_is_named(int fd, int dir_fd, const char *name);

#endif
