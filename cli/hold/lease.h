/*
 * The state of one hold, in memory that rlock and its renewer share: until when the lock is safe, why the job is to be
 * terminated, which process the job is, and how it ended. The renewer writes it, field by field and the phase last, so
 * that rlock can go on from any point when the renewer is killed. The job is what the lock is held for: the command, or
 * for a lock without one the process of --pid.
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

/* The names are those of the model, tests/spin/holding.pml. */
enum hold_phase {
	HOLD_WAITING,  /* the lock is not held yet */
	HOLD_STARTING, /* it is held, and the job does not run yet */
	HOLD_RUNNING,  /* the job runs */
	HOLD_LEFTOVERS, /* the command has ended; the lock is kept for its leftover processes (--wait-all) */
	HOLD_TERMINATING, /* all of its processes get --signal, then SIGKILL, until none is left */
	HOLD_RELEASING,   /* nothing is left for which the lock is kept: the release is sent */
	HOLD_ENDED,       /* exit_code and exit_signal are final */
	HOLD_PHASES,
};

enum terminate_reason {
	TERMINATE_NONE,
	TERMINATE_LOST,      /* the lock is lost, or will be before it can be renewed */
	TERMINATE_LEASE,     /* the fixed lease is at its end */
	TERMINATE_MAX_RUN,   /* --max-run */
	TERMINATE_STOP,      /* rlock stop */
	TERMINATE_LEFTOVERS, /* the command was told to end: its leftovers end, too */
	TERMINATE_ORPHANED,  /* --kill-child, and rlock or its renewer is dead */
};

struct lease {
	/* Set before the renewer is forked; only a renewal by `rlock renew` changes lease_ms, of a lock without a command. */
	int64_t lease_ms;
	const struct opts
		*opts;    /* the same in each process: none of them has executed anything since */
	int64_t begun_ms; /* since when the lock is waited for */
	int64_t wait_end_ms; /* until when to wait for the lock; INT64_MAX: without a limit */
	enum rlock_kind kind;
	/* The job is a command, or the process of --pid. With --owner there is no job. */
	enum rlock_purpose purpose;
	enum on_lost on_lost;
	char hold_id[RLOCK_HOLD_ID_MAX];
	char owner[RLOCK_OWNER_MAX]; /* of the names that are not re-entered */
	pid_t front;                 /* the rlock process that the user started */

	/* The course of the hold. */
	int64_t since_us;  /* since when it is waited for, as the server says: rlock_request */
	_Atomic int phase; /* enum hold_phase */
	_Atomic int64_t acquired_ms;
	_Atomic int64_t max_run_end_ms; /* INT64_MAX: no limit */
	_Atomic int64_t sent_ms;        /* when the last good renewal was sent */
	_Atomic int64_t lateness_ms;    /* of the worst wake-up, which renewals reduce */
	_Atomic int64_t
		next_iteration_ms; /* when the renewer's next turn is due; INT64_MAX: it waits for events */
	_Atomic int reason;         /* enum terminate_reason */
	_Atomic int64_t reason_ms;  /* when it was set */
	atomic_bool is_lost;        /* with --on-lost ignore there is no reason beside it */
	atomic_bool is_broken;      /* lost, and the server said so */
	_Atomic int64_t lost_at_ms; /* when that was found */
	_Atomic size_t lost_name;   /* the index of the name that is lost */
	/* What the user and the log were told; the process that takes over does not repeat it. */
	atomic_bool is_loss_reported, is_loss_logged, is_denied_reported, is_signal_denied_reported;
	_Atomic int reported_reason; /* enum terminate_reason */
	_Atomic pid_t
		term_sender; /* from which some of the job's processes have had --signal; -1: an rlock above; 0: none */
	atomic_bool was_asked_to_end; /* SIGTERM, SIGINT or SIGQUIT was passed on to the command */
	/*
	 * Signals that rlock passes on, each a bit, as long as the renewer has not taken them; and those that it is just
	 * taking, which it may be killed in. Bit 0 is a SIGHUP of the terminal, with which the kernel sends SIGCONT.
	 */
	_Atomic uint64_t signals, signals_in_hand;
	_Atomic int64_t signals_taken; /* how many */
	/* It may end before leftover processes for which the lock stays held, and has done so. */
	atomic_bool may_front_leave, has_front_left;
	_Atomic int stops;            /* how often the command was stopped */
	atomic_bool is_front_stopped; /* it stopped itself, because the command was */
	_Atomic int continued;        /* what stops was when it did so, once it goes on */
	/* Not positive: it was not started. rlock counts down for each renewer that was killed before. */
	_Atomic pid_t job_pid;
	_Atomic uint64_t job_start; /* its start time in the kernel's ticks; 0: not known yet */
	_Atomic int exec_error;     /* errno: the command was not run; 0: it was */
	_Atomic int64_t job_end;    /* lease_record_end; 0: it has not ended */
	_Atomic int64_t
		ended_ms; /* when it had ended at the latest, with --wait-all all of its processes; 0: not yet */
	/* Of rlock. Before there is a job: the signal that ended the wait, and why there will be none. */
	_Atomic int exit_code, exit_signal;
	char why[LEASE_WHY_MAX];                /* why the last renewal failed */
	size_t size;                            /* of all this memory */
	atomic_bool is_stop_requested;          /* to stop */
	_Atomic size_t stop_name;               /* the index of the name of which it is */
	char stop_requested_by[RLOCK_NOTE_MAX]; /* set before */
	struct lease_name {
		char owner[RLOCK_OWNER_MAX];
		int64_t token; /* 0: none */
		char *slots;   /* of a semaphore, as rlock_hold_slots; NULL: it is none */
	} names[];             /* one for each name, once the lock is held */
};

/* In memory that fork shares, with what the options say; NULL with errno. kind is that of the lock. */
struct lease *lease_new(const struct opts *opts, enum rlock_kind kind, enum rlock_purpose purpose);
void lease_free(struct lease *lease);

/* The lock was acquired. */
void lease_record_acquired(struct lease *lease, const struct rlock_hold *hold);

/* The command has ended, as waitid says. */
void lease_record_end(struct lease *lease, const siginfo_t *info);
/* How it ended: its exit code, or the signal that is not 0. False: it has not, or no process saw how. */
bool lease_read_end(const struct lease *lease, int *code_out, int *signal_out);

/* Whether the lock is waited for. */
bool lease_is_waiting(const struct lease *lease);
/* Whether the lock is held, and its release has not begun. */
bool lease_is_held(const struct lease *lease);
/* Whether the lock is held for a job that has begun: for the command or process itself, or for its leftovers. */
bool lease_has_job(const struct lease *lease);
/* Whether there was no job yet, so that a signal ends the wait. */
bool lease_is_before_job(const struct lease *lease);
/* Whether the release has begun, or was done. */
bool lease_is_releasing(const struct lease *lease);

/* Whether the renewer has not taken, or not yet sent, a signal that was passed on. */
bool lease_has_signals(const struct lease *lease);

/* Whether there is a command that is not known to have ended. */
bool lease_has_command(const struct lease *lease);

/*
 * When a renewer that has taken no turn counts as hung: early enough that its replacement keeps COMMAND's deadlines. A
 * renewal that fails is no reason, since the renewer still takes turns. INT64_MAX: not known.
 */
int64_t lease_overdue_ms(const struct lease *lease);

/* How long after the sending of a good renewal the next one is due. */
int64_t lease_renewal_ms(const struct lease *lease);

/* When the lease ends on the server at the earliest, counted from the last good renewal. */
int64_t lease_end_ms(const struct lease *lease);

/* The last moment at which all of the job's processes get SIGKILL. */
int64_t lease_kill_ms(const struct lease *lease);

/*
 * A process that went to sleep at asleep_ms, to be woken at due_ms at the latest, runs at now_ms. The later that is,
 * the earlier SIGKILL comes.
 */
void lease_record_wakeup(struct lease *lease, int64_t asleep_ms, int64_t due_ms, int64_t now_ms);

/* The lease was renewed by a request that was sent at sent_ms. */
void lease_record_renewal(struct lease *lease, int64_t sent_ms);

/*
 * Set the reason why the job is to be terminated. The first one counts; but each other one overrules a lost lock for
 * which the job gets --signal only.
 */
void lease_terminate(struct lease *lease, enum terminate_reason reason);

/* The lock is lost. What that does to the job is the user's choice. */
void lease_record_loss(struct lease *lease);

/* The hold is asked to stop. What that does to a process of --pid is the user's choice, as for a lost lock. */
void lease_record_stop_request(struct lease *lease, const struct rlock_hold *hold);

/* Set the reason if a deadline has passed: call this whenever time may have passed. */
void lease_check_deadlines(struct lease *lease, int64_t now_ms);

/* When lease_check_deadlines may set another reason. */
int64_t lease_next_ms(const struct lease *lease);

/* Whether the reason means --signal and then SIGKILL; false where --on-lost says --signal only, or nothing. */
bool lease_terminates_job(const struct lease *lease);

/* What the reason asks for now. */
enum terminate_step {
	STEP_RUN,  /* nothing */
	STEP_TERM, /* --signal, SIGTERM by default, and then to wait for lease_term_end_ms */
	STEP_KILL, /* SIGKILL until no process is left */
};
enum terminate_step lease_step(const struct lease *lease, int64_t now_ms);
/* When STEP_TERM turns into STEP_KILL; INT64_MAX: never. */
int64_t lease_term_end_ms(const struct lease *lease);

/* Whether the lock was lost while the job ran. */
bool lease_was_lost(const struct lease *lease);
/* Whether the job ended by itself before there was a reason to terminate it. What happened later does not concern it. */
bool lease_ended_by_itself(const struct lease *lease);

#endif
