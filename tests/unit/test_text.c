/*
 * text.c: what reaches a terminal, where it is cut, and percent-encoding there and back.
 */
#include <stdlib.h>

#include "rlock.h"

#include "unit.h"

/* ---- escape ---- */

/* What would turn a text around is here on purpose. NOLINTBEGIN(misc-misleading-bidirectional) */

static const struct {
	const char *text, *shown, *name;
} escapes[] = {
	{ "", "", "an empty text stays empty" },
	{ "plain text, 1 + 1 = 2", "plain text, 1 + 1 = 2", "printable ASCII stays" },
	{ " ~", " ~", "the first and the last printable of ASCII stay" },
	{ "a\\b", "a\\b", "a backslash stays" },
	{ "\xc3\xa4\xc3\xb6", "\xc3\xa4\xc3\xb6", "two-byte characters stay" },
	{ "\xe2\x82\xac", "\xe2\x82\xac", "a three-byte character stays" },
	{ "\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92", "a four-byte character stays" },
	{ "\xc2\xa0", "\xc2\xa0", "U+00A0 stays, it is the first behind C1" },
	{ "\xef\xbf\xbd", "\xef\xbf\xbd", "U+FFFD stays" },
	{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "U+10FFFF stays, it is the last" },
	{ "\xd7\x90\xd7\x91", "\xd7\x90\xd7\x91", "Hebrew letters stay" },
	{ "a\nb", "a\\x0ab", "a newline is escaped" },
	{ "a\tb", "a\\x09b", "a tab is escaped" },
	{ "\r", "\\x0d", "a carriage return is escaped" },
	{ "\x1b[31m", "\\x1b[31m", "an escape sequence is escaped" },
	{ "\x01\x1f", "\\x01\\x1f", "C0 controls are escaped" },
	{ "\x7f", "\\x7f", "DEL is escaped" },
	{ "\xc2\x80", "\\xc2\\x80", "U+0080 is escaped" },
	{ "\xc2\x9b", "\\xc2\\x9b", "U+009B, a terminal's CSI, is escaped" },
	{ "\xc2\x9f", "\\xc2\\x9f", "U+009F is escaped" },
	{ "\x9b", "\\x9b", "a single byte of C1 is escaped" },
	{ "\xd8\x9c", "\\xd8\\x9c", "U+061C is escaped" },
	{ "\xc2\xad", "\\xc2\\xad", "U+00AD, a soft hyphen, is escaped" },
	{ "\xe1\xa0\x8e", "\\xe1\\xa0\\x8e", "U+180E is escaped" },
	{ "\xe2\x80\x8a", "\xe2\x80\x8a", "U+200A, a narrow blank, stays" },
	{ "a\xe2\x80\x8b", "a\\xe2\\x80\\x8b", "U+200B, which has no width, is escaped" },
	{ "\xe2\x80\x8c", "\\xe2\\x80\\x8c", "U+200C is escaped" },
	{ "\xe2\x80\x8d", "\\xe2\\x80\\x8d", "U+200D is escaped, also where it joins emoji" },
	{ "\xe2\x81\xa0", "\\xe2\\x81\\xa0", "U+2060 is escaped" },
	{ "\xef\xbb\xbf", "\\xef\\xbb\\xbf", "U+FEFF, a byte order mark, is escaped" },
	{ "\xf3\xa0\x80\x81", "\\xf3\\xa0\\x80\\x81", "U+E0001, a tag, is escaped" },
	{ "\xf3\xa0\x81\xbf", "\\xf3\\xa0\\x81\\xbf", "U+E007F, the last tag, is escaped" },
	{ "\xf3\xb0\x80\x80", "\xf3\xb0\x80\x80", "U+F0000, of private use, stays" },
	{ "\xe2\x80\x8e", "\\xe2\\x80\\x8e", "U+200E is escaped" },
	{ "\xe2\x80\x8f", "\\xe2\\x80\\x8f", "U+200F is escaped" },
	{ "\xe2\x80\x90", "\xe2\x80\x90", "U+2010, a hyphen, stays" },
	{ "\xe2\x80\xa8", "\\xe2\\x80\\xa8", "U+2028, a line's end, is escaped" },
	{ "\xe2\x80\xaa", "\\xe2\\x80\\xaa", "U+202A is escaped" },
	{ "\xe2\x80\xae", "\\xe2\\x80\\xae", "U+202E, which turns the text around, is escaped" },
	{ "\xe2\x80\xaf", "\xe2\x80\xaf", "U+202F, a blank, stays" },
	{ "\xe2\x81\xa6", "\\xe2\\x81\\xa6", "U+2066 is escaped" },
	{ "\xe2\x81\xa9", "\\xe2\\x81\\xa9", "U+2069 is escaped" },
	{ "\xff", "\\xff", "a byte that UTF-8 doesn't have is escaped" },
	{ "\x80", "\\x80", "a continuation without a start is escaped" },
	{ "\xc3", "\\xc3", "a start without a continuation is escaped" },
	{ "\xc3(", "\\xc3(", "what follows a broken sequence stays" },
	{ "\xe2\x82", "\\xe2\\x82", "a sequence cut short is escaped byte by byte" },
	{ "\xe2\x82\xc3\xa4", "\\xe2\\x82\xc3\xa4", "a character behind a broken one stays" },
	{ "\xc0\x80", "\\xc0\\x80", "an overlong NUL is escaped" },
	{ "\xc1\xbf", "\\xc1\\xbf", "an overlong DEL is escaped" },
	{ "\xe0\x80\x8a", "\\xe0\\x80\\x8a", "an overlong newline is escaped" },
	{ "\xf0\x80\x80\x8a", "\\xf0\\x80\\x80\\x8a", "a longer one too" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "a surrogate is escaped" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "what is above U+10FFFF is escaped" },
	{ "\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80", "five-byte forms are escaped" },
};

/* Sizes of out, with the NUL. */
static const struct {
	const char *text;
	size_t size;
	const char *shown, *name;
} cuts[] = {
	{ "1234567", 8, "1234567", "what just fits isn't cut" },
	{ "12345678", 8, "1234...", "one byte too many ends in an ellipsis" },
	{ "123\xc3\xa4xyz", 8, "123...", "a character of two bytes isn't cut" },
	{ "12\xc3\xa4xyzz", 8, "12\xc3\xa4...", "a character that fits before the ellipsis stays" },
	{ "12\xf0\x9f\x94\x92z", 8, "12\xf0\x9f\x94\x92z", "a character at the end stays" },
	{ "12\xf0\x9f\x94\x92zz", 8, "12...", "a character isn't cut in its middle" },
	{ "123\x01", 8, "123\\x01", "an escape at the end stays" },
	{ "1234\x01", 8, "1234...", "an escape that doesn't fit is left out" },
	{ "1\x01zzz", 8, "1...", "an escape isn't cut" },
	{ "\x01zzzz", 8, "\\x01...", "an escape that fits before the ellipsis stays" },
	{ "\xe2\x80\xae", 8, "...", "an escaped character that doesn't fit is left out whole" },
	{ "abc", 4096, "abc", "a large buffer is no matter" },
};

/* NOLINTEND(misc-misleading-bidirectional) */

static void check_escape(void)
{
	char out[256];
	size_t i;

	for (i = 0; i < COUNT_OF(escapes); i++) {
		CHECK_STRING(
			rlock_escape(escapes[i].text, strlen(escapes[i].text), out, sizeof(out)),
			escapes[i].shown, "%s", escapes[i].name);
	}
	CHECK(rlock_escape("x", 1, out, sizeof(out)) == out, "escape returns its buffer");
	CHECK_STRING(rlock_escape("a\0b", 3, out, sizeof(out)), "a\\x00b", "a NUL is escaped");
	CHECK_STRING(rlock_escape("abc", 2, out, sizeof(out)), "ab",
		     "the length counts, not a NUL");
	CHECK_STRING(rlock_escape("\xe2\x82\xac", 2, out, sizeof(out)), "\\xe2\\x82",
		     "a character isn't read beyond the length");
	CHECK_STRING(rlock_escape(NULL, 0, out, sizeof(out)), "", "no text is an empty one");
}

/* From and into blocks of just the size, so that a sanitizer sees a step too far. */
static void check_cuts(void)
{
	size_t i;

	for (i = 0; i < COUNT_OF(cuts); i++) {
		size_t len = strlen(cuts[i].text);
		char *text = malloc(len);
		char *out = malloc(cuts[i].size);

		if (text == NULL || out == NULL)
			abort();
		memcpy(text, cuts[i].text, len);
		CHECK_STRING(rlock_escape(text, len, out, cuts[i].size), cuts[i].shown, "%s",
			     cuts[i].name);
		free(text);
		free(out);
	}
}

/* ---- percent-encoding ---- */

static const struct {
	const char *text, *keep, *encoded, *name;
} encodings[] = {
	{ "", "", "", "nothing stays nothing" },
	{ "azAZ09-._~", "", "azAZ09-._~", "unreserved characters stay" },
	{ "a b", "", "a%20b", "a blank is encoded" },
	{ "%41", "", "%2541", "a percent sign is encoded" },
	{ "/:@?&=+", "", "%2F%3A%40%3F%26%3D%2B", "reserved characters are encoded" },
	{ "/run/a b", "/", "/run/a%20b", "what is to be kept stays" },
	{ "\xc3\xa4\xff", "", "%C3%A4%FF", "bytes above ASCII are encoded one by one" },
	{ "\n\x7f", "", "%0A%7F", "controls are encoded" },
};

static void check_encode(void)
{
	char out[64];
	size_t i;

	for (i = 0; i < COUNT_OF(encodings); i++) {
		const char *text = encodings[i].text;
		size_t needed = rlock_percent_encode(text, strlen(text), encodings[i].keep, out,
						     sizeof(out));

		CHECK_STRING(out, encodings[i].encoded, "%s", encodings[i].name);
		CHECK_NUMBER((int64_t)needed, (int64_t)strlen(encodings[i].encoded),
			     "%s, and the length is told", encodings[i].name);
	}
	CHECK(rlock_percent_encode("a\0b", 3, "/", out, sizeof(out)) == 5 &&
		      strcmp(out, "a%00b") == 0,
	      "a NUL is encoded, whatever is to be kept");
	CHECK(rlock_percent_encode("a b", 3, "", NULL, 0) == 5, "no buffer is needed to measure");
	CHECK(rlock_percent_encode("a b", 3, "", out, 6) == 5 && strcmp(out, "a%20b") == 0,
	      "what just fits is whole");
	CHECK(rlock_percent_encode("a b", 3, "", out, 5) == 5 && strcmp(out, "a%20") == 0,
	      "what doesn't fit is cut, and the whole length told");
	CHECK(rlock_percent_encode("a b", 3, "", out, 4) == 5 && strcmp(out, "a") == 0,
	      "an escape isn't cut, and nothing slips in behind it");
	CHECK(rlock_percent_encode("a b", 3, "", out, 1) == 5 && strcmp(out, "") == 0,
	      "a buffer of one byte gets its NUL");
}

static const struct {
	const char *text, *decoded, *name; /* decoded NULL: malformed */
} decodings[] = {
	{ "", "", "nothing is decoded to nothing" },
	{ "plain", "plain", "what has no escapes stays" },
	{ "a%20b", "a b", "an escape is decoded" },
	{ "%41%42", "AB", "escapes in a row are decoded" },
	{ "%2f%2F", "//", "both cases of hex digits will do" },
	{ "a+b", "a+b", "a plus sign is no blank" },
	{ "%2541", "%41", "what was decoded isn't decoded again" },
	{ "%C3%A4", "\xc3\xa4", "bytes above ASCII are decoded" },
	{ "%01%7f", "\x01\x7f", "controls are decoded" },
	{ "%", NULL, "a lone percent sign is malformed" },
	{ "ab%", NULL, "so it is at the end" },
	{ "ab%4", NULL, "so is one digit at the end" },
	{ "%4g", NULL, "so is a second digit that is none" },
	{ "%g4", NULL, "so is a first digit that is none" },
	{ "%%41", NULL, "so are two percent signs" },
	{ "% 41", NULL, "so is a blank before the digits" },
	{ "%+4", NULL, "so is a sign before a digit" },
	{ "a%20b%00", NULL, "so is a NUL" },
};

static void check_decode(void)
{
	size_t i;

	for (i = 0; i < COUNT_OF(decodings); i++) {
		size_t len = strlen(decodings[i].text);
		char *text = strdup(decodings[i].text);
		const char *want = decodings[i].decoded;
		long got;

		if (text == NULL)
			abort();
		got = rlock_percent_decode(text, len);
		CHECK_NUMBER(got, want != NULL ? (int64_t)strlen(want) : -1, "%s",
			     decodings[i].name);
		CHECK_STRING(text, want != NULL ? want : decodings[i].text,
			     want != NULL ? "%s, to the right bytes" : "%s, and left as it was",
			     decodings[i].name);
		free(text);
	}
}

/* Every byte but NUL, there and back. */
static void check_round_trip(void)
{
	char all[255], encoded[3 * sizeof(all) + 1];
	size_t i, len;
	long decoded;

	for (i = 0; i < sizeof(all); i++)
		all[i] = (char)(i + 1);
	len = rlock_percent_encode(all, sizeof(all), "", encoded, sizeof(encoded));
	decoded = rlock_percent_decode(encoded, len);
	CHECK(decoded == (long)sizeof(all) && memcmp(encoded, all, sizeof(all)) == 0,
	      "every byte but NUL comes back");
}

static const struct {
	const char *text;
	size_t len;
	size_t read;
	uint32_t character;
} characters[] = {
	{ "a", 1, 1, 'a' },      { "\xc3\xa4", 2, 2, 0xe4 }, { "\xf0\x9f\x94\x92", 4, 4, 0x1f512 },
	{ "\xc3\xa4", 1, 0, 0 }, { "\xff", 1, 0, 0 },        { "", 0, 0, 0 },
};

static void check_characters(void)
{
	for (size_t i = 0; i < COUNT_OF(characters); i++) {
		uint32_t character = 0;
		size_t read =
			rlock_character_read(characters[i].text, characters[i].len, &character);

		CHECK_NUMBER((int64_t)read, (int64_t)characters[i].read, "bytes of character %zu",
			     i);
		CHECK_NUMBER(character, characters[i].character, "character %zu", i);
	}
}

void test_text(void)
{
	check_characters();
	check_escape();
	check_cuts();
	check_encode();
	check_decode();
	check_round_trip();
}
