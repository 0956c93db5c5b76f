/*
 * Sends signals to the processes of a command, and searches until no new one is found: first among the command's
 * family, which the kernel shows at once, then among all processes. proc_table.c tells which processes are members.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc_tree.h"

/* Processes that fork faster than a search finds them are found by the caller's next call. */
#define SEARCHES_MAX 50

/* Whether this kernel was built with these lists. */
static bool are_children_listed(void)
{
	return access("/proc/thread-self/children", R_OK) == 0;
}

/* ---- signals ---- */

/* Uses a descriptor that was checked, so that a reused pid is never hit. 0, or errno. */
static int send_signal(const struct proc *proc, int signal)
{
	int fd = proc_open(proc->pid, proc->start), error;

	if (fd < 0)
		return errno;
	error = os_process_signal(fd, signal);
	if (error == 0 && signal == SIGKILL)
		os_raise_priority_of_killed(proc->pid);
	else if (error == 0 && signal == SIGTERM)
		/* A stopped process handles SIGTERM only when it is continued. */
		(void)os_process_signal(fd, SIGCONT);
	(void)close(fd);
	return error;
}

/* After SIGTERM a program may start processes to clean up: they are spared for as long as the program runs. */
static bool is_clean_up(const struct proc_table *table, const struct proc_set *signaled,
			const struct proc_entry *child)
{
	const struct proc_entry *above = proc_table_parent(table, child);

	/* Up to a member that has had the signal; no process is its own ancestor. */
	while (above != NULL && above->is_member && !proc_is_gone(&above->proc)) {
		if (proc_set_has(signaled, &above->proc))
			return true;
		above = proc_table_parent(table, above);
	}
	return false;
}

/* False when it has to be tried again. The process is added first, so that none gets the signal twice. */
static bool signal_once(const struct proc *proc, int signal, struct proc_set *signaled,
			struct proc_report *report)
{
	int error;

	if (!proc_set_add(signaled, proc))
		return false;
	error = send_signal(proc, signal);
	if (error == EPERM) {
		report->denied++;
		report->denied_one = *proc;
	}
	if (!is_transient_errno(error))
		return true;
	signaled->count--;
	return false;
}

/* One search. *has_found_new: it found a process that had not got the signal yet. */
static bool search(const struct proc_filter *filter, enum proc_scope scope, int signal,
		   struct proc_set *signaled, struct proc_report *report, bool *has_found_new)
{
	struct proc_table table = { 0 };
	bool is_complete = proc_table_fill(&table, filter, scope, signaled);
	bool spares_clean_up = signal == SIGTERM && signaled->count > 0;
	/* An incomplete list may lack parents, by which is_clean_up() decides. Only SIGKILL spares no child. */
	bool is_of_use = is_complete || signal == SIGKILL;

	*has_found_new = false;
	*report = (struct proc_report){ .at_ms = table.listed_ms,
					.undecided = table.undecided,
					.unreadable = table.unreadable,
					.unreadable_one = table.unreadable_one };
	for (size_t i = 0; is_of_use && i < table.count; i++) {
		const struct proc_entry *entry = &table.entries[i];
		const struct proc *proc = &entry->proc;

		if (!entry->is_member || proc_is_gone(proc))
			continue;
		report->running++;
		report->running_one = *proc;
		/* Without memory for it, the next search finds the process as this one did. */
		if (filter->known != NULL && !proc_set_has(filter->known, proc))
			(void)proc_set_add(filter->known, proc);
		if (proc_set_has(signaled, proc) ||
		    (spares_clean_up && is_clean_up(&table, signaled, entry)))
			continue;
		*has_found_new = true;
		is_complete = signal_once(proc, signal, signaled, report) && is_complete;
	}
	proc_table_free(&table);
	return is_complete;
}

/* Where /proc cannot be read, only the command itself can be signalled, by its pid. */
static bool signal_job_only(const struct proc_filter *filter, int signal, struct proc_set *signaled,
			    struct proc_report *out)
{
	const struct proc job = { .pid = filter->job, .start = filter->job_start };

	*out = (struct proc_report){ 0 };
	if (job.pid <= 0)
		return true;
	if (signaled != NULL && proc_set_has(signaled, &job))
		signal = 0;
	if (kill(job.pid, signal) != 0)
		return errno == ESRCH;
	if (signal == SIGTERM)
		(void)kill(job.pid, SIGCONT);
	out->running = 1;
	out->running_one = job;
	return signaled == NULL || signal == 0 || proc_set_add(signaled, &job);
}

static bool is_last(enum proc_scope scope, bool has_found_new, const struct proc_report *report)
{
	if (scope == SCOPE_FAMILY || has_found_new)
		return false;
	return scope == SCOPE_SUSPECTS || report->undecided == 0;
}

/* Processes that may hang come last, when all others have had the signal. */
static enum proc_scope next_scope(enum proc_scope scope, bool has_found_new)
{
	return scope == SCOPE_FAMILY || has_found_new ? SCOPE_ALL : SCOPE_SUSPECTS;
}

bool proc_tree_signal(const struct proc_filter *filter, int signal, struct proc_set *signaled,
		      struct proc_report *out)
{
	struct proc_set own = { 0 };
	struct proc_report report = { 0 };
	bool is_complete = true, has_found_new = true;
	enum proc_scope scope = SCOPE_ALL;
	size_t denied = 0;

	*out = report;
	if (access("/proc/self/stat", R_OK) != 0 && !is_transient_errno(errno))
		return signal_job_only(filter, signal, signaled, out);
	if (signaled == NULL)
		signaled = &own;
	/*
	 * Without the kernel's lists of children, the first search would find the command alone, and what the command
	 * has started before would be taken for clean-up.
	 */
	if (signal != 0 && are_children_listed())
		scope = SCOPE_FAMILY;
	for (int searches = 0; searches < SEARCHES_MAX; searches++) {
		is_complete = search(filter, scope, signal, signaled, &report, &has_found_new);
		denied += report.denied;
		if (report.denied > 0)
			out->denied_one = report.denied_one;
		if (!is_complete || is_last(scope, has_found_new, &report))
			break;
		scope = next_scope(scope, has_found_new);
	}
	report.denied = denied;
	report.denied_one = out->denied_one;
	*out = report;
	proc_set_free(&own);
	/* A child of ours keeps its pid until we reap it. */
	if (!is_complete && report.running == 0 && filter->adopter == getpid())
		(void)signal_job_only(filter, signal, signaled, out);
	return is_complete && report.undecided == 0;
}

bool proc_tree_family_runs(const struct proc_filter *filter, struct proc *out)
{
	struct proc_table table = { 0 };
	bool runs = false;

	if (are_children_listed() && proc_table_fill(&table, filter, SCOPE_FAMILY, NULL))
		for (size_t i = 0; i < table.count && !runs; i++) {
			runs = table.entries[i].is_member && !proc_is_gone(&table.entries[i].proc);
			if (runs && out != NULL)
				*out = table.entries[i].proc;
		}
	proc_table_free(&table);
	return runs;
}

bool proc_tree_find_running(const struct proc_filter *filter, struct proc *out)
{
	struct proc_report report;
	bool is_complete;

	if (proc_tree_family_runs(filter, out))
		return true;
	is_complete = proc_tree_signal(filter, 0, NULL, &report);
	*out = report.running_one;
	return report.running > 0 || !is_complete;
}
