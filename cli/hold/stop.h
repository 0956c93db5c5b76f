/*
 * Stopping a command whole: TERM to all of its processes, KILL later, until nobody is found. Keeper
 * and renewer do it by the same steps, whoever is alive and running.
 */
#ifndef STOP_H
#define STOP_H

#include "hold/watch.h"
#include "sys/procs.h"

struct stopper {
	struct watch *watch;
	struct proc_set terminated; /* who had TERM */
	struct proc_set known;      /* who was found so far */
	bool sends_term;            /* we were the first to begin: the other one looks only */
	bool are_all_told;          /* TERM has gone to whoever was to be found */
	int64_t again_ms;           /* when to look again; INT64_MAX: nothing to do */
	int64_t pace_ms;
	struct proc_report report; /* of the last look */
};

void stopper_init(struct stopper *stopper, struct watch *watch);
void stopper_free(struct stopper *stopper);

/*
 * Do what the watch's phase asks for at now_ms. Whether somebody is left to wait for: true as long
 * as processes that are to be stopped run; false when there is nothing to stop, or nobody left.
 */
bool stopper_step(struct stopper *stopper, const struct proc_roots *roots, int64_t now_ms);

#endif
