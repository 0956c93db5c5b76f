/*
 * run, lock and the verbs like them: acquire the lock, then hold it. keeper.c holds it for a command; detached.c leaves
 * it to a renewer, for the process of --pid.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "base/user.h"
#include "caller.h"
#include "hold/command_look_up.h"
#include "hold/detached.h"
#include "hold/equipment.h"
#include "hold/keeper.h"
#include "log/event_log.h"
#include "options/names.h"
#include "options/usage_line.h"
#include "process_lock/hold_file.h"
#include "process_lock/held.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/signals.h"
#include "verbs.h"
#include "wait_report.h"

#define PROGRESS_MS 1000
#define PROGRESS_AGAIN_MS 60000

/* What it takes to acquire a lock; acquirer_clear frees it. */
struct acquirer {
	const struct verb *verb;
	struct opts *opts;
	struct signals signals;
	char *path;                  /* of the command; NULL without one */
	int target_fd;               /* of the process of hold_file; -1: none */
	struct hold_file *hold_file; /* NULL: the lock is for a command, or of --owner */
	int cancel_fd;               /* the signals', or events of them and target_fd */
	char **owners;               /* by which the names may be re-entered */
	size_t owner_count;
	char owner[RLOCK_OWNER_MAX]; /* of --owner; empty: a new one */
	char note[RLOCK_NOTE_MAX];
	struct rlock_conn *conn;
	struct rlock_hold *hold;
	struct equipment equipment; /* of the keeper of a command */
	bool has_waited;            /* the lock was busy at the first try */
	int64_t begun_ms;
	int64_t acquired_ms; /* when rlock_acquire returned */
};

/* ---- before the lock ---- */

static const char *program_of(const struct acquirer *acquirer, struct proc *proc)
{
	const char *program, *slash;

	if (acquirer->opts->command != NULL) {
		program = acquirer->opts->command[0];
		slash = strrchr(program, '/');
		return slash != NULL && slash[1] != '\0' ? slash + 1 : program;
	}
	return acquirer->hold_file != NULL && proc_read(acquirer->hold_file->pid, proc) ? proc->name
											: "rlock";
}

/* The process that the lock is for. */
static pid_t holder_pid(const struct acquirer *acquirer)
{
	return acquirer->hold_file != NULL ? acquirer->hold_file->pid : getpid();
}

/* The note is "user@host pid 123 pg_dump". */
static void make_note(struct acquirer *acquirer)
{
	struct utsname host;
	struct proc proc;
	char uid[USER_UID_MAX];

	if (acquirer->opts->note != NULL) {
		(void)snprintf(acquirer->note, sizeof(acquirer->note), "%s", acquirer->opts->note);
		return;
	}
	if (uname(&host) != 0)
		memcpy(host.nodename, "?", 2);
	(void)snprintf(acquirer->note, sizeof(acquirer->note), "%s@%s pid %d %s", user_name(uid),
		       host.nodename, (int)holder_pid(acquirer), program_of(acquirer, &proc));
}

/*
 * The first process of a machine or a container usually ignores SIGTERM, so that a lost lock would end only what that
 * process has started.
 */
static int report_process_1(const struct verb *verb, const struct opts *opts)
{
	char names[NAMES_SHOWN_MAX];
	struct usage_line line;

	usage_line_begin(&line, verb->name);
	usage_line_add_plain(&line, "--on-lost ignore");
	/* The corrected line must not have a second --on-lost, the one that the user gave. */
	if (opts->on_lost == ON_LOST_DEFAULT) {
		usage_line_add(&line, opts->words, opts->word_count);
	} else {
		usage_line_add_plain(&line, "--pid 1");
		usage_line_add_names(&line, opts->names, opts->name_count);
	}
	message_error("%s: a lost lock would end what process 1 has started: try: %s",
		      names_show(opts->names, opts->name_count, names), line.text);
	return EXIT_USAGE;
}

/*
 * Whether the lock is for a process: a command, or the process of a lock without one. No process watches over a lock of
 * --owner without a command.
 */
static bool is_for_process(const struct opts *opts)
{
	return opts->command != NULL || opts->owner == NULL;
}

static int report_no_target(int pid)
{
	if (access("/proc/self/stat", R_OK) != 0)
		message_error("cannot tell which process the lock is for: there is no /proc here");
	else if (proc_is_hidden(pid))
		message_error("process %d can't be watched: /proc does not show it (hidepid?)",
			      pid);
	else {
		message_error("--pid %d: there is no such process", pid);
		return EXIT_USAGE;
	}
	return EXIT_SYSTEM;
}

/* Opens the process of --pid. */
static int find_target(struct acquirer *acquirer)
{
	const struct verb *verb = acquirer->verb;
	const struct opts *opts = acquirer->opts;
	enum proc_lookup lookup;
	struct proc target;

	lookup = proc_look(opts->pid, &target);
	if (lookup == PROC_GONE || (lookup == PROC_SEEN && proc_is_gone(&target)))
		return report_no_target(opts->pid);
	if (lookup == PROC_SEEN)
		acquirer->target_fd = proc_open(target.pid, target.start);
	if (acquirer->target_fd < 0) {
		message_error("cannot watch process %d: %s", opts->pid, strerror(errno));
		return EXIT_SYSTEM;
	}
	if (opts->pid == 1 && opts->on_lost != ON_LOST_IGNORE)
		return report_process_1(verb, opts);
	acquirer->hold_file = detached_file_new(opts, verb->kind, target.pid, target.start);
	return acquirer->hold_file != NULL ? 0 : EXIT_SYSTEM;
}

/* What can fail on this machine fails here, before the lock is acquired. */
static int prepare(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	int code;

	if (!is_for_process(opts))
		return 0;
	code = os_check_kernel();
	if (code != 0)
		return code;
	if (opts->command != NULL)
		return command_look_up(acquirer->verb, opts, &acquirer->path);
	return find_target(acquirer);
}

/* Makes one descriptor of everything that ends a wait. */
static int join_cancels(struct acquirer *acquirer)
{
	const int fds[] = { acquirer->signals.fd, acquirer->target_fd };

	acquirer->cancel_fd = acquirer->signals.fd;
	if (acquirer->target_fd < 0)
		return 0;
	acquirer->cancel_fd = os_events_open();
	for (size_t i = 0; acquirer->cancel_fd >= 0 && i < sizeof(fds) / sizeof(fds[0]); i++)
		if (!os_events_add(acquirer->cancel_fd, fds[i])) {
			(void)close(acquirer->cancel_fd);
			acquirer->cancel_fd = -1;
		}
	if (acquirer->cancel_fd >= 0)
		return 0;
	message_error("cannot wait: %s", strerror(errno));
	return EXIT_SYSTEM;
}

/* Finds the owners by which this process and those above it may hold these names already. */
static int find_owners(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	const char *value = getenv(INHERITED_VARIABLE);

	if (opts->owner != NULL) {
		(void)snprintf(acquirer->owner, sizeof(acquirer->owner), OWNER_FORMAT, opts->owner);
		return 0;
	}
	for (size_t i = 0; value != NULL && i < opts->name_count; i++)
		inherited_owners(value, &opts->names[i], &acquirer->owners, &acquirer->owner_count);
	return hold_file_find_owners(holder_pid(acquirer), opts->names, opts->name_count,
				     &acquirer->owners, &acquirer->owner_count);
}

/* ---- the lock ---- */

/* A wait that has lasted for so long may last for hours. */
static void on_long_wait(void *ctx, const struct rlock_blocker *blocker)
{
	const struct acquirer *acquirer = ctx;

	wait_report_blocker(acquirer->opts, blocker);
	os_shrink_while_idle();
}

static void warn_of_total(void *ctx, size_t name_index, int64_t total)
{
	const struct acquirer *acquirer = ctx;
	char name[NAME_SHOWN_MAX];

	message_warning("%s: has %" PRId64 " permits in all, and --permits says %d: --resize "
			"changes it",
			names_show_one(acquirer->opts, name_index, name), total,
			acquirer->opts->permits);
}

static void begin_sleep(void *ctx, struct rlock_hold *hold)
{
	struct acquirer *acquirer = ctx;

	acquirer->has_waited = true;
	if (acquirer->opts->command != NULL)
		equipment_reserve_renewer(&acquirer->equipment, acquirer->conn, hold);
}

/* ---- its events ---- */

/* Before the wait: a renewer that is forked in it knows them, too. */
static void begin_events(const struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;

	if (!event_log_is_on())
		return;
	event_log_set_hold(&(struct event_hold){
		.names = opts->names,
		.name_count = opts->name_count,
		.kind = acquirer->verb->kind,
		.server = opts->server,
		.note = acquirer->note,
		.owner = acquirer->owner,
		.pid = holder_pid(acquirer),
	});
}

static void log_event(const struct acquirer *acquirer, enum event_kind kind, const char *reason)
{
	struct event event = { .kind = kind,
			       .waited_ms = acquirer->acquired_ms - acquirer->begun_ms,
			       .reason = reason };

	event_log(&event);
}

static void log_acquisition(const struct acquirer *acquirer, enum rlock_status status)
{
	const char *why = rlock_conn_error(acquirer->conn);

	if (status == RLOCK_OK)
		event_log_set_acquired(acquirer->hold, acquirer->acquired_ms);
	if (acquirer->has_waited)
		log_event(acquirer, EVENT_WAITED, NULL);
	if (status == RLOCK_OK)
		log_event(acquirer, EVENT_ACQUIRED, NULL);
	else if (status == RLOCK_BUSY)
		log_event(acquirer, acquirer->opts->no_wait ? EVENT_BUSY : EVENT_TIMED_OUT, why);
	/* end_cancelled finds out what cancelled it, and logs that. */
	else if (status != RLOCK_CANCELLED)
		log_event(acquirer, EVENT_FAILED, why);
}

/* ---- the request ---- */

static enum rlock_status acquire(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	enum rlock_status status;

	request.kind = acquirer->verb->kind;
	request.names = opts->names;
	request.name_count = opts->name_count;
	request.lease_ms = opts->lease_ms;
	request.wait_ms = opts->wait_ms;
	request.owner = acquirer->owner[0] != '\0' ? acquirer->owner : NULL;
	request.inherited = (const char *const *)acquirer->owners;
	request.inherited_count = acquirer->owner_count;
	request.note = acquirer->note;
	request.issue_token = opts->fence;
	request.on_wait = on_long_wait;
	request.on_wait_ctx = acquirer;
	request.on_wait_ms = PROGRESS_MS;
	request.on_wait_again_ms = PROGRESS_AGAIN_MS;
	request.on_sleep = begin_sleep;
	request.on_sleep_ctx = acquirer;
	request.permits = opts->permits;
	request.take = opts->take;
	request.on_total = warn_of_total;
	request.on_total_ctx = acquirer;
	begin_events(acquirer);
	acquirer->begun_ms = rlock_now_ms();
	status = rlock_acquire(acquirer->conn, &request, &acquirer->hold);
	acquirer->acquired_ms = rlock_now_ms();
	log_acquisition(acquirer, status);
	if (status == RLOCK_OK)
		wait_report_acquired(opts, acquirer->acquired_ms - acquirer->begun_ms);
	else
		equipment_free(&acquirer->equipment);
	return status;
}

/* What ended the wait is a signal, which ends us as well, or the end of the process that the lock was for. */
static int end_cancelled(const struct acquirer *acquirer)
{
	struct os_signal info;
	int signal = signals_next(&acquirer->signals, &info);
	char reason[32];

	(void)snprintf(reason, sizeof(reason), "signal %d", signal);
	log_event(acquirer, EVENT_CANCELLED, signal != 0 ? reason : "the process has ended");
	return signal != 0 ? signals_die_by(signal) : acquirer->opts->conflict_exit_code;
}

static int end_not_acquired(const struct acquirer *acquirer, enum rlock_status status)
{
	if (status == RLOCK_CANCELLED)
		return end_cancelled(acquirer);
	if (status != RLOCK_BUSY)
		return caller_report_failure(acquirer->opts, acquirer->conn, status);
	wait_report_busy(acquirer->opts, acquirer->conn);
	return acquirer->opts->conflict_exit_code;
}

static int hold_for_command(struct acquirer *acquirer)
{
	const struct keeper_args args = {
		.opts = acquirer->opts,
		.kind = acquirer->verb->kind,
		.path = acquirer->path,
		.signals = &acquirer->signals,
		.conn = acquirer->conn,
		.hold = acquirer->hold,
		.equipment = &acquirer->equipment,
		.acquired_ms = acquirer->acquired_ms,
	};

	return keeper_run(&args);
}

static int hold_detached(const struct acquirer *acquirer)
{
	const struct detached_args args = {
		.opts = acquirer->opts,
		.file = acquirer->hold_file,
		.target_fd = acquirer->target_fd,
		.signals = &acquirer->signals,
		.conn = acquirer->conn,
		.hold = acquirer->hold,
		.acquired_ms = acquirer->acquired_ms,
	};

	return detached_start(&args);
}

/* ---- all of it ---- */

static void acquirer_clear(struct acquirer *acquirer)
{
	rlock_hold_free(acquirer->hold);
	rlock_conn_free(acquirer->conn);
	hold_file_free(acquirer->hold_file);
	owners_free(acquirer->owners, acquirer->owner_count);
	free(acquirer->path);
	if (acquirer->cancel_fd >= 0 && acquirer->cancel_fd != acquirer->signals.fd)
		(void)close(acquirer->cancel_fd);
	if (acquirer->target_fd >= 0)
		(void)close(acquirer->target_fd);
	if (acquirer->signals.fd >= 0)
		(void)close(acquirer->signals.fd);
}

static int acquire_and_hold(struct acquirer *acquirer)
{
	bool is_cancelled = false;
	enum rlock_status status;
	int code = signals_setup(&acquirer->signals);

	if (code != 0)
		return code;
	code = join_cancels(acquirer);
	if (code != 0)
		return code;
	code = caller_connect(acquirer->opts, acquirer->cancel_fd, &is_cancelled, &acquirer->conn);
	if (code != 0)
		return code;
	if (is_cancelled)
		return end_cancelled(acquirer);
	code = find_owners(acquirer);
	if (code != 0)
		return code;
	make_note(acquirer);
	status = acquire(acquirer);
	if (status != RLOCK_OK)
		return end_not_acquired(acquirer, status);
	return acquirer->opts->command != NULL ? hold_for_command(acquirer)
					       : hold_detached(acquirer);
}

int cmd_lock(const struct verb *verb, struct opts *opts)
{
	struct acquirer acquirer = { .verb = verb,
				     .opts = opts,
				     .target_fd = -1,
				     .cancel_fd = -1,
				     .signals = { .fd = -1 },
				     .equipment = EQUIPMENT_NONE };
	int code = prepare(&acquirer);

	if (code == 0)
		code = acquire_and_hold(&acquirer);
	acquirer_clear(&acquirer);
	return code;
}
