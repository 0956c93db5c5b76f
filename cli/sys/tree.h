/*
 * The processes below one: its children, theirs, and so on. A process that has adopted all orphans below it (os.h:
 * os_adopt_orphans) has everything that it has ever started below itself.
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Processes, each known by its pid and its start time. Zero-initialise, tree_set_free. */
struct tree_set {
	struct tree_member {
		pid_t pid;
		uint64_t start;
	} * members;
	size_t count;
};
void tree_set_free(struct tree_set *set);

struct tree {
	pid_t root;
	uint64_t root_start; /* 0: any */
	bool has_root;       /* the root is one of the processes, too */
	bool has_session;    /* only processes of this session count */
	pid_t session;       /* 0: one that a process of an outer PID namespace leads */
	/* Neither these nor what is below them; NULL: none. */
	const struct tree_set *except;
	/* Such processes get no signal, but count, and so does what is below them; NULL: none is such. */
	bool (*is_spared)(const struct proc *proc);
	/* Neither these nor what is below them; NULL: none is such. */
	bool (*is_foreign)(const struct proc *proc);
};

/* What a look found. */
struct tree_report {
	size_t running; /* processes that have not ended */
	size_t spared;  /* of these, those that is_spared names */
	size_t denied;  /* of these, those to which the kernel let us send no signal */
	struct proc denied_one;
	size_t signalled; /* how many got the signal by this call */
	bool is_incomplete; /* some could not be looked at or signalled: no descriptors or memory at the moment */
};

/* Add all of them to out. False with errno when some could not be looked at. */
bool tree_collect(const struct tree *tree, struct tree_set *out);
/* Count the processes. */
void tree_look(const struct tree *tree, struct tree_report *out);
/*
 * Look again and again, and send the signal to each that lacks it (those that got it are in signalled; NULL: all get it),
 * until a look finds no new one. SIGCONT follows SIGTERM. After SIGTERM a process may start others to clean up: these
 * are spared for as long as it runs, if signalled was not empty.
 */
void tree_signal(const struct tree *tree, int signal, struct tree_set *signalled,
		 struct tree_report *out);

#endif
