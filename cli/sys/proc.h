/*
 * Read one process in /proc, and compare it with the record of a process.
 */
#ifndef PROC_H
#define PROC_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A process as /proc/PID/stat describes it. pid and start together identify it, because the kernel gives its pid to a
 * later process again.
 */
struct proc {
	pid_t pid;
	pid_t parent;
	pid_t session;
	char state;
	/* status of a zombie as wait(2) returns it; 0 if we may not read that */
	int end;
	/* The process has got SIGKILL, or is exiting. But it may still run until a processor is free for its end. */
	bool is_killed;
	/*
	 * The end of the process sends no signal to its parent. os.c forks all helpers so: a process of our program with this
	 * mark is a helper, even before it has set its name.
	 */
	bool is_silent;
	long threads;
	/* start time in the kernel's ticks since the machine booted */
	uint64_t start;
	char name[32];
};

/*
 * Names in /proc/PID/comm. An rlock that scans its job knows renewers and helpers by name and program. A renewer with a
 * command belongs to the job that started it. A renewer without a command, and a helper, belong to no job. A helper
 * that has no name yet is known by is_silent. COMMAND has its name until it is executed, so that it is not spared as a
 * renewer.
 */
#define RENEWER_NAME "rlock-renewer"
#define LONE_RENEWER_NAME "rlock-renewer-p"
#define COMMAND_NAME "rlock-command"
#define HELPER_NAME "rlock-helper"

/* The variable by which a process knows which locks it holds. */
#define INHERITED_VARIABLE "RLOCK_HELD"

enum proc_lookup {
	/* No such process exists, or none that we may see. */
	PROC_GONE,
	/* The process was read. */
	PROC_SEEN,
	/*
	 * The process may exist, but cannot be read now, for example because no descriptor is free. errno has the
	 * reason.
	 */
	PROC_UNSEEN,
};

/* Read a process. *out is set only if the result is PROC_SEEN. */
enum proc_lookup proc_find(pid_t pid, struct proc *out);
/*
 * Read a process, for callers to which it does not matter why it cannot be read. False: it is gone, or cannot be read
 * now.
 */
bool proc_read(pid_t pid, struct proc *out);
/* Returns the parent of a process; 0: the process is gone, or cannot be read. */
pid_t proc_parent(pid_t pid);
/* Whether the process is stopped by a signal. False also if it cannot be read. */
bool proc_is_stopped(pid_t pid);
/* Whether the process is stopped or being killed, so that it runs nothing now. False also if it cannot be read. */
bool proc_is_idle(pid_t pid);
/* Whether the process exists, but /proc hides it from us, as it does processes of other users with hidepid. */
bool proc_is_hidden(pid_t pid);
/*
 * Returns the pid of the process that a thread belongs to. Returns its argument if that is a process, or if its process
 * is not known.
 */
pid_t proc_of_thread(pid_t thread);
/*
 * Whether the process has our effective user. This is read from /proc/PID/status, because root owns /proc/PID itself if
 * the process is not dumpable.
 */
bool proc_is_of_our_user(pid_t pid);
/*
 * Whether the process runs a program with the name of ours, in any directory. True also if we may not read that, or if the
 * process is ending, and runs nothing any more.
 */
bool proc_runs_our_program(pid_t pid);
/*
 * Compute the start time of a process that was forked between two times of rlock_now_ms(), because to read /proc would
 * take longer than the fork. 0: the two times are not in one tick of the kernel.
 */
uint64_t proc_start_between(int64_t from_ms, int64_t until_ms);
/*
 * The start time of the calling process, in ticks of the kernel. The process was forked at forked_ms or a little later, so
 * the time can mostly be computed (proc_start_between). 0: it had to be read from /proc, and could not. Async-signal-safe.
 */
uint64_t proc_own_start(int64_t forked_ms);
/*
 * Read how a zombie has ended, as waitid(2) would return it. False: we may not know that, because it runs as another user, or it is
 * reaped.
 */
bool proc_read_end(pid_t pid, siginfo_t *out);
/* Whether the process has ended. False while other threads run, even if its first thread is a zombie. */
bool proc_is_gone(const struct proc *proc);
/*
 * Whether the process has ended as far as /proc shows: it is gone, hidden or a zombie, or its pid has another start
 * time. A start of 0 fits any time.
 */
bool proc_has_ended(pid_t pid, uint64_t start);
/*
 * Open a pidfd of the process with this pid and start time (0: any). It is close-on-exec. -1 with errno, which is ESRCH
 * only if the process is gone.
 */
int proc_open(pid_t pid, uint64_t start);

/* Describe a process for the hold record on the server. A field is 0 if the system does not report it. */
struct rlock_process;
void proc_describe(pid_t pid, struct rlock_process *out);
/* Whether the process of a hold record was one of this machine and of our PID namespace. */
bool proc_is_here(const struct rlock_process *process);
/* Whether proc, a process of this machine, is the process of the record, and not a later one with the same pid. */
bool proc_is_of_record(const struct proc *proc, const struct rlock_process *process);
/* Whether the process of a hold record was one of this machine, and has ended. */
bool proc_has_ended_here(const struct rlock_process *process);

#endif
