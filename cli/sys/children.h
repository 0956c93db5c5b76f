/*
 * The children of a process, from the kernel's lists: a few files to read, however many processes there are.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sys/pid_list.h"

/* Whether this kernel was built with these lists. */
bool children_are_listed(void);

/* Add the children of all threads of that process. It may miss one while others start or are reaped. */
void children_add(pid_t pid, struct pid_list *out);

/* The children of this thread, max at most, after a fork(), too: it is async-signal-safe. Returns their number. */
size_t children_of_self(pid_t *out, size_t max);

#endif
