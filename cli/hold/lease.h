/*
 * The state of one hold, in memory that the front and its renewer share. The renewer stores each of its steps here, and
 * the phase last. So the front can continue from any point at which the renewer is killed.
 */
#ifndef LEASE_H
#define LEASE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "options/opts.h"

#define LEASE_WHY_MAX 400

/* tests/spin/holding.pml models these phases by the same names. Change both together. */
enum hold_phase {
	/* The lock is not held yet. */
	HOLD_WAITING,
	/* The lock is held, and the job does not run yet. */
	HOLD_STARTING,
	HOLD_RUNNING,
	/* The command has ended. The lock is kept for the processes that it left running (--wait-all). */
	HOLD_LEFTOVERS,
	/* All processes of the job get --signal, and later SIGKILL, until none is left. */
	HOLD_TERMINATING,
	/* The release is being sent. The job has ended, or has never run. */
	HOLD_RELEASING,
	/* exit_code and exit_signal are final. */
	HOLD_ENDED,
	HOLD_PHASES,
};

enum terminate_reason {
	TERMINATE_NONE,
	/* The lock is lost, or its lease ends before it can be renewed. */
	TERMINATE_LOST,
	/* The fixed lease (--lease) ends. */
	TERMINATE_LEASE,
	TERMINATE_MAX_RUN,
	/* `rlock stop` has asked for it. */
	TERMINATE_STOP,
	/* A signal asked the command to end, so its leftovers must end as well. */
	TERMINATE_LEFTOVERS,
	/* --kill-child was given, and the front or the renewer is dead. */
	TERMINATE_ORPHANED,
};

struct lease {
	/*
	 * The members up to front are set before the front forks the renewer. After that only two of them can change: hold_ids,
	 * during the wait; and lease_ms, which the renewer reads from the hold file if `rlock renew` has extended a lock
	 * without a command.
	 */
	int64_t lease_ms;
	/* valid in both processes, because neither of them has executed another program */
	const struct opts *opts;
	/* when the wait for the lock began */
	int64_t begun_ms;
	/* deadline of the wait; INT64_MAX: none */
	int64_t wait_end_ms;
	enum rlock_kind kind;
	/* what the lock is for: a command, or the process of --pid; with --owner there is no job */
	enum rlock_purpose purpose;
	enum on_lost on_lost;
	/* the ids of the hold, which the library can change during the wait: with an old one the front would release nothing */
	struct rlock_hold_ids hold_ids;
	/* the owner of all names that the hold does not re-enter */
	char owner[RLOCK_OWNER_MAX];
	/* pid of the front */
	pid_t front;

	/* ---- written while the lock is waited for and held ---- */

	/* start of the wait by the server's clock (struct rlock_request) */
	int64_t since_us;
	/* enum hold_phase */
	_Atomic int phase;
	_Atomic int64_t acquired_ms;
	/* deadline of --max-run; INT64_MAX: no limit */
	_Atomic int64_t max_run_end_ms;
	/* when the last successful renewal was sent; the lease is counted from this time */
	_Atomic int64_t sent_ms;
	/* lateness of the worst wake-up; each renewal reduces it */
	_Atomic int64_t lateness_ms;
	/* when the next iteration of the renewer's loop is due; INT64_MAX: the renewer waits for events only */
	_Atomic int64_t next_iteration_ms;
	/* enum terminate_reason, and when it was set */
	_Atomic int reason;
	_Atomic int64_t reason_ms;
	/* The lock is lost. This is no reason to terminate the job with --on-lost ignore. */
	atomic_bool is_lost;
	/* The server has reported the loss. */
	atomic_bool is_broken;
	_Atomic int64_t lost_at_ms;
	/* index of the lost name */
	_Atomic size_t lost_name;
	/* The command has ended below a hung renewer, and its status cannot be read: the job_end is only a substitute. */
	atomic_bool is_end_unknown;
	/* The command's process is about to execute COMMAND, or has done so. Until then a lost lock is reported as not used, with 75. */
	atomic_bool has_begun;
	/* what has been reported to the user and the log, so that a front that takes over does not repeat it */
	atomic_bool is_loss_reported, is_loss_logged, is_release_logged;
	atomic_bool is_denied_reported, is_signal_denied_reported;
	/* enum terminate_reason */
	_Atomic int reported_reason;
	/*
	 * pid of the process that has sent --signal to processes of the job; -1: an outer rlock has; 0: no process has
	 */
	_Atomic pid_t term_sender;
	/* SIGTERM, SIGINT or SIGQUIT was passed on to the command. */
	atomic_bool was_asked_to_end;
	/*
	 * Signals for the command, one bit each. The front sets a bit in signals. While the renewer sends the signal, the
	 * bit is in signals_in_hand: a front that takes over then knows which signal may not have been sent. Bit 0 is a
	 * SIGHUP of the terminal, after which the kernel sends SIGCONT.
	 */
	_Atomic uint64_t signals, signals_in_hand;
	/*
	 * may_front_leave: the front may exit although leftovers keep the lock (rlock flock). has_front_left: the front
	 * has exited so.
	 */
	atomic_bool may_front_leave, has_front_left;
	/* number of times that the command was stopped */
	_Atomic int stops;
	/* The front has stopped itself, because the command was stopped. */
	atomic_bool is_front_stopped;
	/* set when the front is continued: the value of stops for which the front had stopped itself */
	_Atomic int continued;
	/*
	 * pid of the job; 0 or less: not started. For each dead renewer the front subtracts 1. A process that this renewer
	 * has forked for the command then sees the change, and ends instead of executing the command.
	 */
	_Atomic pid_t job_pid;
	/* start time of the job in the kernel's ticks; 0: not known */
	_Atomic uint64_t job_start;
	/* errno of the exec, if it has failed; else 0 */
	_Atomic int exec_error;
	/* exit status as lease_record_end packs it; 0: the command has not ended */
	_Atomic int64_t job_end;
	/* when the job was first known to have ended, with --wait-all its last process as well; 0: not yet */
	_Atomic int64_t ended_ms;
	/*
	 * Exit code and signal of rlock. If no job has run: the code for the reason, or the signal that ended the wait.
	 */
	_Atomic int exit_code, exit_signal;
	/* cause of the last failed renewal */
	char why[LEASE_WHY_MAX];
	/* bytes of the shared memory */
	size_t size;
	/* `rlock stop` has asked this hold to end. The two members below are set before this one. */
	atomic_bool is_stop_requested;
	/* index of the name that the request was for */
	_Atomic size_t stop_name;
	/* note of the caller of `rlock stop` */
	char stop_requested_by[RLOCK_NOTE_MAX];
	/* one for each name, set when the lock is held */
	struct lease_name {
		char owner[RLOCK_OWNER_MAX];
		/* fencing token; 0: none */
		int64_t token;
		/* slots of a semaphore as rlock_hold_slots returns them; NULL: another kind of lock */
		char *slots;
	} names[];
};

/* Make a lease in memory that processes share after a fork, with the settings of opts. NULL with errno. */
struct lease *lease_new(const struct opts *opts, enum rlock_kind kind, enum rlock_purpose purpose);
void lease_free(struct lease *lease);

/* Record that the lock was acquired, and with which owners, tokens and slots. */
void lease_record_acquired(struct lease *lease, const struct rlock_hold *hold);

/* Record the end of the command. info is what waitid(2) returned. */
void lease_record_end(struct lease *lease, const siginfo_t *info);
/* The exit code of the command, or the signal that ended it (not 0). False: the command runs, or its end was not seen. */
bool lease_read_end(const struct lease *lease, int *code_out, int *signal_out);

/* Whether the lock is still waited for. */
bool lease_is_waiting(const struct lease *lease);
/* Whether the lock is held, and its release has not begun. */
bool lease_is_held(const struct lease *lease);
/* Whether the lock is held for a job that has begun: for the command or process itself, or for its leftovers. */
bool lease_has_job(const struct lease *lease);
/* Whether no job has run yet, so that a signal ends the wait. */
bool lease_is_before_job(const struct lease *lease);
/* Whether the lock is being released, or was released, and no job has run. */
bool lease_is_unused(const struct lease *lease);
/* Whether the release has begun, or was done. */
bool lease_is_releasing(const struct lease *lease);

/* Whether the command has been started and is not known to have ended. */
bool lease_has_command(const struct lease *lease);
/* Whether the job has begun. False before the exec of the command: after a loss it will not be executed any more. */
bool lease_has_begun(const struct lease *lease);

/*
 * When the next iteration of a renewer that waits for the lock is due, even if no event comes. It is due at the end of the
 * wait, and at least every WAIT_ITERATION_MAX_MS, or every third of the lease if that is shorter: otherwise the front could not
 * notice a renewer that hangs.
 */
int64_t lease_wait_iteration_ms(const struct lease *lease, int64_t now_ms);

/*
 * When the renewer counts as hung: its loop should have run before. The front then kills it, and still has time to renew
 * the lease or to terminate the command. A failed renewal does not count as a hang, since the loop still runs. INT64_MAX:
 * no iteration is due.
 */
int64_t lease_overdue_ms(const struct lease *lease);
/*
 * When a renewer that gets SIGKILL at now_ms counts as hung in the kernel, if it has not ended. The front then takes over,
 * in time to terminate the command before the lease ends.
 */
int64_t lease_death_ms(const struct lease *lease, int64_t now_ms);
/*
 * Whether the renewer must wake the front when the lock has just been acquired. Until then the front expects a renewer
 * that waits. It would wake up too late to notice before the end of a short lease, or of a short --max-run, that the
 * renewer hangs.
 */
bool lease_needs_front(const struct lease *lease);

/* Time from the sending of a successful renewal to that of the next one. */
int64_t lease_renewal_ms(const struct lease *lease);

/* Earliest end of the lease on the server, counted from the last successful renewal. */
int64_t lease_end_ms(const struct lease *lease);

/* Deadline for sending SIGKILL to all processes of the job, which need the rest of the lease to end. */
int64_t lease_kill_ms(const struct lease *lease);
/* The same deadline, while the job may run; else INT64_MAX. */
int64_t lease_job_kill_ms(const struct lease *lease);

/*
 * Record how late a process was woken: it slept from asleep_ms, should have been woken at due_ms, and runs at now_ms.
 * Late wake-ups make lease_kill_ms earlier, because on a busy machine a killed process takes longer to end.
 */
void lease_record_wakeup(struct lease *lease, int64_t asleep_ms, int64_t due_ms, int64_t now_ms);

/* Record a renewal that was sent at sent_ms. */
void lease_record_renewal(struct lease *lease, int64_t sent_ms);

/*
 * Set the reason to terminate the job. If there is one already, change nothing, with one exception: a new reason replaces a
 * loss for which the job gets only --signal (--on-lost term).
 */
void lease_terminate(struct lease *lease, enum terminate_reason reason);

/* Record that the lock is lost. on_lost decides what happens to the job. */
void lease_record_loss(struct lease *lease);

/* Record a stop request that a renewal has found. on_lost decides what happens to a process of --pid, as for a lost lock. */
void lease_record_stop_request(struct lease *lease, const struct rlock_hold *hold);

/*
 * Set the reason to terminate the job if a deadline has passed, or if a loss or stop request was recorded without it.
 * If the lock then counts as lost, record that; with --on-lost ignore a loss sets no reason. Call this before each
 * decision, since the process may have been suspended.
 */
void lease_check_deadlines(struct lease *lease, int64_t now_ms);

/* Next deadline at which lease_check_deadlines changes something; INT64_MAX: none. */
int64_t lease_next_ms(const struct lease *lease);

/*
 * Whether the job gets --signal and then SIGKILL. False without a reason, and if --on-lost asks for --signal only, or
 * for nothing.
 */
bool lease_terminates_job(const struct lease *lease);

/* What to do to the job now: nothing; send --signal and wait until lease_term_end_ms; send SIGKILL until all are gone. */
enum terminate_step { STEP_RUN, STEP_TERM, STEP_KILL };
enum terminate_step lease_step(const struct lease *lease, int64_t now_ms);
/* When STEP_TERM becomes STEP_KILL; INT64_MAX: never. */
int64_t lease_term_end_ms(const struct lease *lease);

/* Whether the lock was lost while the job ran. */
bool lease_was_lost(const struct lease *lease);
/*
 * Whether the job ended by itself before there was a reason to terminate it. A later reason does not change the exit
 * status.
 */
bool lease_ended_by_itself(const struct lease *lease);

#endif
