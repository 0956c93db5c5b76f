/*
 * Holds a lock: acquires it, starts the command, renews the lease, follows children, signals and deadlines, terminates
 * the command when it has to, and releases, all over one connection. The renewer does so, a process that rlock forks;
 * rlock itself does the last part when the renewer is dead.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <stdbool.h>

#include "hold/job.h"
#include "lib/rlock.h"

struct hold_file;

/* What is held, and for what: made in rlock before it forks its renewer, and the same in both. */
struct hold_args {
	char *path; /* of the command, looked up before; NULL: the lock is for a process */
	struct rlock_conn *conn; /* nothing is sent over it before the renewer is forked */
	struct rlock_hold *
		hold; /* with all that its requests send; each process has a copy: the renewer acquires its own */
	struct lease *lease;
	struct hold_file *hold_file; /* of a lock for a process; else NULL */
	int target_fd;               /* a descriptor of that process; -1 with a command */
	/*
	 * Acquires the hold, within the wait of the lease. Called in the renewer. Where the result
	 * is another than RLOCK_OK it says so to the user, and sets the lease's exit_code; after RLOCK_CANCELLED its
	 * exit_signal is what ended the wait, 0: the end of a process.
	 */
	enum rlock_status (*acquire)(void *ctx);
	void *ctx;
};

/* What either process does at a time of its own. */
enum hold_due {
	DUE_RAISE, /* its priority rises */
	DUE_STOP,  /* to look whether the command is still stopped */
	/* In rlock. */
	DUE_REACTION,  /* the renewer has to have answered */
	DUE_END,       /* the renewer has to have ended */
	DUE_REPLACE,   /* a renewer that is still stopped is replaced */
	DUE_ITERATION, /* the renewer has to have taken a turn */
	DUE_DEATH,     /* a renewer that got SIGKILL has to have ended */
	DUE_FORK,      /* another renewer is forked */
	/* In the renewer. */
	DUE_RENEWAL,      /* the lease is renewed */
	DUE_FINISH_START, /* what has waited for the command's start is done */
	DUE_WAKE_FRONT,   /* rlock is told what could not be sent */
	DUE_TOUCH,        /* the hold file is touched */
	DUE_DESCRIPTOR,   /* to look whether the process has closed the descriptor */
	DUE_ABANDON,      /* a request that is under way is abandoned, for the release */
	HOLD_DUES,
};

/* What wakes either process: a timer and its signals, and what is added. */
struct hold_events {
	int fd, timer_fd;
	int64_t timer_ms,
		set_ms; /* what the timer is set to (INT64_MAX: nothing), and since when */
	int64_t due_ms[HOLD_DUES]; /* INT64_MAX: never */
	int64_t shrink_ms;         /* from when on we shrink, as hold_events_sleep says */
};
/* False with errno. Nothing is due. */
bool hold_events_open(struct hold_events *events);
/* Whether it is time for that; it is due once. */
bool hold_events_take_due(struct hold_events *events, enum hold_due due);
/*
 * Sleep until that time, or until something is due, or something else wakes us. From shrink_ms on, HOLD_SHRINK_MS after
 * the lock was waited for or held, it may be held for hours: we shrink, once in HOLD_SHRINK_MS.
 */
#define HOLD_SHRINK_MS 1000
void hold_events_sleep(struct hold_events *events, int64_t until_ms);
/* Read the timer, which is set to nothing if it was due by now. */
void hold_events_read_timer(struct hold_events *events, int64_t now_ms);
void hold_events_close(const struct hold_events *events);

/*
 * In the child of the fork, which began at forked_ms. front_fd is a descriptor of rlock, unread_fd rlock's end of the dialog, for what rlock has not
 * read when it is killed. Does not return.
 */
_Noreturn void renewer_run(const struct hold_args *args, struct job *job, int64_t forked_ms,
			   int front_fd, int dialog_fd, int unread_fd);

/* What /proc shows of the renewer. 0, or the exit code after one line by message_error. */
int renewer_find(pid_t renewer, struct proc *out);

/*
 * In rlock, once the renewer is dead and there is a command: hold on, and release. The exit code and signal are in the
 * lease then. hung: a renewer that has had SIGKILL, and hangs in the kernel all the same, with the command below it; 0:
 * none. While it hangs no request is sent, and the command is terminated before the lease ends.
 */
void renewer_take_over(const struct hold_args *args, struct job *job, struct hold_events *events,
		       pid_t hung);

#endif
