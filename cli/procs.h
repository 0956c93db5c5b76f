/*
 * The processes of a command: who they are, and signals to all of them.
 */
#ifndef PROCS_H
#define PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc/PID/stat tells of a process. */
struct proc {
	pid_t pid;
	pid_t parent;
	char state;
	long threads;
	uint64_t start; /* in the kernel's ticks since it booted: with the pid, an identity */
	char name[32];
	uint64_t stack; /* where its stack starts; 0 when that may not be seen */
};

/* False when there is no such process (or it can't be read). */
bool proc_read(pid_t pid, struct proc *out);
/* Whether that process still runs: not gone, not a zombie, not another one under its number. */
bool proc_is_running(pid_t pid, uint64_t start);
/* A descriptor of exactly that process (start 0: whoever has the pid), or -1. Close-on-exec. */
int proc_open(pid_t pid, uint64_t start);

/* Whether the hold id stands in the RLOCK_HELD of the environment that the process was given. */
bool proc_carries_hold(pid_t pid, const char *hold_id);

/* Where to look for a command's processes. */
struct proc_roots {
	pid_t job;             /* the command; 0: none, or gone */
	uint64_t job_start;    /* 0: not known */
	const char *hold_id;   /* those with this in their RLOCK_HELD; NULL: don't look there */
	pid_t adopter;         /* and the children of this process; 0: of nobody */
	bool adopts_strangers; /* those children count without the hold id, too */
	pid_t except[2];       /* never these: a renewer of ours, the private server */
	int64_t until_ms;      /* break a look off then; 0: take the time it needs */
};

/* Which processes had a signal already; zero-initialise, proc_set_free. */
struct proc_set {
	struct {
		pid_t pid;
		uint64_t start;
	} * members;
	size_t count, capacity;
};
void proc_set_free(struct proc_set *set);

struct proc_report {
	size_t running;          /* how many of the command's processes run still */
	size_t refused;          /* of those, how many may not be signalled */
	struct proc refused_one; /* one of these */
};

/*
 * Find the command's processes, over again until nobody new is found, and send the signal to each.
 * signaled: who is in there is not sent it again, and who was sent it is put in; NULL: everybody
 * gets it. TERM is followed by CONT. False when /proc can't be read, memory is out, or the look was broken off.
 */
bool procs_signal(const struct proc_roots *roots, int signal, struct proc_set *signaled,
		  struct proc_report *out);

/*
 * Whether one of those runs whom the kernel tells at once: the command, the adopter's children, and all below them.
 * False where it doesn't tell.
 */
bool procs_family_runs(const struct proc_roots *roots);

#endif
