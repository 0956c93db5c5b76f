/*
 * Stopping a command whole: TERM to all of its processes, KILL later, until nobody is found. Keeper
 * and renewer do it by the same steps, whoever is alive and running.
 */
#ifndef TERMINATOR_H
#define TERMINATOR_H

#include "hold/lease_state.h"
#include "sys/proc_tree.h"

struct terminator {
	struct lease_state *lease_state;
	struct proc_set terminated; /* who had TERM */
	struct proc_set known;      /* who was found so far */
	bool sends_term;            /* we were the first to begin: the other one looks only */
	bool are_all_told;          /* TERM has gone to whoever was to be found */
	int64_t again_ms;           /* when to look again; INT64_MAX: nothing to do */
	int64_t pace_ms;
	struct proc_report report; /* of the last look */
};

void terminator_init(struct terminator *terminator, struct lease_state *lease_state);
void terminator_free(struct terminator *terminator);

/*
 * Do what the lease_state's phase asks for at now_ms. Whether somebody is left to wait for: true as long
 * as processes that are to be stopped run; false when there is nothing to stop, or nobody left.
 */
bool terminator_step(struct terminator *terminator, const struct proc_filter *filter,
		     int64_t now_ms);

#endif
