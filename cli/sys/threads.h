/*
 * The threads of a process.
 */
#ifndef THREADS_H
#define THREADS_H

#include <sys/types.h>

#include "sys/pid_list.h"

/* Add the ids of all threads of that process; none when it is gone or /proc cannot be read. */
void threads_add(pid_t pid, struct pid_list *out);

#endif
