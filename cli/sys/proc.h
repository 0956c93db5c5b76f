/*
 * One process, as /proc shows it.
 */
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc/PID/stat tells of a process. */
struct proc {
	pid_t pid;
	pid_t parent;
	pid_t session;
	char state;
	long threads;
	uint64_t start; /* in the kernel's ticks since it booted: with the pid, an identity */
	char name[32];
	uint64_t stack; /* where its stack starts; 0 when that may not be seen */
};

/*
 * What a renewer calls itself in /proc/PID/comm, and a helper. By that, by its program and as the leader of a session
 * other rlocks know it from a command.
 */
#define RENEWER_NAME "rlock-renewer"

/* What a look at a process may come to. That it can't be seen now does not mean that it has gone. */
enum proc_lookup {
	PROC_GONE,   /* there is no such process, or none that we may see */
	PROC_SEEN,   /* what was asked for is so */
	PROC_UNSEEN, /* the system has no means for it, descriptors, say; why is in errno */
};

enum proc_lookup proc_look(pid_t pid, struct proc *out);
/* The same for those to whom a process that can't be seen now is none: false then. */
bool proc_read(pid_t pid, struct proc *out);
/* Whether there is such a process, but /proc does not show it to us: as it is mounted (hidepid), or for its user. */
bool proc_is_hidden(pid_t pid);
/* Whether it runs a program of our name, wherever that is; true where that may not be seen. */
bool proc_runs_our_program(pid_t pid);
/* A leader that has exited is a zombie while its other threads run on. */
bool proc_is_gone(const struct proc *proc);
/* Whether that process is known not to run any more: gone, a zombie, another one under its number. */
bool proc_has_ended(pid_t pid, uint64_t start);
/* In which namespace our numbers of processes are: its inode; 0 when that can't be told, without /proc. */
uint64_t proc_namespace(void);
/*
 * A descriptor of exactly that process (start 0: whoever has the pid), close-on-exec; or -1 with errno,
 * which is ESRCH only when the process has gone.
 */
int proc_open(pid_t pid, uint64_t start);

/*
 * The words that the process was called with, a NUL behind each, as many bytes as have room; a NUL stands
 * behind the last of them in any case. False when that can't be seen.
 */
bool proc_command_line(pid_t pid, char *out, size_t size, size_t *len_out);

/* Whether the hold id stands in the RLOCK_HELD of the environment that the process was given; else GONE. */
enum proc_lookup proc_carries_hold(pid_t pid, const char *hold_id);

#endif
