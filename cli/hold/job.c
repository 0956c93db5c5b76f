/*
 * Follows the job's processes by their ancestry: the one that holds adopts all orphans among its descendants, so that
 * all of them are gone exactly when nothing is left below it. No environment is read.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/least.h"
#include "hold/job.h"
#include "local.h"
#include "sys/os.h"

/* How soon to look again: soon at first, then less often. */
#define PACE_MIN_MS 5
#define PACE_MAX_MS 200
/* A renewer within the job has this long to release its own lock, once all else has had SIGKILL. */
#define RENEWER_MS 1000
#define LOST_RENEWER_MS 5000

/* ---- which processes ---- */

/*
 * The renewer of an rlock within the job: it ends by itself when its own command has ended, and has to release first.
 * It has our program, so that no other process of this name is spared.
 */
static bool is_renewer(const struct proc *proc)
{
	return strcmp(proc->name, RENEWER_NAME) == 0 && proc_runs_our_program(proc->pid);
}

static bool is_server(const struct proc *proc)
{
	return (strcmp(proc->name, "redis-server") == 0 ||
		strcmp(proc->name, "valkey-server") == 0) &&
	       proc->pid == local_server_pid();
}

/*
 * The renewer of a lock without a command, which leads a session, is of no job: it ends with the process that it holds
 * for, or by `rlock unlock`. Nor is a helper of a password command (shell.c), which has the same name and a session, too,
 * nor the server of local:, whichever process started them.
 */
static bool is_foreign(const struct proc *proc)
{
	if (proc->session == proc->pid && is_renewer(proc))
		return true;
	return is_server(proc);
}

/* All processes below us now: rlock may have been started by exec, in a process that had some. */
static bool except_children(struct job *job)
{
	const struct tree tree = { .root = getpid() };
	siginfo_t info;

	/* Most processes have none, and need no look at /proc. */
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD)
		return true;
	return tree_collect(&tree, &job->except);
}

bool job_init(struct job *job, struct lease *lease, pid_t adopter)
{
	*job = (struct job){ .lease = lease, .again_ms = INT64_MAX };
	job->tree = (struct tree){ .root = adopter,
				   .except = &job->except,
				   .is_spared = is_renewer,
				   .is_foreign = is_foreign };
	return lease->is_for_process || adopter != getpid() || except_children(job);
}

void job_free(struct job *job)
{
	tree_set_free(&job->except);
	tree_set_free(&job->signalled);
}

/* Of a process, which one it is known from the start. */
static const struct tree *tree_of(struct job *job)
{
	if (!job->lease->is_for_process)
		return &job->tree;
	job->tree.root = job->lease->job_pid;
	job->tree.root_start = job->lease->job_start;
	job->tree.has_root = true;
	/* getsid needs no descriptor, of which there may be none left. */
	job->tree.has_session = true;
	job->tree.session = getsid(job->lease->job_pid);
	return &job->tree;
}

/* ---- termination ---- */

static void look_again_later(struct job *job, int64_t now_ms)
{
	int64_t term_end_ms = lease_term_end_ms(job->lease);

	job->pace_ms = most(PACE_MIN_MS, least(2 * job->pace_ms, PACE_MAX_MS));
	job->again_ms = now_ms + job->pace_ms;
	if (term_end_ms > now_ms)
		job->again_ms = least(job->again_ms, term_end_ms);
}

/* Renewers within the job get SIGKILL last, just before the lease ends; of a lock that is lost no end is to be kept. */
static int64_t renewers_end_ms(const struct lease *lease)
{
	int64_t kill_ms = lease_kill_ms(lease);

	if (lease->is_broken)
		return most(lease_term_end_ms(lease), lease->reason_ms) + LOST_RENEWER_MS;
	return least(most(lease_term_end_ms(lease), lease->reason_ms) + RENEWER_MS,
		     kill_ms + (lease_end_ms(lease) - kill_ms) / 2);
}

/*
 * A program may end at once, without cleaning up, when it gets a second SIGTERM, so each gets it once: after a take-over
 * all that runs has had it.
 */
static void term_step(struct job *job)
{
	struct tree_report *report = &job->report;

	if (!atomic_exchange(&job->lease->is_term_sent, true))
		job->sends_term = true;
	if (!job->sends_term ||
	    (job->is_term_complete && lease_term_end_ms(job->lease) != INT64_MAX)) {
		tree_look(tree_of(job), report);
		return;
	}
	tree_signal(tree_of(job), SIGTERM, &job->signalled, report);
	job->is_term_complete = !report->is_incomplete;
}

static void kill_step(struct job *job, int64_t now_ms)
{
	struct tree tree = *tree_of(job);

	if (now_ms >= renewers_end_ms(job->lease))
		tree.is_spared = NULL;
	tree_signal(&tree, SIGKILL, NULL, &job->report);
}

void job_terminate(struct job *job, int64_t now_ms)
{
	enum terminate_step step = lease_step(job->lease, now_ms);

	if (step == STEP_RUN) {
		job->again_ms = INT64_MAX;
		return;
	}
	if (step == STEP_TERM)
		term_step(job);
	else
		kill_step(job, now_ms);
	/* When SIGTERM is all that the job gets, it may run on for as long as it likes. */
	if (!job->report.is_incomplete &&
	    (job->report.running == 0 || lease_term_end_ms(job->lease) == INT64_MAX))
		job->again_ms = INT64_MAX;
	else
		look_again_later(job, now_ms);
}

/* ---- the end ---- */

bool job_is_gone(struct job *job)
{
	siginfo_t info;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD)
		return true;
	/* Some of our children may be none of the job's. */
	tree_look(tree_of(job), &job->report);
	if (job->report.is_incomplete)
		look_again_later(job, rlock_now_ms());
	return job->report.running == 0 && !job->report.is_incomplete;
}

bool job_has(const struct job *job, pid_t pid)
{
	struct proc proc;

	while (pid > 1 && pid != job->tree.root) {
		if (!proc_read(pid, &proc) || proc_is_gone(&proc))
			return true;
		pid = proc.parent;
	}
	return pid == job->tree.root;
}

void job_signal(struct job *job, int signal)
{
	struct tree_report report;

	tree_signal(tree_of(job), signal, NULL, &report);
}

static bool is_not_stopped(const struct proc *proc)
{
	return proc->state != 'T' || is_renewer(proc);
}

void job_hang_up_stopped(struct job *job)
{
	struct tree tree = *tree_of(job);
	struct tree_report report;

	tree.is_spared = is_not_stopped;
	tree_signal(&tree, SIGHUP, NULL, &report);
	tree_signal(&tree, SIGCONT, NULL, &report);
}
