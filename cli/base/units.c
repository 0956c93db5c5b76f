/*
 * Parse and print numbers, durations, times of day and the user's name. table.c decides which of them an option takes,
 * and reports a wrong value.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

/* ---- numbers ---- */

bool number_read(const char **cursor, int64_t *out)
{
	const char *text = *cursor;
	char *end;
	long long number;

	while (*text == ' ')
		text++;
	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0)
		return false;
	*cursor = end;
	*out = number;
	return true;
}

bool number_parse(const char *text, int64_t *out)
{
	int64_t number;

	if (!number_read(&text, &number) || *text != '\0')
		return false;
	*out = number;
	return true;
}

/* ---- durations ---- */

#define DAY_MS INT64_C(86400000)
#define LONGEST_MS (10000 * DAY_MS)

enum duration { DURATION_READ, DURATION_NONE, DURATION_TOO_LONG };

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{ "d", DAY_MS }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

/* The length of a unit in ms. An empty name means seconds. 0: unknown. */
static int64_t unit_ms(const char *name, size_t len)
{
	if (len == 0)
		return 1000;
	for (size_t i = 0; i < UNIT_COUNT; i++)
		if (strlen(units[i].name) == len && memcmp(name, units[i].name, len) == 0)
			return units[i].ms;
	return 0;
}

/*
 * The value of the digits after the decimal point, in parts of unit, rounded up. Compute from the last digit to the first:
 * 0.d1d2... units are a tenth of (d1 + 0.d2...) units. So any number of digits is exact.
 */
static int64_t fraction_value(const char *digits, size_t count, int64_t unit)
{
	int64_t value = 0;
	bool has_rest = false;

	while (count > 0) {
		int64_t tenths = (digits[--count] - '0') * unit + value;

		has_rest = has_rest || tenths % 10 != 0;
		value = tenths / 10;
	}
	return has_rest ? value + 1 : value;
}

/*
 * Read a number and its unit. The unit must be smaller than *unit_ms_io, that of the part before (INT64_MAX: no part
 * before), and is then stored there.
 */
static enum duration part_read(const char **cursor, int64_t *unit_ms_io, int64_t *out_ms)
{
	static const char digits[] = "0123456789";
	size_t whole_len = strspn(*cursor, digits);
	const char *fraction = *cursor + whole_len, *name;
	size_t fraction_len = 0, name_len;
	int64_t unit, whole;

	if (*fraction == '.')
		fraction_len = strspn(++fraction, digits);
	name = fraction + fraction_len;
	name_len = strspn(name, "abcdefghijklmnopqrstuvwxyz");
	unit = unit_ms(name, name_len);
	if (whole_len + fraction_len == 0 || unit == 0 || unit >= *unit_ms_io ||
	    (name_len == 0 &&
	     *unit_ms_io != INT64_MAX)) /* a part without a unit must be the first */
		return DURATION_NONE;
	/* If there are too many digits, strtoll returns INT64_MAX, which is too long for each unit. */
	whole = strtoll(*cursor, NULL, 10);
	if (whole > LONGEST_MS / unit)
		return DURATION_TOO_LONG;
	*out_ms = whole * unit + fraction_value(fraction, fraction_len, unit);
	*cursor = name + name_len;
	*unit_ms_io = unit;
	return DURATION_READ;
}

static enum duration read_duration(const char *text, int64_t *out_ms)
{
	int64_t unit = INT64_MAX, sum = 0, part;

	do {
		enum duration read = part_read(&text, &unit, &part);

		if (read != DURATION_READ)
			return read;
		/* The sum cannot overflow, since there is at most one part for each unit. */
		sum += part;
	} while (*text != '\0');
	if (sum > LONGEST_MS)
		return DURATION_TOO_LONG;
	*out_ms = sum;
	return DURATION_READ;
}

bool duration_parse(const char *text, int64_t *out_ms)
{
	return read_duration(text, out_ms) == DURATION_READ;
}

bool duration_is_too_long(const char *text)
{
	int64_t ms;

	return read_duration(text, &ms) == DURATION_TOO_LONG;
}

char *duration_print(int64_t ms, char out[DURATION_TEXT_MAX])
{
	size_t i = 0;

	if (ms == 0) {
		(void)snprintf(out, DURATION_TEXT_MAX, "0s");
		return out;
	}
	if (ms > 1000 && ms % 1000 != 0) {
		int len = snprintf(out, DURATION_TEXT_MAX, "%" PRId64 ".%03d", ms / 1000,
				   (int)(ms % 1000));

		while (out[len - 1] == '0')
			len--;
		memcpy(out + len, "s", 2);
		return out;
	}
	while (ms % units[i].ms != 0)
		i++;
	(void)snprintf(out, DURATION_TEXT_MAX, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
	return out;
}

char *duration_print_rough(int64_t ms, char out[DURATION_TEXT_MAX])
{
	int64_t seconds = ms / 1000;

	if (ms < 0)
		memcpy(out, "-", 2);
	else if (ms < 1000)
		(void)snprintf(out, DURATION_TEXT_MAX, "0.%ds", (int)(ms / 100));
	else if (seconds < 60)
		(void)snprintf(out, DURATION_TEXT_MAX, "%ds", (int)seconds);
	else if (seconds < 3600)
		(void)snprintf(out, DURATION_TEXT_MAX, "%dm%02ds", (int)(seconds / 60),
			       (int)(seconds % 60));
	else if (ms < DAY_MS)
		(void)snprintf(out, DURATION_TEXT_MAX, "%dh%02dm", (int)(seconds / 3600),
			       (int)(seconds / 60 % 60));
	else
		(void)snprintf(out, DURATION_TEXT_MAX, "%" PRId64 "d%02dh", ms / DAY_MS,
			       (int)(seconds / 3600 % 24));
	return out;
}

/* ---- times of day ---- */

static char *print_time(int64_t unix_ms, bool has_ms, char out[WALL_CLOCK_TEXT_MAX])
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm local;
	char at[24], offset[8], ms[8] = "";

	if (localtime_r(&seconds, &local) == NULL ||
	    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &local) == 0 ||
	    strftime(offset, sizeof(offset), "%z", &local) != 5) {
		memcpy(out, "?", 2);
		return out;
	}
	if (has_ms)
		(void)snprintf(ms, sizeof(ms), ".%03d", (int)(unix_ms % 1000));
	(void)snprintf(out, WALL_CLOCK_TEXT_MAX, "%s%s%.3s:%s", at, ms, offset, offset + 3);
	return out;
}

int64_t wall_clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *wall_clock_print(bool has_ms, char out[WALL_CLOCK_TEXT_MAX])
{
	return print_time(wall_clock_ms(), has_ms, out);
}

char *wall_clock_print_of(int64_t unix_ms, char out[WALL_CLOCK_TEXT_MAX])
{
	return print_time(unix_ms, false, out);
}

/* ---- the user ---- */

/*
 * Find a name of the effective user in /etc/passwd: claimed, if it is a name of this user, else the first name. False:
 * the file has no entry of this user. *is_strangers: claimed is the name of another user. Read no other source of
 * names, which could be on the network, and hang.
 */
static bool read_user(const char *claimed, char out[USER_NAME_MAX], bool *is_strangers)
{
	FILE *users = fopen("/etc/passwd", "re");
	const struct passwd *entry;
	bool is_found = false, is_claimed = false;

	*is_strangers = false;
	while (users != NULL && !is_claimed && (!is_found || claimed != NULL) &&
	       (entry = fgetpwent(users)) != NULL) {
		bool is_named = claimed != NULL && strcmp(entry->pw_name, claimed) == 0;

		*is_strangers = *is_strangers || (is_named && entry->pw_uid != geteuid());
		is_claimed = is_named && entry->pw_uid == geteuid();
		if (is_claimed || (!is_found && entry->pw_uid == geteuid()))
			(void)snprintf(out, USER_NAME_MAX, "%s", entry->pw_name);
		is_found = is_found || entry->pw_uid == geteuid();
	}
	if (users != NULL)
		(void)fclose(users);
	return is_found;
}

const char *user_name(char out[USER_NAME_MAX])
{
	const char *claimed = getenv("LOGNAME");
	bool is_strangers;

	if (claimed == NULL || claimed[0] == '\0')
		claimed = getenv("USER");
	if (claimed != NULL && claimed[0] == '\0')
		claimed = NULL;
	if (read_user(claimed, out, &is_strangers))
		return out;
	if (claimed != NULL && !is_strangers)
		(void)snprintf(out, USER_NAME_MAX, "%s", claimed);
	else if (geteuid() == 0)
		(void)snprintf(out, USER_NAME_MAX, "root");
	else
		(void)snprintf(out, USER_NAME_MAX, "uid%u", (unsigned)geteuid());
	return out;
}
