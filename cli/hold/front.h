/*
 * The front: the rlock process that the user started, while its renewer holds the lock. The front passes signals on, stops
 * with the command, prints messages, and exits as the command exited. When the renewer is dead, the front takes over.
 */
#ifndef FRONT_H
#define FRONT_H

#include "hold/renewer.h"

/*
 * Acquire the lock and hold it. Returns the exit code. But if a signal ended the command or the wait, this process ends
 * by the same signal. A lock without a command: returns when the lock is acquired for the process of --pid.
 */
int front_run(const struct hold_args *args);

/*
 * Print the fencing tokens of a lock without a command, or the slots of a semaphore. If that fails, the lock must not
 * be kept, because a script that reads the token cannot continue. Returns 0, or the exit code after one line by
 * message_error.
 */
int front_print_acquired(const struct lease *lease);

#endif
