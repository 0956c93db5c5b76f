/*
 * Which of some processes carry a hold id in the environment that they were given. The kernel makes whoever reads
 * that wait while the process is locked (by an exec or an mmap that hangs in a network file system, say), without
 * end perhaps: so a helper process reads, and what hangs is given up.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/proc.h"

struct probe_question {
	const struct proc *proc;
	/* The answers. */
	enum proc_lookup lookup; /* UNSEEN: not known yet, to be asked again at a later look */
	bool is_given_up;        /* it hung for so long that it counts as GONE from now on */
	bool is_due;             /* probe.c's own */
};

/* Whether reading this one hung before, and has not been given up. */
bool probe_is_suspect(const struct proc *proc);

/* Answer the questions, within some hundred milliseconds of whatever hangs, and not after until_ms (0: no limit). */
void probe_ask(struct probe_question *questions, size_t count, const char *hold_id,
	       int64_t until_ms);

#endif
