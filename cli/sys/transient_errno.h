/*
 * Errors that say nothing about a file or a process, only that the operating system cannot show it now.
 */
#ifndef TRANSIENT_ERRNO_H
#define TRANSIENT_ERRNO_H

#include <stdbool.h>

/* Whether that errno is one of these: no descriptors, no memory, a disk that fails. */
bool is_transient_errno(int error);

#endif
