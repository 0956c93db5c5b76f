/*
 * Starts the command. It leaves the command's end to keeper.c.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "hold/command.h"
#include "hold/command_look_up.h"
#include "sys/proc.h"

static const int stop_signals[] = { SIGTSTP, SIGTTIN, SIGTTOU };

#define STOP_SIGNAL_COUNT (sizeof(stop_signals) / sizeof(stop_signals[0]))

static volatile sig_atomic_t recorded_stop;

static void record_stop(int signal)
{
	recorded_stop = signal;
}

/*
 * Runs in the child. If a signal stopped the child before its exec, the parent would hang in vfork, able neither to run
 * nor to stop, and the shell would show no prompt. So a stop is only recorded here. Exec restores the default.
 */
static void record_stops(void)
{
	const struct sigaction record = { .sa_handler = record_stop };
	struct sigaction found;

	for (size_t i = 0; i < STOP_SIGNAL_COUNT; i++)
		if (sigaction(stop_signals[i], NULL, &found) == 0 && found.sa_handler == SIG_DFL)
			(void)sigaction(stop_signals[i], &record, NULL);
}

static void block_stops(sigset_t *found_mask)
{
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < STOP_SIGNAL_COUNT; i++)
		(void)sigaddset(&held, stop_signals[i]);
	recorded_stop = 0;
	(void)sigprocmask(SIG_BLOCK, &held, found_mask);
}

/* The command gets the signal first. If it is pending for us as well, we stop when sigprocmask unblocks it. */
static void pass_on_stop(const sigset_t *found_mask, pid_t command)
{
	if (recorded_stop != 0 && command > 0)
		(void)kill(command, recorded_stop);
	(void)sigprocmask(SIG_SETMASK, found_mask, NULL);
}

/* In the child, which was forked after forked_ms. */
static uint64_t own_start(int64_t forked_ms)
{
	uint64_t start = proc_start_between(forked_ms, rlock_now_ms());
	struct proc self;

	return start == 0 && proc_read(getpid(), &self) ? self.start : start;
}

/*
 * In the child, whose memory is the parent's until exec: it makes async-signal-safe calls only, and changes nothing
 * that the parent relies on.
 */
static void become_command(const char *path, char *const command[], char *const environment[],
			   const struct signals *signals, struct lease_state *lease_state,
			   int64_t forked_ms, volatile int *error)
{
	pid_t not_started = JOB_NOT_STARTED;

	/* Set before the pid: with a pid alone another process that has it later would be taken for the command. */
	lease_state->job_start = own_start(forked_ms);
	/* Set before the exec: if the keeper is killed at this instant, the renewer knows the command. If the renewer has
	 * found the keeper dead before, nothing may run any more. */
	if (!atomic_compare_exchange_strong(&lease_state->job_pid, &not_started, getpid())) {
		*error = ECANCELED;
		_exit(EXIT_FAULT);
	}
	/* We may have been stopped until the lock was lost. If it is lost from here on, the renewer, which knows the
	 * command now, terminates it. */
	lease_state_check_deadlines(lease_state, rlock_now_ms());
	if (lease_state->reason != TERMINATE_NONE)
		_exit(EXIT_LOST);
	if (lease_state->kill_child)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	record_stops();
	signals_restore(signals);
	/* Unlike execve it runs a script without an interpreter by the shell. */
	(void)execvpe(path, command, environment);
	*error = errno;
	_exit(EXIT_NOT_FOUND);
}

int command_start(const char *path, char *const command[], char *const environment[],
		  const struct signals *signals, struct lease_state *lease_state, pid_t *pid_out)
{
	volatile int error = 0;
	sigset_t found_mask;
	int64_t forked_ms;
	pid_t pid;

	block_stops(&found_mask);
	forked_ms = rlock_now_ms();
	/* vfork, since copying page tables for a fork takes half the time of a short command. */
	pid = vfork();
	/* All that become_command calls before exec is async-signal-safe. */
	if (pid == 0) /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
		become_command(path, command, environment, signals, lease_state, forked_ms, &error);
	if (pid < 0)
		error = errno;
	pass_on_stop(&found_mask, pid);
	if (pid < 0) {
		message_error("cannot start %s: %s", command[0], strerror(error));
		return EXIT_SYSTEM;
	}
	*pid_out = pid;
	if (error == 0)
		return 0;
	/* It existed when it was looked up. */
	return command_look_up_failed(
		command[0], error == ENOENT ? "the file, its interpreter or its loader is not there"
					    : strerror(error));
}
