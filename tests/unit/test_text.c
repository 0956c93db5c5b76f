/*
 * text.c: escaping for a terminal, truncation, percent-encoding and decoding, and numbers in replies.
 */
#include <stdlib.h>

#include "base/text.h"
#include "rlock.h"

#include "unit.h"

/* ---- escape ---- */

/* Bidirectional characters are intended here. NOLINTBEGIN(misc-misleading-bidirectional) */

static const char *const kept[] = {
	"",
	" plain text, a\\b, 1 + 1 = 2 ~",
	"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92\xd7\x90", /* two, three and four bytes; Hebrew */
	/* next to escaped ranges: U+A0, 200A, 2010, 202F, FFFD, F0000; and the last, 10FFFF */
	"\xc2\xa0\xe2\x80\x8a\xe2\x80\x90\xe2\x80\xaf\xef\xbf\xbd\xf3\xb0\x80\x80\xf4\x8f\xbf\xbf",
};

/* Each byte of these texts is escaped. */
static const char *const escaped[] = {
	"\n\t\r\x01\x1b\x1f\x7f\xc2\x80\xc2\x9b\xc2\x9f", /* C0, DEL, and C1 with a terminal's CSI */
	"\xc2\xad\xd8\x9c\xe1\xa0\x8e",                   /* a soft hyphen, U+61C, U+180E */
	"\xe2\x80\x8b\xe2\x80\x8d\xe2\x80\x8f",           /* U+200B to 200F, without a width */
	"\xe2\x80\xa8\xe2\x80\xa9",                       /* ends of lines */
	"\xe2\x80\xaa\xe2\x80\xae", /* U+202A to 202E, the last of which turns the text around */
	"\xe2\x81\xa0\xe2\x81\xa6\xe2\x81\xa9\xef\xbb\xbf",
	"\xf3\xa0\x80\x81\xf3\xa0\x81\xbf",             /* tags */
	"\xff\x80\x9b\xc3\xe2\x82",                     /* invalid or incomplete sequences */
	"\xc0\x80\xc1\xbf\xe0\x80\x8a\xf0\x80\x80\x8a", /* overlong: NUL, DEL, newlines */
	"\xed\xa0\x80\xf4\x90\x80\x80", /* a surrogate, and a value above U+10FFFF */
	"\xf8\x88\x80\x80\x80",         /* five bytes */
};

/* The result in a buffer of 8 bytes, including the NUL. */
static const struct {
	const char *text, *shown;
} cuts[] = {
	{ "1234567", "1234567" },
	{ "12345678", "1234..." },
	{ "123\xc3\xa4xyz", "123..." },
	{ "12\xc3\xa4xyzz", "12\xc3\xa4..." },
	{ "12\xf0\x9f\x94\x92z", "12\xf0\x9f\x94\x92z" },
	{ "12\xf0\x9f\x94\x92zz", "12..." },
	{ "123\x01", "123\\x01" },
	{ "1234\x01", "1234..." },
	{ "1\x01zzz", "1..." },
	{ "\x01zzzz", "\\x01..." },
	{ "\xe2\x80\xae", "..." },
};

/* NOLINTEND(misc-misleading-bidirectional) */

static void check_escape(void)
{
	char out[256], want[256];
	uint32_t character = 0;

	for (size_t i = 0; i < COUNT_OF(kept); i++)
		CHECK_STRING(rlock_escape(kept[i], strlen(kept[i]), out, sizeof(out)), kept[i],
			     "'%s' is not escaped", kept[i]);
	for (size_t i = 0; i < COUNT_OF(escaped); i++) {
		size_t len = 0;

		for (const char *c = escaped[i]; *c != '\0'; c++)
			len += (size_t)snprintf(want + len, sizeof(want) - len, "\\x%02x",
						(unsigned char)*c);
		CHECK_STRING(rlock_escape(escaped[i], strlen(escaped[i]), out, sizeof(out)), want,
			     "%s is escaped", want);
	}
	CHECK_STRING(rlock_escape("\xe2\x82\xc3\xa4(", 5, out, sizeof(out)), "\\xe2\\x82\xc3\xa4(",
		     "text after an invalid sequence is not escaped");
	CHECK_STRING(rlock_escape("a\0bc", 3, out, sizeof(out)), "a\\x00b",
		     "escaping continues after a NUL, up to the length");
	CHECK_STRING(rlock_escape("\xe2\x82\xac", 2, out, sizeof(out)), "\\xe2\\x82",
		     "a character isn't read beyond the length");
	CHECK(rlock_character_read("", 0, &character) == 0 &&
		      rlock_character_read("\xc3\xa4", 2, &character) == 2 && character == 0xe4,
	      "a character is read, and none from an empty text");
	CHECK_STRING(rlock_escape(NULL, 0, out, sizeof(out)), "", "NULL is shown as an empty text");
}

/* Source and destination are blocks of exactly the right size, so that the sanitizer reports any access beyond them. */
static void check_cuts(void)
{
	for (size_t i = 0; i < COUNT_OF(cuts); i++) {
		size_t len = strlen(cuts[i].text);
		char *text = malloc(len), *out = malloc(8);

		if (text == NULL || out == NULL)
			abort();
		memcpy(text, cuts[i].text, len);
		CHECK_STRING(rlock_escape(text, len, out, 8), cuts[i].shown,
			     "the text is cut to '%s'", cuts[i].shown);
		free(text);
		free(out);
	}
}

/* ---- percent-encoding ---- */

static void check_encode(void)
{
	/* The encoding of "a b" in a buffer of this many bytes. */
	static const char *const cut[] = { "", "a", "a", "a", "a%20", "a%20b" };
	char out[64];

	CHECK(rlock_percent_encode("azAZ09-._~", 10, "", out, sizeof(out)) == 10 &&
		      strcmp(out, "azAZ09-._~") == 0,
	      "unreserved characters are not encoded");
	CHECK(rlock_percent_encode("/a%\0\xff\n", 6, "/", out, sizeof(out)) == 14 &&
		      strcmp(out, "/a%25%00%FF%0A") == 0,
	      "other characters are encoded, except those to keep");
	CHECK(rlock_percent_encode("a b", 3, "", NULL, 0) == 5, "no buffer is needed to measure");
	for (size_t i = 0; i < COUNT_OF(cut); i++)
		CHECK(rlock_percent_encode("a b", 3, "", out, i + 1) == 5 &&
			      strcmp(out, cut[i]) == 0,
		      "an encoding of 5 bytes is cut to '%s' in a buffer of %zu", cut[i], i);
}

static const struct {
	const char *text, *decoded; /* decoded NULL: malformed */
} decodings[] = {
	{ "", "" },
	{ "plain+", "plain+" },
	{ "a%20%41%2f%2F", "a A//" },
	{ "%2541", "%41" },
	{ "%C3%A4%01%7f", "\xc3\xa4\x01\x7f" },
	{ "%", NULL },
	{ "ab%4", NULL },
	{ "%4g", NULL },
	{ "%g4", NULL },
	{ "%%41", NULL },
	{ "% 41", NULL },
	{ "%+4", NULL },
	{ "a%20b%00", NULL },
};

static void check_decode(void)
{
	for (size_t i = 0; i < COUNT_OF(decodings); i++) {
		const char *want = decodings[i].decoded;
		char *text = strdup(decodings[i].text);
		long got;

		if (text == NULL)
			abort();
		got = rlock_percent_decode(text, strlen(text));
		CHECK_NUMBER(got, want != NULL ? (int64_t)strlen(want) : -1, "'%s' is decoded",
			     decodings[i].text);
		CHECK_STRING(text, want != NULL ? want : decodings[i].text,
			     "'%s' is decoded, or unchanged if malformed", decodings[i].text);
		free(text);
	}
}

/* Encode and decode every byte but NUL. */
static void check_round_trip(void)
{
	char all[255], encoded[3 * sizeof(all) + 1];
	size_t len;
	long decoded;

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)(i + 1);
	len = rlock_percent_encode(all, sizeof(all), "", encoded, sizeof(encoded));
	decoded = rlock_percent_decode(encoded, len);
	CHECK(decoded == (long)sizeof(all) && memcmp(encoded, all, sizeof(all)) == 0,
	      "every byte but NUL is encoded and decoded to itself");
}

/* ---- numbers ---- */

static const struct {
	const char *text;
	int64_t number;
} numbers[] = {
	{ "0", 0 },
	{ "-1", -1 },
	{ "007", 7 },
	{ "9223372036854775807", INT64_MAX },
	{ "-9223372036854775808", INT64_MIN },
};

static const char *const no_numbers[] = {
	"",
	"-",
	"--1",
	"+1",
	" 1",
	"1 ",
	"1x",
	"x",
	"0x10",
	"1.5",
	"9223372036854775808",
	"-9223372036854775809",
};

static void check_numbers(void)
{
	int64_t number = 5;

	for (size_t i = 0; i < COUNT_OF(no_numbers); i++)
		CHECK(!rlock__decimal_parse(no_numbers[i], strlen(no_numbers[i]), &number) &&
			      number == 5,
		      "'%s' is no number, and the result is unchanged", no_numbers[i]);
	CHECK(!rlock__decimal_parse("1\0002", 3, &number),
	      "a number ends with its text, not with a NUL");
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		CHECK(rlock__decimal_parse(numbers[i].text, strlen(numbers[i].text), &number) &&
			      number == numbers[i].number,
		      "'%s' is a number", numbers[i].text);
}

void test_text(void)
{
	check_escape();
	check_cuts();
	check_encode();
	check_decode();
	check_round_trip();
	check_numbers();
}
