/*
 * The processes of a job, which is what a lock is held for: the command, or without one the calling process.
 */
#ifndef JOB_PROCESSES_H
#define JOB_PROCESSES_H

#include <sys/types.h>

#include "hold/lease_state.h"
#include "sys/proc_tree.h"

/*
 * command is a pid, or 0 when it has ended or there is none. keeper adopts the leftovers; 0 when it is dead. renewer is
 * none of the processes; 0 when there is none, or when it is the caller of this function.
 */
struct proc_filter job_processes(const struct lease_state *lease_state, pid_t command, pid_t keeper,
				 pid_t renewer);

#endif
