/*
 * Processes that are hard to find and to stop, for a command whose lock is to be kept, or whose processes are to be terminated.
 * As long as one of them lives a flock(2) is held, which is how a test knows: no number of theirs is needed for that.
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
	"Starts a process of each kind, each with a lock of flock(2) on the file MARK, shared; ends when all of them run. They\n"
	"ignore SIGTERM and SIGHUP, and end when the file \"end-commands\" of their test is there, after 60 s at most.\n"
	"  child       its parent has ended, as that of all of these\n"
	"  session     in a session of its own\n"
	"  bare        in a session of its own, with nothing in its environment\n"
	"  undumpable  in a session of its own, and others of its user may not look into it\n"
	"  hopper      forks, and ends, each 20 ms\n"
	"  foreign     of another user; only root can\n";

#define STAY_S 60
#define LOOK_MS 20
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

/* By its descriptor: another user may not come here by the path. */
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
	/* What /proc shows is this memory. */
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
		/* Where none more can be made, this one stays. */
		if (hops && fork() > 0)
			break;
		(void)poll(NULL, 0, LOOK_MS);
	}
	_exit(0);
}

/* One that is to be an orphan has a parent that ends. */
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
	/* Its end is that each has become what it is to be, or has failed and said so. */
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}
