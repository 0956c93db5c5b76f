/*
 * Passes on signals that were sent to the keeper: to the command, or to its leftovers.
 */
#ifndef PASS_ON_H
#define PASS_ON_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/hold_state.h"
#include "hold/report.h"
#include "sys/os.h"

/*
 * Whether the command has got this signal already: the kernel sends a signal of the terminal to both of us, except for
 * SIGHUP, which only the leader of the session gets; an alarm is ours alone. False when only leftovers run: most of
 * them ignore the signals of the terminal, so these are passed on to them.
 */
bool pass_on_has_reached_command(const struct hold_state *state, const struct os_signal *info);

/* renewer is none of the command's processes; 0: there is no renewer. */
void pass_on_signal(const struct hold_state *state, struct report *report, pid_t renewer,
		    const struct os_signal *info);

#endif
