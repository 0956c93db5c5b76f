/*
 * What becomes of the keeper when the command alone is stopped.
 */
#ifndef JOB_CONTROL_H
#define JOB_CONTROL_H

#include "hold/job_state.h"

/*
 * If the command was stopped, and a shell is there to continue us: stop as well, until we are continued. A byte to
 * knock_fd tells the renewer before.
 */
void job_control_follow_stop(const struct job_state *state, int knock_fd);

#endif
