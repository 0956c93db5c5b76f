/*
 * os.c: what ps shows of us, our children and what becomes of their changes, the standard streams; and a process that got
 * SIGKILL runs before us with all of its threads. Timers, signals and descriptors of processes are in all that rlock does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/os.h"

#include "unit.h"

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

static void check_silent_fork(void)
{
	siginfo_t info;
	pid_t pid = os_fork_silently();

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

/* ---- descriptors ---- */

/* In a process of its own. Which of these is wrong first; 0: none. */
static int close_and_fill(void)
{
	int one = open("/", O_RDONLY), other = fcntl(one, F_DUPFD, 50);
	char byte;

	os_close_from(other);
	if (fcntl(one, F_GETFD) < 0 || fcntl(other, F_GETFD) >= 0)
		return 1;
	os_close_from(0);
	if (!os_fill_standard_fds())
		return 2;
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) != FD_CLOEXEC)
			return 3;
	if (read(0, &byte, 1) >= 0 || errno != EBADF || write(2, "x", 1) >= 0 || errno != EBADF)
		return 4;
	return fcntl(3, F_GETFD) >= 0 ? 5 : 0;
}

/* ---- priorities; each in a process of its own, which ends with 1 when something is wrong ---- */

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

/* A process of two threads raises itself. */
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
	CHECK_NUMBER(unit_fork(raise_threads), 0,
		     "each thread of a killed process runs before us, where we may have that");
	CHECK_NUMBER(
		unit_fork(raise_and_lower), 0,
		"we come before others where no limit kills us for it, until that is taken back");
	CHECK_NUMBER(unit_fork(raise_with_limit), 0,
		     "RLIMIT_RTTIME leaves us no real-time priority");
}

void test_os(void)
{
	check_title();
	check_silent_fork();
	check_started();
	check_children();
	CHECK_NUMBER(unit_fork(close_and_fill), 0,
		     "all descriptors from one on are closed, and 0, 1 and 2 filled");
	check_priorities();
}
