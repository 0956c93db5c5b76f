/*
 * Read and print decimal numbers, and durations as people write them: "30s", "1500ms", "2.5m", "1h30m", "1d", "7"
 * (seconds). Print times of day in ISO 8601, with the offset, and the user's name. Times of day are for printing only:
 * deadlines are on rlock_now_ms().
 */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Read a decimal number at *cursor: blanks, an optional minus, digits. *cursor then points after the number. A plus and
 * other white space, which strtoll accepts, are refused. False: no number, or out of range; both are unchanged.
 */
bool number_read(const char **cursor, int64_t *out);

/* Parse a text that consists of one number, after optional blanks. */
bool number_parse(const char *text, int64_t *out);

/* Size of the longest text of duration_print, with its NUL. */
#define DURATION_TEXT_MAX 32

/*
 * Parse a duration: a decimal number with an optional unit, or several parts with units, the greater one first. Rounded
 * up to milliseconds. False: empty, negative, malformed, or longer than 10,000 days; *out_ms is unchanged.
 */
bool duration_parse(const char *text, int64_t *out_ms);
/* Whether text is a duration of more than 10,000 days. */
bool duration_is_too_long(const char *text);

/* Print a duration that is not negative, short and exact: "250ms", "1.5s", "2m". Returns out. */
char *duration_print(int64_t ms, char out[DURATION_TEXT_MAX]);

/*
 * Print the two greatest units of a duration, rounded down: "3m12s", "2h05m", "4d07h"; below a second "0.4s"; "-" if it
 * is negative, that is, unknown. Returns out.
 */
char *duration_print_rough(int64_t ms, char out[DURATION_TEXT_MAX]);

#define WALL_CLOCK_TEXT_MAX 64

/*
 * Print the current time: "2026-11-23T03:17:00+01:00", with milliseconds "2026-11-23T03:17:00.042+01:00"; "?" if
 * unknown. Returns out.
 */
char *wall_clock_print(bool has_ms, char out[WALL_CLOCK_TEXT_MAX]);
/* The current time, in ms since 1970. */
int64_t wall_clock_ms(void);
/* Print a time given in ms since 1970, without milliseconds. Returns out. */
char *wall_clock_print_of(int64_t unix_ms, char out[WALL_CLOCK_TEXT_MAX]);

#define USER_NAME_MAX 64

/*
 * Print a name of the effective user, for people. Prefer the value of LOGNAME, or of USER if LOGNAME is not set, if
 * /etc/passwd has it for this user; else print another name that /etc/passwd has. If the user is not in /etc/passwd, print
 * that value, unless it is another user's name. Otherwise print "root", or "uid" and the number. Returns out.
 */
const char *user_name(char out[USER_NAME_MAX]);

#endif
