/*
 * Block signals and read them from a signalfd, without handlers. A signal that was ignored when rlock was started, for
 * example by nohup, stays ignored: it is neither blocked nor read. The callers decide what a signal means.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/message.h"
#include "base/units.h"
#include "sys/os.h"
#include "sys/signals.h"

static const int ending[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM };
static const int passed_on[] = { SIGUSR1, SIGUSR2, SIGWINCH };

static int fd = -1;
/* the signals that we read: ours, without those that were ignored when rlock was started */
static sigset_t watched;
/* the mask that rlock was started with */
static sigset_t found_mask;
static struct sigaction found_child, found_pipe, found_file_size;
/* the signals that signals_read has returned, a bit for each */
static uint64_t was_read;

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
	(void)sigaction(SIGXFSZ, NULL, &found_file_size);
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
	/*
	 * Ignore SIGXFSZ: the kernel sends it at a message to a file that may not grow (ulimit -f). It would end rlock, for
	 * example at the message that the lock is lost.
	 */
	(void)sigaction(SIGXFSZ, &act, NULL);
	/* Do not ignore SIGCHLD, because the kernel would then reap the command, and we could not read its status. */
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
	bool is_read = os_signals_read(fd, out);

	if (is_read)
		was_read |= UINT64_C(1) << (out->number - 1);
	return is_read;
}

bool signals_has_read(int signal)
{
	return (was_read & UINT64_C(1) << (signal - 1)) != 0;
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

bool signals_asks_to_end(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
}

bool signals_reached(const struct os_signal *signal, pid_t command)
{
	/* When a session ends, the kernel may send SIGHUP to its first process only. */
	return signal->is_from_kernel && signal->number != SIGALRM &&
	       (signal->number != SIGHUP || getsid(0) != getpid()) && getpgid(command) == getpgrp();
}

bool signals_continues(const struct os_signal *signal)
{
	return signal->number == SIGTERM || (signal->number == SIGHUP && signal->is_from_kernel);
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

/* ---- names ---- */

#define ONE(name)                                                                                  \
	{                                                                                          \
#name, SIG##name                                                                   \
	}

/*
 * Signals of POSIX that have a name here. A real-time signal is named by its distance from SIGRTMIN, and any other
 * signal by its number.
 */
static const struct {
	const char *name;
	int number;
} names[] = { ONE(HUP),  ONE(INT),   ONE(QUIT), ONE(ILL),  ONE(TRAP), ONE(ABRT), ONE(BUS),
	      ONE(FPE),  ONE(KILL),  ONE(USR1), ONE(SEGV), ONE(USR2), ONE(PIPE), ONE(ALRM),
	      ONE(TERM), ONE(CHLD),  ONE(CONT), ONE(URG),  ONE(XCPU), ONE(XFSZ), ONE(VTALRM),
	      ONE(PROF), ONE(WINCH), ONE(IO),   ONE(SYS) };

/* Parse a real-time signal, such as RTMIN+3 or RTMAX-1. -1: it is no real-time signal. */
static int real_time_parse(const char *text)
{
	bool is_first = strncasecmp(text, "RTMIN", 5) == 0;
	int64_t distance = 0;

	if (!is_first && strncasecmp(text, "RTMAX", 5) != 0)
		return -1;
	text += 5;
	if (*text != '\0' &&
	    (*text != (is_first ? '+' : '-') || !number_parse(text + 1, &distance)))
		return -1;
	if (distance < 0 || distance > SIGRTMAX - SIGRTMIN)
		return -1;
	return is_first ? SIGRTMIN + (int)distance : SIGRTMAX - (int)distance;
}

/*
 * Whether a signal ends no process. SIGWINCH is none of these: most programs ignore it, but it ends Apache's httpd
 * gracefully.
 */
static bool ends_no_process(int signal)
{
	static const int signals[] = {
		SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGURG
	};

	for (size_t i = 0; i < COUNT(signals); i++)
		if (signal == signals[i])
			return true;
	return false;
}

bool signals_parse(const char *text, int *out)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	int64_t number = -1;

	for (size_t i = 0; i < COUNT(names) && number < 0; i++)
		if (strcasecmp(name, names[i].name) == 0)
			number = names[i].number;
	if (number < 0)
		number = real_time_parse(name);
	if (number < 0 && (text[0] < '0' || text[0] > '9' || !number_parse(text, &number)))
		return false;
	/* Refuse the signals before the first real-time one, which the C library keeps for itself. */
	if (number < 1 || number > SIGRTMAX || (number > 31 && number < SIGRTMIN) ||
	    ends_no_process((int)number))
		return false;
	*out = (int)number;
	return true;
}

char *signals_name(int signal, char out[SIGNAL_NAME_MAX])
{
	for (size_t i = 0; i < COUNT(names); i++) {
		if (signal == names[i].number) {
			(void)snprintf(out, SIGNAL_NAME_MAX, "SIG%s", names[i].name);
			return out;
		}
	}
	if (signal >= SIGRTMIN)
		(void)snprintf(out, SIGNAL_NAME_MAX, "SIGRTMIN+%d", signal - SIGRTMIN);
	else
		(void)snprintf(out, SIGNAL_NAME_MAX, "%d", signal);
	return out;
}

void signals_restore(void)
{
	(void)sigaction(SIGCHLD, &found_child, NULL);
	(void)sigaction(SIGPIPE, &found_pipe, NULL);
	(void)sigaction(SIGXFSZ, &found_file_size, NULL);
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
