/*
 * Decimal numbers; durations as people write them, "30s", "1500ms", "2.5m", "1h30m", "1d", "7" (seconds); and the time of day
 * and the user's name as people and logs read them: ISO 8601, with the offset. These are for printing only; deadlines are
 * on rlock_now_ms().
 */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The decimal number at *cursor, digits with an optional minus, after any blanks; *cursor is then what follows it. A plus
 * and other white space, which strtoll allows, are rejected. False, with both as they were, when there is none or it
 * doesn't fit.
 */
bool number_read(const char **cursor, int64_t *out);

/* The text is one number, maybe after blanks, and nothing else. */
bool number_parse(const char *text, int64_t *out);

/* The longest text that duration_print makes, with the NUL. */
#define DURATION_TEXT_MAX 32

/*
 * A decimal number with an optional unit, or several with units, the greater one first; rounded up to whole
 * milliseconds. False for what is empty, negative, malformed or longer than 10,000 days; *out_ms is kept then.
 */
bool duration_parse(const char *text, int64_t *out_ms);
/* Whether it is a duration of more than 10,000 days. */
bool duration_is_too_long(const char *text);

/* A short exact way to write one that is not negative: 250 is "250ms", 1500 "1.5s", 120000 "2m". Returns out. */
char *duration_print(int64_t ms, char out[DURATION_TEXT_MAX]);

/*
 * For a glance: the two greatest units, rounded down, as in "3m12s", "2h05m" or "4d07h"; below a second "0.4s"; "-" for a
 * negative one, which is not known, or not there. Returns out.
 */
char *duration_print_rough(int64_t ms, char out[DURATION_TEXT_MAX]);

#define WALL_CLOCK_TEXT_MAX 64

/*
 * "2026-11-23T03:17:00+01:00", with milliseconds "2026-11-23T03:17:00.042+01:00"; "?" when it is not known. Returns
 * out.
 */
char *wall_clock_print(bool has_ms, char out[WALL_CLOCK_TEXT_MAX]);
/* The time of day, in milliseconds since 1970. */
int64_t wall_clock_ms(void);
/* The same of a time in milliseconds since 1970, without them. */
char *wall_clock_print_of(int64_t unix_ms, char out[WALL_CLOCK_TEXT_MAX]);

#define USER_NAME_MAX 64

/*
 * The effective user, for people, and no proof: a name that /etc/passwd has for it, LOGNAME or USER before others. Where
 * the file has none the name is that of the environment, unless the file has it for another user; else "root", or "uid"
 * with the number. In out, which is returned.
 */
const char *user_name(char out[USER_NAME_MAX]);

#endif
