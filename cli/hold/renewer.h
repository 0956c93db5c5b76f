/*
 * Holds a lock: acquires it, starts the command, renews the lease, follows children, signals and deadlines, terminates
 * the command when it has to, and releases, all over one connection. The renewer does so, a process that rlock forks;
 * rlock itself does the last part when the renewer is dead.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <signal.h>
#include <stdbool.h>

#include "hold/hold.h"
#include "hold/job.h"

/* What wakes either process: a timer and its signals, and what is added. */
struct hold_events {
	int fd, timer_fd;
};
/* False with errno. */
bool hold_events_open(struct hold_events *events, int signals_fd);
void hold_events_close(const struct hold_events *events);

/*
 * In the child of the fork, which began at forked_ms. front_fd is a descriptor of rlock, unread_fd rlock's end of the dialog, for what rlock has not
 * read when it is killed. Does not return.
 */
_Noreturn void renewer_run(const struct hold_args *args, struct job *job, int64_t forked_ms,
			   int front_fd, int dialog_fd, int unread_fd);

/* What /proc shows of the renewer. 0, or the exit code after one line by message_error. */
int renewer_look_at(pid_t renewer, struct proc *out);

/*
 * In rlock, once the renewer is dead and there is a command: hold on, and release. The exit code and signal are in the
 * lease then. pending: signals that the renewer has not taken.
 */
void renewer_take_over(const struct hold_args *args, struct job *job,
		       const struct hold_events *events, const sigset_t *pending);

#endif
