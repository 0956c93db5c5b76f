/*
 * Which of some processes carry a hold id in the environment that they were given. The kernel makes the reader of an
 * environment wait while the process is locked (by an exec or an mmap that hangs in a network file system, say), maybe
 * without an end: so a helper process reads, and a process that hangs is abandoned.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/proc.h"

struct probe_request {
	const struct proc *proc;
	size_t entry; /* the caller's own */
	/* The result. */
	enum proc_lookup
		lookup;    /* UNSEEN: not known yet, to be requested again by a later search */
	bool is_abandoned; /* reading it hung for so long that it counts as GONE from now on */
	bool is_due;       /* probe.c's own */
};

/* Whether reading this process hung before, and it is not abandoned. */
bool probe_is_suspect(const struct proc *proc);

/* Fill in the results, which takes some hundred milliseconds if a process hangs. Ends at until_ms (0: no limit). */
void probe_run(struct probe_request *requests, size_t count, const char *hold_id, int64_t until_ms);

#endif
