/*
 * The log for operators: a line for each event of a lock, with the fields that rlock-output(5) lists. The callers say
 * what happened; without --log each call returns at once.
 */
#ifndef EVENT_LOG_H
#define EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"

enum event_kind {
	EVENT_WAITED, /* a wait is over; what came of it follows */
	EVENT_ACQUIRED,
	EVENT_BUSY, /* not acquired: another owner holds the lock, and there was to be no wait */
	EVENT_TIMED_OUT, /* not acquired: the wait is over */
	EVENT_CANCELLED, /* not acquired: a signal, or the process that the lock was for has ended */
	EVENT_FAILED,    /* not acquired: no server, no right, ... */
	EVENT_RELEASED,
	EVENT_EXPIRES, /* not released: the lock is free when its lease has ended */
	EVENT_LOST,
	EVENT_BROKEN,         /* by force; the owner is the one that it had */
	EVENT_STOP_REQUESTED, /* to stop: the same; the reason names the caller */
};

/* What all lines of a hold have; NULL or 0 is left out. */
struct event_hold {
	const struct rlock_name *names; /* each has lines of its own */
	size_t name_count;
	enum rlock_kind kind; /* RLOCK_ANY: not known */
	const char *server;   /* of struct opts: without user and password */
	const char *note;
	const char *owner; /* of all names, unless hold has the owners */
	const struct rlock_hold *hold;
	pid_t pid;
	int64_t acquired_ms;
};

/* What one event has besides; NULL or 0 is left out. */
struct event {
	enum event_kind kind;
	int64_t waited_ms; /* from EVENT_WAITED to EVENT_FAILED */
	int64_t holder_held_ms; /* EVENT_BUSY, EVENT_TIMED_OUT: for how long the holder has held it; -1: it is not known */
	int64_t kept_ms; /* EVENT_RELEASED: for how long --at-least keeps the lock */
	bool has_ended;  /* a command, with this status, or by this signal */
	int status, signal;
	const char *reason; /* one line, safe for a terminal */
};

/* A line is never longer, its newline included: a FIFO takes so much in one piece. */
#define LOG_LINE_MAX 4096

/*
 * Log to target: "syslog", "stderr" or a file, which is opened to see that it can be: if not, that is a warning, and the log
 * goes to syslog. where is how the user gave it. 0, or the exit code after one line by message_error.
 */
int event_log_setup(const char *where, const char *target, bool is_json);

/* The events from now on are about this hold. Only the struct is copied. */
void event_log_set_hold(const struct event_hold *hold);
/* It was acquired. */
void event_log_set_acquired(const struct rlock_hold *hold, int64_t acquired_ms);

void event_log(const struct event *event);

/*
 * Write a line, in one piece: one that cannot be written now is dropped, for no lock is held up for its log. The first
 * one is reported by message_warning. priority is one of syslog(3).
 */
void event_log_write(const char *line, size_t len, int priority);
/* Have another process write the lines: rlock those of its renewer, which has none of the caller's streams. */
typedef void (*event_log_writer)(const char *line, size_t len, int priority);
void event_log_set_writer(event_log_writer writer);

/* The event of a release that ended with that status. */
enum event_kind event_kind_of_release(enum rlock_status status);

#endif
