/*
 * The signals of rlock and its renewer: which are held back and read from a descriptor, which are left alone, and the
 * state they were found in, which the command gets back.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "sys/os.h"

struct signals {
	int fd;              /* readable when there is one; -1: not set up */
	sigset_t found_mask; /* as they were when we started */
	struct sigaction found_child, found_pipe;
	sigset_t watched; /* those of ours that were not ignored */
};

/* As they are found now, for signals_restore. */
void signals_find(struct signals *signals);

/*
 * Hold back what is watched: at first only what ends a wait (SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM) can be
 * read from fd. SIGPIPE is ignored from here on. 0, or the exit code after one line by message_error.
 */
int signals_setup(struct signals *signals);

/* From now on fd has all of them, and SIGCHLD. False with errno. */
bool signals_watch_all(struct signals *signals);

/* While nothing runs yet: the signal that ends a wait if there was one, 0 if not. Others are dropped. */
int signals_pending_end(const struct signals *signals);

/* Whether that signal ends a wait. */
bool signals_is_ending(int signal);

/* In a child, before exec: everything as it was found. Async-signal-safe. */
void signals_restore(const struct signals *signals);

/* End by that signal, without a core of our own; where that can't be (pid 1), the code to exit
 * with. */
int signals_die_by(int signal);

#endif
