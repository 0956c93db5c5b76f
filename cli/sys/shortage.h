/*
 * Errors that say nothing about what was asked for, only that the operating system can't tell now.
 */
#ifndef SHORTAGE_H
#define SHORTAGE_H

#include <stdbool.h>

/* Whether that errno is one of these: no descriptors, no memory, a disk that fails. */
bool is_shortage(int error);

#endif
