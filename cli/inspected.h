/*
 * What a server says of a name, as JSON; and whether the process of a holder is known to be gone.
 */
#ifndef INSPECTED_H
#define INSPECTED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/json.h"
#include "lib/rlock.h"

/* The members of an object that the caller has opened. They are a promise, see rlock-output(5). */
void inspected_json(struct json *json, const struct rlock_inspection *inspection);

/*
 * Whether the note of one of rlock's holds names a process of this host that does not exist; *pid_out is then its pid.
 * Containers may share one host name, and the command of a holder that was killed may still run.
 */
bool inspected_is_gone(const struct rlock_holder *holder, pid_t *pid_out);

#endif
