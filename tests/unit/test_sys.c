/*
 * os.c: the process title, changes of children, and that a process that got SIGKILL gets processor time before us with all of its threads.
 * proc.c: start times, and that a process is opened by pid and start time. shell.c: children of a killed helper are killed. signals.c:
 * names of signals, and which are refused.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/shell.h"
#include "sys/signals.h"

#include "unit.h"

/* ---- the title ---- */

#define ROOM "rlock\0run\0redis://***@a\0b"

/*
 * Set the title in memory that contains the words of ROOM. Then that memory must contain wanted, and the bytes around it must be
 * unchanged.
 */
static void check_title(const char *title, const char *wanted)
{
	char room[sizeof(ROOM) + 2] = "!" ROOM, is[sizeof(room)] = { 0 }, *argv[5] = { 0 };

	room[sizeof(ROOM) + 1] = is[0] = is[sizeof(ROOM) + 1] = '!';
	(void)stpcpy(is + 1, wanted);
	argv[0] = room + 1;
	for (int i = 1; i < 4; i++)
		argv[i] = argv[i - 1] + strlen(argv[i - 1]) + 1;
	os_title_setup(4, argv);
	os_set_title(title);
	CHECK(memcmp(room, is, sizeof(room)) == 0,
	      "the title '%s' replaces all words, and nothing beyond them is written", title);
	CHECK(strcmp(argv[2], "redis://***@a") == 0 && strcmp(argv[3], "b") == 0,
	      "the words of the command line are copied before the title overwrites them");
	free(argv[0]); /* one block for all words */
}

/* ---- processes ---- */

static void check_silent_fork(void)
{
	siginfo_t info;
	pid_t pid = os_fork_silently("helper");

	if (pid == 0)
		_exit(0);
	CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 && errno == ECHILD,
	      "a wait for any child does not find one that was forked silently");
	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL) == 0,
	      "a wait with __WALL finds a child that was forked silently");
}

static bool reap(pid_t pid, siginfo_t *out)
{
	return waitid(P_PID, (id_t)pid, out, WEXITED | __WALL) == 0;
}

static void check_silent_child_is_known(void)
{
	struct proc silent = { 0 }, other = { 0 };
	pid_t pids[2] = { os_fork_silently("helper"), -1 };
	siginfo_t info;

	if (pids[0] == 0 || (pids[1] = fork()) == 0) {
		(void)pause();
		_exit(0);
	}
	CHECK(proc_read(pids[0], &silent) && silent.is_silent,
	      "a child that was forked silently is known from its first moment");
	CHECK(proc_read(pids[1], &other) && !other.is_silent,
	      "a child of fork(2) is not taken for one that was forked silently");
	for (size_t i = 0; i < 2; i++) {
		(void)kill(pids[i], SIGKILL);
		CHECK(reap(pids[i], &info), "the child %zu is reaped", i);
	}
}

/* A zombie has lost its program, as a process that is ending. */
static void check_ending_process(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0, "the child has ended");
	CHECK(proc_runs_our_program(pid),
	      "a helper of ours that is ending is not taken for another program");
	CHECK(reap(pid, &info), "the child is reaped");
}

/* Exit with 1 when the parent has the name of its helper. */
static _Noreturn void watch_name_of_parent(void)
{
	struct proc parent;

	while (proc_read(getppid(), &parent) && strcmp(parent.name, "helper") != 0)
		;
	_exit(1);
}

/* A scan of an outer job would take the parent for a helper, and so not wait for it. */
static void check_fork_keeps_name(void)
{
	siginfo_t info;
	bool is_reaped = true;
	pid_t watcher = fork();

	if (watcher == 0)
		watch_name_of_parent();
	for (int i = 0; i < 500; i++) {
		pid_t pid = os_fork_silently("helper");

		if (pid == 0)
			_exit(0);
		is_reaped = reap(pid, &info) && is_reaped;
	}
	CHECK(is_reaped, "each helper is reaped");
	(void)kill(watcher, SIGKILL);
	CHECK(reap(watcher, &info) && info.si_code == CLD_KILLED,
	      "a process never has the name of the helper that it forks");
}

/* Wait for this change of the child; other changes may come before. */
static bool sees_change(pid_t pid, int code, siginfo_t *out)
{
	int64_t until_ms = rlock_now_ms() + 60000;

	while (rlock_now_ms() < until_ms)
		if (os_child_peek(out) && out->si_pid == pid && out->si_code == code)
			return true;
	return false;
}

static void check_children(void)
{
	siginfo_t stopped, continued, again;
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	(void)kill(pid, SIGSTOP);
	CHECK(sees_change(pid, CLD_STOPPED, &stopped), "a child that is stopped is seen");
	os_child_take(&stopped);
	(void)kill(pid, SIGCONT);
	CHECK(sees_change(pid, CLD_CONTINUED, &continued), "a child that is continued is seen");
	(void)kill(pid, SIGSTOP);
	CHECK(sees_change(pid, CLD_STOPPED, &again), "the next stop of the child is seen");
	os_child_take(&continued);
	CHECK(sees_change(pid, CLD_STOPPED, &again),
	      "a later change is still reported after an earlier one was taken");
	(void)kill(pid, SIGKILL);
	CHECK(sees_change(pid, CLD_KILLED, &again), "the end of the child is seen");
	os_child_take(&again);
	CHECK(!os_child_peek(&again), "a reaped child does not exist any more");
}

/* ---- priorities: each check runs in a child, which exits with 1 on an error ---- */

/* The priority of SCHED_RR that rlock itself has. */
#define OURS 1

static void *wait_for_end(void *unused)
{
	(void)pause();
	return unused;
}

static int count_raised(void)
{
	DIR *threads = opendir("/proc/self/task");
	struct dirent *thread;
	int raised = 0;

	while (threads != NULL && (thread = readdir(threads)) != NULL) {
		struct sched_param param;
		pid_t id = (pid_t)strtol(thread->d_name, NULL, 10);

		raised += id > 0 && sched_getparam(id, &param) == 0 && param.sched_priority > OURS;
	}
	if (threads != NULL)
		(void)closedir(threads);
	return raised;
}

static bool may_have_priority(int priority)
{
	const struct sched_param param = { .sched_priority = priority }, none = { 0 };

	return sched_setscheduler(0, SCHED_RR, &param) == 0 &&
	       sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

/* A process with two threads raises its own priority. */
static int raise_threads(void)
{
	pthread_t thread;

	if (!may_have_priority(OURS + 1))
		return 0;
	if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
		return 1;
	os_raise_priority_of_killed(getpid());
	return count_raised() != 2;
}

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static int raise_and_lower(void)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (!may_have_priority(OURS))
		return 0;
	(void)setrlimit(RLIMIT_RTTIME, &unlimited);
	os_raise_priority();
	if (policy() != SCHED_RR)
		return 1;
	os_lower_priority();
	return policy() != SCHED_OTHER;
}

static int raise_with_limit(void)
{
	const struct rlimit limit = { 200000, RLIM_INFINITY };

	if (!may_have_priority(OURS))
		return 0;
	(void)setrlimit(RLIMIT_RTTIME, &limit);
	os_raise_priority();
	return policy() != SCHED_OTHER;
}

static void check_priorities(void)
{
	CHECK_NUMBER(
		unit_fork(raise_threads), 0,
		"each thread of a killed process gets a higher priority than ours, if permitted");
	CHECK_NUMBER(
		unit_fork(raise_and_lower), 0,
		"os_raise_priority sets a real-time priority, if permitted, and os_lower_priority takes it back");
	CHECK_NUMBER(unit_fork(raise_with_limit), 0,
		     "with RLIMIT_RTTIME os_raise_priority sets no real-time priority");
}

/* ---- proc.c ---- */

/* Number of forks. Some of 50 processes start near the end of a clock tick, where a wrong rounding would show. */
#define FORKS 50

/*
 * Compare the start times in /proc with the ticks of our clock before and after the fork, and with the computed start times. No
 * start time can be computed if a fork takes longer than a tick, as with sanitizers on a slow machine.
 */
static void check_starts(void)
{
	long tick_ms = 1000 / sysconf(_SC_CLK_TCK);
	int within = 0, wrong = 0;

	for (int i = 0; i < FORKS; i++) {
		int64_t forked_ms = rlock_now_ms(), until_ms;
		struct proc shown = { 0 };
		uint64_t start;
		pid_t pid = fork();

		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
		until_ms = rlock_now_ms();
		start = proc_start_between(forked_ms, until_ms);
		within += proc_read(pid, &shown) &&
			  shown.start >= proc_start_between(forked_ms, forked_ms) &&
			  shown.start <= proc_start_between(until_ms, until_ms);
		wrong += start != 0 && start != shown.start;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	CHECK_NUMBER(
		within, FORKS,
		"the start time that /proc shows is a tick of our clock between before and after the fork");
	CHECK_NUMBER(wrong, 0, "a computed start time is the one that /proc shows");
	CHECK_NUMBER((int64_t)proc_start_between(tick_ms * 7, tick_ms * 8 - 1), 7,
		     "the start time of a process that was forked within one tick is that tick");
	CHECK_NUMBER((int64_t)proc_start_between(tick_ms * 7, tick_ms * 8), 0,
		     "the start time of a process that was forked in one of two ticks is unknown");
}

/* A process must be opened only if its start time is right, since its pid may have been reused. */
static void check_open(void)
{
	struct proc self = { 0 };
	int fd;

	CHECK(proc_read(getpid(), &self), "/proc shows this process");
	fd = proc_open(self.pid, self.start);
	CHECK(fd >= 0, "a process is opened by its pid and start");
	(void)close(fd);
	errno = 0;
	CHECK_NUMBER(proc_open(self.pid, self.start + 1), -1,
		     "a process is not opened by its pid and another start");
	CHECK_NUMBER(errno, ESRCH, "a process with another start has ended (ESRCH)");
}

/* ---- shell.c ---- */

#define LIMIT_MS 60000
/* shell_stop stops killing the processes of a killed helper after this time (ORPHANS_MS of shell.c), and may leave some. */
#define GIVEN_UP_MS 500
/* Number of attempts until shell_stop has enough time on a busy machine. */
#define ATTEMPTS 20

/* Reap all children. False: some still run at until_ms. */
static bool reap_all(int64_t until_ms)
{
	siginfo_t info;

	/* Poll, because a killed process ends only when it gets a processor. */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == 0) {
		if (rlock_now_ms() >= until_ms)
			return false;
		(void)rlock_poll(NULL, 0, rlock_now_ms() + 1);
	}
	return true;
}

/*
 * Kill a helper, and check that shell_stop then kills the processes of its command. Call this in a process without other
 * children. Returns the number of the step that failed. 0: no step failed. -1: shell_stop ran out of time, so leftover
 * processes would prove nothing; they are killed.
 */
static int try_to_kill_helper(void)
{
	char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
	int64_t until_ms = rlock_now_ms() + LIMIT_MS, stopped_ms;
	struct shell *shell;
	struct pollfd ready = { .events = POLLIN };
	siginfo_t info;
	long group;

	/* Let the command print its process group, by which its processes are killed if shell_stop leaves them. */
	shell = shell_start("sleep 1000 & echo $$; wait", environment, until_ms);
	if (shell == NULL)
		return 2;
	ready.fd = shell->fd;
	while (memchr(shell->output, '\n', shell->output_len) == NULL)
		if (rlock_poll(&ready, 1, until_ms) <= 0 || shell_advance(shell))
			return 3;
	(void)kill(shell->helper, SIGKILL);
	while (!shell_advance(shell))
		if (rlock_poll(&ready, 1, until_ms) <= 0)
			return 4;
	if (shell->end != SHELL_KILLED)
		return 5;
	group = strtol(shell->output, NULL, 10);
	/* Wait for the helper's end, which comes after that of its pipes: shell_stop leaves the processes of a running helper. */
	(void)waitid(P_PID, (id_t)shell->helper, &info, (int)(WEXITED | WNOWAIT | __WALL));
	stopped_ms = rlock_now_ms();
	shell_stop(shell);
	if (rlock_now_ms() - stopped_ms < GIVEN_UP_MS)
		return reap_all(until_ms) ? 0 : 6;
	(void)kill((pid_t)-group, SIGKILL);
	return reap_all(until_ms) ? -1 : 7;
}

static int kill_helper(void)
{
	int step = -1;

	signals_find();
	if (!os_adopt_orphans())
		return 1;
	for (int i = 0; i < ATTEMPTS && step < 0; i++)
		step = try_to_kill_helper();
	return step;
}

/* ---- signals.c ---- */

static void check_signals(void)
{
	static const char *const refused[] = {
		"",
		"SIG",
		"STOP",
		"SIGTSTP",
		"ttin",
		"TTOU",
		"CHLD",
		"CONT",
		"urg",
		"0",
		"-1",
		"+15",
		" 15",
		"0x0f",
		"32",
		"33",
		"65",
		"TERMX",
		"RTMIN+",
		"RTMIN-1",
		"RTMAX+1",
		"RTMIN+31",
		"99999999999999999999",
	};
	const struct {
		const char *text;
		int signal;
		const char *name;
	} good[] = {
		{ "SIGTERM", SIGTERM, "SIGTERM" },
		{ "sigint", SIGINT, "SIGINT" },
		{ "hup", SIGHUP, "SIGHUP" },
		{ "009", SIGKILL, "SIGKILL" },
		{ "rtmin", SIGRTMIN, "SIGRTMIN+0" },
		{ "SIGRTMIN+3", SIGRTMIN + 3, "SIGRTMIN+3" },
		{ "RTMAX-30", SIGRTMAX - 30, "SIGRTMIN+0" },
	};
	char name[SIGNAL_NAME_MAX];
	int signal = 0;

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		CHECK(signals_parse(good[i].text, &signal) && signal == good[i].signal,
		      "'%s' is signal %d", good[i].text, good[i].signal);
		CHECK_STRING(signals_name(good[i].signal, name), good[i].name,
			     "signal %d is written %s", good[i].signal, good[i].name);
	}
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		signal = 42;
		CHECK(!signals_parse(refused[i], &signal) && signal == 42, "'%s' is no signal",
		      refused[i]);
	}
	for (int i = 1; i < SIGRTMAX; i++)
		CHECK(!signals_parse(signals_name(i, name), &signal) || signal == i,
		      "the name of signal %d is read as this signal", i);
}

void test_sys(void)
{
	check_title("rlock-renewer: a", "rlock-renewer: a");
	check_title("rlock-renewer: nightly-backup-of-a-long-name", "rlock-renewer: nightly-ba");
	check_silent_fork();
	check_silent_child_is_known();
	check_fork_keeps_name();
	check_ending_process();
	check_children();
	check_priorities();
	check_starts();
	check_open();
	CHECK_NUMBER(unit_fork(kill_helper), 0,
		     "processes that a killed helper had started are killed");
	check_signals();
}
