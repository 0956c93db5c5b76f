/*
 * What keeper and renewer know together, on one shared page: until when the lock is safe, whether
 * and why the command is to be stopped, and who the command is. Either of them acts on it alone
 * when the other is dead or stopped. What "act" means for processes is terminator.c's business.
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
	TERMINATE_LEFTOVERS, /* the command was stopped: so is what it left behind */
	TERMINATE_ORPHANED,  /* --kill-child, and the keeper is dead */
};

enum { JOB_NOT_STARTED = 0, JOB_NEVER = -1 };

struct lease_state {
	/* Set before the renewer is forked, and never after. */
	int64_t lease_ms;
	int64_t grace_ms;
	int64_t had_ms; /* when the lock was had */
	int64_t at_least_ms;
	int64_t max_run_end_ms; /* INT64_MAX: no limit */
	bool is_fixed_lease;
	bool is_shared;     /* a read lock: other readers renew it as well */
	bool is_for_caller; /* no command of ours: the job is the calling process */
	bool kill_child;
	bool wait_all;         /* the job has ended when all of its processes have */
	bool adopts_strangers; /* whom the keeper adopts is the command's: it had no children before */
	enum on_lost on_lost;
	char hold_id[RLOCK_HOLD_ID_MAX];

	_Atomic int64_t sent_ms;       /* when the last good renewal was sent */
	_Atomic int64_t lateness_ms;   /* of the worst wake-up of late */
	_Atomic int reason;            /* enum terminate_reason: the first one counts */
	_Atomic int64_t reason_ms;     /* when it was set */
	atomic_bool is_lost;           /* whatever that did to the command */
	atomic_bool is_broken;         /* lost, and the server said so */
	_Atomic int64_t lost_at_ms;    /* when it was found to be */
	_Atomic size_t lost_name;      /* which of the names that was about */
	atomic_bool is_term_sent;      /* TERM has gone to all of the command's processes */
	atomic_bool was_told_to_end;   /* TERM, INT or QUIT was passed on to the command */
	atomic_bool is_committed;      /* is_for_caller: the lock is the caller's now */
	atomic_bool is_keeper_stopped; /* it stopped itself, because the command was */
	_Atomic pid_t job_pid;
	_Atomic uint64_t job_start; /* its start time in the kernel's ticks; 0: not known yet */
	_Atomic int64_t
		job_gone_ms; /* by then the renewer saw it gone, with wait_all whole; 0: it has not */
	char why[LEASE_STATE_WHY_MAX]; /* what the last renewal met; the renewer writes it */
};

/* A page that fork shares; NULL with errno. */
struct lease_state *lease_state_new(void);
void lease_state_free(struct lease_state *lease_state);

/* Set what each hold has: the rest is the caller's to set. */
void lease_state_init(struct lease_state *lease_state, const struct opts *opts,
		      const struct rlock_hold *hold, int64_t had_ms);

/* How long after the sending of a good renewal the next one is due. */
int64_t lease_state_renewal_ms(const struct lease_state *lease_state);

/* When the lease ends on the server at the earliest, counted from the last good renewal. */
int64_t lease_state_lease_end_ms(const struct lease_state *lease_state);

/* The last moment at which all of the command's processes get KILL. */
int64_t lease_state_kill_ms(const struct lease_state *lease_state);

/*
 * A process that went to sleep at asleep_ms, to be woken at due_ms at the latest, runs at now_ms. The later that
 * is, the sooner KILL comes.
 */
void lease_state_record_wakeup(struct lease_state *lease_state, int64_t asleep_ms, int64_t due_ms,
			       int64_t now_ms);

/* The lease was renewed, by a request sent at that time. */
void lease_state_record_renewal(struct lease_state *lease_state, int64_t sent_ms);

/*
 * Set the reason why the command is to be stopped. The first one counts; but for a lost lock that asked
 * for a TERM only, which each other one overrules.
 */
void lease_state_terminate(struct lease_state *lease_state, enum terminate_reason reason);

/* The lock is lost. What that does to the command is the user's choice. */
void lease_state_lose(struct lease_state *lease_state);

/* Set the reason when a deadline has passed; to be called whenever the clock may have moved on. */
void lease_state_check_deadlines(struct lease_state *lease_state, int64_t now_ms);

/* When lease_state_check_deadlines has something to say next. */
int64_t lease_state_next_ms(const struct lease_state *lease_state);

/* Whether there is a reason to stop the command whole: more than a TERM for a lost lock. */
bool lease_state_is_terminating(const struct lease_state *lease_state);

/* What the reason asks for now. */
enum terminate_phase {
	PHASE_RUN,  /* nothing */
	PHASE_TERM, /* TERM, and then wait for lease_state_phase_end_ms */
	PHASE_KILL, /* KILL until nobody is left */
};
enum terminate_phase lease_state_phase(const struct lease_state *lease_state, int64_t now_ms);
/* When PHASE_TERM turns into PHASE_KILL; INT64_MAX for never. */
int64_t lease_state_phase_end_ms(const struct lease_state *lease_state);

#endif
