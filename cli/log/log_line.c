/*
 * Writes key=value, as logfmt has it, or leaves it to json.c. A value of any bytes stays on its line, in its field, and
 * on a terminal without effect.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/rlock.h"
#include "log/log_line.h"

/* A value of other bytes than these, or of none, is quoted. */
#define BARE_BYTES                                                                                 \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"!#$%&'()*+,-./:;<>?@[]^_`{|}~"

static bool is_bare(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] == '\0' || strchr(BARE_BYTES, bytes[i]) == NULL)
			return false;
	return len > 0;
}

/* A backslash of the value is doubled, so that what rlock_escape makes of other bytes, \xNN, is told from it. */
static void put_quoted(FILE *out, const char *bytes, size_t len)
{
	size_t at = 0;

	(void)putc('"', out);
	while (at < len) {
		uint32_t character;
		size_t read = rlock_character_read(bytes + at, len - at, &character);
		char shown[32];

		if (read == 0)
			read = 1;
		if (bytes[at] == '"' || bytes[at] == '\\')
			(void)putc('\\', out);
		(void)fputs(rlock_escape(bytes + at, read, shown, sizeof(shown)), out);
		at += read;
	}
	(void)putc('"', out);
}

static void put_key(struct log_line *line, const char *key)
{
	(void)fprintf(line->out, "%s%s=", line->has_fields ? " " : "", key);
	line->has_fields = true;
}

void log_line_begin(struct log_line *line)
{
	line->json = (struct json){ .out = line->out };
	if (line->is_json)
		json_open(&line->json, NULL, '{');
}

void log_line_end(struct log_line *line)
{
	if (line->is_json)
		json_close(&line->json, '}');
	(void)putc('\n', line->out);
}

void log_line_bytes(struct log_line *line, const char *key, const char *bytes, size_t len)
{
	if (line->is_json) {
		json_bytes(&line->json, key, bytes, len);
		return;
	}
	put_key(line, key);
	if (is_bare(bytes, len))
		(void)fwrite(bytes, 1, len, line->out);
	else
		put_quoted(line->out, bytes, len);
}

void log_line_text(struct log_line *line, const char *key, const char *text)
{
	log_line_bytes(line, key, text, strlen(text));
}

void log_line_number(struct log_line *line, const char *key, int64_t number)
{
	if (line->is_json) {
		json_number(&line->json, key, number);
		return;
	}
	put_key(line, key);
	(void)fprintf(line->out, "%" PRId64, number);
}
