/*
 * What becomes of the keeper when the command alone is stopped. It leaves to keeper.c when to look at that.
 */
#ifndef JOB_CONTROL_H
#define JOB_CONTROL_H

#include "hold/hold_state.h"

/*
 * If the command is stopped, and a shell is there to continue us: stop as well, until we are continued. A byte to
 * wakeup_fd wakes the renewer before that.
 */
void job_control_follow_stop(const struct hold_state *state, int wakeup_fd);

#endif
