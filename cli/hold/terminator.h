/*
 * Terminates a job: SIGTERM to all of its processes, later SIGKILL, until none is found. Keeper and renewer do it by
 * the same steps, so that either may be dead or stopped. It leaves to lease_state.c when and why.
 */
#ifndef TERMINATOR_H
#define TERMINATOR_H

#include "hold/lease_state.h"
#include "sys/proc_tree.h"

struct terminator {
	struct lease_state *lease_state;
	struct proc_set terminated; /* those that got SIGTERM */
	struct proc_set known;      /* those that were found so far */
	bool sends_term;            /* we were the first to begin: the other process looks only */
	bool is_term_complete;      /* all that were to be found got SIGTERM */
	int64_t again_ms;           /* when to look again; INT64_MAX: there is nothing to do */
	int64_t pace_ms;
	struct proc_report report; /* of the last look */
};

void terminator_init(struct terminator *terminator, struct lease_state *lease_state);
void terminator_free(struct terminator *terminator);

/*
 * Do what the phase of the lease state asks for at now_ms. True as long as processes run that are to be terminated;
 * false when there are none, or when nothing is to be terminated.
 */
bool terminator_step(struct terminator *terminator, const struct proc_filter *filter,
		     int64_t now_ms);

#endif
