/*
 * Runs commands in turn, so that whatever else the machine does hits all of them alike, and times each
 * run from before its vfork until it has been reaped. What the times mean is bench.sh's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: spawn WARM-UPS ROUNDS LABEL [VARIABLE=VALUE...] COMMAND [ARG...] [::: LABEL ...]\n"
	"Each round runs every command once, in an order of its own, with /dev/null for standard\n"
	"input and output. Prints a line \"LABEL NANOSECONDS MINOR-FAULTS\" for each run; the faults\n"
	"are those of the command and of the processes that it has waited for. The first of them\n"
	"that fails ends it all, with 1.\n";

#define TOOLS_MAX 64
#define SEPARATOR ":::"

struct tool {
	const char *label;
	char **argv;
	char **environment;
	char path[PATH_MAX];
};

static void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "spawn: %s: %s\n", what, why);
	exit(1);
}

/* ---- what is to be run ---- */

/* Looked up once, so that the search is no part of any time. */
static void find_program(struct tool *tool)
{
	const char *program = tool->argv[0], *dir = getenv("PATH");

	if (strchr(program, '/') != NULL || dir == NULL) {
		(void)snprintf(tool->path, sizeof(tool->path), "%s", program);
		return;
	}
	for (;;) {
		size_t len = strcspn(dir, ":");

		(void)snprintf(tool->path, sizeof(tool->path), "%.*s/%s", (int)len, dir, program);
		if (access(tool->path, X_OK) == 0)
			return;
		if (dir[len] == '\0')
			die(program, "not found");
		dir += len + 1;
	}
}

static bool sets_same(const char *entry, const char *assignment)
{
	size_t len = strcspn(assignment, "=") + 1;

	return strncmp(entry, assignment, len) == 0;
}

/* The caller's environment, with the first count words of argv in it. */
static char **make_environment(char **argv, size_t count)
{
	size_t size = 0, used = 0;
	char **out;

	while (environ[size] != NULL)
		size++;
	out = calloc(size + count + 1, sizeof(*out));
	if (out == NULL)
		die("environment", strerror(errno));
	for (size_t i = 0; i < size; i++) {
		bool is_replaced = false;

		for (size_t j = 0; j < count; j++)
			is_replaced = is_replaced || sets_same(environ[i], argv[j]);
		if (!is_replaced)
			out[used++] = environ[i];
	}
	for (size_t j = 0; j < count; j++)
		out[used++] = argv[j];
	return out;
}

static void tool_init(struct tool *tool, char **words)
{
	size_t assignments = 0;

	if (words[0] == NULL || words[1] == NULL)
		die("a command is missing", words[0] == NULL ? "no label" : words[0]);
	tool->label = *words++;
	while (words[assignments] != NULL && strchr(words[assignments], '=') != NULL)
		assignments++;
	if (words[assignments] == NULL)
		die("a command is missing", tool->label);
	tool->argv = words + assignments;
	tool->environment = make_environment(words, assignments);
	find_program(tool);
}

/* Cuts argv at the separators; the number of tools. */
static size_t read_tools(char **argv, struct tool tools[TOOLS_MAX])
{
	size_t count = 0;
	char **start = argv;

	for (;;) {
		while (*argv != NULL && strcmp(*argv, SEPARATOR) != 0)
			argv++;
		bool is_last = *argv == NULL;

		*argv = NULL;
		if (count == TOOLS_MAX)
			die("commands", "too many");
		tool_init(&tools[count++], start);
		if (is_last)
			return count;
		start = ++argv;
	}
}

/* ---- running it ---- */

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* In the child of a vfork: nothing but system calls. */
static void become(const struct tool *tool, int null_fd)
{
	(void)dup2(null_fd, STDIN_FILENO);
	(void)dup2(null_fd, STDOUT_FILENO);
	(void)execve(tool->path, tool->argv, tool->environment);
	_exit(127);
}

static void run(const struct tool *tool, bool is_counted, int null_fd)
{
	int64_t start_ns = now_ns(), end_ns;
	struct rusage used;
	pid_t pid = vfork();
	int status;

	if (pid == 0) /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
		become(tool, null_fd);
	if (pid < 0)
		die("vfork", strerror(errno));
	while (wait4(pid, &status, 0, &used) < 0)
		if (errno != EINTR)
			die("wait4", strerror(errno));
	end_ns = now_ns();
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		(void)fprintf(stderr, "spawn: %s: %s %d\n", tool->label,
			      WIFEXITED(status) ? "exit status" : "ended by signal",
			      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		exit(1);
	}
	if (is_counted)
		(void)printf("%s %lld %ld\n", tool->label, (long long)(end_ns - start_ns),
			     used.ru_minflt);
}

/* Another order in each round: a tool is not always behind the same other. */
static void shuffle(size_t *order, size_t count)
{
	static uint64_t state = 88172645463325252;

	for (size_t i = count; i > 1; i--) {
		size_t other, kept;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		other = (size_t)(state % i);
		kept = order[i - 1];
		order[i - 1] = order[other];
		order[other] = kept;
	}
}

int main(int argc, char **argv)
{
	static struct tool tools[TOOLS_MAX];
	size_t order[TOOLS_MAX], count;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	long warm_ups, rounds;

	if (argc < 5) {
		(void)fputs(usage, stderr);
		return 64;
	}
	if (null_fd < 0)
		die("/dev/null", strerror(errno));
	warm_ups = strtol(argv[1], NULL, 10);
	rounds = strtol(argv[2], NULL, 10);
	count = read_tools(argv + 3, tools);
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (long round = -warm_ups; round < rounds; round++) {
		shuffle(order, count);
		for (size_t i = 0; i < count; i++)
			run(&tools[order[i]], round >= 0, null_fd);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
