/*
 * Translate durations from the notations of other programs. rlock accepts one notation only, and messages show the
 * translation. units.c parses and prints our notation.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "options/notation.h"

#define DIGITS "0123456789"
#define TYPED_MAX 64

/* The greatest unit first. Weeks are printed as days, which are the greatest unit of ours. */
static const struct {
	const char *words, *unit;
	int factor;
} units[] = {
	{ "w|wk|wks|week|weeks|woche|wochen|semaine|semaines", "d", 7 },
	{ "d|day|days|tag|tage|tagen|jour|jours", "d", 1 },
	{ "h|hr|hrs|hour|hours|std|stunde|stunden|heure|heures", "h", 1 },
	{ "m|min|mins|minute|minutes|minuten", "m", 1 },
	{ "s|sec|secs|second|seconds|sek|sekunde|sekunden|seconde|secondes", "s", 1 },
	{ "ms|msec|msecs|millis|millisecond|milliseconds|millisekunde|millisekunden", "ms", 1 },
};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))
#define UNIT_DAY 1
#define UNIT_SECOND 4

/* The index of the unit that the word names; UNIT_COUNT: the word is no unit. */
static size_t find_unit(const char *word)
{
	size_t i = 0;

	while (i < UNIT_COUNT && choice_find(units[i].words, word) < 0)
		i++;
	return i;
}

bool notation_is_unit(const char *word)
{
	return find_unit(word) < UNIT_COUNT;
}

/*
 * Read a number with a unit after it: "1_000", "1.5 hours", "1,5h". *unit_io: the unit of the part before, UNIT_COUNT
 * for none; then the unit of this part. The last part may have no unit, as in "2h30". False: another text.
 */
static bool read_part(const char **cursor, size_t *unit_io, char out[DURATION_TEXT_MAX])
{
	char number[TYPED_MAX], word[TYPED_MAX];
	const char *text = *cursor;
	size_t len = strspn(text, DIGITS), before = *unit_io, letters;
	int printed;

	(void)snprintf(number, sizeof(number), "%.*s", (int)len, text);
	for (text += len; len > 0 && *text == '_' && strspn(text + 1, DIGITS) == 3; text += 4)
		(void)snprintf(number + strlen(number), 4, "%.3s", text + 1);
	letters = strlen(number);
	len = *text == '.' || *text == ',' ? strspn(text + 1, DIGITS) : 0;
	/* "1,000" may be 1 or 1000. */
	if (letters == 0 || (*text == ',' && len == 3))
		return false;
	if (len > 0) {
		(void)snprintf(number + letters, sizeof(number) - letters, ".%.*s", (int)len,
			       text + 1);
		text += 1 + len;
	}
	text += strspn(text, " ");
	for (letters = 0; isalpha((unsigned char)text[letters]) != 0; letters++)
		word[letters] = (char)tolower((unsigned char)text[letters]);
	word[letters] = '\0';
	text += letters;
	text += strspn(text, " ");
	if (letters > 0)
		*unit_io = find_unit(word);
	else if (*text == '\0' && before >= UNIT_DAY && before < UNIT_SECOND)
		*unit_io = before + 1;
	else if (*text != '\0' || before != UNIT_COUNT)
		return false;
	if (letters > 0 && *unit_io == UNIT_COUNT)
		return false;
	*cursor = text;
	if (*unit_io == UNIT_COUNT)
		printed = snprintf(out, DURATION_TEXT_MAX, "%s", number);
	else if (units[*unit_io].factor == 1)
		printed = snprintf(out, DURATION_TEXT_MAX, "%s%s", number, units[*unit_io].unit);
	else
		printed = strchr(number, '.') != NULL || strlen(number) > 4
				  ? -1
				  : snprintf(out, DURATION_TEXT_MAX, "%ld%s",
					     strtol(number, NULL, 10) * units[*unit_io].factor,
					     units[*unit_io].unit);
	return printed > 0 && printed < DURATION_TEXT_MAX;
}

/* Rewrite "00:05:00" as "0h5m0s". False: the text has another form. */
static bool unwrap_clock(const char *typed, char out[TYPED_MAX])
{
	unsigned long parts[3];
	char *end = (char *)typed;

	for (size_t i = 0; i < 3; i++) {
		if (!isdigit((unsigned char)*end))
			return false;
		parts[i] = strtoul(end, &end, 10);
		if (i < 2 && *end++ != ':')
			return false;
	}
	if (*end != '\0' || parts[1] > 59 || parts[2] > 59)
		return false;
	(void)snprintf(out, TYPED_MAX, "%luh%lum%lus", parts[0], parts[1], parts[2]);
	return true;
}

/* Rewrite "00:05:00" as "0h5m0s", and "P1DT2H" as "1D2H". False: the meaning is not certain. */
static bool unwrap(const char *typed, char out[TYPED_MAX])
{
	size_t days = strcspn(typed, "T");

	if (strlen(typed) + 4 > TYPED_MAX)
		return false;
	if (strchr(typed, ':') != NULL)
		return unwrap_clock(typed, out);
	if (*typed != 'P') {
		(void)snprintf(out, TYPED_MAX, "%s", typed);
		return true;
	}
	/* In the part before T, M is a month. */
	if (strspn(typed + 1, DIGITS ".,DW") < days - 1)
		return false;
	(void)snprintf(out, TYPED_MAX, "%.*s%s", (int)(days - 1), typed + 1,
		       typed[days] == 'T' ? typed + days + 1 : "");
	return true;
}

/* Whether the part is 0 of a unit, like two parts of "00:05:00". */
static bool is_zero(const char *part)
{
	size_t zeros = strspn(part, "0");

	return zeros > 0 && isalpha((unsigned char)part[zeros]) != 0;
}

bool notation_translate(const char *typed, char out[DURATION_TEXT_MAX])
{
	char text[TYPED_MAX], part[DURATION_TEXT_MAX], whole[DURATION_TEXT_MAX] = "";
	const char *cursor = text;
	size_t unit = UNIT_COUNT, len = 0;
	int64_t ms;

	if (!unwrap(typed, text))
		return false;
	cursor += strspn(cursor, " ");
	do {
		if (!read_part(&cursor, &unit, part))
			return false;
		/* Leave it out, unless all parts are 0. */
		if (is_zero(part) && (*cursor != '\0' || len > 0))
			continue;
		if (len + strlen(part) >= sizeof(whole))
			return false;
		memcpy(whole + len, part, strlen(part) + 1);
		len += strlen(part);
	} while (*cursor != '\0');
	if (strcmp(whole, typed) == 0 || !duration_parse(whole, &ms))
		return false;
	memcpy(out, whole, sizeof(whole));
	return true;
}

const char *notation_find(const char *word, char out[DURATION_TEXT_MAX])
{
	int64_t ms;

	if (duration_parse(word, &ms))
		return word;
	return notation_translate(word, out) ? out : NULL;
}
