/*
 * Checks for the unit tests: counted, printed as TAP, one behaviour and one sentence each.
 * A test ends with `return unit_done();`, which is 1 if any check failed.
 */
#ifndef UNIT_H
#define UNIT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int unit_count, unit_failed;

/* The name is a format with its arguments; a '#' in it would start a directive of TAP. */
#define CHECK(claim, ...) unit_check((claim), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_STRING(got, want, ...)                                                               \
	unit_check_string((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_NUMBER(got, want, ...)                                                               \
	unit_check_number((got), (want), __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 4, 0))) static inline bool
unit_report(bool claim, const char *file, int line, const char *format, va_list args)
{
	unit_count++;
	(void)printf("%s %d - ", claim ? "ok" : "not ok", unit_count);
	(void)vprintf(format, args);
	(void)printf("\n");
	if (!claim) {
		unit_failed++;
		(void)printf("# at %s:%d\n", file, line);
	}
	return claim;
}

__attribute__((format(printf, 4, 5))) static inline bool
unit_check(bool claim, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)unit_report(claim, file, line, format, args);
	va_end(args);
	return claim;
}

/* NULL is a string of its own here. */
__attribute__((format(printf, 5, 6))) static inline bool
unit_check_string(const char *got, const char *want, const char *file, int line, const char *format,
		  ...)
{
	bool claim = got == want || (got != NULL && want != NULL && strcmp(got, want) == 0);
	va_list args;

	va_start(args, format);
	(void)unit_report(claim, file, line, format, args);
	va_end(args);
	if (!claim)
		(void)printf("# got  %s\n# want %s\n", got != NULL ? got : "(none)",
			     want != NULL ? want : "(none)");
	return claim;
}

__attribute__((format(printf, 5, 6))) static inline bool
unit_check_number(int64_t got, int64_t want, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)unit_report(got == want, file, line, format, args);
	va_end(args);
	if (got != want)
		(void)printf("# got  %" PRId64 "\n# want %" PRId64 "\n", got, want);
	return got == want;
}

static inline int unit_done(void)
{
	(void)printf("1..%d\n", unit_count);
	if (fflush(stdout) != 0)
		return 1;
	return unit_failed == 0 ? 0 : 1;
}

#endif
