/*
 * Passes on the signals that were sent to the keeper. Those that ask to end are also recorded in the lease state, for
 * the renewer. It leaves reading signals, and terminating the leftovers of a command that is to end, to keeper.c.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "hold/job_processes.h"
#include "hold/pass_on.h"
#include "sys/proc.h"
#include "sys/proc_tree.h"

/* The command runs as another user by now. This is reported once, since the lock is kept until the command ends. */
static void report_denied(const struct hold_state *state, struct report *report, int signal)
{
	struct proc command;

	if (report->has_signal_denied || !proc_read(state->command, &command) ||
	    proc_is_gone(&command))
		return;
	report_signal_denied(report, &command, signal);
}

static bool asks_to_end(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
}

/* It is recorded before the signal is sent: the renewer has to know it even if we are killed right after that. */
static bool signal_command(const struct hold_state *state, struct report *report, int signal)
{
	bool was_told_to_end = state->lease_state->was_told_to_end;

	if (asks_to_end(signal))
		state->lease_state->was_told_to_end = true;
	if (kill(state->command, signal) == 0)
		return true;
	state->lease_state->was_told_to_end = was_told_to_end;
	if (errno == EPERM)
		report_denied(state, report, signal);
	return false;
}

/* Leftovers that are to end are terminated in this turn of the keeper's loop. */
static void signal_leftovers(const struct hold_state *state, pid_t renewer, int signal)
{
	struct proc_report processes;
	struct proc_filter filter;

	if (asks_to_end(signal)) {
		state->lease_state->was_told_to_end = true;
		return;
	}
	filter = job_processes(state->lease_state, 0, getpid(), renewer);
	(void)proc_tree_signal(&filter, signal, NULL, &processes);
}

bool pass_on_has_reached_command(const struct hold_state *state, const struct os_signal *info)
{
	return state->command != 0 && info->is_from_kernel && info->number != SIGALRM &&
	       (info->number != SIGHUP || getsid(0) != getpid());
}

void pass_on_signal(const struct hold_state *state, struct report *report, pid_t renewer,
		    const struct os_signal *info)
{
	int signal = info->number;
	/* With the SIGHUP of a terminal the kernel sends SIGCONT, too. */
	bool continues = signal == SIGTERM || (signal == SIGHUP && info->is_from_kernel);

	if (state->command == 0 && state->lease_state->wait_all)
		signal_leftovers(state, renewer, signal);
	else if (state->command != 0 && signal_command(state, report, signal) && continues)
		(void)kill(state->command, SIGCONT);
}
