/*
 * The end of a hold: it is released, or kept until --at-least is over.
 */
#ifndef FINISH_H
#define FINISH_H

#include "hold/watch.h"
#include "lib/rlock.h"

/* Release, with an end to the wait for a server that does not reply. */
enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold);

/* Release or keep until, as the page says. A signal that has come must not keep it: nothing cancels this. */
enum rlock_status finish_release_or_keep(struct rlock_conn *conn, struct rlock_hold *hold,
					 const struct watch *watch);

#endif
