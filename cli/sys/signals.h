/*
 * Signals of the front and the renewer: which signals are blocked, and read from a descriptor. The command gets back
 * the state of the signals that rlock was started with.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "sys/os.h"

/* Store the state of the signals, for signals_restore. Call this in main before other functions change them. */
void signals_find(void);

/*
 * Block the signals that rlock reads. At first only the signals that end a wait can be read: SIGTERM, SIGINT, SIGHUP,
 * SIGQUIT, SIGALRM. Ignore SIGPIPE from here on. Returns 0, or the exit code after one line by message_error.
 */
int signals_setup(void);

/* The signalfd, which is readable when a signal is pending; -1: signals_setup was not called. */
int signals_fd(void);
/* Read the next signal without waiting. False: none is pending. */
bool signals_read(struct os_signal *out);
/* Whether signals_read has returned this signal in this process, or in a parent before the fork. */
bool signals_has_read(int signal);

/* From now on signals_read returns all signals that signals_setup has blocked, SIGCHLD included. False with errno. */
bool signals_watch_all(void);

/*
 * Read all pending signals, before a command runs. Returns the last signal that ends a wait; 0: there was none. The
 * others are dropped.
 */
int signals_pending_end(void);

/* Whether the signal ends a wait. */
bool signals_is_ending(int signal);
/* Whether the signal asks a command to end, with all processes that it has started: SIGTERM, SIGINT or SIGQUIT. */
bool signals_asks_to_end(int signal);
/*
 * Whether the command has got the signal from the terminal, which signals our whole process group: the command would get it twice if it
 * were passed on. False if the command has a process group of its own.
 */
bool signals_reached(const struct os_signal *signal, pid_t command);
/* Whether SIGCONT must follow the signal when it is passed on, or a stopped command would not end. */
bool signals_continues(const struct os_signal *signal);

/* Parse a signal: TERM, SIGTERM, RTMIN+3 or 15. False also for a signal that ends no process, such as STOP or CHLD. */
bool signals_parse(const char *text, int *out);
#define SIGNAL_NAME_MAX 16
/* Write the name of a signal, or its number if it has no name here. Returns out. */
char *signals_name(int signal, char out[SIGNAL_NAME_MAX]);

/*
 * Restore the state of the signals that rlock was started with. Call this in a child, before its exec.
 * Async-signal-safe.
 */
void signals_restore(void);

/*
 * Let the signal end this process, without a core dump of ours. Returns an exit code if the signal cannot end us, as
 * with pid 1.
 */
int signals_die_by(int signal);

#endif
