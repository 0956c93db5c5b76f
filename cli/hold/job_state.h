/*
 * What the keeper knows of the command and its lock in one turn of the loop, and what follows from that.
 */
#ifndef JOB_STATE_H
#define JOB_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold/lease_state.h"
#include "sys/proc_tree.h"

/* Begin with the lease_state, and all else zero. */
struct job_state {
	struct lease_state *lease_state;
	pid_t command;
	bool has_ended; /* the command; how is in end_* */
	int end_code, end_signal;
	bool is_done;     /* it has ended, and with --wait-all what it left running, too */
	int64_t ended_ms; /* at that time at the latest */
	int64_t clear_ms; /* since then none of its processes is known to run; 0: some are */
	int reason;       /* to stop: as the page said when it was read */
	bool is_lost;
	bool is_stopping; /* the command whole */
};

/* When the command was started: again, should it have had no descriptor left to find out itself. */
void job_state_record_start(struct job_state *state);
/* The command has ended, as info of waitid says. */
void job_state_record_end(struct job_state *state, const siginfo_t *info);
/* Nothing is left to wait for. */
void job_state_record_done(struct job_state *state);
/* What a step of stopping it met, and whether that left something to wait for. */
void job_state_record_processes(struct job_state *state, const struct proc_report *report,
				bool has_processes);

/* Read the page: what is judged, said and done in a turn of the loop has to follow from one and the same page. */
void job_state_read_page(struct job_state *state);

/* Whether the lock was lost while the command ran. */
bool job_state_was_lost(const struct job_state *state);
/* It ended by itself, before there was a reason to stop it: whatever came behind that is not its business. */
bool job_state_has_ended_in_peace(const struct job_state *state);
/* A command that was told to end is stopped whole; what one that ends by itself leaves running is its business. */
bool job_state_must_terminate_leftovers(const struct job_state *state);
/* Whether all is said and done. */
bool job_state_is_over(const struct job_state *state, const struct proc_report *report,
		       bool has_processes);
/* When it ended, as far as is known. */
int64_t job_state_end_ms(const struct job_state *state);

#endif
