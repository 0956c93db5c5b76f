/*
 * Find and signal the job's processes. The process that holds the lock adopts all orphans below it. So all processes of
 * the job have ended exactly when that process has no descendant left. A scan descends by the kernel's lists of
 * children. If the kernel has no such lists, it uses the parents in /proc/PID/stat.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/minmax.h"
#include "hold/job.h"
#include "lib/base/array.h"
#include "local.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/signals.h"

/* Time from one scan to the next: short at first, then longer. */
#define SCAN_INTERVAL_MIN_MS 5
#define SCAN_INTERVAL_MAX_MS 200
/*
 * Shortest time between two scans that are caused by ends of children, because a hundred children may end in a second.
 */
#define WALK_MS 100
/*
 * Time that a renewer within the job has to release its own lock, after all other processes got SIGKILL. It has seconds,
 * because a lock that it does not release stays held until its lease ends.
 */
#define RENEWER_MS 5000
/* Most scans in a row. If a job forks faster than we scan, a later call finds its other processes. */
#define SCANS_MAX 50

/* ---- processes that a job treats in a special way ---- */

/*
 * Whether the process is the renewer of an rlock within the job. Such a renewer is spared, since it must release its lock, and
 * then ends by itself. It must run our program, so that no other process is spared for its name.
 */
static bool is_renewer(const struct proc *proc)
{
	return strcmp(proc->name, RENEWER_NAME) == 0 && proc_runs_our_program(proc->pid);
}

/*
 * Whether the process belongs to no job, whichever process started it. These are the renewer of a lock without a
 * command, which ends with the process of --pid; a helper (shell.c, os.c, guard.c, event_log.c); and a private server of local:.
 */
static bool is_outside_job(const struct proc *proc)
{
	if (proc->is_silent || strcmp(proc->name, HELPER_NAME) == 0 ||
	    strcmp(proc->name, LONE_RENEWER_NAME) == 0)
		return proc_runs_our_program(proc->pid);
	return local_is_server(proc);
}

/* Whether the process is a renewer that got SIGKILL and hangs in the kernel, so that it runs nothing any more. */
static bool is_hung_renewer(const struct proc *proc)
{
	return proc->is_killed && is_renewer(proc);
}

/* ---- sets ---- */

static bool set_has(const struct job_set *set, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->members[i].pid == pid && set->members[i].start == start)
			return true;
	return false;
}

/* False: out of memory. */
static bool set_add(struct job_set *set, pid_t pid, uint64_t start)
{
	void *members = array_room(set->members, set->count, sizeof(*set->members));

	if (members == NULL)
		return false;
	set->members = members;
	set->members[set->count++] = (struct job_member){ pid, start };
	return true;
}

/* ---- one scan ---- */

/* A process that a scan found, and whether a process above it has got the signal. */
struct found_process {
	struct proc proc;
	bool is_below_signalled;
};

/* Whether a process gets no signal. It still counts as running, and the processes below it are scanned. */
typedef bool (*spared_fn)(const struct proc *proc);

/* One scan: its settings, and the processes that it found, parents before children. */
struct scan {
	const struct job *job;
	/* Include the processes that ran below us before the hold, and all others that do not belong to the job. */
	bool includes_children_before;
	/* With these, leave out this renewer, since the job is below it; 0: there is none. */
	pid_t renewer;
	/* signal to send; 0: none */
	int signal;
	/* The signal asks to end. So send SIGCONT after it, and let the processes start others to clean up. */
	bool asks_to_end;
	/* Do not signal processes that were started to clean up. */
	bool spares_clean_up;
	/* NULL: no process is spared */
	spared_fn is_spared;
	/* processes that have got the signal */
	struct job_set *signalled;
	/* session of the process of --pid */
	pid_t session;
	struct found_process *entries;
	size_t count;
	/* memory or descriptors were short, so the scan may have missed processes */
	bool is_incomplete;
	/* all has the processes of /proc, because the kernel has no lists of children */
	bool has_all;
	struct proc *all;
	size_t all_count;
};

static bool is_left_out(const struct scan *scan, const struct proc *proc)
{
	const struct job *job = scan->job;

	if (scan->includes_children_before)
		return proc->pid == scan->renewer;
	/*
	 * Do not leave out a renewer with a command. It has a session of its own, but its command may be in the session
	 * of --pid.
	 */
	return (job->lease->purpose == RLOCK_PURPOSE_PROCESS && proc->session != scan->session &&
		!is_renewer(proc)) ||
	       set_has(&job->children_before, proc->pid, proc->start) || is_outside_job(proc);
}

/* Add a process to the scan. parent: index of its parent in the scan; SIZE_MAX: its parent is not in the scan. */
static void scan_add(struct scan *scan, const struct proc *proc, size_t parent)
{
	const struct found_process *above = parent != SIZE_MAX ? &scan->entries[parent] : NULL;
	bool is_below = above != NULL && !proc_is_gone(&above->proc) &&
			(above->is_below_signalled ||
			 (scan->signalled != NULL &&
			  set_has(scan->signalled, above->proc.pid, above->proc.start)));
	struct found_process *entries = array_room(scan->entries, scan->count, sizeof(*entries));

	if (entries == NULL) {
		scan->is_incomplete = true;
		return;
	}
	scan->entries = entries;
	scan->entries[scan->count++] = (struct found_process){ *proc, is_below };
}

/*
 * Read a child. If /proc hides the child (hidepid), report it as running, with its pid alone. False: the child is gone,
 * or cannot be read now.
 */
static bool read_child(pid_t pid, struct scan *scan, struct proc *out)
{
	enum proc_lookup lookup = proc_find(pid, out);

	if (lookup == PROC_UNSEEN)
		scan->is_incomplete = true;
	if (lookup != PROC_GONE || !proc_is_hidden(pid))
		return lookup == PROC_SEEN;
	*out = (struct proc){ .pid = pid, .state = 'S', .threads = 1 };
	return true;
}

/* Read all processes, once in each scan, because the kernel has no lists of children. */
static void read_all(struct scan *scan)
{
	struct pid_list pids = { 0 };

	scan->has_all = true;
	if (!os_list_processes(&pids))
		scan->is_incomplete = true;
	scan->all = calloc(pids.count, sizeof(*scan->all));
	if (scan->all == NULL)
		scan->is_incomplete = true;
	for (size_t i = 0; scan->all != NULL && i < pids.count; i++)
		scan->all_count += read_child(pids.pids[i], scan, &scan->all[scan->all_count]);
	pid_list_free(&pids);
}

static void add_child(struct scan *scan, const struct proc *child, size_t parent)
{
	if (!is_left_out(scan, child))
		scan_add(scan, child, parent);
}

static void add_children(struct scan *scan, pid_t pid, size_t parent)
{
	struct pid_list children = { 0 };
	struct proc proc;

	if (!scan->has_all && !os_list_children(pid, &children)) {
		children.count = 0;
		read_all(scan);
	}
	for (size_t i = 0; i < children.count; i++)
		if (read_child(children.pids[i], scan, &proc))
			add_child(scan, &proc, parent);
	for (size_t i = 0; i < scan->all_count; i++)
		if (scan->all[i].parent == pid)
			add_child(scan, &scan->all[i], parent);
	pid_list_free(&children);
}

/* Fill the scan from its roots: all children of the adopter, or the process of --pid, whose pid and start time we know. */
static void scan_fill(struct scan *scan)
{
	const struct lease *lease = scan->job->lease;
	struct proc root;

	if (lease->purpose == RLOCK_PURPOSE_COMMAND) {
		add_children(scan, scan->job->adopter, SIZE_MAX);
	} else if (read_child(lease->job_pid, scan, &root) &&
		   (lease->job_start == 0 || root.start == lease->job_start)) {
		/* Use getsid, which works even if no descriptor is left to read /proc. */
		scan->session = getsid(lease->job_pid);
		scan_add(scan, &root, SIZE_MAX);
	}
	for (size_t i = 0; i < scan->count; i++)
		add_children(scan, scan->entries[i].proc.pid, i);
}

static void scan_clear(struct scan *scan)
{
	free(scan->entries);
	free(scan->all);
}

/* ---- signals ---- */

/*
 * Send a signal by a pidfd after checking the start time, since another process may have got the pid. continues: also
 * send SIGCONT, because a stopped process handles a signal only when it is continued. Returns 0, or errno.
 */
static int send_signal(const struct proc *proc, int signal, bool continues)
{
	int fd = proc_open(proc->pid, proc->start), error;

	if (fd < 0)
		return errno;
	error = continues ? os_process_signal_as_all(fd, signal) : os_process_signal(fd, signal);
	if (error == 0 && signal == SIGKILL)
		os_raise_priority_of_killed(proc->pid);
	if (error == 0 && continues)
		(void)os_process_signal(fd, SIGCONT);
	(void)close(fd);
	return error;
}

/* Send the signal. Add the process to the set first, so that no process gets the signal twice. */
static void signal_once(const struct scan *scan, const struct proc *proc, struct job_report *report)
{
	int error;

	if (!set_add(scan->signalled, proc->pid, proc->start)) {
		report->is_incomplete = true;
		return;
	}
	error = send_signal(proc, scan->signal, scan->asks_to_end);
	if (error == EPERM)
		report->refusing = *proc;
	if (is_transient_errno(error)) {
		report->is_incomplete = true;
		scan->signalled->count--;
	}
}

/*
 * Scan once, and signal the processes that must get the signal. Returns whether there was such a process that had not
 * got it.
 */
static bool scan_and_signal(const struct scan *wanted, struct job_report *report)
{
	struct scan scan = *wanted;
	bool has_found_new = false;

	scan_fill(&scan);
	report->running = report->denied = 0;
	report->is_incomplete = scan.is_incomplete;
	for (size_t i = 0; i < scan.count; i++) {
		const struct proc *proc = &scan.entries[i].proc;

		if (proc_is_gone(proc) || is_hung_renewer(proc))
			continue;
		report->running++;
		report->denied += kill(proc->pid, 0) != 0 && errno == EPERM;
		if (scan.signal == 0 || (scan.is_spared != NULL && scan.is_spared(proc)) ||
		    set_has(scan.signalled, proc->pid, proc->start) ||
		    (scan.spares_clean_up && scan.entries[i].is_below_signalled))
			continue;
		has_found_new = true;
		signal_once(&scan, proc, report);
	}
	scan_clear(&scan);
	return has_found_new;
}

static void scan_all(const struct job *job, struct job_report *out)
{
	(void)scan_and_signal(&(struct scan){ .job = job }, out);
}

/*
 * Scan and signal until a scan finds no process without the signal. signalled: the processes that have already got the
 * signal, which asks to end; NULL: send the signal to every process.
 */
static void signal_all(const struct job *job, int signal, spared_fn is_spared,
		       struct job_set *signalled, struct job_report *out)
{
	struct job_set own = { 0 };
	struct scan scan = {
		.job = job,
		.signal = signal,
		.asks_to_end = signalled != NULL,
		.spares_clean_up = signalled != NULL && signalled->count > 0,
		.is_spared = is_spared,
		.signalled = signalled != NULL ? signalled : &own,
	};

	for (int scans = 0; scans < SCANS_MAX && scan_and_signal(&scan, out); scans++)
		/*
		 * In later scans spare new processes below signalled ones: they may have been started to clean up. A
		 * process that the first scan missed is spared as well.
		 */
		scan.spares_clean_up = scan.asks_to_end;
	free(own.members);
}

/* ---- the job ---- */

/*
 * Find all processes that run below us now, except the renewer and those below it. There are some if a process with children has
 * executed rlock. False with errno: memory or descriptors are short.
 */
static bool find_children_before(const struct job *job, pid_t renewer, struct job_set *out)
{
	struct scan scan = { .job = job, .includes_children_before = true, .renewer = renewer };
	bool is_complete;

	/* Scan only if this process has children, because most processes have none. */
	if (!os_has_children())
		return true;
	scan_fill(&scan);
	is_complete = !scan.is_incomplete;
	for (size_t i = 0; is_complete && i < scan.count; i++)
		is_complete = set_add(out, scan.entries[i].proc.pid, scan.entries[i].proc.start);
	scan_clear(&scan);
	if (!is_complete)
		errno = ENOMEM;
	return is_complete;
}

bool job_init(struct job *job, struct lease *lease)
{
	*job = (struct job){ .lease = lease, .adopter = getpid(), .next_scan_ms = INT64_MAX };
	return lease->purpose == RLOCK_PURPOSE_PROCESS ||
	       find_children_before(job, 0, &job->children_before);
}

/* Add the members of old that still run. False: out of memory. */
static bool add_running(struct job_set *set, const struct job_set *old)
{
	struct proc proc;

	for (size_t i = 0; i < old->count; i++) {
		const struct job_member *member = &old->members[i];

		if (!set_has(set, member->pid, member->start) && proc_read(member->pid, &proc) &&
		    proc.start == member->start && !set_add(set, member->pid, member->start))
			return false;
	}
	return true;
}

void job_find_others(struct job *job, pid_t renewer)
{
	struct job_set found = { 0 };
	struct proc proc;

	/*
	 * Keep those that were found before: a process whose parent ends meanwhile can be missed. Check the renewer last: when it has
	 * ended, its children are ours, and were found as well.
	 */
	if (job->lease->purpose == RLOCK_PURPOSE_COMMAND &&
	    find_children_before(job, renewer, &found) &&
	    add_running(&found, &job->children_before) && proc_read(renewer, &proc) &&
	    !proc_is_gone(&proc) && !proc.is_killed) {
		free(job->children_before.members);
		job->children_before = found;
	} else {
		free(found.members);
	}
}

void job_free(struct job *job)
{
	free(job->children_before.members);
	free(job->signalled.members);
}

/* ---- termination ---- */

static void plan_scan(struct job *job, int64_t now_ms)
{
	int64_t term_end_ms = lease_term_end_ms(job->lease);

	job->scan_interval_ms =
		max(SCAN_INTERVAL_MIN_MS, min(2 * job->scan_interval_ms, SCAN_INTERVAL_MAX_MS));
	job->next_scan_ms = now_ms + job->scan_interval_ms;
	if (term_end_ms > now_ms)
		job->next_scan_ms = min(job->next_scan_ms, term_end_ms);
}

/*
 * When renewers within the job get SIGKILL, too: RENEWER_MS after the job's other processes, but before the lease ends.
 * After a loss that the server has reported, there is no lease to count.
 */
static int64_t renewers_end_ms(const struct lease *lease)
{
	int64_t end_ms = max(lease_term_end_ms(lease), lease->reason_ms) + RENEWER_MS;
	int64_t kill_ms = lease_kill_ms(lease);

	return lease->is_broken ? end_ms
				: min(end_ms, kill_ms + (lease_end_ms(lease) - kill_ms) / 2);
}

/*
 * Send --signal only once to each process, because a program may end without cleaning up when it gets the signal a
 * second time. Do not send it if another process, such as a renewer that has died, has begun to: all processes then
 * count as signalled.
 */
static void term_step(struct job *job)
{
	struct job_report *report = &job->report;

	if (job->lease->term_sender == 0)
		job->lease->term_sender = job->adopter;
	if (job->lease->term_sender != job->adopter ||
	    (job->is_term_complete && lease_term_end_ms(job->lease) != INT64_MAX)) {
		scan_all(job, report);
		return;
	}
	signal_all(job, job->lease->opts->signal, is_renewer, &job->signalled, report);
	job->is_term_complete = !report->is_incomplete;
}

void job_kill(struct job *job, int64_t now_ms)
{
	spared_fn is_spared = now_ms >= renewers_end_ms(job->lease) ? NULL : is_renewer;

	signal_all(job, SIGKILL, is_spared, NULL, &job->report);
}

void job_terminate(struct job *job, int64_t now_ms)
{
	enum terminate_step step = lease_step(job->lease, now_ms);

	if (step == STEP_RUN) {
		job->next_scan_ms = INT64_MAX;
		return;
	}
	if (step == STEP_TERM)
		term_step(job);
	else
		job_kill(job, now_ms);
	/*
	 * If the job gets only --signal (--on-lost term), stop scanning, because the job may continue without a limit.
	 */
	if (!job->report.is_incomplete &&
	    (job->report.running == 0 || lease_term_end_ms(job->lease) == INT64_MAX))
		job->next_scan_ms = INT64_MAX;
	else
		plan_scan(job, now_ms);
}

/* ---- the end ---- */

bool job_is_gone(struct job *job)
{
	int64_t now_ms = rlock_now_ms();

	if (!os_has_children())
		return true;
	/* This process has children, which may not belong to the job. So scan, but at most once in WALK_MS. */
	if (now_ms < job->walk_ms) {
		job->next_scan_ms = min(job->next_scan_ms, job->walk_ms);
		return false;
	}
	job->walk_ms = now_ms + WALK_MS;
	/* Scan twice, because one scan can miss a process that has just been started. */
	scan_all(job, &job->report);
	if (job->report.running == 0)
		scan_all(job, &job->report);
	if (job->report.is_incomplete)
		plan_scan(job, rlock_now_ms());
	return job->report.running == 0 && !job->report.is_incomplete;
}

bool job_has(const struct job *job, pid_t pid)
{
	struct proc proc;

	/* Ascend from the process to its ancestors. This works for a zombie as well, which still has its parent. */
	while (pid > 1 && pid != job->adopter) {
		enum proc_lookup lookup = proc_find(pid, &proc);

		if (lookup != PROC_SEEN)
			return lookup == PROC_UNSEEN;
		pid = proc.parent;
	}
	return pid == job->adopter;
}

void job_signal(struct job *job, int signal)
{
	struct job_report report = { 0 };

	signal_all(job, signal, is_renewer, NULL, &report);
}

/* ---- the terminal ---- */

bool job_got_signal(struct lease *lease, const struct os_signal *signal)
{
	if (signal->is_for_all) {
		lease->term_sender = -1;
		if (signals_asks_to_end(signal->number))
			lease->was_asked_to_end = true;
		return lease_has_command(lease);
	}
	return lease_has_command(lease) && signals_reached(signal, lease->job_pid);
}

/* The process that started us. If we are the command of an outer rlock, it is the process that started that rlock. */
static pid_t find_caller(void)
{
	pid_t pid = getppid();
	struct proc proc;

	while (proc_read(pid, &proc) && is_renewer(&proc))
		pid = proc_parent(proc.parent);
	return pid;
}

/* Whether a shell can continue us. A shell with job control is in our session, but in another process group. */
static bool has_job_control(void)
{
	int tty_fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	pid_t caller;

	if (tty_fd < 0)
		return false;
	(void)close(tty_fd);
	caller = find_caller();
	return caller > 0 && getsid(caller) == getsid(0) && getpgid(caller) != getpgrp();
}

/* Stop this process as well, because the shell shows its prompt only when its whole job is stopped. */
bool job_stop_with_command(struct lease *lease)
{
	if (!lease_has_command(lease) || lease->reason != TERMINATE_NONE ||
	    !proc_is_stopped(lease->job_pid) || !has_job_control())
		return false;
	lease->is_front_stopped = true;
	(void)raise(SIGSTOP);
	lease->is_front_stopped = false;
	return true;
}
