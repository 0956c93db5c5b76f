/*
 * Find the job's processes, and terminate them: --signal to all of them, later SIGKILL, until none is left. Also handle the
 * signals that a terminal sends both to the job and to rlock. lease.c decides when and why to terminate.
 *
 * Which process sends which signal:
 *
 * - A signal that the user sends to rlock: the front records it and wakes the renewer. The renewer sends it to COMMAND, or
 *   ends the wait. A signal of the terminal is not passed on, since it has reached COMMAND already.
 * - A signal that a process of COMMAND sends to its parent, the renewer: the renewer treats it as sent to rlock. It ignores
 *   signals of other processes.
 * - --signal before a deadline, then SIGCONT: the renewer sends them once to each process of the job.
 * - SIGKILL at the deadline: the renewer sends it until no process of the job is left. The renewer of a nested rlock gets it
 *   last, so that it can release its own lock.
 * - --signal to a nested rlock has a mark (os_process_signal_as_all). The nested rlock then does not pass it on: its COMMAND
 *   has got it from the same sender.
 * - SIGKILL to a renewer that is stopped or hangs: the front sends it.
 * - SIGKILL to the job, if the front has taken over from a dead renewer and hangs: the guard sends it (guard.c).
 */
#ifndef JOB_H
#define JOB_H

#include <stddef.h>

#include "hold/lease.h"
#include "sys/os.h"
#include "sys/proc.h"

/* Processes, each known by its pid and its start time. */
struct job_set {
	struct job_member {
		pid_t pid;
		uint64_t start;
	} * members;
	size_t count;
};

/* Result of a scan of the job's processes. */
struct job_report {
	/* number of processes that have not ended */
	size_t running;
	/* how many of these we may not signal, because they run as another user */
	size_t denied;
	/* the last process that did not get a signal for this reason, in this scan or an earlier one; pid 0: there was none */
	struct proc refusing;
	/* some processes could not be read or signalled, because descriptors or memory were short */
	bool is_incomplete;
};

struct job {
	struct lease *lease;
	/* our own pid: the job of a command consists of all processes below this process */
	pid_t adopter;
	/*
	 * processes that get no signal, and keep no lock: those that ran below the adopter before the hold, and in the front all others
	 * that are not below the renewer
	 */
	struct job_set children_before;
	/* processes to which this process has sent --signal */
	struct job_set signalled;
	/* result of the last scan */
	struct job_report report;
	/* a scan has sent --signal to all processes of the job that it could find */
	bool is_term_complete;
	/* when to scan again; INT64_MAX: no scan is needed */
	int64_t next_scan_ms;
	int64_t scan_interval_ms;
	/* before this time job_is_gone does not scan again */
	int64_t walk_ms;
};

/*
 * Record what belongs to the job. The job of a command is all processes below us, except those that run already. The job of
 * a lock without a command is the process of --pid, and the processes below it in its session. False with errno: memory or
 * descriptors are short.
 */
bool job_init(struct job *job, struct lease *lease);
void job_free(struct job *job);
/*
 * For the front, while its renewer lives: find again the processes below us that do not belong to the job. A process that ran before
 * the hold may have left us its own children. When the renewer ends, those of the job become our children, too.
 */
void job_find_others(struct job *job, pid_t renewer);

/* Signal the job's processes as the lease demands at now_ms. */
void job_terminate(struct job *job, int64_t now_ms);

/* Send SIGKILL to the job's processes; to renewers within the job only when they have had time to release their locks. */
void job_kill(struct job *job, int64_t now_ms);

/*
 * Whether the command has ended and none of its processes is left. If some are left, call this again when a child of
 * this process has ended, and at next_scan_ms.
 */
bool job_is_gone(struct job *job);

/* Whether the process belongs to the command. True also if it cannot be read now; false if it was reaped. */
bool job_has(const struct job *job, pid_t pid);

/* Send a signal to all processes of the job, for example to leftovers. Renewers within the job are spared. */
void job_signal(struct job *job, int signal);

/* ---- the terminal of rlock and its command ---- */

/*
 * Wait this long before rlock stops because its command has stopped. If both were stopped and continued together, the
 * command runs again within this time, and rlock need not stop.
 */
#define JOB_STOP_CONFIRM_MS 30

/*
 * Whether the command has already got a signal that rlock receives, so that rlock must not pass it on. An outer rlock that
 * terminates its job signals all processes below it; record that in the lease, so that no process gets the signal twice. A
 * terminal signals the whole process group, but SIGHUP may reach the session leader alone. False if only leftovers run:
 * most of them ignore the terminal's signals, so the signal is passed on to them.
 */
bool job_got_signal(struct lease *lease, const struct os_signal *signal);

/*
 * If the command is stopped, and a shell can continue us, stop this process as well. Returns when it is continued.
 * False: this process did not stop.
 */
bool job_stop_with_command(struct lease *lease);

#endif
