/*
 * Tells proc_tree.c which processes are the job's, by what the lease state says. It leaves to terminator.c and
 * leftovers.c what is done to them, and to keeper.c and observer.c whether the command still runs.
 */
#include <unistd.h>

#include "hold/job_processes.h"
#include "local_server.h"

struct proc_filter job_processes(const struct lease_state *lease_state, pid_t command, pid_t keeper,
				 pid_t renewer)
{
	struct proc_filter filter = {
		.job = command,
		.job_start = lease_state->job_start,
		.hold_id = lease_state->is_for_caller ? NULL : lease_state->hold_id,
		.adopter = lease_state->is_for_caller ? 0 : keeper,
		.counts_all_adopted = lease_state->counts_all_adopted,
		.except = { renewer, local_server_pid() },
		.is_one_session = lease_state->is_for_caller,
	};

	/* getsid needs no descriptor, of which there may be none left. */
	if (filter.is_one_session)
		filter.session = getsid(lease_state->job_pid);
	return filter;
}
