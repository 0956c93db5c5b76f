/*
 * Whether the process of a holder is known to be gone.
 */
#ifndef HOLDER_PROCESS_H
#define HOLDER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/rlock.h"

/*
 * Whether the note of a hold of rlock's names a process of this host that there is not; *pid_out is its pid. The host's name
 * alone does not tell containers apart that share it, and of a holder that was killed the command may run on.
 */
bool holder_process_is_gone(const struct rlock_holder *holder, pid_t *pid_out);

#endif
