/*
 * The processes of a command: a search for all of them, and signals to all of them.
 */
#ifndef PROC_TREE_H
#define PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/proc.h"
#include "sys/proc_set.h"
#include "sys/proc_table.h"

/* What a search found. */
struct proc_report {
	int64_t at_ms;  /* when the processes were listed for the last time; 0: they were not */
	size_t running; /* how many of the command's processes still run */
	size_t denied;  /* to how many of these the kernel let us send no signal */
	struct proc denied_one;  /* one of these */
	struct proc running_one; /* one that runs */
	size_t undecided; /* how many processes are not known yet to be the command's or not */
	size_t unreadable; /* how many will not be known: reading them hangs, and they do not count as the command's */
	struct proc unreadable_one; /* one of these */
};

/*
 * Search for the command's processes, and send the signal to each, until a search finds no new one. Processes in
 * signaled do not get the signal again, and those that get it are added; NULL: all get it. SIGCONT follows SIGTERM.
 * False when some process could not be looked at or signalled: the system is out of memory or descriptors at the
 * moment, some processes hang, or filter->until_ms came. The command itself gets the signal even then, and a process
 * that hangs does not delay the signal to those that ancestry shows.
 */
bool proc_tree_signal(const struct proc_filter *filter, int signal, struct proc_set *signaled,
		      struct proc_report *out);

/*
 * Whether a process runs that the kernel shows at once: the command, a child of the adopter, or a descendant of these.
 * False where the kernel cannot show that. *out is that process; out may be NULL.
 */
bool proc_tree_family_runs(const struct proc_filter *filter, struct proc *out);

/*
 * Whether one of the command's processes runs; *out is that one. True, with 0 as out->pid, also when none was found but
 * some processes could not be looked at.
 */
bool proc_tree_find_running(const struct proc_filter *filter, struct proc *out);

#endif
