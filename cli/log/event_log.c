/*
 * Puts an event into lines. How a line is written is log_line.c's, and where it goes log_sink.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <syslog.h>

#include "base/message.h"
#include "base/user.h"
#include "base/wall_clock.h"
#include "log/event_log.h"
#include "log/log_line.h"
#include "log/log_sink.h"

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

void event_log_leave_streams(void)
{
	log_sink_leave_streams();
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
