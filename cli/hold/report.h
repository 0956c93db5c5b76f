/*
 * What the user is told while the command runs, once each: why it is terminated, and what hinders that. It leaves to
 * keeper.c when to report, and to finish.c what comes of the release.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include "hold/hold_state.h"
#include "options/opts.h"
#include "sys/proc.h"
#include "sys/proc_tree.h"

/* What was reported so far. Begin with the options, and all else zero. */
struct report {
	const struct opts *opts;
	int reason;
	bool has_lost, has_denied, has_unreadable, has_signal_denied;
};

#define REPORT_REASON_MAX (LEASE_STATE_WHY_MAX + 64)

/* Why the lock is lost, now that it is. Returns out. */
char *report_lost_reason(const struct lease_state *lease_state, char out[REPORT_REASON_MAX]);

/* Report what is new of the lock and the command, and of what the last step of terminating it found. */
void report_news(struct report *report, const struct hold_state *state,
		 const struct proc_report *processes);
/* Report that a signal may not be passed on to the command. */
void report_signal_denied(struct report *report, const struct proc *command, int signal);

#endif
