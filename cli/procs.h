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

/* What a look at a process may come to. That it can't be seen now does not mean that it has gone. */
enum proc_sight {
	PROC_GONE,   /* there is no such process, or none that we may see */
	PROC_SEEN,   /* what was asked for is so */
	PROC_UNSEEN, /* the system has no means for it, descriptors, say; why is in errno */
};

enum proc_sight proc_look(pid_t pid, struct proc *out);
/* The same for those to whom a process that can't be seen now is none: false then. */
bool proc_read(pid_t pid, struct proc *out);
/* Whether that process is known not to run any more: gone, a zombie, another one under its number. */
bool proc_has_ended(pid_t pid, uint64_t start);
/*
 * A descriptor of exactly that process (start 0: whoever has the pid), close-on-exec; or -1 with errno,
 * which is ESRCH only when the process has gone.
 */
int proc_open(pid_t pid, uint64_t start);

/* Whether the hold id stands in the RLOCK_HELD of the environment that the process was given; else GONE. */
enum proc_sight proc_carries_hold(pid_t pid, const char *hold_id);

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
 * gets it. TERM is followed by CONT. False when not all could be found or told: the system has no means
 * for it at the moment, or the look was broken off. The command itself is told even then.
 */
bool procs_signal(const struct proc_roots *roots, int signal, struct proc_set *signaled,
		  struct proc_report *out);

/*
 * Whether one of those runs whom the kernel tells at once: the command, the adopter's children, and all below them.
 * False where it doesn't tell.
 */
bool procs_family_runs(const struct proc_roots *roots);

#endif
