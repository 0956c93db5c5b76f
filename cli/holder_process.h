/*
 * Whether the process of a holder is known to be gone.
 */
#ifndef HOLDER_PROCESS_H
#define HOLDER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/rlock.h"

/*
 * Whether the note of one of rlock's holds names a process of this host that does not exist; *pid_out is then its pid.
 * Containers may share one host name, and the command of a holder that was killed may still run.
 */
bool holder_process_is_gone(const struct rlock_holder *holder, pid_t *pid_out);

#endif
