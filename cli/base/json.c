/*
 * Write a JSON document to a stream. The functions do not check for errors: the caller does so once, at the end.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "lib/rlock.h"

/* Write \uXXXX; for a character above 16 bits two such escapes, as JSON requires. */
static void put_escape(uint32_t character, FILE *out)
{
	if (character > 0xffff) {
		character -= 0x10000;
		(void)fprintf(out, "\\u%04" PRIx32, 0xd800 + (character >> 10));
		character = 0xdc00 + (character & 0x3ff);
	}
	(void)fprintf(out, "\\u%04" PRIx32, character);
}

/* Write a string. A byte that is not UTF-8 becomes the text \xNN. False: text has such a byte. */
static bool put_string(const char *text, size_t len, FILE *out)
{
	bool is_utf8 = true;
	size_t read;

	(void)putc('"', out);
	for (size_t at = 0; at < len; at += read) {
		uint32_t character = 0;
		char shown[32];

		read = rlock_character_read(text + at, len - at, &character);
		if (read == 0) {
			(void)fprintf(out, "\\\\x%02x", (unsigned char)text[at]);
			is_utf8 = false;
			read = 1;
			continue;
		}
		(void)rlock_escape(text + at, read, shown, sizeof(shown));
		if (character == '"' || character == '\\')
			(void)fprintf(out, "\\%c", (char)character);
		else if (strlen(shown) == read && memcmp(shown, text + at, read) == 0)
			(void)fwrite(text + at, 1, read, out);
		else
			put_escape(character, out);
	}
	(void)putc('"', out);
	return is_utf8;
}

static void put_key(struct json *json, const char *key)
{
	if (json->needs_comma)
		(void)putc(',', json->out);
	if (key != NULL)
		(void)fprintf(json->out, "\"%s\":", key);
	json->needs_comma = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
	put_key(json, key);
	(void)putc(bracket, json->out);
	json->needs_comma = false;
}

void json_close(struct json *json, char bracket)
{
	(void)putc(bracket, json->out);
	json->needs_comma = true;
}

void json_number(struct json *json, const char *key, int64_t number)
{
	put_key(json, key);
	(void)fprintf(json->out, "%" PRId64, number);
}

void json_bool(struct json *json, const char *key, bool is_true)
{
	put_key(json, key);
	(void)fputs(is_true ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
	put_key(json, key);
	(void)fputs("null", json->out);
}

void json_text(struct json *json, const char *key, const char *text)
{
	if (text[0] == '\0') {
		json_null(json, key);
		return;
	}
	put_key(json, key);
	(void)put_string(text, strlen(text), json->out);
}

static void put_base64(const char *bytes, size_t len, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	(void)putc('"', out);
	for (size_t at = 0; at < len; at += 3) {
		uint32_t group = (uint32_t)(unsigned char)bytes[at] << 16;

		if (at + 1 < len)
			group |= (uint32_t)(unsigned char)bytes[at + 1] << 8;
		if (at + 2 < len)
			group |= (unsigned char)bytes[at + 2];
		(void)putc(digits[group >> 18], out);
		(void)putc(digits[group >> 12 & 63], out);
		(void)putc(at + 1 < len ? digits[group >> 6 & 63] : '=', out);
		(void)putc(at + 2 < len ? digits[group & 63] : '=', out);
	}
	(void)putc('"', out);
}

void json_bytes(struct json *json, const char *key, const char *bytes, size_t len)
{
	put_key(json, key);
	if (put_string(bytes, len, json->out))
		return;
	(void)fprintf(json->out, ",\"%s_base64\":", key);
	put_base64(bytes, len, json->out);
}
