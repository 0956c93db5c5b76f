/*
 * What the unit tests share: the list of them, and checks that are counted and printed as TAP, one behaviour and one
 * sentence each. What is checked is each test_*.c's business; unit.c runs them.
 */
#ifndef UNIT_H
#define UNIT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* In this order. A test_NAME() that is missing here has no prototype, which is a warning. */
#define UNIT_TESTS(X)                                                                              \
	X(acquire)                                                                                 \
	X(clock)                                                                                   \
	X(config)                                                                                  \
	X(duration)                                                                                \
	X(hold)                                                                                    \
	X(keys)                                                                                    \
	X(lease)                                                                                   \
	X(request)                                                                                 \
	X(sentinels)                                                                               \
	X(server_error)                                                                            \
	X(sys)                                                                                     \
	X(text)                                                                                    \
	X(usage)                                                                                   \
	X(url)                                                                                     \
	X(url_hide)                                                                                \
	X(url_refused)

#define UNIT_PROTOTYPE(name) void test_##name(void);
UNIT_TESTS(UNIT_PROTOTYPE)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The name of a check is a format with its arguments; a '#' in it would start a directive of TAP. */
#define CHECK(claim, ...) unit_check((claim), __FILE__, __LINE__, __VA_ARGS__)
/* NULL is a string of its own here. */
#define CHECK_STRING(got, want, ...)                                                               \
	unit_check_string((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_NUMBER(got, want, ...) CHECK_STRING(unit_number(got), unit_number(want), __VA_ARGS__)

__attribute__((format(printf, 4, 5))) bool unit_check(bool claim, const char *file, int line,
						      const char *format, ...);
__attribute__((format(printf, 5, 6))) bool unit_check_string(const char *got, const char *want,
							     const char *file, int line,
							     const char *format, ...);

/* Its digits, until the call after the next. */
const char *unit_number(int64_t number);

/* The text as a terminal can take it, until the call after the next. */
const char *unit_shown(const char *text);

/* Whether a reason can stand in a message: it is one clause, printable. */
bool unit_is_clause(const char *why);

/* What the function returns in a process of its own; -1: that did not end by itself. */
int unit_fork(int (*run)(void));

#endif
