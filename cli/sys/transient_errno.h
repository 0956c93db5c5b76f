/*
 * Errors that say nothing about what was asked for, only that the operating system can't tell now.
 */
#ifndef TRANSIENT_ERRNO_H
#define TRANSIENT_ERRNO_H

#include <stdbool.h>

/* Whether that errno is one of these: no descriptors, no memory, a disk that fails. */
bool is_transient_errno(int error);

#endif
