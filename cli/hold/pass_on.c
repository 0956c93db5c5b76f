/*
 * Passes on signals, and writes down on the page that the command was told to end. Reading them, and stopping what is
 * left of a command that was told to end, is keeper.c's business.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "hold/job_processes.h"
#include "hold/pass_on.h"
#include "sys/proc.h"
#include "sys/proc_tree.h"

/* The command is another user's by now: told once, as the lock is kept until it ends. */
static void say_unheard(const struct job_state *state, struct report *report, int signal)
{
	struct proc command;

	if (report->has_said_unheard || !proc_read(state->command, &command) ||
	    proc_is_gone(&command))
		return;
	report_unheard(report, &command, signal);
}

static bool asks_to_end(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
}

/* Should we be killed behind it, the renewer has to know that the command was told. */
static bool tell(const struct job_state *state, struct report *report, int signal)
{
	bool was_told_to_end = state->lease_state->was_told_to_end;

	if (asks_to_end(signal))
		state->lease_state->was_told_to_end = true;
	if (kill(state->command, signal) == 0)
		return true;
	state->lease_state->was_told_to_end = was_told_to_end;
	if (errno == EPERM)
		say_unheard(state, report, signal);
	return false;
}

/* What the command left running is waited for: who is to end is stopped whole, at the next turn of the loop. */
static void tell_leftovers(const struct job_state *state, pid_t renewer, int signal)
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

bool pass_on_has_reached_command(const struct job_state *state, const struct signalfd_siginfo *info)
{
	return !state->has_ended && info->ssi_code == SI_KERNEL &&
	       (info->ssi_signo != SIGHUP || getsid(0) != getpid());
}

void pass_on_signal(const struct job_state *state, struct report *report, pid_t renewer,
		    const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	/* With its hang-up the kernel sends CONT, too. */
	bool wakes = signal == SIGTERM || (signal == SIGHUP && info->ssi_code == SI_KERNEL);

	if (state->has_ended && state->lease_state->wait_all)
		tell_leftovers(state, renewer, signal);
	else if (!state->has_ended && tell(state, report, signal) && wakes)
		(void)kill(state->command, SIGCONT);
}
