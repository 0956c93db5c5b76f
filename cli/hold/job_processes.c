/*
 * Tells procs.c which processes are the job's, by what the shared page says. What is done to them is the
 * business of stop.c and leftovers.c; keeper.c and renewer.c know which processes still run.
 */
#include <unistd.h>

#include "hold/job_processes.h"
#include "local.h"

struct proc_roots job_processes(const struct watch *watch, pid_t command, pid_t keeper,
				pid_t renewer)
{
	struct proc_roots roots = {
		.job = command,
		.job_start = watch->job_start,
		.hold_id = watch->is_for_caller ? NULL : watch->hold_id,
		.adopter = watch->is_for_caller ? 0 : keeper,
		.adopts_strangers = watch->adopts_strangers,
		.except = { renewer, local_server_pid() },
		.is_one_session = watch->is_for_caller,
	};

	/* This takes no descriptor, which may be what is lacking. */
	if (roots.is_one_session)
		roots.session = getsid(watch->job_pid);
	return roots;
}
