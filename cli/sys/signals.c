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

static int fd = -1;
static sigset_t watched;    /* those of ours that were not ignored */
static sigset_t found_mask; /* as they were when we started */
static struct sigaction found_child, found_pipe;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_unless_ignored(sigset_t *set, const int *signals, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sigaction found;

		if (sigaction(signals[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
			(void)sigaddset(set, signals[i]);
	}
}

void signals_find(void)
{
	(void)sigprocmask(SIG_SETMASK, NULL, &found_mask);
	(void)sigaction(SIGPIPE, NULL, &found_pipe);
	(void)sigaction(SIGCHLD, NULL, &found_child);
}

int signals_setup(void)
{
	struct sigaction act = { .sa_handler = SIG_IGN };
	sigset_t readable;

	sigemptyset(&watched);
	add_unless_ignored(&watched, ending, COUNT(ending));
	readable = watched;
	add_unless_ignored(&watched, passed_on, COUNT(passed_on));
	(void)sigaddset(&watched, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &watched, NULL);
	(void)sigaction(SIGPIPE, &act, NULL);
	/* Ignored, it would make the kernel reap the command behind our back. */
	act.sa_handler = SIG_DFL;
	(void)sigaction(SIGCHLD, &act, NULL);
	fd = os_signals_open(-1, &readable);
	if (fd >= 0)
		return 0;
	message_error_of_lock("cannot read signals: %s", strerror(errno));
	return EXIT_SYSTEM;
}

int signals_fd(void)
{
	return fd;
}

bool signals_read(struct os_signal *out)
{
	return os_signals_read(fd, out);
}

bool signals_watch_all(void)
{
	return os_signals_open(fd, &watched) >= 0;
}

bool signals_is_ending(int signal)
{
	for (size_t i = 0; i < COUNT(ending); i++)
		if (signal == ending[i])
			return true;
	return false;
}

int signals_pending_end(void)
{
	struct os_signal info;
	int end = 0;

	while (signals_read(&info))
		if (signals_is_ending(info.number))
			end = info.number;
	return end;
}

void signals_restore(void)
{
	(void)sigaction(SIGCHLD, &found_child, NULL);
	(void)sigaction(SIGPIPE, &found_pipe, NULL);
	(void)sigprocmask(SIG_SETMASK, &found_mask, NULL);
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
