/*
 * What a renewer does once the lock is held.
 */
#ifndef RENEWER_LOOP_H
#define RENEWER_LOOP_H

#include "hold/observer.h"
#include "hold/renewer_args.h"

/*
 * Renew the lease, terminate the job when it has to be, and release the lock once the keeper is dead and the job has
 * ended. Takes over *observer.
 */
void renewer_loop_run(const struct renewer_args *args, const struct observer *observer);

#endif
