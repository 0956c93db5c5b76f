/*
 * Starts processes that are hard to find and to terminate, for a command under a lock. While one of them lives it holds a flock(2), which
 * a test can check without knowing any pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: escape MARK KIND...\n"
	"Starts a process of each kind, each of which holds a shared flock(2) on the file MARK; ends when all of them run. They\n"
	"ignore SIGTERM and SIGHUP, and end when the file \"end-commands\" of the test exists, or after 60 s.\n"
	"  child       an orphan, as are all of these\n"
	"  session     in a session of its own\n"
	"  bare        in a session of its own, with an empty environment\n"
	"  undumpable  in a session of its own; other processes of its user may not read its files in /proc\n"
	"  hopper      forks and exits every 20 ms\n"
	"  foreign     of another user; needs root\n";

#define STAY_S 60
#define POLL_MS 20
#define OTHER_UID 65534

static int test_fd;
static time_t end_s;

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(71);
}

static time_t now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

/*
 * Whether the process must end. Use the descriptor of the test's directory instead of its path, which a process of the kind
 * "foreign" may not search.
 */
static bool is_over(void)
{
	struct stat test;

	return now_s() >= end_s || faccessat(test_fd, "end-commands", F_OK, 0) == 0 ||
	       fstat(test_fd, &test) != 0 || test.st_nlink == 0;
}

static _Noreturn void be(const char *kind, int ready_fd)
{
	bool hops = strcmp(kind, "hopper") == 0;

	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	if (strcmp(kind, "child") != 0 && setsid() < 0)
		fail("setsid");
	/* Overwrite the memory that /proc/PID/environ shows. */
	if (strcmp(kind, "bare") == 0)
		for (char **variable = environ; *variable != NULL; variable++)
			memset(*variable, 0, strlen(*variable));
	if (strcmp(kind, "foreign") == 0 &&
	    (setgroups(0, NULL) != 0 || setresgid(OTHER_UID, OTHER_UID, OTHER_UID) != 0 ||
	     setresuid(OTHER_UID, OTHER_UID, OTHER_UID) != 0))
		fail("setresuid");
	if (strcmp(kind, "undumpable") == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		fail("prctl");
	(void)close(ready_fd);
	while (!is_over()) {
		/* If fork fails, this process continues. */
		if (hops && fork() > 0)
			break;
		(void)poll(NULL, 0, POLL_MS);
	}
	_exit(0);
}

/* Start a process of this kind, as an orphan: its parent exits. */
static void start(const char *kind, int ready_fd)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid > 0)
		return;
	if (strcmp(kind, "child") != 0) {
		pid = fork();
		if (pid != 0)
			_exit(pid < 0);
	}
	be(kind, ready_fd);
}

int main(int argc, char **argv)
{
	const char *directory = getenv("BATS_TEST_TMPDIR");
	int ready[2], mark_fd;
	char byte;

	for (int i = 2; i < argc; i++)
		if (strstr(" child session bare undumpable hopper foreign ", argv[i]) == NULL)
			argc = 0;
	if (argc < 3) {
		(void)fputs(usage, stderr);
		return 64;
	}
	end_s = now_s() + STAY_S;
	test_fd = directory == NULL ? -1 : open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (test_fd < 0)
		fail("BATS_TEST_TMPDIR");
	mark_fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (mark_fd < 0 || flock(mark_fd, LOCK_SH | LOCK_NB) != 0)
		fail(argv[1]);
	if (pipe2(ready, O_CLOEXEC) != 0)
		fail("pipe2");
	for (int i = 2; i < argc; i++)
		start(argv[i], ready[1]);
	(void)close(ready[1]);
	/* Wait for the end of file: then each process is ready, or has failed with a message. */
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}
