/*
 * Letting go of descriptors, for processes that are to keep nothing of those that started them.
 */
#ifndef FDS_H
#define FDS_H

#include <stddef.h>

/* Close all but these (negative ones are passed over; they are sorted here). Async-signal-safe. */
void fds_close_but(int *kept, size_t count);

#endif
