/*
 * Puts together the messages about a wait, of what the server has told of the holder. The first of them is only for a
 * terminal or with -v; which of the others are printed, message.c decides.
 */
#include "wait_report.h"

#include <stdio.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/message.h"
#include "options/names.h"

#define HELD_TEXT_MAX (DURATION_TEXT_MAX + 16)

/* ", held for 2m": words and time; empty when that is not known. Returns out. */
static char *print_held(const char *words, int64_t held_ms, char out[HELD_TEXT_MAX])
{
	char age[DURATION_TEXT_MAX];

	out[0] = '\0';
	if (held_ms >= 0)
		(void)snprintf(out, HELD_TEXT_MAX, "%s %s", words,
			       duration_print_rough(held_ms, age));
	return out;
}

void wait_report_blocker(const struct opts *opts, const struct rlock_blocker *blocker)
{
	char name[NAME_SHOWN_MAX], note[RLOCK_NOTE_MAX], owner[RLOCK_OWNER_MAX];
	char holder[HOLDER_SHOWN_MAX], held[HELD_TEXT_MAX], position[48] = "";

	if (!message_is_verbose() && !isatty(STDERR_FILENO))
		return;
	(void)rlock_escape(blocker->owner, blocker->owner_len, owner, sizeof(owner));
	(void)rlock_escape(blocker->note, blocker->note_len, note, sizeof(note));
	if (blocker->position > 0)
		(void)snprintf(position, sizeof(position), ", position %zu in the queue",
			       blocker->position);
	(void)names_show_one(opts, blocker->name_index, name);
	if (blocker->young_server != NULL) {
		message_info("%s: waiting: %s was started less than a lease ago", name,
			     blocker->young_server);
		return;
	}
	if (blocker->owner_len == 0 && (blocker->is_waiter || opts->permits > 0)) {
		message_info("%s: waiting%s", name,
			     blocker->is_waiter ? ": kept for the next waiter"
						: ": too few permits in all");
		return;
	}
	message_info("%s: waiting for %s%s%s", name, names_show_holder(note, owner, holder),
		     print_held(", held for", blocker->held_ms, held), position);
}

void wait_report_busy(const struct opts *opts, const struct rlock_conn *conn)
{
	char name[NAME_SHOWN_MAX], waited[DURATION_TEXT_MAX], held[HELD_TEXT_MAX];

	(void)names_show_one(opts, rlock_conn_error_name(conn), name);
	(void)print_held(", for", rlock_conn_error_held_ms(conn), held);
	if (opts->no_wait)
		message_debug("%s: busy: %s%s", name, rlock_conn_error(conn), held);
	else
		message_info("%s: timed out after %s: %s%s", name,
			     duration_print(opts->wait_ms, waited), rlock_conn_error(conn), held);
}

void wait_report_acquired(const struct opts *opts, int64_t waited_ms)
{
	char names[NAMES_SHOWN_MAX], waited[DURATION_TEXT_MAX];

	if (!message_is_verbose())
		return;
	message_debug("%s: acquired after %s", names_show(opts->names, opts->name_count, names),
		      duration_print_rough(waited_ms, waited));
}
