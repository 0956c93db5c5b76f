/*
 * Hold a lock: acquire it, start the command, renew the lease, terminate the command if that is necessary, and release, all
 * over one connection. The renewer, a process that the front forks, does this. After the renewer's death the front does it.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <stdbool.h>

#include "hold/job.h"
#include "lib/rlock.h"

struct hold_file;

/* The hold, and the job that it protects. The front sets all members before it forks the renewer. */
struct hold_args {
	/* path of the command; NULL: the lock is for a process */
	char *path;
	/* connection over which nothing is sent before the fork */
	struct rlock_conn *conn;
	/* the hold to acquire; the renewer has a copy of its own, and acquires that */
	struct rlock_hold *hold;
	struct lease *lease;
	/* hold file of a lock for a process; else NULL */
	struct hold_file *hold_file;
	/* pidfd of the process of --pid; -1 with a command */
	int target_fd;
	/*
	 * Acquire the hold within the wait of the lease. The renewer calls acquire. If the result is not RLOCK_OK, acquire
	 * has reported why, and has set exit_code of the lease. RLOCK_CANCELLED: a signal has ended the wait (exit_signal
	 * of the lease), or a process has ended (exit_signal is 0).
	 */
	enum rlock_status (*acquire)(void *ctx);
	void *ctx;
};

/* Deadlines of the front and of the renewer. */
enum hold_due {
	/* Raise our priority. */
	DUE_RAISE,
	/* Check whether the command is still stopped. */
	DUE_STOP,

	/* ---- of the front ---- */

	/* The renewer must have reacted to a signal, or to the command's end. */
	DUE_REACTION,
	/* The renewer must have ended. */
	DUE_END,
	/* The next iteration of the renewer's loop must have begun. */
	DUE_ITERATION,
	/* Check whether the renewer that got SIGKILL has ended. */
	DUE_DEATH,
	/* Fork another renewer. */
	DUE_FORK,

	/* ---- of the renewer ---- */

	/* Renew the lease. */
	DUE_RENEWAL,
	/* Do what was put off until the command runs. */
	DUE_FINISH_START,
	/* Wake the front, which could not be woken before. */
	DUE_WAKE_FRONT,
	/* Touch the hold file. */
	DUE_TOUCH,
	/* Check whether the process has closed the descriptor. */
	DUE_DESCRIPTOR,
	/* Abandon the request that is under way, so that the release can be sent. */
	DUE_ABANDON,
	HOLD_DUES,
};

/* What wakes a process: deadlines by a timer, signals, and the descriptors that are added. */
struct hold_events {
	int fd, timer_fd;
	/* time that the timer is set to (INT64_MAX: none), and when it was set */
	int64_t timer_ms, set_ms;
	/* deadlines; INT64_MAX: none */
	int64_t due_ms[HOLD_DUES];
	/* from when on hold_events_sleep releases memory */
	int64_t shrink_ms;
};
/* False with errno. No deadline is set. */
bool hold_events_open(struct hold_events *events);
/* Whether that deadline has passed. If so, clear it: each deadline is reported once. */
bool hold_events_take_due(struct hold_events *events, enum hold_due due);
/*
 * Sleep until until_ms, until a deadline, or until a descriptor is ready. From shrink_ms on, release memory before a long
 * sleep, at most once in HOLD_SHRINK_MS: a lock can be waited for or held for hours.
 */
#define HOLD_SHRINK_MS 1000
void hold_events_sleep(struct hold_events *events, int64_t until_ms);
/* Read the timer, so that it does not wake us again. */
void hold_events_read_timer(struct hold_events *events, int64_t now_ms);
void hold_events_close(const struct hold_events *events);

/*
 * Run the renewer, in the child of a fork that began at forked_ms. front_fd: pidfd of the front. unread_fd: the front's end of
 * the dialog, from which the renewer reads what the front had not read when it was killed. Does not return.
 */
_Noreturn void renewer_run(const struct hold_args *args, struct job *job, int64_t forked_ms,
			   int front_fd, int dialog_fd, int unread_fd);

/* Find the renewer in /proc. 0, or the exit code after one line by message_error. */
int renewer_find(pid_t renewer, struct proc *out);

/*
 * Hold the lock and release it in the front, after the death of a renewer that had started the command. On return the
 * lease has the exit code and signal. hung: pid of a renewer that got SIGKILL and hangs in the kernel, with the command
 * below it; 0: none. While it hangs, send no request, and terminate the command before the lease ends.
 */
void renewer_take_over(const struct hold_args *args, struct job *job, struct hold_events *events,
		       pid_t hung);

#endif
