/*
 * The checker of the chaos tests. It is a command that runs under a lock, and detects, without Redis, another running command
 * that the lock should exclude. For this it takes a flock(2), which the kernel releases when the last process of the command has
 * ended, in whatever way.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: overlap LEDGER exclusive|shared [-f US | -u PATH] [-i] [-C]\n"
	"       overlap -g|-G LEDGER LIMIT_MS\n"
	"Runs for US microseconds (0), or until PATH exists or its directory does not,\n"
	"120 s at most. -i ignores TERM, INT and HUP. -C starts three children that also hold the flock: one that ends by TERM, one\n"
	"that ignores it, and an orphan in a session of its own.\n"
	"LEDGER gets a line for each event: microseconds on CLOCK_BOOTTIME, \"enter\", \"leave\",\n"
	"\"child\", \"term\" (it got SIGTERM, and ignores it) or \"overlap\" (another command runs\n"
	"that is excluded), the mode, and the pid.\n"
	"-g waits until no command runs, and prints that time; exits with 1 after LIMIT_MS. -G\n"
	"prints the last time at which it saw one running (0: never).\n";

#define STAY_MAX_US (120 * INT64_C(1000000))
#define POLL_US INT64_C(5000)

static const char *ledger, *mode, *until;
static int64_t stay_us;
static int ledger_fd;

/* A SIGTERM, which this process ignores, is not yet recorded in the ledger. */
static volatile sig_atomic_t got_sigterm;

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "overlap: %s: %s\n", what, strerror(errno));
	_exit(71);
}

static int open_beside(const char *suffix)
{
	char path[PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s", ledger, suffix);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0666);
	if (fd < 0)
		fail(path);
	return fd;
}

/* Append a line by a single write(2), so that lines of several processes do not mix. */
static void record(const char *event)
{
	if (dprintf(ledger_fd, "%lld %s %s %ld\n", (long long)now_us(), event, mode,
		    (long)getpid()) < 0)
		fail(ledger);
}

static bool is_over(int64_t end_us)
{
	char path[PATH_MAX];

	if (now_us() >= end_us)
		return true;
	if (until == NULL)
		return false;
	(void)snprintf(path, sizeof(path), "%s", until);
	return access(until, F_OK) == 0 || access(dirname(path), F_OK) != 0;
}

static void stay(void)
{
	int64_t end_us = now_us() + (until != NULL ? STAY_MAX_US : stay_us);

	while (!is_over(end_us)) {
		int64_t left_us = end_us - now_us();
		struct timespec rest = { .tv_nsec =
						 (left_us < POLL_US ? left_us : POLL_US) * 1000 };

		(void)ppoll(NULL, 0, &rest, NULL);
		if (got_sigterm) {
			got_sigterm = false;
			record("term");
		}
	}
}

static void remember(int signal)
{
	(void)signal;
	got_sigterm = true;
}

static void ignore_signals(void)
{
	(void)signal(SIGTERM, remember);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
}

/* Start the children, which inherit the flock and hold it while they live. */
static void have_children(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid > 0)
			continue;
		if (i == 1)
			ignore_signals();
		if (i == 2 && (fork() != 0 || setsid() < 0))
			_exit(0);
		record("child");
		stay();
		_exit(0);
	}
}

static int go_inside(bool is_stubborn, bool has_children)
{
	ledger_fd = open_beside("");
	if (is_stubborn)
		ignore_signals();
	if (flock(open_beside(".mark"),
		  (strcmp(mode, "exclusive") == 0 ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0)
		record("overlap");
	record("enter");
	if (has_children)
		have_children();
	stay();
	record("leave");
	return 0;
}

/*
 * Wait until the flock is free. Print the time at which it was found free; or, with wants_last_seen, the last time at which it
 * was found taken, which can be earlier on a busy machine. Returns an exit status: 1 if the flock is still taken after limit_us.
 */
static int wait_until_gone(int64_t limit_us, bool wants_last_seen)
{
	int64_t end_us = now_us() + limit_us, look_us = now_us(), seen_us = 0;
	int mark_fd = open_beside(".mark");

	while (flock(mark_fd, LOCK_EX | LOCK_NB) != 0) {
		seen_us = look_us;
		if (now_us() > end_us)
			return 1;
		(void)poll(NULL, 0, 1);
		look_us = now_us();
	}
	(void)printf("%lld\n", (long long)(wants_last_seen ? seen_us : now_us()));
	return 0;
}

int main(int argc, char **argv)
{
	bool is_stubborn = false, has_children = false;
	int option;

	if (argc == 4 && (strcmp(argv[1], "-g") == 0 || strcmp(argv[1], "-G") == 0)) {
		ledger = argv[2];
		return wait_until_gone(strtoll(argv[3], NULL, 10) * 1000, argv[1][1] == 'G');
	}
	optind = 3;
	while (argc >= 3 && (option = getopt(argc, argv, "f:u:iC")) != -1) {
		stay_us = option == 'f' ? strtoll(optarg, NULL, 10) : stay_us;
		until = option == 'u' ? optarg : until;
		is_stubborn = is_stubborn || option == 'i';
		has_children = has_children || option == 'C';
		if (option == '?')
			argc = 0;
	}
	if (argc < 3 || optind != argc ||
	    (strcmp(argv[2], "exclusive") != 0 && strcmp(argv[2], "shared") != 0)) {
		(void)fputs(usage, stderr);
		return 64;
	}
	ledger = argv[1];
	mode = argv[2];
	return go_inside(is_stubborn, has_children);
}
