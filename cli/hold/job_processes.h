/*
 * Where to look for the processes of a job: the command's, or those of the caller of a lock without a command.
 */
#ifndef JOB_PROCESSES_H
#define JOB_PROCESSES_H

#include <sys/types.h>

#include "hold/lease_state.h"
#include "sys/proc_tree.h"

/*
 * command: its pid, 0 when there is none to look for; keeper: which adopts what the command leaves running, 0 when it
 * is dead; renewer: which is none of them, 0 when there is none, or when it is the one that asks.
 */
struct proc_filter job_processes(const struct lease_state *lease_state, pid_t command, pid_t keeper,
				 pid_t renewer);

#endif
