/*
 * The log for operators (--log): a line for each event of a lock, with the fields of rlock-output(5). Without --log each call
 * returns immediately.
 */
#ifndef EVENT_LOG_H
#define EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"

enum event_kind {
	/* The wait is over. The next event tells how it ended. */
	EVENT_WAITED,
	EVENT_ACQUIRED,
	/* Not acquired: another owner holds the lock, and --no-wait was given. */
	EVENT_BUSY,
	/* Not acquired: --wait has passed. */
	EVENT_TIMED_OUT,
	/* Not acquired: a signal came, or the process that the lock was for has ended. */
	EVENT_CANCELLED,
	/* Not acquired: an error, such as an unreachable server or a missing right. */
	EVENT_FAILED,
	EVENT_RELEASED,
	/* The release failed. The lock expires with its lease. */
	EVENT_EXPIRES,
	EVENT_LOST,
	/* The lock was broken by `unlock --force`. The owner is that of the broken lock. */
	EVENT_BROKEN,
	/* `rlock stop` has asked the holder to stop. The owner is the holder, and the reason names the caller. */
	EVENT_STOP_REQUESTED,
};

/* Fields that all lines of a hold have. A field that is NULL or 0 is left out. */
struct event_hold {
	/* Each name gets a line of its own for each event. */
	const struct rlock_name *names;
	size_t name_count;
	/* RLOCK_ANY: not known */
	enum rlock_kind kind;
	/* the server without user and password (struct opts) */
	const char *server;
	const char *note;
	/* the owner of all names; not used if hold is not NULL */
	const char *owner;
	const struct rlock_hold *hold;
	pid_t pid;
	int64_t acquired_ms;
};

/* Further fields of one event. A field that is NULL or 0 is left out. */
struct event {
	enum event_kind kind;
	/* for EVENT_WAITED to EVENT_FAILED: how long the call has waited */
	int64_t waited_ms;
	/* EVENT_BUSY, EVENT_TIMED_OUT: how long the holder has held the lock; -1: not known */
	int64_t holder_held_ms;
	/* EVENT_RELEASED: how long --at-least still keeps the lock */
	int64_t kept_ms;
	/* The command has ended, with this exit status, or by this signal. */
	bool has_ended;
	int status, signal;
	/* the reason, in one line that is safe for a terminal */
	const char *reason;
};

/* Most bytes of a line, with its newline. A FIFO takes this many bytes in one piece (PIPE_BUF). */
#define LOG_LINE_MAX 4096

/*
 * Log to target: "syslog", "stderr" or a file. If the file cannot be opened, print a warning, and log to syslog,
 * if a log daemon listens, because a log must not keep a job from running. where: the option or line by which the user gave target. Returns 0,
 * or the exit code after one line by message_error.
 */
int event_log_setup(const char *where, const char *target, bool is_json);

/* Returns why the lines of a log to target would be lost. NULL: this is not known of a file, and cannot happen to stderr. */
const char *event_log_check(const char *target);

/* Set the hold that later events are about. Only the struct is copied, so what it points to must stay valid. */
void event_log_set_hold(const struct event_hold *hold);
/* Add the fields that are known only when the lock is acquired. */
void event_log_set_acquired(const struct rlock_hold *hold, int64_t acquired_ms);

void event_log(const struct event *event);

/*
 * Write a line in one piece. Drop a line that cannot be written now, since the log must not delay a lock. Only the
 * first such line is reported, by message_warning. priority: as for syslog(3).
 */
void event_log_write(const char *line, size_t len, int priority);
/*
 * Let writer write each line; NULL: this process writes it. The renewer has no stream of the caller, so its lines are
 * sent to the front.
 */
typedef void (*event_log_writer)(const char *line, size_t len, int priority);
void event_log_set_writer(event_log_writer writer);

/* The event for a status of rlock_release. */
enum event_kind event_kind_of_release(enum rlock_status status);

#endif
