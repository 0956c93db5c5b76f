/*
 * The processes of a command: who they are, and signals to all of them.
 */
#ifndef PROC_TREE_H
#define PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Some processes; zero-initialise, proc_set_free. */
struct proc_set {
	struct {
		pid_t pid;
		uint64_t start;
	} * members;
	size_t count, capacity;
};
void proc_set_free(struct proc_set *set);

/* Where to look for a command's processes. */
struct proc_filter {
	pid_t job;           /* the command; 0: none, or gone */
	uint64_t job_start;  /* 0: not known */
	const char *hold_id; /* later ones with this in their RLOCK_HELD; NULL: don't look there */
	pid_t adopter;       /* and the children of this process; 0: of nobody */
	bool adopts_strangers; /* those children count without the hold id, too */
	bool is_one_session;   /* only processes of this one: */
	pid_t session;
	pid_t except[2];  /* never these: a renewer of ours, the private server */
	int64_t until_ms; /* break a look off then; 0: take the time it needs */
	/* Those found by an earlier look, who need not be looked for; who is found is put in. May be NULL. */
	struct proc_set *known;
};

struct proc_report {
	int64_t at_ms;           /* when they were listed for the last time; 0: they were not */
	size_t running;          /* how many of the command's processes run still */
	size_t refused;          /* of those, how many may not be signalled */
	struct proc refused_one; /* one of these */
	struct proc running_one; /* one that runs */
	size_t unasked;         /* of how many it is not known yet whether they are the command's */
	size_t unread;          /* of how many it will not be: they hang; they count as others' */
	struct proc unread_one; /* one of these */
};

/*
 * Find the command's processes, over again until nobody new is found, and send the signal to each.
 * signaled: who is in there is not sent it again, and who was sent it is put in; NULL: everybody
 * gets it. TERM is followed by CONT. False when not all could be found or told: the system has no means
 * for it at the moment, some processes hang, or the look was broken off. The command itself is told even then.
 * Nobody's hang holds up the signal to those whom ancestry tells.
 */
bool proc_tree_signal(const struct proc_filter *filter, int signal, struct proc_set *signaled,
		      struct proc_report *out);

/*
 * Whether one of those runs whom the kernel tells at once: the command, the adopter's children, and all below them.
 * False where it doesn't tell. *out is that one; out may be NULL.
 */
bool proc_tree_family_runs(const struct proc_filter *filter, struct proc *out);

/*
 * Whether one of the command's processes runs, which *out is then; out->pid is 0 when not all could be looked at, and
 * none was found among the others.
 */
bool proc_tree_find_running(const struct proc_filter *filter, struct proc *out);

#endif
