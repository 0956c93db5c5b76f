/*
 * What the unit tests share: their list, and checks that are counted and printed as TAP, one behaviour and one
 * sentence each. unit.c runs the tests in test_*.c.
 */
#ifndef UNIT_H
#define UNIT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The tests, in the order of their runs. A test_NAME() that is missing here has no prototype, which is a compiler warning. */
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
	X(stream)                                                                                  \
	X(sys)                                                                                     \
	X(text)                                                                                    \
	X(tls)                                                                                     \
	X(usage)                                                                                   \
	X(url)                                                                                     \
	X(url_hide)                                                                                \
	X(url_refused)

#define UNIT_PROTOTYPE(name) void test_##name(void);
UNIT_TESTS(UNIT_PROTOTYPE)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The name of a check is a printf format with arguments. It must not contain '#', which starts a directive of TAP. */
#define CHECK(claim, ...) unit_check((claim), __FILE__, __LINE__, __VA_ARGS__)
/* Two NULLs are equal. */
#define CHECK_STRING(got, want, ...)                                                               \
	unit_check_string((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_NUMBER(got, want, ...) CHECK_STRING(unit_number(got), unit_number(want), __VA_ARGS__)

__attribute__((format(printf, 4, 5))) bool unit_check(bool claim, const char *file, int line,
						      const char *format, ...);
__attribute__((format(printf, 5, 6))) bool unit_check_string(const char *got, const char *want,
							     const char *file, int line,
							     const char *format, ...);

/* The number as text. It is valid until the next call but one. */
const char *unit_number(int64_t number);

/* The text, escaped for a terminal. It is valid until the next call but one. */
const char *unit_shown(const char *text);

/* Whether a reason is one printable clause, so that a message can contain it. */
bool unit_is_clause(const char *why);

/* Run the function in a child process, and return what it returned; -1: a signal ended the child. */
int unit_fork(int (*run)(void));

#endif
