/*
 * A table of processes, as /proc shows them at one moment, with a mark on those that belong to a command.
 */
#ifndef PROC_TABLE_H
#define PROC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"
#include "sys/proc_set.h"

/* Which processes belong to a command. */
struct proc_filter {
	pid_t job;          /* the command; 0: there is none, or it has ended */
	uint64_t job_start; /* 0: unknown */
	const char *
		hold_id; /* later processes with this in their RLOCK_HELD; NULL: environments are not read */
	pid_t adopter;           /* and the children of this process; 0: of none */
	bool counts_all_adopted; /* those children belong to the command even without the hold id */
	bool is_one_session;     /* only processes of this session: */
	pid_t session;
	pid_t except[2];  /* never these: a renewer of ours, the private server */
	int64_t until_ms; /* break the search off at this time; 0: take the time that it needs */
	/* What earlier searches found, and this one need not search for; it adds what it finds. May be NULL. */
	struct proc_set *known;
};

struct proc_entry {
	struct proc proc;
	bool is_member; /* belongs to the command */
};

/* Zero-initialise, proc_table_free. */
struct proc_table {
	struct proc_entry *entries; /* by pid, each once */
	size_t count, capacity;
	int64_t listed_ms; /* when the processes were listed */
	size_t undecided;  /* how many processes are not known yet to be members or not */
	size_t unreadable; /* how many will not be known: reading their environment hangs */
	struct proc unreadable_one; /* one of these */
};

/* Which processes a search looks at. */
enum proc_scope {
	SCOPE_FAMILY,   /* those found by ancestry, from the kernel's lists of children */
	SCOPE_ALL,      /* all processes, without the environments that hung before */
	SCOPE_SUSPECTS, /* these environments, too */
};

/*
 * List the processes and mark the members: what ancestry shows, and what carries the hold id. signaled: processes that
 * an earlier search found to be members; or NULL. False when some could not be looked at, or filter->until_ms came.
 */
bool proc_table_fill(struct proc_table *table, const struct proc_filter *filter,
		     enum proc_scope scope, const struct proc_set *signaled);
void proc_table_free(struct proc_table *table);

/* The entry of the parent; NULL when the table does not have it. */
const struct proc_entry *proc_table_parent(const struct proc_table *table,
					   const struct proc_entry *child);

#endif
