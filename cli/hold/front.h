/*
 * What the rlock process itself does while its renewer holds the lock: it passes signals on, follows stops, prints, and
 * ends as the command ended; and it takes over when the renewer is dead.
 */
#ifndef FRONT_H
#define FRONT_H

#include "hold/renewer.h"

/*
 * Acquire the lock and hold it. The exit code; if a signal ended the command or the wait, this process ends by it, too,
 * and nothing returns. For a process it returns once the lock is the process's.
 */
int front_run(const struct hold_args *args);

/*
 * Print the fencing tokens of a lock without a command, or the slots of a semaphore. A script that reads one must not go on
 * without it. 0, or the exit code after one line by message_error.
 */
int front_print_acquired(const struct lease *lease);

#endif
