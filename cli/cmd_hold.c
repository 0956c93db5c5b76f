/*
 * unlock and renew: release or renew the most recent hold of the caller, or of --owner. unlock --force breaks the lock of any
 * holder. hold_file.c finds the holds of a process, and lets one unlock or renewal at a time change a hold's file.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "hold/finish.h"
#include "log/event_log.h"
#include "options/opts.h"
#include "options/usage.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "verbs.h"

/* ---- the caller's hold: that of its own process, or of the nearest ancestor that has one ---- */

enum { FIND_AGAIN = -1, ONE_BY_ONE = -2 };
/* Act on the caller's hold. Returns the exit code, or FIND_AGAIN if another unlock released the hold first. */
typedef int (*caller_hold_fn)(const struct opts *opts, struct rlock_conn *conn,
			      struct hold_file *hold);

/* Longest wait for the holder's name, which only improves a message. */
#define OTHERS_MS 3000

static bool is_above(pid_t pid, const struct rlock_process *process)
{
	struct proc proc;

	while (proc_is_here(process) && proc_read(pid, &proc)) {
		if (proc_is_of_record(&proc, process))
			return true;
		pid = proc.parent;
	}
	return false;
}

/*
 * Whether root seems to hold the lock for our process or an ancestor, as after `sudo rlock lock --pid $$`. We cannot
 * read root's hold file, so judge by the note, which is sure enough for a message.
 */
static bool is_held_by_root(const struct opts *opts, struct rlock_conn *conn)
{
	const pid_t pid = opts->pid != 0 ? opts->pid : getpid();
	struct rlock_inspection *locks = NULL;
	bool is_found = false;
	size_t count = 0;
	enum rlock_status status;

	if (geteuid() == 0)
		return false;
	status = rlock_inspect(conn, &opts->names[0], rlock_now_ms() + OTHERS_MS, &locks, &count);
	for (size_t i = 0; status == RLOCK_OK && i < count; i++)
		for (size_t j = 0; locks[i].status == RLOCK_OK && j < locks[i].holder_count; j++) {
			const struct rlock_holder *holder = &locks[i].holders[j];

			is_found = is_found || (holder->note.len > 4 &&
						memcmp(holder->note.text, "root", 4) == 0 &&
						is_above(pid, &holder->record.process));
		}
	rlock_inspections_free(locks, count);
	return is_found;
}

static void report_held_by_root(const struct opts *opts, const char *names, const char *process)
{
	struct usage_line line;
	char option[32];

	(void)snprintf(option, sizeof(option), "--pid %d", opts->pid);
	usage_line(&line, PLAIN("sudo rlock"), PLAIN(opts->verb->name),
		   PLAIN(opts->pid != 0 ? option : NULL));
	usage_line_add_names(&line, opts->names, opts->name_count);
	message_error("%s: root holds it for %s; try: %s", names, process, line.text);
}

/*
 * Report that the caller has no hold on these names. near: a similar hold, of other names or on another server; NULL:
 * none. Returns the exit code. If /proc hides the process of --pid, do not say that it holds nothing: it may.
 */
static int report_none(const struct opts *opts, struct rlock_conn *conn,
		       const struct hold_file *near)
{
	const char *user = getenv("SUDO_USER");
	char names[NAMES_SHOWN_MAX], shown[USAGE_SHOWN_MAX], process[32] = "this process";

	if (opts->pid != 0)
		(void)snprintf(process, sizeof(process), "process %d", opts->pid);
	(void)names_show(opts->names, opts->name_count, names);
	if (proc_is_hidden(opts->pid)) {
		message_error("%s: cannot see what %s holds: /proc does not show it (hidepid?)",
			      names, process);
		return EXIT_SYSTEM;
	}
	if (near != NULL)
		return hold_file_report_near(near, opts->names, opts->name_count, opts->server,
					     opts->verb->name, opts->pid);
	if (geteuid() == 0 && user != NULL && strcmp(user, "root") != 0)
		message_error(
			"%s: not held by %s or its ancestors: a lock of user %s is found only "
			"without sudo",
			names, process, usage_show(user, shown));
	else if (is_held_by_root(opts, conn))
		report_held_by_root(opts, names, process);
	else
		message_error(
			"%s: not held by %s or its ancestors; name %sthe owner with --owner ID; "
			"to end another holder: rlock stop NAME",
			names, process, opts->pid != 0 ? "" : "the process with --pid PID, or ");
	return EXIT_NOT_HELD;
}

/*
 * Find the caller's hold that has all names of opts together, and call act with it. Returns the exit code, or
 * ONE_BY_ONE if each name may have a hold of its own.
 */
static int act_on_hold(const struct opts *opts, struct rlock_conn *conn, caller_hold_fn act)
{
	/*
	 * Search from our own process, not from its parent: a shell that executes rlock as its last command becomes
	 * rlock, with the same pid.
	 */
	const pid_t pid = opts->pid != 0 ? opts->pid : getpid();
	struct hold_file *hold, *near;
	int code;

	do {
		hold = hold_file_find(pid, opts->names, opts->name_count, opts->server, opts->mode,
				      &near, &code);
		/*
		 * If there is no hold, each name may have one of its own; and an `rlock run` around us may hold only
		 * some of the names. So act on each name alone.
		 */
		if (code == 0 && (hold == NULL || hold->purpose == RLOCK_PURPOSE_COMMAND) &&
		    opts->name_count > 1)
			code = ONE_BY_ONE;
		else if (code == 0)
			code = hold == NULL ? report_none(opts, conn, near) : act(opts, conn, hold);
		hold_file_free(hold);
		hold_file_free(near);
	} while (code == FIND_AGAIN);
	return code;
}

/*
 * Call act with the most recent hold that has all names together, else with the hold on each name. Returns the worst exit code:
 * EXIT_NOT_HELD for a name without a hold, after one line by message_error.
 */
static int caller_hold_each(const struct opts *opts, struct rlock_conn *conn, caller_hold_fn act)
{
	/*
	 * Check /proc first: the hold of a process that it does not show would count as not held. Nothing else is required: a
	 * container may forbid pidfds, and can renew a lock that was acquired outside.
	 */
	int code = os_require_proc(), worst = 0;

	if (code != 0)
		return code;
	code = act_on_hold(opts, conn, act);
	if (code != ONE_BY_ONE)
		return code;
	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);

		code = act_on_hold(&one, conn, act);
		if (code > worst)
			worst = code;
	}
	return worst;
}

/*
 * Make the hold that a hold file describes; the caller frees it. Returns 0, or the exit code after one line by
 * message_error.
 */
static int open_hold(const struct opts *opts, const struct hold_file *file, const char *what,
		     struct rlock_hold **out)
{
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_record record = { .purpose = file->purpose,
				       .reads_requests = file->reads_requests };
	char names[NAMES_SHOWN_MAX];

	if (file->is_lost) {
		message_error("%s: lock lost before it was %s: its renewer found that out earlier",
			      names_show(opts->names, opts->name_count, names), what);
		return EXIT_LOST;
	}
	proc_describe(file->pid, &record.process);
	spec.kind = file->kind;
	spec.names = file->names;
	spec.name_count = file->name_count;
	spec.id = file->hold_id;
	/*
	 * Pass no owners for an `rlock run`, so that no server that has lost the hold grants it again. Such a grant
	 * would store the note, which is not known here.
	 */
	spec.owners = file->purpose == RLOCK_PURPOSE_COMMAND ? NULL : file->owners;
	spec.note = file->note;
	spec.record = &record;
	spec.sent_ms = file->sent_ms;
	spec.lease_ms = file->lease_ms;
	spec.remember_ms = file->remember_ms;
	return rlock_hold_new(&spec, out) == RLOCK_OK ? 0 : message_out_of_memory();
}

/* ---- replies of the server ---- */

/* Report the text of the last reply, with the name that it is about. Returns code. */
static int report_answer(const struct opts *opts, const struct rlock_conn *conn, int code)
{
	char name[NAME_SHOWN_MAX], until[WALL_CLOCK_TEXT_MAX];
	int64_t until_ms = rlock_conn_failure(conn)->kept_until_ms;

	message_error("%s: %s%s%s", names_show_one(opts, rlock_conn_error_name(conn), name),
		      rlock_conn_error(conn), until_ms >= 0 ? ", until " : "",
		      until_ms >= 0 ? wall_clock_print_of(until_ms, until) : "");
	return code;
}

/*
 * The exit code if the server does not have a hold any more that rlock_find has found: EXIT_LOST if its key was
 * overwritten. Otherwise EXIT_NOT_HELD, since we cannot tell whether the owner has lost or released it.
 */
static int lost_code_of(const struct rlock_hold *found)
{
	return rlock_hold_lease_ms(found) == RLOCK_LEASE_LOST ? EXIT_LOST : EXIT_NOT_HELD;
}

/* ---- renew ---- */

/* Renew a hold and print its TTL. lost_code: the exit code if the server does not have the hold any more. */
static int renew(const struct opts *opts, struct rlock_conn *conn, struct rlock_hold *hold,
		 int64_t lease_ms, int lost_code)
{
	enum rlock_status status =
		rlock_renew_until(conn, hold, lease_ms, rlock_now_ms() + DELIVERY_MS);
	char ttl[DURATION_TEXT_MAX];

	if (status == RLOCK_NOT_HELD)
		return report_answer(opts, conn, lost_code);
	if (status != RLOCK_OK)
		return caller_report_failure(opts, conn, status);
	(void)printf("%s\n", duration_print_rough(rlock_hold_ttl_ms(hold), ttl));
	return output_end(0);
}

/*
 * Find the hold of an `rlock run`, with its note. If the owner has a later hold, or no hold, describe the hold by
 * RLOCK_HELD instead.
 */
static int open_run(const struct opts *opts, struct rlock_conn *conn, const struct hold_file *file,
		    struct rlock_hold **out)
{
	enum rlock_status status =
		rlock_find(conn, &file->names[0], file->owners[0], file->kind,
			   RLOCK_PURPOSE_COMMAND, rlock_now_ms() + DELIVERY_MS, out);

	if (status < 0)
		return caller_report_failure(opts, conn, status);
	if (status == RLOCK_OK && strcmp(rlock_hold_id(*out), file->hold_id) == 0)
		return 0;
	rlock_hold_free(*out);
	*out = NULL;
	return open_hold(opts, file, "renewed", out);
}

/*
 * Store the new end of a fixed lease in the hold file. The renewer of a process reads it from the file, and then terminates the
 * process later. If an unlock has released the hold since the renewal, write nothing: a later unlock would find the file, and
 * report a lost lock.
 */
static int store_renewal(const struct hold_file *file, const struct rlock_hold *hold)
{
	int code;
	struct hold_file *claimed = hold_file_claim(file, &code);

	if (claimed == NULL)
		return code;
	claimed->sent_ms = rlock_hold_sent_ms(hold);
	code = hold_file_save(claimed);
	hold_file_free(claimed);
	return code;
}

static int renew_hold(const struct opts *opts, struct rlock_conn *conn, struct hold_file *file)
{
	struct rlock_hold *hold = NULL;
	int code = file->purpose == RLOCK_PURPOSE_COMMAND ? open_run(opts, conn, file, &hold)
							  : open_hold(opts, file, "renewed", &hold);

	if (code == 0)
		code = renew(opts, conn, hold, file->lease_ms, EXIT_LOST);
	/* An `rlock run` has no file, so its fixed lease ends as before. */
	if (code == 0 && file->is_fixed_lease)
		code = store_renewal(file, hold);
	rlock_hold_free(hold);
	return code;
}

/* ---- --owner ID, if ID has no hold on the name ---- */

#define OWNER_END ":0" /* the end of OWNER_FORMAT */
#define OTHERS_MAX (HOLDER_SHOWN_MAX + 128)

/* Print ": held by job-101 (its note)", and how many other holders there are. */
static void print_holder(const struct rlock_inspection *lock, char out[OTHERS_MAX])
{
	const struct rlock_holder *holder = &lock->holders[0];
	char owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX], more[48] = "";
	size_t len =
		strlen(rlock_escape(holder->owner.text, holder->owner.len, owner, sizeof(owner)));
	bool has_id =
		len > strlen(OWNER_END) && strcmp(owner + len - strlen(OWNER_END), OWNER_END) == 0;

	if (has_id)
		owner[len - strlen(OWNER_END)] = '\0';
	(void)rlock_escape(holder->note.text, holder->note.len, note, sizeof(note));
	if (lock->holder_total > 1)
		(void)snprintf(more, sizeof(more), " and %zu more", lock->holder_total - 1);
	(void)snprintf(out, OTHERS_MAX, ": held by %s%s%s%s%s%s", owner,
		       note[0] != '\0' ? " (" : "", note, note[0] != '\0' ? ")" : "", more,
		       has_id ? "; use one id for all jobs of a pipeline" : "");
}

static bool is_owned_by(const struct rlock_inspection *lock, const char *owner)
{
	for (size_t i = 0; i < lock->holder_count; i++)
		if (lock->holders[i].owner.len == strlen(owner) &&
		    memcmp(lock->holders[i].owner.text, owner, strlen(owner)) == 0)
			return true;
	return false;
}

/*
 * Report that the owner ID has no hold to release, and who holds the lock instead. That may be a COMMAND of
 * `rlock run --owner ID`, or another owner, since the id of a CI job differs from job to job.
 */
static int report_not_owned(const struct opts *opts, struct rlock_conn *conn)
{
	char name[NAME_SHOWN_MAX], others[OTHERS_MAX] = "", owner[RLOCK_OWNER_MAX];
	struct rlock_inspection *locks = NULL;
	size_t count = 0, at = 0;
	enum rlock_status status =
		rlock_inspect(conn, &opts->names[0], rlock_now_ms() + OTHERS_MS, &locks, &count);

	while (at < count && (locks[at].status != RLOCK_OK || locks[at].holder_count == 0))
		at++;
	(void)snprintf(owner, sizeof(owner), OWNER_FORMAT, opts->owner);
	if (status == RLOCK_OK && at < count && is_owned_by(&locks[at], owner))
		(void)snprintf(others, sizeof(others),
			       " itself, but by a command of 'rlock run --owner', which releases "
			       "it when it ends");
	else if (status == RLOCK_OK && at < count)
		print_holder(&locks[at], others);
	else if (status == RLOCK_OK && locks[0].status == RLOCK_OK &&
		 locks[0].state == RLOCK_STATE_FREE)
		(void)snprintf(others, sizeof(others), ": it is free: its lease may have expired");
	message_error("%s: not held by owner '%s'%s", names_show_one(opts, 0, name), opts->owner,
		      others);
	rlock_inspections_free(locks, count);
	return EXIT_NOT_HELD;
}

/* ---- the holds of --owner ---- */

/* Act on a hold that owner has on the only name of opts. Returns the exit code. */
typedef int (*owned_fn)(const struct opts *opts, struct rlock_conn *conn, const char *owner,
			struct rlock_hold *hold);

static bool is_same_hold(const struct rlock_hold *a, const struct rlock_hold *b)
{
	return strcmp(rlock_hold_id(a), rlock_hold_id(b)) == 0;
}

/*
 * Whether the hold also has names that opts lacks. holds: the owner's hold on each name of opts. NULL: the owner does
 * not hold that name any more; count it as a name of the hold, since it may have been one.
 */
static bool lacks_name(const struct opts *opts, struct rlock_hold *const *holds,
		       const struct rlock_hold *hold)
{
	size_t given = 0;

	for (size_t i = 0; i < opts->name_count; i++)
		given += holds[i] == NULL || is_same_hold(holds[i], hold) ? 1 : 0;
	return given < rlock_hold_record(hold)->name_count;
}

/* Report that the hold also has other names. The record only counts them, so no corrected line can be shown. */
static int report_lacking(const struct opts *opts, size_t index, const struct rlock_hold *hold)
{
	size_t total = rlock_hold_record(hold)->name_count;
	char name[NAME_SHOWN_MAX], *owner = (char *)opts->owner;
	struct usage_line line;

	usage_line(&line, PLAIN("rlock"), PLAIN(opts->verb->name), { "--owner", &owner, 1 });
	message_error("%s: was locked together with %zu other%s; give all %zu names to '%s'%s",
		      names_show_one(opts, index, name), total - 1, total == 2 ? "" : "s", total,
		      line.text,
		      opts->name_count < total ? ""
					       : ", after the lock that one of them has got since");
	return EXIT_USAGE;
}

/*
 * Call act for each name with the owner's most recent hold on it. Call it for none if one of these holds also has other names.
 * Leave out the hold of a COMMAND of `run --owner`, which its own rlock renews and releases.
 */
static int owned_each(const struct opts *opts, struct rlock_conn *conn, owned_fn act)
{
	struct rlock_hold **holds = calloc(opts->name_count, sizeof(struct rlock_hold *));
	char owner[RLOCK_OWNER_MAX];
	int worst = 0;

	if (holds == NULL)
		return message_out_of_memory();
	(void)snprintf(owner, sizeof(owner), OWNER_FORMAT, opts->owner);
	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);
		enum rlock_status status =
			rlock_find(conn, &opts->names[i], owner, opts->mode, RLOCK_PURPOSE_OWNER,
				   rlock_now_ms() + DELIVERY_MS, &holds[i]);

		if (status == RLOCK_NOT_HELD)
			worst = (int)max(worst, report_not_owned(&one, conn));
		else if (status != RLOCK_OK)
			worst = (int)max(worst, caller_report_failure(&one, conn, status));
	}
	for (size_t i = 0; i < opts->name_count; i++)
		if (holds[i] != NULL && lacks_name(opts, holds, holds[i])) {
			worst = report_lacking(opts, i, holds[i]);
			goto out;
		}
	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);

		if (holds[i] != NULL)
			worst = (int)max(worst, act(&one, conn, owner, holds[i]));
	}
out:
	for (size_t i = 0; i < opts->name_count; i++)
		rlock_hold_free(holds[i]);
	free(holds);
	return worst;
}

static int renew_owner(const struct opts *opts, struct rlock_conn *conn, const char *owner,
		       struct rlock_hold *hold)
{
	(void)owner;
	return renew(opts, conn, hold, opts->lease_ms, lost_code_of(hold));
}

int cmd_renew(const struct opts *opts, struct rlock_conn *conn)
{
	return opts->owner != NULL ? owned_each(opts, conn, renew_owner)
				   : caller_hold_each(opts, conn, renew_hold);
}

/* ---- unlock ---- */

/* How long to wait for a renewer to end after SIGKILL. It takes some milliseconds, and more on a busy machine. */
#define RENEWER_END_MS 1000

/* Report the result of a release, unless it succeeded. Returns the exit code. */
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
		message_error("%s: lock lost before it was released: %s; check its work, another "
			      "owner may have held the lock",
			      names_show_one(opts, rlock_conn_error_name(conn), name),
			      rlock_conn_error(conn));
		return EXIT_LOST;
	}
	return caller_report_failure(opts, conn, status);
}

/* ---- the events of a release ---- */

/* Set the log's fields for a hold that was found by its owner. Only the values of the command line are known. */
static void begin_events(const struct opts *opts, const char *owner)
{
	event_log_set_hold(&(struct event_hold){
		.names = opts->names,
		.name_count = opts->name_count,
		.kind = opts->mode,
		.server = opts->server,
		.owner = owner,
		.pid = getpid(),
	});
}

/* Log the release. Do not log a release that failed: the user can repeat it, so the hold has not ended yet. */
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
 * Kill the renewer before the release, because a live renewer would find its lock lost, or release it a second time. A
 * renewal that it has already sent changes nothing after the release. *was_running: the renewer ran until now, and was
 * not stopped. Returns 0, or the exit code after one line by message_error.
 */
static int kill_renewer(const struct hold_file *file, bool *was_running)
{
	struct pollfd ended = { -1, POLLIN, 0 };
	struct proc renewer;
	int error;

	/* Never signal a pid without its start time: another process may have got that pid. */
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
	message_error_of_lock("cannot kill the renewer, process %d: %s", (int)file->renewer,
			      strerror(error));
	return EXIT_SYSTEM;
}

/*
 * Whether the lock was certainly held until now: it was renewed, or its lease has not ended. Only then does a missing hold prove
 * that an earlier request, whose reply was lost, has released it.
 */
static bool has_lease(const struct hold_file *file, bool was_renewed)
{
	return (was_renewed && !file->is_fixed_lease) ||
	       rlock_now_ms() < file->sent_ms + file->lease_ms;
}

/*
 * Set for how long status shows the hold after its release: unlock's --remember, or else the time that was set with the
 * lock.
 */
static void remember(struct rlock_hold *hold, const struct opts *opts)
{
	if (opts->remember_ms > 0)
		rlock_hold_set_remember(hold, opts->remember_ms);
	rlock_hold_set_end(hold, &(struct rlock_end){ .status = -1, .reason = "unlock" });
}

static int release_claimed(const struct opts *opts, struct rlock_conn *conn, struct hold_file *file,
			   bool was_renewed)
{
	bool was_held = has_lease(file, was_renewed);
	struct rlock_hold *hold = NULL;
	enum rlock_status status;
	int code = open_hold(opts, file, "released", &hold);

	if (code == EXIT_LOST)
		hold_file_remove(file);
	if (code != 0)
		return code;
	/*
	 * Count the lease from now, since the renewer renewed it until now. The file has only the time of an earlier
	 * request.
	 */
	if (was_held && !file->is_fixed_lease)
		rlock_hold_set_sent_ms(hold, rlock_now_ms());
	remember(hold, opts);
	status = finish_release(conn, hold);
	rlock_hold_free(hold);
	/*
	 * An earlier unlock failed, but the server may have carried out its request. So the hold was released, not
	 * lost.
	 */
	if (status == RLOCK_NOT_HELD && file->is_abandoned)
		status = RLOCK_OK;
	log_file_release(opts, conn, file, status);
	if (status >= 0)
		hold_file_remove(file);
	else
		hold_file_mark_abandoned(
			file, was_held && !rlock_conn_failure(conn)->is_loss_unconfirmed);
	return end_release(opts, conn, status);
}

static int release(const struct opts *opts, struct rlock_conn *conn, const struct hold_file *file)
{
	struct hold_file *claimed;
	bool was_running = false;
	int code = kill_renewer(file, &was_running);

	if (code != 0)
		return code;
	/* Claim the file only after the renewer has ended, since the renewer also writes it. */
	claimed = hold_file_claim(file, &code);
	/* Another unlock was faster. Search again, since the caller may have another hold. */
	if (claimed == NULL)
		return code != 0 ? code : FIND_AGAIN;
	code = release_claimed(opts, conn, claimed, was_running);
	hold_file_free(claimed);
	return code;
}

/*
 * Block signals during the release. If a signal ended us after the renewer was killed, the lock would stay held until
 * its lease ends.
 */
static int release_whole(const struct opts *opts, struct rlock_conn *conn,
			 const struct hold_file *file)
{
	sigset_t all, found_mask;
	int code;

	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &found_mask);
	code = release(opts, conn, file);
	(void)sigprocmask(SIG_SETMASK, &found_mask, NULL);
	return code;
}

static int unlock_hold(const struct opts *opts, struct rlock_conn *conn, struct hold_file *hold)
{
	char names[NAMES_SHOWN_MAX];

	if (hold->purpose == RLOCK_PURPOSE_COMMAND) {
		message_error("%s: held by 'rlock run', which releases it when its command ends",
			      names_show(opts->names, opts->name_count, names));
		return EXIT_NOT_HELD;
	}
	return release_whole(opts, conn, hold);
}

int cmd_unlock_file(const struct opts *opts, struct rlock_conn *conn, const struct hold_file *file)
{
	int code = release_whole(opts, conn, file);

	return code == FIND_AGAIN ? 0 : code;
}

/* ---- the hold of an owner, the lock of any holder ---- */

static int unlock_owner(const struct opts *opts, struct rlock_conn *conn, const char *owner,
			struct rlock_hold *hold)
{
	enum rlock_status status;

	remember(hold, opts);
	status = finish_release(conn, hold);
	if (status == RLOCK_NOT_HELD && lost_code_of(hold) == EXIT_NOT_HELD)
		return report_not_owned(opts, conn);
	begin_events(opts, owner);
	log_release(conn, status);
	return end_release(opts, conn, status);
}

static int break_lock(const struct opts *opts, struct rlock_conn *conn)
{
	char was[RLOCK_OWNER_MAX] = "", note[RLOCK_NOTE_MAX] = "", name[NAME_SHOWN_MAX];
	char holder[HOLDER_SHOWN_MAX], until[WALL_CLOCK_TEXT_MAX];
	enum rlock_status status = rlock_break(conn, &opts->names[0], opts->holder, opts->mode,
					       rlock_now_ms() + DELIVERY_MS, was, note);
	int64_t until_ms = rlock_owner_kept_until_ms(was, strlen(was));

	if (status == RLOCK_NOT_HELD || status == RLOCK_BUSY)
		return report_answer(opts, conn, EXIT_NOT_HELD);
	(void)names_show_one(opts, 0, name);
	if (status == RLOCK_OK && was[0] == '\0') {
		message_info("%s: not held: %s", name, note);
	} else if (status == RLOCK_OK || status == RLOCK_NOT_NOTIFIED) {
		begin_events(opts, was);
		event_log(&(struct event){ .kind = EVENT_BROKEN });
		(void)names_show_holder(note, was, holder);
		if (until_ms >= 0)
			message_info(
				"%s: lock broken: --at-least kept it until %s, its job has ended: "
				"%s",
				name, wall_clock_print_of(until_ms, until), holder);
		else
			message_info("%s: lock broken: it was held by %s, which may still run",
				     name, holder);
	}
	return end_release(opts, conn, status);
}

int cmd_unlock(const struct opts *opts, struct rlock_conn *conn)
{
	if (opts->force)
		return caller_each_name(opts, conn, break_lock);
	return opts->owner != NULL ? owned_each(opts, conn, unlock_owner)
				   : caller_hold_each(opts, conn, unlock_hold);
}
