/*
 * The lease state: memory that keeper and renewer share. It says until when the lock is safe, why the job is to be
 * terminated, and which process the job is: the command, or for a lock without a command the calling process. Either
 * of the two acts on it alone when the other is dead or stopped. It leaves signals to terminator.c.
 */
#ifndef LEASE_STATE_H
#define LEASE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "options/opts.h"

#define LEASE_STATE_WHY_MAX 400

enum terminate_reason {
	TERMINATE_NONE,
	TERMINATE_LOST,      /* the lock is lost, or will be before it can be renewed */
	TERMINATE_LEASE,     /* the fixed lease is at its end */
	TERMINATE_MAX_RUN,   /* --max-run */
	TERMINATE_LEFTOVERS, /* the command was told to end: its leftovers end, too */
	TERMINATE_ORPHANED,  /* --kill-child, and the keeper is dead */
};

enum { JOB_NOT_STARTED = 0, JOB_NEVER = -1 };

struct lease_state {
	/* Set before is_held, and never after; only renewal_reload may change lease_ms, of a lock without a command. */
	int64_t lease_ms;
	int64_t grace_ms;
	int64_t acquired_ms;
	int64_t at_least_ms;
	int64_t max_run_end_ms; /* INT64_MAX: no limit */
	bool is_fixed_lease;
	bool is_shared;     /* a read lock: other readers renew it as well */
	bool is_for_caller; /* the job is the calling process */
	bool kill_child;
	bool wait_all;           /* the job has ended when all of its processes have */
	bool counts_all_adopted; /* all that the keeper adopts is the command's: it had no children before */
	enum on_lost on_lost;
	char hold_id[RLOCK_HOLD_ID_MAX];
	char owner[RLOCK_OWNER_MAX]; /* of all names; empty: they differ */
	atomic_bool is_held;         /* a renewer that was forked before waits for this */

	_Atomic int64_t sent_ms;       /* when the last good renewal was sent */
	_Atomic int64_t lateness_ms;   /* of the worst wake-up, which renewals reduce */
	_Atomic int reason;            /* enum terminate_reason */
	_Atomic int64_t reason_ms;     /* when it was set */
	atomic_bool is_lost;           /* with --on-lost ignore there is no reason beside it */
	atomic_bool is_broken;         /* lost, and the server said so */
	_Atomic int64_t lost_at_ms;    /* when that was found */
	_Atomic size_t lost_name;      /* the index of the name that is lost */
	atomic_bool is_end_logged;     /* keeper or renewer has logged how the hold ended */
	atomic_bool is_term_sent;      /* keeper or renewer has begun to send SIGTERM */
	atomic_bool was_told_to_end;   /* SIGTERM, SIGINT or SIGQUIT was passed on to the command */
	atomic_bool is_committed;      /* is_for_caller: the lock is the caller's now */
	atomic_bool is_keeper_stopped; /* it stopped itself, because the command was */
	_Atomic pid_t job_pid;
	_Atomic uint64_t job_start; /* its start time in the kernel's ticks; 0: not known yet */
	/* When a renewer saw that the job had ended, with wait_all all of its processes; 0: it has not. */
	_Atomic int64_t job_gone_ms;
	char why[LEASE_STATE_WHY_MAX]; /* why the last renewal failed; the renewer writes it */
};

/* In memory that fork shares; NULL with errno. */
struct lease_state *lease_state_new(void);
void lease_state_free(struct lease_state *lease_state);

/* Set what each hold has; the caller sets all else. */
void lease_state_init(struct lease_state *lease_state, const struct opts *opts,
		      const struct rlock_hold *hold, int64_t acquired_ms);

/* How long after the sending of a good renewal the next one is due. */
int64_t lease_state_renewal_ms(const struct lease_state *lease_state);

/* When the lease ends on the server at the earliest, counted from the last good renewal. */
int64_t lease_state_lease_end_ms(const struct lease_state *lease_state);

/* The last moment at which all of the job's processes get SIGKILL. */
int64_t lease_state_kill_ms(const struct lease_state *lease_state);

/*
 * A process that went to sleep at asleep_ms, to be woken at due_ms at the latest, runs at now_ms. The later that is,
 * the earlier SIGKILL comes.
 */
void lease_state_record_wakeup(struct lease_state *lease_state, int64_t asleep_ms, int64_t due_ms,
			       int64_t now_ms);

/* The lease was renewed by a request that was sent at sent_ms. */
void lease_state_record_renewal(struct lease_state *lease_state, int64_t sent_ms);

/*
 * Set the reason why the job is to be terminated. The first one counts; but each other one overrules a lost lock for
 * which the job gets SIGTERM only.
 */
void lease_state_terminate(struct lease_state *lease_state, enum terminate_reason reason);

/* The lock is lost. What that does to the job is the user's choice. */
void lease_state_lose(struct lease_state *lease_state);

/* Set the reason if a deadline has passed: call this whenever time may have passed. */
void lease_state_check_deadlines(struct lease_state *lease_state, int64_t now_ms);

/* When lease_state_check_deadlines may set another reason. */
int64_t lease_state_next_ms(const struct lease_state *lease_state);

/* Whether the reason means SIGTERM and then SIGKILL; false where a lost lock means SIGTERM only, or nothing. */
bool lease_state_terminates_job(const struct lease_state *lease_state, int reason);

/* What the reason asks for now. */
enum terminate_phase {
	PHASE_RUN,  /* nothing */
	PHASE_TERM, /* SIGTERM, and then to wait for lease_state_phase_end_ms */
	PHASE_KILL, /* SIGKILL until no process is left */
};
enum terminate_phase lease_state_phase(const struct lease_state *lease_state, int64_t now_ms);
/* When PHASE_TERM turns into PHASE_KILL; INT64_MAX: never. */
int64_t lease_state_phase_end_ms(const struct lease_state *lease_state);

#endif
