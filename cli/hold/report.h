/*
 * What the user is told while his command runs: why it is stopped, and what that meets.
 */
#ifndef REPORT_H
#define REPORT_H

#include "hold/watch.h"
#include "options/opts.h"
#include "sys/procs.h"

/* The lock is lost: when, why, and what that does to the command. */
void report_lost(const struct opts *opts, const struct watch *watch);
/* The command is being stopped for that reason; nothing is said of those that speak for themselves. */
void report_stop(const struct opts *opts, enum stop_reason reason);
/* A process that may not be signalled. */
void report_refused(const struct opts *opts, const struct proc *proc);
/* A process, and so many more, of which nobody can tell whether they are the command's. */
void report_unread(const struct opts *opts, const struct proc *proc, size_t more);
/* A command that a signal may not be passed on to. */
void report_unheard(const struct opts *opts, const struct proc *command, int signal);

#endif
