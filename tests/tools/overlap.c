/*
 * The witness of the chaos tests: a command to run under a lock that finds out, without Redis, whether
 * another command is inside that the lock should have kept out. The kernel judges, by flock(2): the mark
 * stands until the last process of a command has gone, however it went.
 */
#include <errno.h>
#include <fcntl.h>
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
	"Goes in, and stays for US microseconds (0), or until PATH exists or its directory does not,\n"
	"120 s at most. -i ignores TERM, INT and HUP. -C has three children that are inside as well: one that ends by TERM, one\n"
	"that ignores it, and one in a session of its own whose parent is gone.\n"
	"LEDGER gets a line for each event: microseconds on CLOCK_BOOTTIME, \"enter\", \"leave\",\n"
	"\"child\", \"term\" (it was to end, and ignores that) or \"overlap\" (another one is inside\n"
	"that should not be), the mode, and the pid.\n"
	"-g waits until none is inside, and prints when that was; 1 if that takes too long. -G\n"
	"prints when one was inside for the last time that it looked (0: none).\n";

#define NS_PER_US 1000
#define US_PER_MS 1000
#define US_PER_S 1000000
#define STAY_MAX_US ((int64_t)120 * US_PER_S)
#define LOOK_US INT64_C(5000)
#define CHILDREN_MAX 3

enum child { CHILD_PLAIN, CHILD_STUBBORN, CHILD_ORPHAN };

struct visit {
	const char *ledger;
	const char *mode;
	const char *until;
	int64_t stay_us;
	bool is_stubborn, has_children;
	int log_fd;
};

/* Whether a SIGTERM, which this process ignores, is not yet in the ledger. */
static volatile sig_atomic_t was_told;

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

static void fail(const char *what)
{
	(void)fprintf(stderr, "overlap: %s: %s\n", what, strerror(errno));
	_exit(71);
}

static int open_beside(const char *ledger, const char *suffix)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s%s", ledger, suffix);
	int fd;

	if (len < 0 || (size_t)len >= sizeof(path)) {
		errno = ENAMETOOLONG;
		fail(ledger);
	}
	fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0666);
	if (fd < 0)
		fail(path);
	return fd;
}

/* One write, so that lines of several processes do not mix. */
static void note(const struct visit *visit, const char *event, int64_t at_us)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "%lld %s %s %ld\n", (long long)at_us, event,
			   visit->mode, (long)getpid());

	if (write(visit->log_fd, line, (size_t)len) != len)
		fail(visit->ledger);
}

static void wait_ms(int timeout_ms)
{
	(void)poll(NULL, 0, timeout_ms);
}

static bool is_over(const struct visit *visit, int64_t end_us)
{
	char directory[4096];
	const char *slash;

	if (now_us() >= end_us)
		return true;
	if (visit->until == NULL)
		return false;
	if (access(visit->until, F_OK) == 0)
		return true;
	slash = strrchr(visit->until, '/');
	if (slash == NULL || (size_t)(slash - visit->until) >= sizeof(directory))
		return false;
	(void)snprintf(directory, sizeof(directory), "%.*s", (int)(slash - visit->until),
		       visit->until);
	return access(directory, F_OK) != 0;
}

static void stay(const struct visit *visit)
{
	int64_t end_us = now_us() + (visit->until != NULL ? STAY_MAX_US : visit->stay_us);

	while (!is_over(visit, end_us)) {
		int64_t left_us = end_us - now_us();
		struct timespec rest = { .tv_nsec = LOOK_US * NS_PER_US };

		if (left_us > 0 && left_us < LOOK_US)
			rest.tv_nsec = left_us * NS_PER_US;
		(void)ppoll(NULL, 0, &rest, NULL);
		if (was_told) {
			was_told = false;
			note(visit, "term", now_us());
		}
	}
}

static void remember(int signal)
{
	(void)signal;
	was_told = true;
}

static void ignore_signals(void)
{
	(void)signal(SIGTERM, remember);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
}

static void be_child(const struct visit *visit, enum child kind)
{
	if (kind == CHILD_STUBBORN)
		ignore_signals();
	if (kind == CHILD_ORPHAN) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid > 0)
			_exit(0);
		if (setsid() < 0)
			fail("setsid");
	}
	note(visit, "child", now_us());
	stay(visit);
	_exit(0);
}

/* Each inherits the mark, and is inside as long as it lives. */
static void have_children(const struct visit *visit)
{
	static const enum child kinds[CHILDREN_MAX] = { CHILD_PLAIN, CHILD_STUBBORN, CHILD_ORPHAN };

	for (int i = 0; visit->has_children && i < CHILDREN_MAX; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0)
			be_child(visit, kinds[i]);
	}
}

/* Whether nothing was inside that keeps this out. */
static bool set_mark(const struct visit *visit)
{
	int how = strcmp(visit->mode, "exclusive") == 0 ? LOCK_EX : LOCK_SH;
	int mark_fd = open_beside(visit->ledger, ".mark");

	if (flock(mark_fd, how | LOCK_NB) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		fail("flock");
	(void)close(mark_fd);
	return false;
}

static int go_inside(struct visit *visit)
{
	visit->log_fd = open_beside(visit->ledger, "");
	if (visit->is_stubborn)
		ignore_signals();
	if (!set_mark(visit))
		note(visit, "overlap", now_us());
	note(visit, "enter", now_us());
	have_children(visit);
	stay(visit);
	note(visit, "leave", now_us());
	return 0;
}

/* Between the two times that it can print lies what this process was kept waiting for a processor itself. */
static int wait_until_gone(const char *ledger, int64_t limit_us, bool wants_last_seen)
{
	int64_t end_us = now_us() + limit_us, look_us = now_us(), seen_us = 0;
	int mark_fd = open_beside(ledger, ".mark");

	while (flock(mark_fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK)
			fail("flock");
		seen_us = look_us;
		if (now_us() > end_us)
			return 1;
		wait_ms(1);
		look_us = now_us();
	}
	(void)printf("%lld\n", (long long)(wants_last_seen ? seen_us : now_us()));
	return 0;
}

static int refuse(void)
{
	(void)fputs(usage, stderr);
	return 64;
}

int main(int argc, char **argv)
{
	struct visit visit = { 0 };
	int option;

	if (argc == 4 && (strcmp(argv[1], "-g") == 0 || strcmp(argv[1], "-G") == 0))
		return wait_until_gone(argv[2], strtoll(argv[3], NULL, 10) * US_PER_MS,
				       argv[1][1] == 'G');
	if (argc < 3)
		return refuse();
	visit.ledger = argv[1];
	visit.mode = argv[2];
	if (strcmp(visit.mode, "exclusive") != 0 && strcmp(visit.mode, "shared") != 0)
		return refuse();
	optind = 3;
	while ((option = getopt(argc, argv, "f:u:iC")) != -1) {
		switch (option) {
		case 'f':
			visit.stay_us = strtoll(optarg, NULL, 10);
			break;
		case 'u':
			visit.until = optarg;
			break;
		case 'i':
			visit.is_stubborn = true;
			break;
		case 'C':
			visit.has_children = true;
			break;
		default:
			return refuse();
		}
	}
	return optind == argc ? go_inside(&visit) : refuse();
}
