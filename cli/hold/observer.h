/*
 * What the renewer observes: the ends of the keeper, of the job and of its leftovers, and wakeups. It leaves to
 * renewer_loop.c what follows from them.
 */
#ifndef OBSERVER_H
#define OBSERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/hold_state.h"
#include "hold/leftovers.h"
#include "hold/lease_state.h"

struct observer {
	struct lease_state *lease_state;
	int events_fd; /* epoll of the next four; the pidfd of a leftover process is polled beside it */
	int timer_fd;
	int keeper_fd; /* -1: dead */
	int job_fd;    /* -1: not known yet, or ended */
	int wakeup_fd;
	pid_t keeper;
	/* HOLD_RUNNING, until the job has ended; HOLD_LEFTOVERS; HOLD_ENDED. */
	enum hold_phase phase;
	bool is_job_unseen; /* no event tells the end of the job: there was no descriptor for that */
	struct leftovers leftovers;
};

/*
 * Open what the renewer needs, in the keeper, before the fork: a renewer that runs is one that renews. The descriptors
 * that are given stay the caller's. False with errno.
 */
bool observer_init(struct observer *observer, struct lease_state *lease_state, int keeper_fd,
		   int target_fd, int wakeup_fd);
/* Close what observer_init opened. errno stays as it is. */
void observer_close(const struct observer *observer);

/* The keeper's pid; 0: it is dead. */
pid_t observer_keeper(const struct observer *observer);
/* Whether the keeper lives, but is stopped. */
bool observer_is_keeper_stopped(const struct observer *observer);
void observer_wake_keeper(const struct observer *observer);
/* Continue a keeper that stopped itself because its command was stopped, and is not any more. */
void observer_continue_keeper(const struct observer *observer);

/* Find the job, whose pid may be in the lease state by now. */
void observer_find_job(struct observer *observer);
/* Find out whether all that the lock is kept for has ended. */
void observer_find_end(struct observer *observer);
/* Read the events, and record what has happened. */
void observer_update(struct observer *observer);

#endif
