/*
 * Holds signals back and reads them from a descriptor, without handlers. A signal that was ignored when we were
 * started, as under nohup, stays ignored: it is neither held back nor read. What a signal means is for the callers.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/message.h"
#include "sys/os.h"
#include "sys/signals.h"

static const int ending[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM };
static const int passed_on[] = { SIGUSR1, SIGUSR2, SIGWINCH };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_unless_ignored(sigset_t *set, const int *signals, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sigaction found;

		if (sigaction(signals[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
			(void)sigaddset(set, signals[i]);
	}
}

void signals_find(struct signals *signals)
{
	signals->fd = -1;
	(void)sigprocmask(SIG_SETMASK, NULL, &signals->found_mask);
	(void)sigaction(SIGPIPE, NULL, &signals->found_pipe);
	(void)sigaction(SIGCHLD, NULL, &signals->found_child);
}

int signals_setup(struct signals *signals)
{
	struct sigaction act = { .sa_handler = SIG_IGN };
	sigset_t readable;

	sigemptyset(&signals->watched);
	add_unless_ignored(&signals->watched, ending, COUNT(ending));
	readable = signals->watched;
	add_unless_ignored(&signals->watched, passed_on, COUNT(passed_on));
	(void)sigaddset(&signals->watched, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals->watched, &signals->found_mask);
	(void)sigaction(SIGPIPE, &act, &signals->found_pipe);
	/* Ignored, it would make the kernel reap the command behind our back. */
	act.sa_handler = SIG_DFL;
	(void)sigaction(SIGCHLD, &act, &signals->found_child);
	signals->fd = os_signals_open(-1, &readable);
	if (signals->fd >= 0)
		return 0;
	message_error("cannot read signals: %s", strerror(errno));
	return EXIT_SYSTEM;
}

bool signals_watch_all(struct signals *signals)
{
	return os_signals_open(signals->fd, &signals->watched) >= 0;
}

bool signals_is_ending(int signal)
{
	for (size_t i = 0; i < COUNT(ending); i++)
		if (signal == ending[i])
			return true;
	return false;
}

int signals_pending_end(const struct signals *signals)
{
	struct os_signal info;
	int end = 0;

	while (os_signals_read(signals->fd, &info))
		if (signals_is_ending(info.number))
			end = info.number;
	return end;
}

void signals_restore(const struct signals *signals)
{
	(void)sigaction(SIGCHLD, &signals->found_child, NULL);
	(void)sigaction(SIGPIPE, &signals->found_pipe, NULL);
	(void)sigprocmask(SIG_SETMASK, &signals->found_mask, NULL);
}

int signals_die_by(int signal)
{
	const struct rlimit no_core = { 0, 0 };
	struct sigaction act = { .sa_handler = SIG_DFL };
	sigset_t only;

	os_hide_memory();
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)sigaction(signal, &act, NULL);
	sigemptyset(&only);
	(void)sigaddset(&only, signal);
	(void)kill(getpid(), signal);
	(void)sigprocmask(SIG_UNBLOCK, &only, NULL);
	return 128 + signal;
}
