/*
 * Make bytes of users and of the network safe for a terminal, decode those of a URL, and parse numbers. Nothing depends on the locale.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "rlock.h"

#define ELLIPSIS "..."

/* Longest output for one character: an escape for each of four bytes. */
#define PIECE_MAX 16

static size_t utf8_read(const unsigned char *text, size_t len, uint32_t *character_out)
{
	/* The smallest character of each length. A smaller one is invalid: it needs fewer bytes. */
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t character = text[0];
	size_t need, i;

	if (text[0] < 0x80) {
		need = 1;
	} else if (text[0] >= 0xc2 && text[0] < 0xe0) {
		need = 2;
		character &= 0x1f;
	} else if (text[0] >= 0xe0 && text[0] < 0xf0) {
		need = 3;
		character &= 0x0f;
	} else if (text[0] >= 0xf0 && text[0] < 0xf5) {
		need = 4;
		character &= 0x07;
	} else {
		return 0;
	}
	if (need > len)
		return 0;
	for (i = 1; i < need; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (character < smallest[need] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff))
		return 0;
	*character_out = character;
	return need;
}

size_t rlock_character_read(const char *text, size_t len, uint32_t *character_out)
{
	return len == 0 ? 0 : utf8_read((const unsigned char *)text, len, character_out);
}

/*
 * Whether a terminal would execute the character, reorder the text around it, or show nothing: two different names could then look
 * alike.
 */
static bool is_unseen(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00, 0x1f },     /* C0 */
		{ 0x7f, 0x9f },     /* DEL, C1 */
		{ 0xad, 0xad },     /* soft hyphen */
		{ 0x061c, 0x061c }, /* Arabic letter mark */
		{ 0x180e, 0x180e }, /* Mongolian vowel separator */
		{ 0x200b,
		  0x200f }, /* no width: space, joiners; left-to-right and right-to-left mark */
		{ 0x2028, 0x2029 },   /* line and paragraph separator: a message is one line */
		{ 0x202a, 0x202e },   /* embeddings and overrides */
		{ 0x2060, 0x2064 },   /* word joiner, invisible operators */
		{ 0x2066, 0x2069 },   /* isolates */
		{ 0xfeff, 0xfeff },   /* byte order mark */
		{ 0xe0000, 0xe0fff }, /* tags */
	};
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (character >= ranges[i].first && character <= ranges[i].last)
			return true;
	}
	return false;
}

/* Print the first character of text safely into piece. *read_out: how many bytes of text were read. */
static size_t piece_make(const unsigned char *text, size_t len, char piece[PIECE_MAX],
			 size_t *read_out)
{
	static const char hex[] = "0123456789abcdef";
	uint32_t character = 0;
	size_t read = utf8_read(text, len, &character);
	size_t made = 0;
	size_t i;

	*read_out = read == 0 ? 1 : read;
	if (read != 0 && !is_unseen(character)) {
		memcpy(piece, text, read);
		return read;
	}
	for (i = 0; i < *read_out; i++) {
		piece[made++] = '\\';
		piece[made++] = 'x';
		piece[made++] = hex[text[i] >> 4];
		piece[made++] = hex[text[i] & 0x0f];
	}
	return made;
}

char *rlock_escape(const char *text, size_t len, char *out, size_t out_size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t room = out_size - 1;
	size_t used = 0, cut = 0, at = 0;

	assert(out_size >= 8);
	while (at < len) {
		char piece[PIECE_MAX];
		size_t read, made;

		made = piece_make(bytes + at, len - at, piece, &read);
		if (made > room - used) {
			memcpy(out + cut, ELLIPSIS, strlen(ELLIPSIS));
			used = cut + strlen(ELLIPSIS);
			break;
		}
		memcpy(out + used, piece, made);
		used += made;
		at += read;
		/* Remember the last position that leaves room for the ellipsis: the text is cut there. */
		if (used + strlen(ELLIPSIS) <= room)
			cut = used;
	}
	out[used] = '\0';
	return out;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

size_t rlock_percent_encode(const char *text, size_t len, const char *keep, char *out,
			    size_t out_size)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t needed = 0, used = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];
		char piece[3] = { '%', hex[byte >> 4], hex[byte & 0x0f] };
		size_t made = sizeof(piece);

		if (is_unreserved(text[i]) || (byte != 0 && strchr(keep, text[i]) != NULL)) {
			piece[0] = text[i];
			made = 1;
		}
		/* The first piece that does not fit ends the output, even if shorter pieces come after it. */
		if (used == needed && used + made < out_size) {
			memcpy(out + used, piece, made);
			used += made;
		}
		needed += made;
	}
	if (out_size > 0)
		out[used] = '\0';
	return needed;
}

/* The value of a hexadecimal digit, or -1. */
static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The byte of "%NN". -1: malformed, or a NUL, which would end the string. */
static int escape_value(const char *text, size_t len)
{
	int high, low;

	if (len < 3)
		return -1;
	high = hex_value(text[1]);
	low = hex_value(text[2]);
	if (high < 0 || low < 0 || (high == 0 && low == 0))
		return -1;
	return high * 16 + low;
}

long rlock_percent_decode(char *text, size_t len)
{
	size_t at, used = 0;

	/* Check first, then write: a malformed text must stay unchanged. */
	for (at = 0; at < len; at++) {
		if (text[at] == '%' && escape_value(text + at, len - at) < 0)
			return -1;
	}
	for (at = 0; at < len; at++) {
		if (text[at] == '%') {
			text[used++] = (char)escape_value(text + at, len - at);
			at += 2;
		} else {
			text[used++] = text[at];
		}
	}
	text[used] = '\0';
	return (long)used;
}

bool rlock__text_append(struct rlock__text *text, const char *bytes, size_t len)
{
	char *longer = realloc(text->text, text->len + len);

	if (longer == NULL)
		return false;
	memcpy(longer + text->len, bytes, len);
	text->text = longer;
	text->len += len;
	return true;
}

void rlock__text_fill(char *out, size_t size, const char *text, const char *name,
		      const char *reason)
{
	char *end = out + size - 1;

	for (; *text != '\0'; text++) {
		const char *piece = *text == '@' ? name : *text == '*' ? reason : text;
		size_t len = piece == text ? 1 : strlen(piece);

		if (len > (size_t)(end - out))
			len = (size_t)(end - out);
		out = mempcpy(out, piece, len);
	}
	*out = '\0';
}

bool rlock__decimal_parse(const char *text, size_t len, int64_t *out)
{
	char *end;
	long long number;

	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || end != text + len)
		return false;
	*out = number;
	return true;
}

#define FNV_PRIME UINT64_C(0x100000001b3)

/* FNV-1a, then the finalizer of MurmurHash3: the last bytes must affect all bits. */
uint64_t rlock__hash(uint64_t seed, const void *bytes, size_t len)
{
	const unsigned char *byte = bytes;
	uint64_t value = seed;

	for (size_t i = 0; i < len; i++)
		value = (value ^ byte[i]) * FNV_PRIME;
	value ^= value >> 33;
	value *= UINT64_C(0xff51afd7ed558ccd);
	value ^= value >> 33;
	return value != 0 ? value : 1;
}
