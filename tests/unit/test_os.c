/*
 * os.c: what ps shows of us, our children, timers, signals, events and descriptors; and a process that got SIGKILL runs
 * before us with all of its threads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/os.h"

#include "unit.h"

/* The priority of SCHED_RR that rlock itself has. */
#define OURS 1

/* What the process under test ends with. */
enum { ALL_RAISED, SOME_RAISED, NO_PERMISSION };

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

/* A process of two threads raises itself. */
static int raise_threads(void)
{
	const struct sched_param above = { .sched_priority = OURS + 1 };
	const struct sched_param none = { .sched_priority = 0 };
	pthread_t thread;

	if (sched_setscheduler(0, SCHED_RR, &above) != 0)
		return NO_PERMISSION;
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
		return SOME_RAISED;
	os_raise_priority_of_killed(getpid());
	return count_raised() == 2 ? ALL_RAISED : SOME_RAISED;
}

static void check_priority_of_killed(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(raise_threads());
	(void)waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) != SOME_RAISED,
	      "each thread of a killed process runs before us, where we may have that");
}

/* The policy, without its flag, that a process has after these; -1: it may have no real-time policy at all. */
static int policy_after(rlim_t run_time_limit, bool is_lowered)
{
	const struct rlimit limit = { run_time_limit, RLIM_INFINITY };
	const struct sched_param first = { .sched_priority = OURS };
	const struct sched_param none = { .sched_priority = 0 };

	if (sched_setscheduler(0, SCHED_RR, &first) != 0)
		return -1;
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	(void)setrlimit(RLIMIT_RTTIME, &limit);
	os_raise_priority();
	if (is_lowered)
		os_lower_priority();
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void check_policy(rlim_t run_time_limit, bool is_lowered, int wanted, const char *claim)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		int policy = policy_after(run_time_limit, is_lowered);

		_exit(policy == -1 || policy == wanted ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	CHECK_NUMBER(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "%s", claim);
}

/* ---- the title ---- */

#define ROOM "rlock\0run\0redis://***@a\0b"

/* What the room of these words is after that title, with the two bytes around it. */
static void set_title(const char *title, char out[sizeof(ROOM) + 2], char *command_out)
{
	char *argv[5];

	out[0] = out[sizeof(ROOM) + 1] = '!';
	memcpy(out + 1, ROOM, sizeof(ROOM));
	argv[0] = out + 1;
	for (int i = 1; i < 4; i++)
		argv[i] = argv[i - 1] + strlen(argv[i - 1]) + 1;
	argv[4] = NULL;
	os_title_setup(4, argv);
	os_set_title(title);
	(void)stpcpy(command_out, argv[3]);
	CHECK_STRING(argv[2], "redis://***@a", "the words are kept elsewhere");
	free(argv[0]); /* of all words */
}

static void check_title(void)
{
	static const char ends[] = "!rlock-renewer: nightl";
	char room[sizeof(ROOM) + 2], command[sizeof(ROOM)], wanted[sizeof(room)] = { 0 };

	set_title("rlock-renewer: a", room, command);
	wanted[0] = wanted[sizeof(ROOM) + 1] = '!';
	(void)stpcpy(wanted + 1, "rlock-renewer: a");
	CHECK(memcmp(room, wanted, sizeof(room)) == 0,
	      "nothing of the words is left after the title, and nothing beyond them is written");
	CHECK_STRING(command, "b", "the command can be started after the title is set");
	set_title("rlock-renewer: nightly-backup-of-a-long-name", room, command);
	CHECK(memcmp(room, ends, strlen(ends)) == 0 && room[sizeof(ROOM)] == '\0' &&
		      room[sizeof(ROOM) + 1] == '!',
	      "a long title is cut to the room that the words had, with a NUL");
}

/* ---- processes ---- */

static bool has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static void check_processes(void)
{
	struct pid_list children = { 0 };
	pid_t pid = fork();
	siginfo_t info;
	int fd;

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	fd = os_process_open(pid);
	CHECK(fd >= 0 && !os_is_ready(fd), "the descriptor of a process that runs is not readable");
	CHECK(os_list_children(getpid(), &children) && has(&children, pid), "a child is listed");
	pid_list_free(&children);
	CHECK_NUMBER(os_process_signal(fd, SIGKILL), 0, "a process is signalled by its descriptor");
	(void)waitid(P_PID, (id_t)pid, &info, WEXITED);
	CHECK(os_is_ready(fd), "the descriptor of a process that has ended is readable");
	CHECK_NUMBER(os_process_signal(fd, SIGKILL), ESRCH,
		     "a process that has ended gets no signal");
	(void)close(fd);
	pid = os_fork_silently();
	if (pid == 0)
		_exit(0);
	CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 && errno == ECHILD,
	      "a wait for any child does not find one that was forked silently");
	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL) == 0, "a wait with __WALL does");
}

#define STARTED 7

static int set_and_end(void *ctx)
{
	*(atomic_int *)ctx = 1;
	return STARTED;
}

/* As one whose exec takes long. */
static int spin_until_set(void *ctx)
{
	while (*(atomic_int *)ctx == 0)
		(void)sched_yield();
	return STARTED;
}

static bool ends_as_started(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == STARTED;
}

static void check_started(void)
{
	atomic_int *is_set = mmap(NULL, sizeof(*is_set), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = os_start(set_and_end, is_set, 65536);

	CHECK(ends_as_started(pid),
	      "a process that is started ends with what its function returns");
	CHECK_NUMBER(*is_set, 1, "the function is called with its argument");
	os_start_wait(10000);
	*is_set = 0;
	pid = os_start(spin_until_set, is_set, 65536);
	os_start_wait(10);
	CHECK_NUMBER(waitpid(pid, NULL, WNOHANG), 0,
		     "we do not sleep until it ends, if that takes long");
	*is_set = 1;
	CHECK(ends_as_started(pid), "it ends all the same");
	(void)munmap(is_set, sizeof(*is_set));
}

/* ---- events ---- */

static bool becomes_ready(int fd)
{
	struct pollfd ready = { fd, POLLIN, 0 };

	return rlock_poll(&ready, 1, rlock_now_ms() + 10000) > 0;
}

static void check_events(void)
{
	int timer = os_timer_open(), events = os_events_open();

	CHECK(os_events_add(events, timer) && !os_is_ready(events), "no event has come yet");
	os_timer_set(timer, rlock_now_ms() + 10);
	CHECK(becomes_ready(events), "a timer that expires is an event");
	os_read_out(timer);
	CHECK(!os_is_ready(events), "a timer that was read is none");
	os_timer_set(timer, -5);
	CHECK(becomes_ready(timer), "a timer expires at once when its time has passed");
	os_events_remove(events, timer);
	CHECK(!os_is_ready(events), "a timer that was removed is no event");
	os_timer_set(timer, INT64_MAX);
	CHECK(!os_is_ready(timer), "a timer is disarmed");
	(void)close(timer);
	(void)close(events);
}

static void check_signals(void)
{
	struct os_signal got = { 0 };
	sigset_t set, before;
	int fd;

	sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	fd = os_signals_open(-1, &set);
	CHECK(!os_signals_read(fd, &got), "no signal has come yet");
	(void)kill(getpid(), SIGUSR1);
	CHECK(os_signals_read(fd, &got) && got.number == SIGUSR1 && !got.is_from_kernel &&
		      got.sender == getpid(),
	      "a signal has its sender");
	(void)ualarm(1, 0);
	CHECK(becomes_ready(fd) && os_signals_read(fd, &got) && got.number == SIGALRM &&
		      got.is_from_kernel,
	      "an alarm is the kernel's");
	(void)close(fd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- descriptors ---- */

/* In a process of its own. Which of these is wrong first; 0: none. */
static int close_and_fill(void)
{
	int one = open("/", O_RDONLY), other = fcntl(one, F_DUPFD, 50);
	char byte;

	os_close_from(other);
	if (fcntl(one, F_GETFD) < 0)
		return 1;
	if (fcntl(other, F_GETFD) >= 0)
		return 2;
	os_close_from(0);
	if (!os_fill_standard_fds())
		return 3;
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) != FD_CLOEXEC)
			return 4;
	if (read(0, &byte, 1) >= 0 || errno != EBADF || write(2, "x", 1) >= 0 || errno != EBADF)
		return 5;
	return fcntl(3, F_GETFD) >= 0 ? 6 : 0;
}

static void check_descriptors(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(close_and_fill());
	(void)waitpid(pid, &status, 0);
	CHECK_NUMBER(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
		     "all descriptors from one on are closed, and 0, 1 and 2 filled");
}

/* Waits for that change of our child, before which others may come. */
static bool sees_change(pid_t pid, int code, siginfo_t *out)
{
	int64_t until_ms = rlock_now_ms() + 5000;

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
	CHECK(sees_change(pid, CLD_STOPPED, &again), "its next stop is seen");
	os_child_take(&continued);
	CHECK(sees_change(pid, CLD_STOPPED, &again),
	      "a change that came after the one that is taken is still to be seen");
	(void)kill(pid, SIGKILL);
	CHECK(sees_change(pid, CLD_KILLED, &again), "its end is seen");
	os_child_take(&again);
	CHECK(!os_child_peek(&again), "a child that was taken is gone");
}

void test_os(void)
{
	check_title();
	check_processes();
	check_started();
	check_children();
	check_events();
	check_signals();
	check_descriptors();
	check_priority_of_killed();
	check_policy(RLIM_INFINITY, false, SCHED_RR,
		     "we come before others where no limit kills us for it");
	check_policy(200000, false, SCHED_OTHER, "RLIMIT_RTTIME leaves us no real-time priority");
	check_policy(RLIM_INFINITY, true, SCHED_OTHER, "a priority that was raised is taken back");
}
