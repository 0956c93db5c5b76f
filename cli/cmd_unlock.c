/*
 * unlock: release the caller's most recent hold, or that of --owner; or, with --force, break the lock of any holder.
 * caller_hold.c finds the hold of the caller, and hold_file.c excludes other unlocks.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "caller.h"
#include "caller_hold.h"
#include "hold/finish.h"
#include "log/event_log.h"
#include "options/names.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "verbs.h"

/* How long to wait for a renewer to end after SIGKILL. It takes some milliseconds, and more on a busy machine. */
#define RENEWER_END_MS 1000

/* Reports how a release ended, unless it was done. Returns the exit code. */
static int end_release(const struct opts *opts, const struct rlock_conn *conn,
		       enum rlock_status status)
{
	char name[NAME_SHOWN_MAX];

	if (status == RLOCK_OK)
		return 0;
	if (status == RLOCK_NOT_NOTIFIED) {
		message_warning("%s: released, but waiters were not notified: %s",
				names_show_one(opts, rlock_conn_error_name(conn), name),
				rlock_conn_error(conn));
		return 0;
	}
	if (status == RLOCK_NOT_HELD) {
		message_error("%s: lock lost before it was released: %s",
			      names_show_one(opts, rlock_conn_error_name(conn), name),
			      rlock_conn_error(conn));
		return EXIT_LOST;
	}
	return caller_report_failure(opts, conn, status);
}

/* ---- its events ---- */

/* Of a hold that is found by its owner, only what the command line says is known. */
static void begin_events(const struct opts *opts, const char *owner)
{
	if (!event_log_is_on())
		return;
	event_log_set_hold(&(struct event_hold){
		.names = opts->names,
		.name_count = opts->name_count,
		.kind = opts->mode,
		.server = opts->server,
		.owner = owner,
		.pid = getpid(),
	});
}

/* A release that failed can be repeated: what is not over is not logged. */
static void log_release(const struct rlock_conn *conn, enum rlock_status status)
{
	struct event event = { .kind = event_kind_of_release(status) };

	if (event.kind == EVENT_LOST)
		event.reason = rlock_conn_error(conn);
	if (event.kind != EVENT_EXPIRES)
		event_log(&event);
}

static void log_file_release(const struct opts *opts, const struct rlock_conn *conn,
			     const struct hold_file *file, enum rlock_status status)
{
	for (size_t i = 0; i < file->name_count; i++) {
		event_log_set_hold(&(struct event_hold){
			.names = &file->names[i],
			.name_count = 1,
			.kind = file->kind,
			.server = opts->server,
			.owner = file->owners[i],
			.pid = file->pid,
			.acquired_ms = file->acquired_ms,
		});
		log_release(conn, status);
	}
}

/* ---- the caller's hold ---- */

/*
 * Kills the renewer. A renewal on its way does no harm after the release, but a second release by the renewer might,
 * and a renewer that went on would find its lock lost. 0, or the exit code when the renewer cannot be killed.
 * *was_running is set when it ran until now.
 */
static int kill_renewer(const struct hold_file *file, bool *was_running)
{
	struct pollfd ended = { -1, POLLIN, 0 };
	struct proc renewer;
	int error;

	/* Without its start time it might be another process that got its pid. */
	if (file->renewer <= 0 || file->renewer_start == 0)
		return 0;
	ended.fd = proc_open(file->renewer, file->renewer_start);
	*was_running = ended.fd >= 0 && proc_read(file->renewer, &renewer) &&
		       !proc_is_gone(&renewer) && renewer.state != 'T';
	error = ended.fd < 0 ? errno : os_process_signal(ended.fd, SIGKILL);
	if (error == 0)
		(void)rlock_poll(&ended, 1, rlock_now_ms() + RENEWER_END_MS);
	if (ended.fd >= 0)
		(void)close(ended.fd);
	if (error == 0 || error == ESRCH)
		return 0;
	message_error("cannot kill the renewer, process %d: %s", (int)file->renewer,
		      strerror(error));
	return EXIT_SYSTEM;
}

/*
 * Whether the lock was certainly held. A lock that was not renewed for an unknown time may have expired: if it is not
 * on the server then, that does not prove that an earlier request, whose reply was lost, has released it.
 */
static bool has_lease(const struct hold_file *file, bool was_renewed)
{
	return (was_renewed && !file->is_fixed_lease) ||
	       rlock_now_ms() < file->sent_ms + file->lease_ms;
}

static int release_claimed(const struct opts *opts, struct rlock_conn *conn, struct hold_file *file,
			   bool was_renewed)
{
	bool was_held = has_lease(file, was_renewed);
	struct rlock_hold *hold = NULL;
	enum rlock_status status;
	char names[NAMES_SHOWN_MAX];

	if (file->is_lost) {
		hold_file_remove(file);
		message_error(
			"%s: lock lost before it was released: its renewer found that out earlier",
			names_show(opts->names, opts->name_count, names));
		return EXIT_LOST;
	}
	if (rlock_hold_new(file->kind, file->names, file->name_count, file->hold_id, file->sent_ms,
			   file->lease_ms, &hold) != RLOCK_OK)
		return message_out_of_memory();
	/* The file knows the first request only; renewals came after it. */
	if (was_held && !file->is_fixed_lease)
		rlock_hold_set_sent_ms(hold, rlock_now_ms());
	status = finish_release(conn, hold);
	rlock_hold_free(hold);
	/* The server may have carried out an earlier try to release: the hold that it removed was not lost. */
	if (status == RLOCK_NOT_HELD && file->is_abandoned)
		status = RLOCK_OK;
	log_file_release(opts, conn, file, status);
	if (status >= 0) {
		hold_file_remove(file);
	} else {
		/* The caller may try again. */
		file->is_abandoned = file->is_abandoned || was_held;
		(void)hold_file_save(file);
	}
	return end_release(opts, conn, status);
}

static int release(const struct opts *opts, struct rlock_conn *conn, struct hold_file *file)
{
	bool was_running = false, is_ours = false;
	int code = kill_renewer(file, &was_running);

	if (code != 0)
		return code;
	/* The renewer writes the file, too, so the claim comes after its end. */
	code = hold_file_claim(file, &is_ours);
	if (code != 0)
		return code;
	/* Another unlock was faster: there may be an earlier hold. */
	return is_ours ? release_claimed(opts, conn, file, was_running) : CALLER_HOLD_FIND_AGAIN;
}

static int unlock_hold(const struct opts *opts, struct rlock_conn *conn,
		       const struct caller_hold *hold)
{
	char names[NAMES_SHOWN_MAX];
	sigset_t all, found_mask;
	int code;

	if (hold->is_run) {
		message_error("%s: held by 'rlock run', which releases it when its command ends",
			      names_show(opts->names, opts->name_count, names));
		return EXIT_NOT_HELD;
	}
	/*
	 * A signal that ends the caller may end us with it, and without its renewer the lock would be held until its
	 * lease ends.
	 */
	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &found_mask);
	code = release(opts, conn, hold->hold_file);
	(void)sigprocmask(SIG_SETMASK, &found_mask, NULL);
	return code;
}

/* ---- the hold of an owner, the lock of any holder ---- */

static int unlock_owner(const struct opts *opts, struct rlock_conn *conn)
{
	struct rlock_hold *hold = NULL;
	char owner[RLOCK_OWNER_MAX];
	enum rlock_status status = caller_find_owned(opts, conn, owner, &hold);
	int code;

	if (status == RLOCK_OK)
		status = finish_release(conn, hold);
	if (status == RLOCK_NOT_HELD && caller_lost_code(hold) == EXIT_NOT_HELD) {
		code = caller_report(opts, conn, EXIT_NOT_HELD);
	} else {
		begin_events(opts, owner);
		log_release(conn, status);
		code = end_release(opts, conn, status);
	}
	rlock_hold_free(hold);
	return code;
}

static int break_lock(const struct opts *opts, struct rlock_conn *conn)
{
	char was[RLOCK_OWNER_MAX] = "", note[RLOCK_NOTE_MAX] = "", name[NAME_SHOWN_MAX];
	char holder[HOLDER_SHOWN_MAX];
	enum rlock_status status =
		rlock_break(conn, &opts->names[0], opts->holder, opts->mode, was, note);

	if (status == RLOCK_NOT_HELD || status == RLOCK_BUSY)
		return caller_report(opts, conn, EXIT_NOT_HELD);
	if (status == RLOCK_OK || status == RLOCK_NOT_NOTIFIED) {
		begin_events(opts, was);
		event_log(&(struct event){ .kind = EVENT_BROKEN });
		message_info("%s: lock broken: it was held by %s, which may still run",
			     names_show_one(opts, 0, name), names_show_holder(note, was, holder));
	}
	return end_release(opts, conn, status);
}

static int unlock(const struct opts *opts, struct rlock_conn *conn)
{
	if (opts->force)
		return caller_each_name(opts, conn, break_lock);
	return opts->owner != NULL ? caller_each_name(opts, conn, unlock_owner)
				   : caller_hold_each(opts, conn, "unlock", unlock_hold);
}

int cmd_unlock(const struct verb *verb, struct opts *opts)
{
	(void)verb;
	return caller_run(opts, unlock);
}
