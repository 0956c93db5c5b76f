/*
 * The unit tests in one program: `unit-tests [NAME]` runs all of them, or test_NAME.c, and prints TAP. The plan is printed last: if a test
 * crashes it is missing, and tests/run.sh counts that as a failure.
 */
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rlock.h"

#include "unit.h"

#define UNIT_ROW(name) { #name, test_##name },

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = { UNIT_TESTS(UNIT_ROW) };

static int count, failed;

__attribute__((format(printf, 4, 0))) static void report(bool claim, const char *file, int line,
							 const char *format, va_list args)
{
	count++;
	failed += !claim;
	(void)printf("%s %d - ", claim ? "ok" : "not ok", count);
	(void)vprintf(format, args);
	(void)printf("\n");
	if (!claim)
		(void)printf("# at %s:%d\n", file, line);
}

bool unit_check(bool claim, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(claim, file, line, format, args);
	va_end(args);
	return claim;
}

bool unit_check_string(const char *got, const char *want, const char *file, int line,
		       const char *format, ...)
{
	bool claim = got == want || (got != NULL && want != NULL && strcmp(got, want) == 0);
	va_list args;

	va_start(args, format);
	report(claim, file, line, format, args);
	va_end(args);
	if (!claim)
		(void)printf("# got  %s\n# want %s\n", got != NULL ? got : "(none)",
			     want != NULL ? want : "(none)");
	return claim;
}

const char *unit_number(int64_t number)
{
	static char out[2][24];
	static size_t which;

	which = !which;
	(void)snprintf(out[which], sizeof(out[which]), "%" PRId64, number);
	return out[which];
}

const char *unit_shown(const char *text)
{
	static char out[2][1024];
	static size_t which;

	which = !which;
	return rlock_escape(text, strlen(text), out[which], sizeof(out[which]));
}

bool unit_is_clause(const char *why)
{
	size_t len = strlen(why);

	for (size_t i = 0; i < len; i++)
		if (why[i] < ' ' || why[i] > '~')
			return false;
	return len > 0 && (why[0] < 'A' || why[0] > 'Z') && why[len - 1] != '.';
}

int unit_fork(int (*run)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(run());
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;

	/* Buffer lines only: a crash loses no line, and a forked child does not print buffered lines again. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (only != NULL && strcmp(only, tests[i].name) != 0)
			continue;
		(void)printf("# %s\n", tests[i].name);
		tests[i].run();
	}
	(void)printf("1..%d\n", count);
	for (size_t i = 0; only != NULL && count == 0 && i < sizeof(tests) / sizeof(*tests); i++)
		(void)fprintf(stderr, "%s\n", tests[i].name);
	return fflush(stdout) != 0 || count == 0 || failed > 0;
}
