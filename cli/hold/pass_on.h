/*
 * Passes on signals that were sent to the keeper: to the command, or to what it left running.
 */
#ifndef PASS_ON_H
#define PASS_ON_H

#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "hold/job_state.h"
#include "hold/report.h"

/*
 * Whether the command has had this signal, too: what the terminal sends goes to both, but for its hang-up, which the
 * kernel tells the leader of the session alone. Nor does it reach one that has ended; what that left running mostly
 * ignores the terminal.
 */
bool pass_on_has_reached_command(const struct job_state *state,
				 const struct signalfd_siginfo *info);

/* renewer: which is no process of the command; 0: there is none. */
void pass_on_signal(const struct job_state *state, struct report *report, pid_t renewer,
		    const struct signalfd_siginfo *info);

#endif
