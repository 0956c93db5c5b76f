/*
 * stop: ask the holders of a lock to end their commands and to release it, and wait until their holds have ended. hold/lease.c decides
 * what a request does to a holder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "base/units.h"
#include "caller.h"
#include "hold/finish.h"
#include "log/event_log.h"
#include "options/opts.h"
#include "options/usage.h"
#include "sys/proc.h"
#include "verbs.h"

/* Pause between two requests that ask whether the holds have ended: short at first, then doubled up to the maximum. */
#define POLL_MIN_MS 10
#define POLL_MAX_MS 250
/*
 * The pause has at least a millisecond for each HOLDS_PER_MS holds. A request about thousands of holds takes the server
 * some ms, in which it does not serve other clients.
 */
#define HOLDS_PER_MS 5
/* When to report first which holder is waited for, and how often to repeat the report. */
#define PROGRESS_MS 1000
#define PROGRESS_AGAIN_MS 60000
/* Without --wait: how long to retry a server that was lost during the wait. */
#define LOST_SERVER_MS 60000

/* ---- one name ---- */

struct stopping {
	struct opts opts; /* the options with this name only */
	struct rlock_stop_request stop;
	bool is_waiting; /* some of the holds that were asked to stop have not ended */
	int code;
};

/* Returns why the hold cannot be asked to stop. */
static const char *why_not(const struct rlock_stop_hold *hold)
{
	if (hold->id[0] == '\0')
		return "it is not rlock, but for example a Java client";
	if (hold->ttl_ms < 0)
		return "its lease has ended, and the key has lost its TTL";
	if (hold->record.purpose == RLOCK_PURPOSE_KEPT)
		return "--at-least keeps it after its job";
	if (hold->record.purpose == RLOCK_PURPOSE_OWNER)
		return "no process belongs to it (--owner)";
	if (hold->record.purpose == RLOCK_PURPOSE_COMMAND)
		return "it has a fixed lease (--lease)";
	return "it has a fixed lease (--lease), or is a process of --pid with --on-lost ignore";
}

#define END_TEXT_MAX (WALL_CLOCK_TEXT_MAX + DURATION_TEXT_MAX)

/* Print when the hold expires. Empty: this is not known. */
static const char *print_end(const struct rlock_stop_hold *hold, char out[END_TEXT_MAX])
{
	int64_t until_ms = rlock_owner_kept_until_ms(hold->owner, strlen(hold->owner));
	char text[END_TEXT_MAX];

	out[0] = '\0';
	if (hold->record.purpose == RLOCK_PURPOSE_KEPT && until_ms >= 0)
		(void)snprintf(out, END_TEXT_MAX, ", until %s",
			       wall_clock_print_of(until_ms, text));
	else if (hold->ttl_ms >= 0 && hold->id[0] != '\0')
		(void)snprintf(out, END_TEXT_MAX, "; its lease ends within %s",
			       duration_print_rough(hold->ttl_ms, text));
	return out;
}

static void report_not_askable(const struct opts *opts, const struct rlock_stop_hold *hold)
{
	char name[NAME_SHOWN_MAX], holder[HOLDER_SHOWN_MAX], end[END_TEXT_MAX];
	char *owner = (char *)hold->owner;
	bool has_owner = owner[0] != '\0';
	struct usage_line line;

	usage_line(&line, PLAIN("rlock unlock --force"),
		   { has_owner ? "--holder" : NULL, &owner, has_owner ? 1 : 0 });
	usage_line_add_names(&line, opts->names, 1);
	/* Permits without a record have no owner, so only all of them can be broken together. */
	if (!has_owner)
		message_error(
			"%s: a client without a record cannot be asked: %s; end it there, then break "
			"all permits; try: %s",
			names_show_one(opts, 0, name), why_not(hold), line.text);
	else
		message_error(
			"%s: %s cannot be asked: %s%s; %stry: %s", names_show_one(opts, 0, name),
			names_show_holder(hold->note, hold->owner, holder), why_not(hold),
			print_end(hold, end),
			hold->record.purpose == RLOCK_PURPOSE_KEPT ? "" : "end it there, then ",
			line.text);
}

/* Report the holds that cannot be asked. For the others set is_waiting and, only if is_first, log the request. */
static void report_holds(struct stopping *stopping, const char *by, bool is_first)
{
	const struct rlock_stop_request *stop = &stopping->stop;
	char name[NAME_SHOWN_MAX], holder[HOLDER_SHOWN_MAX];

	stopping->is_waiting = false;
	for (size_t i = 0; i < stop->count; i++) {
		const struct rlock_stop_hold *hold = &stop->holds[i];

		if (!hold->can_be_asked) {
			report_not_askable(&stopping->opts, hold);
			stopping->code = EXIT_CONFLICT;
			continue;
		}
		stopping->is_waiting = true;
		if (!is_first)
			continue;
		event_log_set_hold(&(struct event_hold){
			.names = stopping->opts.names,
			.name_count = 1,
			.kind = RLOCK_ANY,
			.server = stopping->opts.server,
			.note = hold->note,
			.owner = hold->owner,
			.pid = getpid(),
		});
		event_log(&(struct event){ .kind = EVENT_STOP_REQUESTED, .reason = by });
		message_debug("%s: asked %s to stop", names_show_one(&stopping->opts, 0, name),
			      names_show_holder(hold->note, hold->owner, holder));
	}
}

/*
 * Send the request to stop, or later ask which holds are left. Returns RLOCK_ENET if a retry may succeed. Otherwise
 * returns RLOCK_OK; then a failure is already reported, and has set the exit code.
 */
static enum rlock_status ask(struct stopping *stopping, struct rlock_conn *conn, const char *by,
			     int64_t end_ms)
{
	const struct opts *opts = &stopping->opts;
	bool is_first = !stopping->stop.is_answered;
	enum rlock_status status =
		rlock_request_stop(conn, &opts->names[0], opts->holder, by,
				   min(rlock_now_ms() + DELIVERY_MS, end_ms), &stopping->stop);
	char name[NAME_SHOWN_MAX], owner[USAGE_SHOWN_MAX];

	if (status == RLOCK_ENET)
		return status;
	stopping->is_waiting = false;
	(void)names_show_one(opts, 0, name);
	if (status == RLOCK_OK) {
		report_holds(stopping, by, is_first);
	} else if (status != RLOCK_NOT_HELD) {
		stopping->code = caller_report_failure(opts, conn, status);
	} else if (stopping->stop.was_held) {
		message_debug("%s: stopped", name);
	} else {
		stopping->code = EXIT_NOT_HELD;
		if (opts->holder != NULL)
			message_error("%s: not held by owner '%s'", name,
				      usage_show(opts->holder, owner));
		else
			message_error("%s: not held; 'rlock list' shows what is held", name);
	}
	return RLOCK_OK;
}

/* ---- all names ---- */

struct round {
	struct stopping *names;
	size_t count;
	size_t holds; /* number of holds that are waited for */
	char by[RLOCK_NOTE_MAX];
	bool is_unreached; /* the last request for at least one name got no reply */
	/* A server has replied, or --wait was given. So if a server is lost, wait for it. */
	bool is_begun;
};

/*
 * For each name, report the first holder that is waited for. is_end: the wait is over. Then also report how to break the
 * lock, because the lease of a dead holder may last for hours.
 */
static void report_waiting(const struct round *round, bool is_end)
{
	char name[NAME_SHOWN_MAX], holder[HOLDER_SHOWN_MAX];
	char left[DURATION_TEXT_MAX], next[DURATION_TEXT_MAX + 80];

	for (size_t i = 0; i < round->count; i++) {
		const struct stopping *stopping = &round->names[i];

		for (size_t n = 0; stopping->is_waiting && n < stopping->stop.count; n++) {
			const struct rlock_stop_hold *hold = &stopping->stop.holds[n];
			bool has_ended = proc_has_ended_here(&hold->record.process);
			char *owner = (char *)hold->owner;
			struct usage_line line;

			if (!hold->can_be_asked)
				continue;
			/*
			 * Print the remaining lease. Before the lease ends, a holder that runs renews it, and so reads the
			 * request. If its process has ended, the lock is free when the lease ends.
			 */
			(void)duration_print_rough(hold->ttl_ms, left);
			if (has_ended)
				(void)snprintf(
					next, sizeof(next),
					"; its process has ended, and the lease ends within %s",
					left);
			else
				(void)snprintf(
					next, sizeof(next),
					"; its next renewal is within a third of its --ttl, %s at the latest",
					left);
			usage_line(&line, PLAIN("rlock unlock --force"), { "--holder", &owner, 1 });
			usage_line_add_names(&line, stopping->opts.names, 1);
			message_info("%s: %s %s%s%s%s", names_show_one(&stopping->opts, 0, name),
				     is_end ? "still held, and asked to stop:"
					    : "asked to stop, waiting for:",
				     names_show_holder(hold->note, hold->owner, holder), next,
				     !is_end     ? ""
				     : has_ended ? "; if its command has ended as well, try: "
						 : "; if its machine is dead, try: ",
				     is_end ? line.text : "");
			break;
		}
	}
}

/* Ask about each name whose holds have not ended. Returns whether any name still has such holds. */
static bool poll_holds(struct round *round, struct rlock_conn *conn, int64_t end_ms)
{
	bool is_waiting = false;

	round->holds = 0;
	round->is_unreached = false;
	for (size_t i = 0; i < round->count; i++) {
		struct stopping *stopping = &round->names[i];

		if (stopping->is_waiting && ask(stopping, conn, round->by, end_ms) != RLOCK_OK)
			round->is_unreached = true;
		round->is_begun = round->is_begun || stopping->stop.was_held;
		is_waiting = is_waiting || stopping->is_waiting;
		round->holds += stopping->is_waiting ? stopping->stop.count : 0;
	}
	return is_waiting;
}

/* Report the end of the wait, and set the exit codes of the names whose holds have not ended. */
static void end_wait(struct round *round, const struct rlock_conn *conn)
{
	if (!round->is_unreached)
		report_waiting(round, true);
	for (size_t i = 0; i < round->count; i++) {
		struct stopping *stopping = &round->names[i];

		if (!stopping->is_waiting)
			continue;
		stopping->code = round->is_unreached
					 ? caller_report_failure(&stopping->opts, conn, RLOCK_ENET)
					 : EXIT_CONFLICT;
	}
}

static void await_all(const struct opts *opts, struct rlock_conn *conn, struct round *round)
{
	int64_t begun_ms = rlock_now_ms(), reached_ms = begun_ms, pause_ms = POLL_MIN_MS;
	int64_t end_ms = opts->wait_ms < 0 ? INT64_MAX : rlock_deadline_ms(opts->wait_ms);
	int64_t progress_ms = begun_ms + PROGRESS_MS;

	/* If a server does not reply at the start, wait for it only with --wait. */
	round->is_begun = opts->wait_ms > 0;
	while (poll_holds(round, conn, end_ms)) {
		int64_t now_ms = rlock_now_ms();
		int64_t lost_ms = round->is_begun ? reached_ms + LOST_SERVER_MS : begun_ms;

		if (!round->is_unreached)
			reached_ms = now_ms;
		else if (end_ms == INT64_MAX && now_ms >= lost_ms)
			break;
		if (now_ms >= end_ms)
			break;
		if (now_ms >= progress_ms && (message_is_verbose() || message_is_watched())) {
			progress_ms = now_ms + PROGRESS_AGAIN_MS;
			report_waiting(round, false);
		}
		(void)rlock_poll(NULL, 0,
				 min(now_ms + max(pause_ms, (int64_t)(round->holds / HOLDS_PER_MS)),
				     end_ms));
		pause_ms = min(2 * pause_ms, POLL_MAX_MS);
	}
	end_wait(round, conn);
}

int cmd_stop(const struct opts *opts, struct rlock_conn *conn)
{
	struct round round = { .names = calloc(opts->name_count, sizeof(*round.names)),
			       .count = opts->name_count };
	char user[USER_NAME_MAX];
	struct utsname host;
	int worst = 0;

	if (round.names == NULL)
		return message_out_of_memory();
	if (uname(&host) != 0)
		memcpy(host.nodename, "?", 2);
	(void)snprintf(round.by, sizeof(round.by), "%s@%s", user_name(user), host.nodename);
	for (size_t i = 0; i < round.count; i++) {
		round.names[i].opts = opts_of_name(opts, i);
		round.names[i].is_waiting = true;
	}
	await_all(opts, conn, &round);
	for (size_t i = 0; i < round.count; i++) {
		worst = round.names[i].code > worst ? round.names[i].code : worst;
		rlock_stop_request_clear(&round.names[i].stop);
	}
	free(round.names);
	return worst;
}
