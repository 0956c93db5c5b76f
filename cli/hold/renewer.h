/*
 * Hold a lock: acquire it, start the command, renew the lease, terminate the command if necessary, and release; all
 * over one connection. This is done by the renewer, a process that the front forks. After the renewer's death the front
 * does it.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <stdbool.h>

#include "hold/job.h"
#include "lib/rlock.h"

struct hold_file;

/* The hold, and the job that it protects. All members are set before the front forks the renewer. */
struct hold_args {
	/* path of the command; NULL: the lock is for a process */
	char *path;
	/* connection for the renewer; before the fork only the probe of -n is sent over it (cmd_lock.c: is_busy) */
	struct rlock_conn *conn;
	/* the hold to acquire; the fork gives the renewer its own copy, which it acquires */
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

	/* The renewer must have ended. */
	DUE_END,
	/* The next iteration of the renewer's loop must have begun. */
	DUE_ITERATION,
	/* Check whether a renewer that got SIGKILL has ended. */
	DUE_DEATH,
	/* Fork another renewer. */
	DUE_FORK,

	/* ---- of the renewer ---- */

	/* Renew the lease. */
	DUE_RENEWAL,
	/* Do the work that was put off until the command runs. */
	DUE_FINISH_START,
	/* Wake the front, which could not be woken before. */
	DUE_WAKE_FRONT,
	/* Touch the hold file. */
	DUE_TOUCH,
	/* Check whether the process has closed the descriptor that the lock belongs to. */
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
	/* when hold_events_sleep may begin to release memory; INT64_MAX: never */
	int64_t shrink_ms;
};
/* Open the epoll and the timer, and set no deadline. False with errno. */
bool hold_events_open(struct hold_events *events);
/* Whether that deadline has passed. If so, clear it, so that each deadline is reported once. */
bool hold_events_take_due(struct hold_events *events, enum hold_due due);
/*
 * Sleep until until_ms, until a deadline, or until a descriptor is ready. From shrink_ms on, release memory before a
 * long sleep, since a lock can be waited for or held for hours; but at most once in HOLD_SHRINK_MS.
 */
#define HOLD_SHRINK_MS 1000
void hold_events_sleep(struct hold_events *events, int64_t until_ms);
/* Read the timer, so that it does not wake us again for the same time. */
void hold_events_read_timer(struct hold_events *events, int64_t now_ms);
void hold_events_close(const struct hold_events *events);

/*
 * Run the renewer, in the child of a fork that began at forked_ms. front_fd: pidfd of the front. unread_fd: the front's end of
 * the dialog, from which the renewer reads what the front had not read when it was killed. Does not return.
 */
_Noreturn void renewer_run(const struct hold_args *args, struct job *job, int64_t forked_ms,
			   int front_fd, int dialog_fd, int unread_fd);

/* Find the renewer in /proc. Returns 0, or the exit code after one line by message_error. */
int renewer_find(pid_t renewer, struct proc *out);

/*
 * Hold the lock and release it in the front, after the death of a renewer that had started the command. On return the
 * lease has the exit code and signal. hung: pid of a renewer that got SIGKILL and hangs in the kernel, with the command
 * below it; 0: none. While it hangs, send no request, and terminate the command before the lease ends.
 */
void renewer_take_over(const struct hold_args *args, struct job *job, struct hold_events *events,
		       pid_t hung);

#endif
