/*
 * One process, as /proc shows it.
 */
#ifndef PROC_H
#define PROC_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc/PID/stat tells of a process. */
struct proc {
	pid_t pid;
	pid_t parent;
	pid_t session;
	char state;
	int end; /* of a zombie: its status, as wait(2) says it; 0 where we may not see that */
	bool is_killed; /* SIGKILL has reached it, or it ends for another reason, as soon as a processor is free for it */
	long threads;
	uint64_t
		start; /* in the kernel's ticks since it booted; pid and start identify a process */
	char name[32];
};

/*
 * Names in /proc/PID/comm. By them and by their program other rlock processes tell renewers and helpers from a command: a
 * renewer with a command belongs to the job that it is started in; one without, and a helper, to none.
 */
#define RENEWER_NAME "rlock-renewer"
#define LONE_RENEWER_NAME "rlock-renewer-p"
#define HELPER_NAME "rlock-helper"

/* By this variable a process knows which locks it holds. */
#define INHERITED_VARIABLE "RLOCK_HELD"

/* The result of a look at a process. One that cannot be seen now may still be there. */
enum proc_lookup {
	PROC_GONE,   /* there is no such process, or none that we may see */
	PROC_SEEN,   /* it was seen, or what the caller looked for is true */
	PROC_UNSEEN, /* the system is out of descriptors, say; why is in errno */
};

enum proc_lookup proc_find(pid_t pid, struct proc *out);
/* The same for callers that take a process which cannot be seen now for none: false then. */
bool proc_read(pid_t pid, struct proc *out);
/* 0: it is gone, or not seen. */
pid_t proc_parent(pid_t pid);
/* Whether it can be seen, and is stopped by a signal. */
bool proc_is_stopped(pid_t pid);
/* Whether it can be seen, and will do nothing, at least for now: it is stopped, or being killed. */
bool proc_is_idle(pid_t pid);
/* Whether there is such a process, but /proc does not show it to us: it is another user's (hidepid), say. */
bool proc_is_hidden(pid_t pid);
/* The process that the thread is one of; itself for a process, and where that is not known. */
pid_t proc_of_thread(pid_t thread);
/* Whether its effective user is ours. The owner of /proc/PID is root for a process of any user that is not dumpable. */
bool proc_is_of_our_user(pid_t pid);
/* Whether it runs a program of our name, in any directory; true where we may not see that. */
bool proc_runs_our_program(pid_t pid);
/*
 * The start of a process that was forked between these two times of rlock_now_ms(), without a look at /proc, which
 * takes longer than the fork; 0 when the two are not in the same tick of the kernel.
 */
uint64_t proc_start_between(int64_t from_ms, int64_t until_ms);
/* Our own, after a fork that began at forked_ms; 0 without /proc, if that is needed. Async-signal-safe. */
uint64_t proc_own_start(int64_t forked_ms);
/* How a zombie has ended, as waitid(2) would say. */
siginfo_t proc_end(const struct proc *proc);
/* False for a process whose first thread has exited, and is a zombie, while other threads run on. */
bool proc_is_gone(const struct proc *proc);
/*
 * Whether that process has ended, as far as /proc shows: it is gone, hidden (hidepid) or a zombie, or its pid is
 * another process's.
 */
bool proc_has_ended(pid_t pid, uint64_t start);
/*
 * A descriptor of exactly that process (start 0: of any process with this pid), close-on-exec; or -1 with errno, which
 * is ESRCH only when the process is gone.
 */
int proc_open(pid_t pid, uint64_t start);

/* What the record of a hold on the server tells others of that process; all is 0 where the system does not tell it. */
struct rlock_process;
void proc_describe(pid_t pid, struct rlock_process *out);
/* Whether the process of such a record is one of this machine, and of our PID namespace. */
bool proc_is_here(const struct rlock_process *process);
/* Whether that one, which is here, is the process of the record: its pid may be another process's by now. */
bool proc_is_of_record(const struct proc *proc, const struct rlock_process *process);
/* Whether the process of such a record was one of this machine, and is not there any more. */
bool proc_has_ended_here(const struct rlock_process *process);

#endif
