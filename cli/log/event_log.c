/*
 * Puts an event into lines. A value of any bytes stays on its line, in its field, and on a terminal without effect.
 * Where a line goes is log_sink.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <syslog.h>

#include "base/json.h"
#include "base/message.h"
#include "base/user.h"
#include "base/wall_clock.h"
#include "lib/rlock.h"
#include "log/event_log.h"
#include "log/log_sink.h"

/* ---- a line ---- */

/* Begin with out and is_json, and all else zero. Whether out took all of it is for the caller to check. */
struct log_line {
	FILE *out;
	bool is_json; /* an object; else key=value, quoted where that is needed */
	bool has_fields;
	struct json json;
};

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

static void log_line_begin(struct log_line *line)
{
	line->json = (struct json){ .out = line->out };
	if (line->is_json)
		json_open(&line->json, NULL, '{');
}

/* With a newline. */
static void log_line_end(struct log_line *line)
{
	if (line->is_json)
		json_close(&line->json, '}');
	(void)putc('\n', line->out);
}

/* Any bytes. */
static void log_line_bytes(struct log_line *line, const char *key, const char *bytes, size_t len)
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

static void log_line_text(struct log_line *line, const char *key, const char *text)
{
	log_line_bytes(line, key, text, strlen(text));
}

static void log_line_number(struct log_line *line, const char *key, int64_t number)
{
	if (line->is_json) {
		json_number(&line->json, key, number);
		return;
	}
	put_key(line, key);
	(void)fprintf(line->out, "%" PRId64, number);
}

/* ---- an event ---- */

static const struct {
	const char *name;
	int priority;
	bool is_of_hold; /* the lock was held until then */
} kinds[] = {
	[EVENT_WAITED] = { "waited", LOG_INFO, false },
	[EVENT_ACQUIRED] = { "acquired", LOG_INFO, false },
	[EVENT_BUSY] = { "busy", LOG_INFO, false },
	[EVENT_TIMED_OUT] = { "timed_out", LOG_INFO, false },
	[EVENT_CANCELLED] = { "cancelled", LOG_INFO, false },
	[EVENT_FAILED] = { "failed", LOG_WARNING, false },
	[EVENT_RELEASED] = { "released", LOG_INFO, true },
	[EVENT_EXPIRES] = { "expires", LOG_WARNING, true },
	[EVENT_LOST] = { "lost", LOG_WARNING, true },
	[EVENT_BROKEN] = { "broken", LOG_WARNING, true },
};

/* What is left out of a line that would be too long: nothing, then all up to one of these. */
enum left_out { LEFT_OUT_NOTHING, LEFT_OUT_SERVER, LEFT_OUT_NOTE, LEFT_OUT_REASON, LEFT_OUT_COUNT };

static bool has_json;
static struct event_hold current;

int event_log_setup(const char *target, bool is_json)
{
	has_json = is_json;
	return log_sink_setup(target);
}

bool event_log_is_on(void)
{
	return log_sink_is_open();
}

void event_log_set_hold(const struct event_hold *hold)
{
	current = *hold;
}

void event_log_set_acquired(const struct rlock_hold *hold, int64_t acquired_ms)
{
	current.hold = hold;
	current.acquired_ms = acquired_ms;
}

enum event_kind event_kind_of_release(enum rlock_status status)
{
	if (status == RLOCK_OK || status == RLOCK_NOT_NOTIFIED)
		return EVENT_RELEASED;
	return status == RLOCK_NOT_HELD ? EVENT_LOST : EVENT_EXPIRES;
}

static void put_text(struct log_line *line, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		log_line_text(line, key, text);
}

static void put_holder(struct log_line *line, size_t index)
{
	const char *owner =
		current.hold != NULL ? rlock_hold_owner(current.hold, index) : current.owner;
	char uid[USER_UID_MAX];
	struct utsname host;

	put_text(line, "owner", owner);
	if (uname(&host) == 0)
		put_text(line, "host", host.nodename);
	if (current.pid != 0)
		log_line_number(line, "pid", current.pid);
	put_text(line, "user", user_name(uid));
}

static void put_course(struct log_line *line, const struct event *event)
{
	if (event->kind <= EVENT_FAILED)
		log_line_number(line, "waited_ms", event->waited_ms);
	if (kinds[event->kind].is_of_hold && current.acquired_ms != 0)
		log_line_number(line, "held_ms", rlock_now_ms() - current.acquired_ms);
	if (event->kept_ms > 0)
		log_line_number(line, "kept_ms", event->kept_ms);
	if (event->has_ended && event->signal != 0)
		log_line_number(line, "signal", event->signal);
	else if (event->has_ended)
		log_line_number(line, "status", event->status);
}

static void put_fields(struct log_line *line, const struct event *event, size_t index,
		       enum left_out left_out)
{
	const struct rlock_name *name = &current.names[index];
	char at[WALL_CLOCK_TEXT_MAX];

	(void)wall_clock_print(true, at);
	log_line_text(line, "time", at);
	log_line_text(line, "event", kinds[event->kind].name);
	log_line_bytes(line, "name", name->text, name->len);
	if (current.kind != RLOCK_ANY)
		log_line_text(line, "kind", rlock_kind_name(current.kind));
	put_holder(line, index);
	put_course(line, event);
	if (left_out < LEFT_OUT_REASON)
		put_text(line, "reason", event->reason);
	if (left_out < LEFT_OUT_NOTE)
		put_text(line, "note", current.note);
	if (left_out < LEFT_OUT_SERVER)
		put_text(line, "server", current.server);
}

/* The line, malloc'ed; NULL when out of memory. */
static char *make_line(const struct event *event, size_t index, enum left_out left_out,
		       size_t *len_out)
{
	struct log_line line = { .is_json = has_json };
	char *text = NULL;

	line.out = open_memstream(&text, len_out);
	if (line.out == NULL)
		return NULL;
	log_line_begin(&line);
	put_fields(&line, event, index, left_out);
	log_line_end(&line);
	if (fclose(line.out) == 0)
		return text;
	free(text);
	return NULL;
}

/* False for a line that is too long. */
static bool write_line(const struct event *event, size_t index, enum left_out left_out)
{
	size_t len = 0;
	char *line = make_line(event, index, left_out, &len);
	bool has_room = len <= LOG_LINE_MAX;

	if (line == NULL)
		message_warning("--log: out of memory: a line is missing");
	else if (has_room)
		log_sink_write(line, len, kinds[event->kind].priority);
	free(line);
	return has_room;
}

void event_log(const struct event *event)
{
	if (!log_sink_is_open())
		return;
	for (size_t i = 0; i < current.name_count; i++)
		for (enum left_out left_out = LEFT_OUT_NOTHING;
		     left_out < LEFT_OUT_COUNT && !write_line(event, i, left_out); left_out++)
			;
}
