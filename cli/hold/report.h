/*
 * What the user is told while the command runs, once each: why it is stopped, and what that meets.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include "hold/job_state.h"
#include "options/opts.h"
#include "sys/proc.h"
#include "sys/proc_tree.h"

/* What was said so far. Begin with the options, and all else zero. */
struct report {
	const struct opts *opts;
	int said_reason;
	bool has_said_lost, has_said_refused, has_said_unread, has_said_unheard;
};

/* What is new of the lock and the command, and of what the last step of stopping it met. */
void report_news(struct report *report, const struct job_state *state,
		 const struct proc_report *processes);
/* A command that a signal may not be passed on to. */
void report_unheard(struct report *report, const struct proc *command, int signal);

#endif
