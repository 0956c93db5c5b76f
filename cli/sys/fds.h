/*
 * Descriptors: looking whether one has something to tell, and letting go of them, for processes that are to keep
 * nothing of those that started them.
 */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>
#include <stddef.h>

/* Close all but these (negative ones are passed over; they are sorted here). Async-signal-safe. */
void fds_close_but(int *kept, size_t count);

/* Whether there is something to read now; of a pidfd, whether its process has ended. False for a negative one. */
bool fd_is_ready(int fd);

#endif
