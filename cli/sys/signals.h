/*
 * The signals of rlock and its renewer: which are held back and read from a descriptor, which are left alone, and the
 * state they were found in, which the command gets back.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "sys/os.h"

/* First of all: as they are found now, for signals_restore. */
void signals_find(void);

/*
 * Hold back what is watched: at first only what ends a wait (SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM) can be read.
 * SIGPIPE is ignored from here on. 0, or the exit code after one line by message_error.
 */
int signals_setup(void);

/* A descriptor that is readable when there is a signal; -1: they are not set up. */
int signals_fd(void);
/* The next one without waiting; false: there is none. */
bool signals_read(struct os_signal *out);

/* From now on all of them can be read, and SIGCHLD. False with errno. */
bool signals_watch_all(void);

/* While nothing runs yet: the signal that ends a wait if there was one, 0 if not. Others are dropped. */
int signals_pending_end(void);

/* Whether that signal ends a wait. */
bool signals_is_ending(int signal);
/* Whether a command that gets it is asked to end, with all that it has started. */
bool signals_asks_to_end(int signal);

/*
 * The number of a signal: TERM, SIGTERM, RTMIN+3 or 15. False for one by which no process ends: it would only stop a
 * process.
 */
bool signals_parse(const char *text, int *out);
#define SIGNAL_NAME_MAX 16
/* Its name, or its number. Returns out. */
char *signals_name(int signal, char out[SIGNAL_NAME_MAX]);

/* In a child, before exec: everything as it was found. Async-signal-safe. */
void signals_restore(void);

/* End by that signal, without a core of our own; where that can't be (pid 1), the code to exit
 * with. */
int signals_die_by(int signal);

#endif
