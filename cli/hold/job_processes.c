/*
 * Tells proc_tree.c which processes are the job's, by what the shared page says. What is done to them is the
 * business of terminator.c and leftovers.c; keeper.c and renewer.c know which processes still run.
 */
#include <unistd.h>

#include "hold/job_processes.h"
#include "local.h"

struct proc_filter job_processes(const struct lease_state *lease_state, pid_t command, pid_t keeper,
				 pid_t renewer)
{
	struct proc_filter filter = {
		.job = command,
		.job_start = lease_state->job_start,
		.hold_id = lease_state->is_for_caller ? NULL : lease_state->hold_id,
		.adopter = lease_state->is_for_caller ? 0 : keeper,
		.adopts_strangers = lease_state->adopts_strangers,
		.except = { renewer, local_server_pid() },
		.is_one_session = lease_state->is_for_caller,
	};

	/* This takes no descriptor, which may be what is lacking. */
	if (filter.is_one_session)
		filter.session = getsid(lease_state->job_pid);
	return filter;
}
