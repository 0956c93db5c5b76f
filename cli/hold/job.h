/*
 * The job's processes: whether any is left, how they are terminated (--signal to all of them, later SIGKILL, until none is
 * left), and what a terminal does to them and to rlock alike. lease.c decides when and why.
 *
 * Which process sends which signal:
 *
 * - A signal that the user sends to rlock: the front records it in the lease state and wakes the renewer, which sends it
 *   to COMMAND, or ends the wait. A signal that the terminal sends has already reached COMMAND: it is not passed on.
 * - A signal that a process of COMMAND sends to its parent, the renewer: handled as if rlock had received it. Signals that
 *   other processes send to the renewer are ignored. All signals are blocked in the renewer; only while it waits for the
 *   lock, SIGTSTP, SIGTTIN and SIGTTOU are not, so that Ctrl-Z stops it together with rlock.
 * - --signal before a deadline, then SIGCONT: the renewer, once to each process of the job.
 * - SIGKILL at the deadline: the renewer, until no process of the job is left. The renewer of a nested rlock gets it last,
 *   so that it can release its own lock.
 * - SIGTERM to a nested rlock, which has a mark (os_process_signal_as_all): the nested rlock does not pass it on, because
 *   its COMMAND has received the same signal from the same sender.
 * - SIGKILL to a renewer that is stopped or hangs: the front.
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

/* What a look found. */
struct job_report {
	size_t running; /* processes that have not ended */
	size_t denied;  /* of these, those to which the kernel let us send no signal */
	struct proc denied_one;
	bool is_incomplete; /* some could not be looked at or signalled: no descriptors or memory at the moment */
};

struct job {
	struct lease *lease;
	pid_t adopter;                  /* of a command: all that is below this process */
	struct job_set children_before; /* but for children of ours that are none of the job's */
	struct job_set signalled;       /* those that were asked to end */
	struct job_report report;       /* of the last look */
	bool is_term_complete;          /* all that were to be found were */
	int64_t next_scan_ms; /* when to look again; INT64_MAX: there is nothing to look for */
	int64_t scan_interval_ms;
	int64_t walk_ms; /* when job_is_gone may walk again */
};

/*
 * Of a command: all that is below us. Children that we have already are none of the command's. Of a process: itself, and
 * what is below it in its session. False with errno: something is short.
 */
bool job_init(struct job *job, struct lease *lease);
void job_free(struct job *job);

/* Do what the lease asks for at now_ms. */
void job_terminate(struct job *job, int64_t now_ms);

/*
 * Whether none of the processes of a command that has ended is left. As long as some are, the next look is due when a
 * child of ours has ended, and at next_scan_ms.
 */
bool job_is_gone(struct job *job);

/* Whether the process is one of a command's, or cannot be read now. False for a process that its parent has reaped. */
bool job_has(const struct job *job, pid_t pid);

/* Send a signal to all that is left of a command. */
void job_signal(struct job *job, int signal);

/* ---- the terminal of rlock and its command ---- */

/* A command that was stopped and continued together with rlock is seen running after this time. */
#define JOB_STOP_CONFIRM_MS 30

/*
 * Whether the command already has this signal that rlock received. An outer rlock that terminates its job signals all
 * processes below us as well: record that, so that none gets the signal twice. The terminal signals both rlock and a command in its
 * process group, except that SIGHUP may reach the session leader alone. False when only leftovers run: most of them ignore the
 * terminal's signals, so these are passed on.
 */
bool job_got_signal(struct lease *lease, const struct os_signal *signal);

/*
 * In rlock: if the command is stopped, and a shell is there to continue us, stop as well, until we are continued. False:
 * we did not stop.
 */
bool job_stop_with_command(struct lease *lease);

#endif
