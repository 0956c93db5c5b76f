/*
 * The state of a hold for a command: what the keeper knows in a turn of its loop, and what follows from that.
 * It leaves finding out and acting to keeper.c, and the time at which a command is terminated to lease_state.c.
 */
#ifndef HOLD_STATE_H
#define HOLD_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold/lease_state.h"
#include "sys/proc_tree.h"

/* The names are those of the keeper's states in the model, tests/spin/holding.pml. */
enum hold_phase {
	HOLD_STARTING, /* the lock is held, and the command does not run yet */
	HOLD_RUNNING,  /* the command runs */
	HOLD_LEFTOVERS, /* it has ended; leftover processes run, for which the lock is kept (--wait-all) */
	HOLD_TERMINATING, /* all of its processes get SIGTERM, then SIGKILL, until none is left */
	HOLD_ENDED,       /* nothing is left for which the lock is kept */
};

/* Begin with the lease state, and all else zero. */
struct hold_state {
	struct lease_state *lease_state;
	enum hold_phase phase;
	pid_t command; /* 0: it does not run yet, or has been reaped; then end_* say how it ended */
	int end_code, end_signal;
	int64_t ended_ms; /* when it had ended at the latest, with --wait-all its leftovers too; 0: not yet */
	int64_t clear_ms; /* since then none of its processes is known to run; 0: some are */
	/* What the lease state said when it was read. A lost lock is no phase: with --on-lost ignore or term the command
	 * may run on. */
	int reason;
	bool is_lost;
};

/* The command was started. Its start time is read again, in case its own process had no descriptor left for that. */
void hold_state_record_start(struct hold_state *state);
/* The command has ended, as info of waitid says. */
void hold_state_record_end(struct hold_state *state, const siginfo_t *info);
/* What a step of terminating it found, and whether processes are left to wait for: the phase may be HOLD_ENDED then. */
void hold_state_record_processes(struct hold_state *state, const struct proc_report *report,
				 bool has_processes);

/* Read the lease state: all that is judged, reported and done in a turn of the loop has to follow from one reading. */
void hold_state_read(struct hold_state *state);
/* Set the phase that follows from what is known. A command that was told to end has its leftovers terminated. */
void hold_state_judge(struct hold_state *state);

/* Whether the lock was lost while the command ran. */
bool hold_state_was_lost(const struct hold_state *state);
/* Whether it ended by itself before there was a reason to terminate it. What happened later does not concern it. */
bool hold_state_ended_by_itself(const struct hold_state *state);
/* When it ended, as far as is known. */
int64_t hold_state_end_ms(const struct hold_state *state);

#endif
