/*
 * run, lock, fair, read, write and sem: make the request for a lock, and print the messages about the wait. hold/ holds the
 * lock once it is acquired. sem --resize sets how many permits a semaphore has.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "base/units.h"
#include "caller.h"
#include "hold/command.h"
#include "hold/finish.h"
#include "hold/front.h"
#include "holders.h"
#include "log/event_log.h"
#include "options/opts.h"
#include "options/usage.h"
#include "process_lock/hold_entry.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/signals.h"
#include "verbs.h"

/* ---- the messages of a wait ---- */

#define HELD_TEXT_MAX (DURATION_TEXT_MAX + WALL_CLOCK_TEXT_MAX + 16)
#define WAIT_REST_MAX (HELD_TEXT_MAX + 128)

/*
 * Print words and the age, such as ", held for 2m". For a lock that --at-least keeps: ", until 2026-11-27T04:34:28+00:00".
 * Empty if both times are unknown (-1). Returns out.
 */
static char *print_held(const char *words, int64_t held_ms, int64_t kept_until_ms,
			char out[HELD_TEXT_MAX])
{
	char age[DURATION_TEXT_MAX], until[WALL_CLOCK_TEXT_MAX];

	out[0] = '\0';
	if (kept_until_ms >= 0)
		(void)snprintf(out, HELD_TEXT_MAX, ", until %s",
			       wall_clock_print_of(kept_until_ms, until));
	else if (held_ms >= 0)
		(void)snprintf(out, HELD_TEXT_MAX, "%s %s", words,
			       duration_print_rough(held_ms, age));
	return out;
}

/* Words for a holder, or a next waiter, whose process is known to have ended; else empty. */
static const char *show_gone(const struct rlock_process *process)
{
	return proc_has_ended_here(process) ? "; its process has ended" : "";
}

#define UUID_LEN 36
#define UUID_CHARACTERS "0123456789abcdefABCDEF-"

/*
 * Whether each message of the wait overwrites the last one on the terminal. False with -v, which prints other lines in
 * between.
 */
static bool wait_is_in_place(void)
{
	return !message_is_verbose() && message_progress_room() > 0;
}

/*
 * Update the line on the terminal, which has one row. If the holder makes it too long, print the holder once in full on
 * a line of its own, and update only the rest. The holder is not cut, because a user needs all of it to find its
 * machine and process.
 */
static void wait_report_in_place(const char *name, const char *words, const char *holder,
				 const char *rest)
{
	static char printed[HOLDER_SHOWN_MAX];
	size_t len = strlen(name) + strlen(words) + strlen(holder) + strlen(rest);

	if (len <= message_progress_room()) {
		message_progress("%s%s%s%s", name, words, holder, rest);
		return;
	}
	if (strcmp(printed, holder) != 0)
		message_news("%s%s%s", name, words, holder);
	(void)snprintf(printed, sizeof(printed), "%s", holder);
	message_progress("waiting%s", rest);
}

/* Report during the wait: the holder, for how long it has held the lock, and the position of this call in the queue. */
static void wait_report_blocker(const struct opts *opts, const struct rlock_blocker *blocker)
{
	char name[NAME_SHOWN_MAX], note[RLOCK_NOTE_MAX], owner[RLOCK_OWNER_MAX];
	char held[HELD_TEXT_MAX], permits[64], position[48] = "", rest[WAIT_REST_MAX] = "";
	char restarted[HOLDER_SHOWN_MAX];
	const char *words = ": waiting for ", *holder;
	int64_t until_ms = rlock_owner_kept_until_ms(blocker->owner, blocker->owner_len);

	(void)rlock_escape(blocker->owner, blocker->owner_len, owner, sizeof(owner));
	(void)rlock_escape(blocker->note, blocker->note_len, note, sizeof(note));
	if (blocker->position > 0)
		(void)snprintf(position, sizeof(position), ", position %zu in the queue",
			       blocker->position);
	(void)names_show_one(opts, blocker->name_index, name);
	if (blocker->restarted_server != NULL) {
		words = ": waiting: ";
		holder = restarted;
		(void)snprintf(restarted, sizeof(restarted), "%s was started less than a lease ago",
			       blocker->restarted_server);
	} else if (blocker->owner_len == 0 && (blocker->is_waiter || opts->permits > 0)) {
		words = ": waiting";
		holder = blocker->is_waiter ? ": kept for the next waiter"
					    : ": too few permits in all";
	} else {
		/*
		 * Show the note, or else the id of --owner. Do not show a random owner, which means nothing to people;
		 * status prints it.
		 */
		holder = note[0] != '\0' ? note
			 : strspn(owner, UUID_CHARACTERS) == UUID_LEN && owner[UUID_LEN] == ':'
				 ? "a holder without a note, as Java's are"
				 : owner;
		(void)print_held(", held for", blocker->held_ms, until_ms, held);
		(void)snprintf(rest, sizeof(rest), "%s%s%s", held, position,
			       show_gone(&blocker->record.process));
		(void)snprintf(permits, sizeof(permits),
			       ": waiting for one of %" PRId64 " permits, one held by ",
			       blocker->permits);
		if (until_ms >= 0)
			words = ": waiting: kept by --at-least, its job has ended: ";
		else if (blocker->permits > 1)
			words = permits;
	}
	if (message_is_verbose())
		message_info("%s%s%s%s", name, words, holder, rest);
	else if (wait_is_in_place())
		wait_report_in_place(name, words, holder, rest);
	else
		message_news("%s%s%s%s", name, words, holder, rest);
}

/* Report after RLOCK_BUSY that the lock is busy, or that the wait timed out; and who holds the lock. */
static void wait_report_busy(const struct opts *opts, const struct rlock_conn *conn)
{
	char name[NAME_SHOWN_MAX], waited[DURATION_TEXT_MAX], held[HELD_TEXT_MAX];
	const struct rlock_failure *failure = rlock_conn_failure(conn);
	const char *gone = show_gone(&failure->record.process);
	/* Whether a longer wait can help. It cannot if the call takes more permits than the semaphore has in all. */
	bool may_come = opts->permits == 0 || failure->held_ms >= 0;
	int64_t until_ms = failure->kept_until_ms;
	bool has_job = failure->held_ms >= 0 && until_ms < 0 && gone[0] == '\0';
	const char *flock_line = opts->no_wait ? "flock: failed to get lock\n"
					       : "flock: timeout while waiting to get lock\n";

	if (opts->flock_verbose)
		message_line(flock_line, strlen(flock_line));
	(void)names_show_one(opts, rlock_conn_error_name(conn), name);
	(void)print_held(" for", failure->held_ms, until_ms, held);
	/*
	 * With -n the caller expects that the lock can be held, so report a holder only with -v. Always report any
	 * other reason, such as a server that has just restarted.
	 */
	if (opts->no_wait)
		message_print(failure->has_holder ? MESSAGE_DEBUG : MESSAGE_INFO,
			      "%s: busy: %s%s%s", name, rlock_conn_error(conn), held, gone);
	else
		message_info("%s: timed out after %s: %s%s%s%s%s", name,
			     duration_print(opts->wait_ms, waited), rlock_conn_error(conn), held,
			     gone, may_come ? "; give a longer --wait" : "",
			     has_job ? ", or end that job" : "");
}

/* ---- --complain-after ---- */

/*
 * After RLOCK_BUSY: report the oldest holder if it is older than --complain-after. Returns whether it was reported. The
 * busy reply names only one of the holders, so send another request for the age of each.
 */
static bool complain_of_holder(const struct opts *opts, struct rlock_conn *conn)
{
	size_t index = rlock_conn_error_name(conn);
	const struct rlock_holder *oldest;
	struct rlock_inspection *locks = NULL;
	char name[NAME_SHOWN_MAX], note[RLOCK_NOTE_MAX], owner[RLOCK_OWNER_MAX];
	char holder[HOLDER_SHOWN_MAX], held[DURATION_TEXT_MAX], limit[DURATION_TEXT_MAX];
	struct usage_line stop;
	const char *gone;
	size_t count = 0;
	bool is_too_old;

	if (!opts->no_wait || opts->complain_after_ms < 0)
		return false;
	(void)names_show_one(opts, index, name);
	if (rlock_inspect(conn, &opts->names[index], INT64_MAX, &locks, &count) != RLOCK_OK) {
		message_warning("%s: cannot find out how long its holder has held it: %s", name,
				rlock_conn_error(conn));
		rlock_inspections_free(locks, count);
		return false;
	}
	/* A kept lock has no job that could hang. A client of Java's has no known age. */
	oldest = holders_find_oldest(locks, count, false);
	is_too_old = oldest != NULL && oldest->held_ms >= opts->complain_after_ms;
	if (is_too_old) {
		(void)rlock_escape(oldest->owner.text, oldest->owner.len, owner, sizeof(owner));
		(void)rlock_escape(oldest->note.text, oldest->note.len, note, sizeof(note));
		gone = show_gone(&oldest->record.process);
		usage_line(&stop,
			   PLAIN(oldest->record.reads_requests ? ", try: rlock stop" : NULL));
		if (oldest->record.reads_requests)
			usage_line_add_names(&stop, &opts->names[index], 1);
		message_error("%s: busy: held by %s for %s, and --complain-after says %s%s%s", name,
			      names_show_holder(note, owner, holder),
			      duration_print_rough(oldest->held_ms, held),
			      duration_print(opts->complain_after_ms, limit),
			      gone[0] != '\0'                 ? gone
			      : oldest->record.reads_requests ? "; to end that job"
							      : "; end that job",
			      gone[0] != '\0' ? "" : stop.text);
	}
	rlock_inspections_free(locks, count);
	return is_too_old;
}

/* Report that the lock was acquired, if the wait was reported before, or with -v. */
static void wait_report_acquired(const struct opts *opts, int64_t waited_ms, bool was_shown)
{
	char names[NAMES_SHOWN_MAX], waited[DURATION_TEXT_MAX];
	char text[NAMES_SHOWN_MAX + DURATION_TEXT_MAX + 32];

	if (!message_is_verbose() && !was_shown)
		return;
	(void)snprintf(text, sizeof(text), "%s: acquired after %s",
		       names_show(opts->names, opts->name_count, names),
		       duration_print_rough(waited_ms, waited));
	/*
	 * With -v the front prints the line, after the steps of the acquisition. Otherwise this process writes it, so that
	 * it comes before the output of COMMAND.
	 */
	if (message_is_verbose())
		message_info("%s", text);
	else if (!message_progress_end(text))
		message_news("%s", text);
}

/* ---- what flock prints with its --verbose ---- */

#define FLOCK_PRINT_MS 500

/*
 * Print the lines of flock --verbose at the same time as flock(1): to a terminal immediately (is_at_once), to a file at
 * the end, since flock(1) buffers them. With --no-fork, flock(1) executes the command and loses its buffer, so a file
 * gets no line.
 */
static void flock_print(const struct opts *opts, int64_t waited_ms, bool is_at_once)
{
	struct pollfd out = { STDOUT_FILENO, POLLOUT, 0 };

	if (!opts->flock_verbose || (isatty(STDOUT_FILENO) == 1) != is_at_once ||
	    (!is_at_once && opts->flock_no_fork))
		return;
	/* Do not print to a terminal that takes no output (Ctrl-S): a longer wait for it would delay a renewal. */
	if (rlock_poll(&out, 1, rlock_now_ms() + FLOCK_PRINT_MS) == 0)
		return;
	(void)printf("flock: getting lock took %" PRId64 ".%03d000 seconds\n", waited_ms / 1000,
		     (int)(waited_ms % 1000));
	if (opts->command != NULL)
		(void)printf("flock: executing %s\n", opts->command[0]);
	if (is_at_once)
		(void)fflush(stdout);
}

#define PROGRESS_MS 1000
#define PROGRESS_AGAIN_MS 60000
#define PROGRESS_IN_PLACE_MS 1000

/* The data of an acquisition. acquirer_clear frees them. */
struct acquirer {
	const struct opts *opts;
	/* for --owner without a command, path and hold_file are NULL */
	struct hold_args args;
	/* owners whose locks this call may re-enter */
	char **owners;
	size_t owner_count;
	char note[RLOCK_NOTE_MAX];
	struct rlock_record record;
	/* time until the lock was acquired or the wait ended */
	int64_t waited_ms;
	/* when to return memory to the system during the wait */
	int64_t shrink_ms;
	bool has_shown_wait;
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
	return acquirer->args.hold_file != NULL && proc_read(acquirer->args.hold_file->pid, proc)
		       ? proc->name
		       : "rlock";
}

/* The process that the lock is for: that of --pid, else this one. */
static pid_t holder_pid(const struct acquirer *acquirer)
{
	return acquirer->args.hold_file != NULL ? acquirer->args.hold_file->pid : getpid();
}

#define JOB_URL_MAX 160

/*
 * Whether url may be a part of a note, which everybody can read: it is short, and has no blank, control character or
 * password.
 */
static bool is_shown_url(const char *url)
{
	size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
			: strncmp(url, "http://", 7) == 0 ? 7
							  : 0;
	size_t len = strlen(url);

	if (scheme == 0 || len >= JOB_URL_MAX - 1 ||
	    memchr(url + scheme, '@', strcspn(url + scheme, "/")) != NULL)
		return false;
	while (len > 0 && url[len - 1] > ' ' && url[len - 1] < 0x7f)
		len--;
	return len == 0;
}

/*
 * Find the URL of the CI job that runs us, by the variables that the CI system sets. made: space for a URL that is put
 * together. NULL: we run outside CI, or the URL may not be shown.
 */
static const char *find_job_url(char made[JOB_URL_MAX])
{
	static const char *const variables[] = { "CI_JOB_URL", "BUILDKITE_BUILD_URL",
						 "CIRCLE_BUILD_URL" };
	const char *server = getenv("GITHUB_SERVER_URL"), *url = NULL;
	const char *repository = getenv("GITHUB_REPOSITORY"), *run = getenv("GITHUB_RUN_ID");

	for (size_t i = 0; url == NULL && i < sizeof(variables) / sizeof(variables[0]); i++)
		url = getenv(variables[i]);
	/* Use BUILD_URL only under Jenkins, because other programs also set a variable of that name. */
	if (url == NULL && getenv("JENKINS_URL") != NULL)
		url = getenv("BUILD_URL");
	if (url == NULL && server != NULL && repository != NULL && run != NULL &&
	    snprintf(made, JOB_URL_MAX, "%s/%s/actions/runs/%s", server, repository, run) <
		    JOB_URL_MAX)
		url = made;
	return url != NULL && is_shown_url(url) ? url : NULL;
}

/*
 * Make the default note: "user@host pid 123 pg_dump"; with sudo "root(user)@host pid 123 pg_dump"; for --owner without
 * a command "user@host owner job-7". In CI the URL of the job follows.
 */
static void make_note(struct acquirer *acquirer)
{
	const char *user = getenv("SUDO_USER"), *url;
	struct utsname host;
	struct proc proc;
	int len;
	char name[USER_NAME_MAX], sudo[64] = "", made[JOB_URL_MAX], holder[RLOCK_OWNER_MAX + 64];

	if (acquirer->opts->note != NULL) {
		(void)snprintf(acquirer->note, sizeof(acquirer->note), "%s", acquirer->opts->note);
		return;
	}
	if (uname(&host) != 0)
		memcpy(host.nodename, "?", 2);
	/* Ignore a SUDO_USER with blanks, which separate the words of a note, and one with '(', ')' or '@'. */
	if (geteuid() == 0 && user != NULL && user[0] != '\0' && strcmp(user, "root") != 0 &&
	    user[strcspn(user, " \t\n()@")] == '\0')
		(void)snprintf(sudo, sizeof(sudo), "(%.*s)", (int)sizeof(sudo) - 3, user);
	if (acquirer->record.purpose != RLOCK_PURPOSE_OWNER)
		(void)snprintf(holder, sizeof(holder), "pid %d %s", (int)holder_pid(acquirer),
			       program_of(acquirer, &proc));
	else
		(void)snprintf(holder, sizeof(holder), "owner %s", acquirer->opts->owner);
	len = snprintf(acquirer->note, sizeof(acquirer->note), "%s%s@%s %s", user_name(name), sudo,
		       host.nodename, holder);
	/* Leave out a URL that does not fit, since a part of it would lead to another page. */
	url = find_job_url(made);
	if (url != NULL && len > 0 && (size_t)len + 1 + strlen(url) < sizeof(acquirer->note))
		(void)snprintf(acquirer->note + len, sizeof(acquirer->note) - (size_t)len, " %s",
			       url);
}

/*
 * Fill the record of the hold. Other callers read in it which process the hold is for, and whether that process can be
 * asked to stop.
 */
static void fill_record(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;

	if (acquirer->record.purpose == RLOCK_PURPOSE_OWNER)
		return;
	proc_describe(holder_pid(acquirer), &acquirer->record.process);
	/*
	 * With a fixed lease there are no renewals, which would read a request. With --on-lost ignore, a request does
	 * not end a process of --pid.
	 */
	acquirer->record.reads_requests =
		!opts->is_fixed_lease && (acquirer->record.purpose == RLOCK_PURPOSE_COMMAND ||
					  opts->on_lost != ON_LOST_IGNORE);
}

/*
 * Refuse --pid 1 without --on-lost ignore. Process 1 usually ignores SIGTERM, so after a loss only the processes that
 * it has started would end.
 */
static int report_process_1(const struct opts *opts)
{
	struct usage_line line;
	/*
	 * Whether the corrected line can add the option to the user's line. If the user gave another --on-lost, the
	 * line has only this option, --pid and the names.
	 */
	bool is_new = opts->on_lost == ON_LOST_DEFAULT;

	usage_line(&line, PLAIN("rlock"), PLAIN(opts->verb->name),
		   { is_new ? "--on-lost ignore" : "--on-lost ignore --pid 1", opts->words,
		     is_new ? opts->word_count : 0 });
	if (!is_new)
		usage_line_add_names(&line, opts->names, opts->name_count);
	message_error_of_lock("a lost lock would end what process 1 has started; try: %s",
			      line.text);
	return EXIT_USAGE;
}

/* Open the process of --pid. Returns 0, or the exit code after one line by message_error. */
static int find_target(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	struct proc target;
	enum proc_lookup lookup = proc_find(opts->pid, &target);
	bool is_gone;

	is_gone = lookup == PROC_GONE || (lookup == PROC_SEEN && proc_is_gone(&target));
	if (is_gone && proc_is_hidden(opts->pid)) {
		message_error_of_lock("cannot watch process %d: /proc does not show it (hidepid?)",
				      opts->pid);
		return EXIT_SYSTEM;
	}
	if (is_gone) {
		message_error_of_lock("--pid %d: there is no such process", opts->pid);
		return EXIT_USAGE;
	}
	if (proc_of_thread(opts->pid) != opts->pid) {
		message_error_of_lock("--pid %d is a thread; give its process: --pid %d", opts->pid,
				      (int)proc_of_thread(opts->pid));
		return EXIT_USAGE;
	}
	if (lookup == PROC_SEEN)
		acquirer->args.target_fd = proc_open(target.pid, target.start);
	if (acquirer->args.target_fd < 0) {
		message_error_of_lock("cannot watch process %d: %s", opts->pid, strerror(errno));
		return EXIT_SYSTEM;
	}
	if (opts->pid == 1 && opts->on_lost != ON_LOST_IGNORE)
		return report_process_1(opts);
	acquirer->args.hold_file = hold_file_new(target.pid, target.start);
	return acquirer->args.hold_file != NULL ? 0 : EXIT_SYSTEM;
}

/*
 * Check everything that can fail on this machine, before anything is sent. Returns 0, or the exit code after one line
 * by message_error.
 */
static int prepare(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	int code;

	if (acquirer->record.purpose == RLOCK_PURPOSE_OWNER)
		return 0;
	code = os_check();
	if (code != 0)
		return code;
	if (acquirer->record.purpose == RLOCK_PURPOSE_COMMAND)
		return command_look_up(opts, &acquirer->args.path);
	return find_target(acquirer);
}

/*
 * Collect the owners by which this process or its ancestors may already hold these names, so that the call re-enters
 * their locks.
 */
static int find_owners(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	const char *value = getenv(INHERITED_VARIABLE);
	char *copy = NULL;

	/* With --owner the call re-enters only the locks of that owner. */
	if (opts->owner != NULL)
		return 0;
	if (value != NULL)
		copy = strdup(value);
	if (copy != NULL)
		inherited_owners(copy, opts->names, opts->name_count, &acquirer->owners,
				 &acquirer->owner_count);
	free(copy);
	return hold_file_find_owners(holder_pid(acquirer), opts->names, opts->name_count,
				     &acquirer->owners, &acquirer->owner_count);
}

/* ---- the lock ---- */

/*
 * Report the holder with -v, or if a person reads the messages now. Otherwise do not: cron would send them by mail.
 * Also return memory to the system, since a wait of this length may last for hours.
 */
static void on_long_wait(void *ctx, const struct rlock_blocker *blocker)
{
	struct acquirer *acquirer = ctx;
	int64_t now_ms = rlock_now_ms();

	if (message_is_verbose() || message_is_watched()) {
		wait_report_blocker(acquirer->opts, blocker);
		acquirer->has_shown_wait = true;
	}
	if (now_ms < acquirer->shrink_ms)
		return;
	acquirer->shrink_ms = now_ms + PROGRESS_AGAIN_MS;
	os_shrink_while_idle();
}

static void warn_of_total(void *ctx, size_t name_index, int64_t total)
{
	const struct acquirer *acquirer = ctx;
	const struct opts *opts = acquirer->opts;
	char name[NAME_SHOWN_MAX], option[32];
	struct usage_line line;

	(void)snprintf(option, sizeof(option), "--permits %d --resize", opts->permits);
	usage_line(&line, PLAIN("rlock sem"), PLAIN(option));
	usage_line_add_names(&line, opts->names + name_index, 1);
	message_warning("%s: has %" PRId64
			" permit%s in all, and --permits says %d; to change it: %s",
			names_show_one(opts, name_index, name), total, total == 1 ? "" : "s",
			opts->permits, line.text);
}

/* ---- the events of an acquisition ---- */

/* Set the fields about the hold for the log. Call this before the fork, so that the renewer inherits them. */
static void begin_events(const struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;

	event_log_set_hold(&(struct event_hold){
		.names = opts->names,
		.name_count = opts->name_count,
		.kind = acquirer->opts->verb->kind,
		.server = opts->server,
		.note = acquirer->note,
		.owner = acquirer->args.lease->owner,
		.pid = holder_pid(acquirer),
	});
}

static void log_event(const struct acquirer *acquirer, enum event_kind kind, const char *reason)
{
	struct event event = { .kind = kind, .waited_ms = acquirer->waited_ms, .reason = reason };

	if (kind == EVENT_BUSY || kind == EVENT_TIMED_OUT)
		event.holder_held_ms = rlock_conn_failure(acquirer->args.conn)->held_ms;
	event_log(&event);
}

static void log_acquisition(const struct acquirer *acquirer, enum rlock_status status)
{
	const char *why = rlock_conn_error(acquirer->args.conn);

	if (acquirer->args.lease->since_us > 0)
		log_event(acquirer, EVENT_WAITED, NULL);
	if (status == RLOCK_OK)
		log_event(acquirer, EVENT_ACQUIRED, NULL);
	else if (status == RLOCK_BUSY)
		log_event(acquirer, acquirer->opts->no_wait ? EVENT_BUSY : EVENT_TIMED_OUT, why);
	else if (status != RLOCK_CANCELLED)
		log_event(acquirer, EVENT_FAILED, why);
}

/* ---- the request ---- */

/*
 * Whether that process is an rlock, and an ancestor of this process or of the process of --pid. Such an rlock waits for
 * us, so to wait for its lock would be a deadlock.
 */
static bool is_ancestor(void *ctx, const struct rlock_process *process)
{
	const struct acquirer *acquirer = ctx;
	struct proc holder = { 0 }, above = { .parent = (pid_t)acquirer->record.process.pid };

	/* A process that /proc does not show here cannot be our ancestor. */
	if (!proc_is_here(process) || !proc_read((pid_t)process->pid, &holder) ||
	    !proc_is_of_record(&holder, process))
		return false;
	if (above.parent == 0)
		above.parent = getpid();
	/* Stop at a process that is older than the holder, because ancestors start before their descendants. */
	while (proc_read(above.parent, &above) && above.start >= holder.start)
		if (above.parent == process->pid)
			return proc_runs_our_program(above.parent);
	return false;
}

static bool has_ended(void *ctx, const struct rlock_process *process)
{
	(void)ctx;
	return proc_has_ended_here(process);
}

static struct rlock_request make_request(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	struct lease *lease = acquirer->args.lease;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	int64_t left_ms = lease->wait_end_ms - rlock_now_ms();

	request.wait_ms = opts->wait_ms <= 0 ? opts->wait_ms : max(left_ms, 0);
	request.since_us = &lease->since_us;
	request.hold_ids = &lease->hold_ids;
	request.inherited = (const char *const *)acquirer->owners;
	request.inherited_count = acquirer->owner_count;
	request.is_ancestor = is_ancestor;
	request.has_ended = has_ended;
	request.issue_token = opts->fence;
	request.on_wait = on_long_wait;
	request.on_wait_ms = PROGRESS_MS;
	request.on_wait_again_ms = wait_is_in_place() ? PROGRESS_IN_PLACE_MS : PROGRESS_AGAIN_MS;
	request.on_total = warn_of_total;
	request.ctx = acquirer;
	return request;
}

/*
 * Report a wait that ended by RLOCK_CANCELLED: we got a signal, by which this process will end, or the process of --pid
 * has ended. Returns the exit code.
 */
static int end_cancelled(const struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	int signal = acquirer->args.lease->exit_signal;
	char reason[32], name[NAME_SHOWN_MAX];

	/* After Ctrl-C leave the cursor on the progress line, since the shell itself begins a new line. */
	if (signal != SIGINT)
		(void)message_progress_end(NULL);
	(void)snprintf(reason, sizeof(reason), "signal %d", signal);
	log_event(acquirer, EVENT_CANCELLED, signal != 0 ? reason : "the process has ended");
	if (signal == 0 && opts->descriptor == NULL)
		message_info("%s: gave up waiting: process %d has ended",
			     names_show_one(opts, 0, name), opts->pid);
	return opts->conflict_exit_code;
}

/* The kind of the lock that others hold by the index-th name; RLOCK_ANY: none, or the server cannot tell. */
static enum rlock_kind kind_of_others(const struct opts *opts, struct rlock_conn *conn,
				      size_t index)
{
	struct rlock_inspection *locks = NULL;
	enum rlock_kind kind = RLOCK_ANY;
	size_t count = 0;

	if (rlock_inspect(conn, &opts->names[index], rlock_now_ms() + DELIVERY_MS, &locks,
			  &count) == RLOCK_OK &&
	    count > 0 && locks[0].status == RLOCK_OK && locks[0].holder_total > 0)
		kind = locks[0].kind;
	else if (count > 0 && locks[0].status == RLOCK_OK && locks[0].kind == RLOCK_SEMAPHORE)
		kind = RLOCK_SEMAPHORE;
	rlock_inspections_free(locks, count);
	return kind;
}

static void report_semaphore(const struct opts *opts, size_t index)
{
	char name[NAME_SHOWN_MAX];
	struct usage_line line;

	usage_line(&line, PLAIN("rlock unlock --force"));
	usage_line_add_names(&line, &opts->names[index], 1);
	message_error("%s is a semaphore; acquire a permit by rlock sem, or delete it; try: %s",
		      names_show_one(opts, index, name), line.text);
}

/*
 * Report which verbs the holders use. With another name, the caller would not exclude them: show the line with their verb.
 */
static void report_verbs_of_others(const struct opts *opts, const char *name, const char *why,
				   enum rlock_kind kind)
{
	bool is_mutex = rlock_kind_is(kind, RLOCK_PLAIN);
	const char *verb = !is_mutex ? "write" : kind == RLOCK_FAIR ? "fair" : "run";
	struct usage_line line;

	if (is_mutex && opts->command == NULL && kind != RLOCK_FAIR)
		verb = "lock";
	usage_line(
		&line, PLAIN("rlock"), { verb, opts->words, opts->word_count },
		{ opts->command != NULL ? "--" : NULL, opts->command, usage_count(opts->command) });
	/* The words of other verbs are no options of this one, and only a mutex has tokens. */
	if (opts->verb->set != VERBS_LOCK || (opts->fence && !is_mutex) || line.is_cut)
		message_error("%s: %s; its holders use %s", name, why,
			      is_mutex ? "run, lock or fair" : "read or write");
	else
		message_error("%s: %s; its holders use %s; try: %s", name, why,
			      is_mutex ? "run, lock or fair" : "read or write", line.text);
}

/* Report RLOCK_EKIND: others use the name for another kind of lock. Returns the exit code. */
static int report_other_kind(const struct opts *opts, struct rlock_conn *conn)
{
	size_t index = rlock_conn_error_name(conn);
	char name[NAME_SHOWN_MAX], why[FAILURE_TEXT_MAX], explained[FAILURE_TEXT_MAX];
	enum rlock_kind kind;
	int code;

	/* Print the failure now, because kind_of_others overwrites its text. */
	(void)snprintf(why, sizeof(why), "%s", rlock_conn_error(conn));
	code = caller_explain_failure(opts, conn, RLOCK_EKIND, explained);
	kind = kind_of_others(opts, conn, index);
	(void)names_show_one(opts, index, name);
	if (kind == RLOCK_SEMAPHORE && opts->verb->kind != RLOCK_SEMAPHORE)
		report_semaphore(opts, index);
	else if (kind == RLOCK_ANY || rlock_kind_is(kind, opts->verb->kind))
		message_error("%s: %s", name, explained);
	else
		report_verbs_of_others(opts, name, why, kind);
	return code;
}

static int end_not_acquired(const struct acquirer *acquirer, enum rlock_status status)
{
	const struct opts *opts = acquirer->opts;
	struct rlock_conn *conn = acquirer->args.conn;
	char name[NAME_SHOWN_MAX];

	if (status == RLOCK_CANCELLED)
		return end_cancelled(acquirer);
	/* An rlock above us holds the lock (is_ancestor), and waits for us. */
	if (status == RLOCK_EDEADLOCK && rlock_conn_failure(conn)->record.process.pid != 0) {
		message_error(
			"%s: deadlock: %s; %s",
			names_show_one(opts, rlock_conn_error_name(conn), name),
			rlock_conn_error(conn),
			opts->owner != NULL
				? "--owner names another owner; leave it out, or give it to the outer call, too"
				: "RLOCK_HELD, which the outer call sets, is not in the environment; pass it on, with sudo by --preserve-env=RLOCK_HELD");
		return EXIT_USAGE;
	}
	if (status == RLOCK_EKIND)
		return report_other_kind(opts, conn);
	if (status != RLOCK_BUSY)
		return caller_report_failure(opts, conn, status);
	wait_report_busy(opts, conn);
	return complain_of_holder(opts, conn) ? EXIT_CONFLICT : opts->conflict_exit_code;
}

/* Log and report the result of a request, and set the exit code if the lock was not acquired. */
static void end_request(struct acquirer *acquirer, enum rlock_status status)
{
	int64_t now_ms = rlock_now_ms();

	acquirer->waited_ms = now_ms - acquirer->args.lease->begun_ms;
	if (status == RLOCK_OK)
		event_log_set_acquired(acquirer->args.hold, now_ms);
	log_acquisition(acquirer, status);
	if (status == RLOCK_OK) {
		flock_print(acquirer->opts, acquirer->waited_ms, true);
		wait_report_acquired(acquirer->opts, acquirer->waited_ms, acquirer->has_shown_wait);
	} else {
		acquirer->args.lease->exit_code = end_not_acquired(acquirer, status);
	}
}

/* Acquire the lock. Runs in the renewer; for --owner without a command in rlock itself. */
static enum rlock_status acquire(void *ctx)
{
	struct acquirer *acquirer = ctx;
	struct rlock_request request = make_request(acquirer);
	enum rlock_status status;

	status = rlock_acquire(acquirer->args.conn, acquirer->args.hold, &request);
	end_request(acquirer, status);
	return status;
}

/* ---- requests of rlock itself, without a renewer ---- */

/* Whether the wait may continue: no signal has asked to end. */
static bool is_not_ended(void *ctx)
{
	struct lease *lease = ctx;

	if (lease->exit_signal == 0)
		lease->exit_signal = signals_pending_end();
	return lease->exit_signal == 0;
}

static int end_without_renewer(const struct lease *lease)
{
	return lease->exit_signal != 0 ? signals_die_by(lease->exit_signal) : lease->exit_code;
}

/*
 * A probe must be answered within this part of the time for a connection. If a server does not answer, its error comes
 * later by that time.
 */
#define PROBE_DIVISOR 4

/*
 * With -n ask whether the lock is busy before a renewer is forked. The fork takes longer than the request, and most
 * jobs of a fleet that use -n find the lock busy. Any answer but "busy" is ignored: the renewer then acquires the lock,
 * over the same connection. True: the lock is busy, and everything is reported.
 */
static bool is_busy(struct acquirer *acquirer)
{
	struct rlock_conn *conn = acquirer->args.conn;
	const struct opts *opts = acquirer->opts;
	struct rlock_request request;

	if (opts->wait_ms != 0)
		return false;
	request = make_request(acquirer);
	if (rlock_probe(conn, acquirer->args.hold, &request,
			rlock_now_ms() + opts->connect_timeout_ms / PROBE_DIVISOR) != RLOCK_BUSY)
		return false;
	rlock_conn_set_events(conn, signals_fd(), is_not_ended, acquirer->args.lease);
	end_request(acquirer, RLOCK_BUSY);
	return true;
}

/* Acquire a lock of --owner without a command: it has a lease, but neither a renewer nor a process. */
static int hold_for_owner(struct acquirer *acquirer)
{
	struct rlock_hold *hold = acquirer->args.hold;
	struct lease *lease = acquirer->args.lease;

	rlock_conn_set_events(acquirer->args.conn, signals_fd(), is_not_ended, lease);
	if (acquire(acquirer) == RLOCK_OK) {
		lease_record_acquired(lease, hold);
		if (is_not_ended(lease))
			lease->exit_code = front_print_acquired(lease);
		rlock_conn_set_events(acquirer->args.conn, -1, NULL, NULL);
		if (lease->exit_signal != 0 || lease->exit_code != 0)
			finish_unused(acquirer->args.conn, hold);
	}
	return end_without_renewer(lease);
}

/* ---- acquire and hold: from the options to the exit code ---- */

static void acquirer_clear(struct acquirer *acquirer)
{
	rlock_hold_free(acquirer->args.hold);
	rlock_conn_free(acquirer->args.conn);
	hold_file_free(acquirer->args.hold_file);
	lease_free(acquirer->args.lease);
	owners_free(acquirer->owners, acquirer->owner_count);
	free(acquirer->args.path);
	if (acquirer->args.target_fd >= 0)
		(void)close(acquirer->args.target_fd);
}

/*
 * Make the lease state, the owner and the hold id before the first request, so that front and renewer both know them.
 * If one of the two is killed, the other continues with them.
 */
static int make_lease(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	struct lease *lease = lease_new(opts, opts->verb->kind, acquirer->record.purpose);

	acquirer->args.lease = lease;
	if (lease == NULL)
		return message_out_of_memory();
	if (opts->owner != NULL)
		(void)snprintf(lease->owner, sizeof(lease->owner), OWNER_FORMAT, opts->owner);
	if ((opts->owner == NULL &&
	     rlock_owner_new((unsigned long)getpid(), lease->owner) != RLOCK_OK) ||
	    rlock_hold_id_new(lease->hold_ids.id) != RLOCK_OK) {
		message_error_of_lock("cannot make an owner: the kernel has no random bytes");
		return EXIT_SYSTEM;
	}
	return 0;
}

/* Make the hold, from the results of make_lease, make_note and fill_record. */
static int make_hold(struct acquirer *acquirer)
{
	const struct opts *opts = acquirer->opts;
	const struct lease *lease = acquirer->args.lease;
	struct hold_file *file = acquirer->args.hold_file;
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;

	spec.kind = opts->verb->kind;
	spec.names = opts->names;
	spec.name_count = opts->name_count;
	spec.id = lease->hold_ids.id;
	spec.owner = lease->owner;
	spec.note = acquirer->note;
	spec.record = &acquirer->record;
	spec.lease_ms = opts->lease_ms;
	spec.remember_ms = opts->remember_ms;
	spec.permits = opts->permits;
	spec.take = opts->take;
	if (file != NULL) {
		memcpy(file->hold_id, lease->hold_ids.id, RLOCK_HOLD_ID_MAX);
		file->note = acquirer->note;
		file->reads_requests = acquirer->record.reads_requests;
	}
	return rlock_hold_new(&spec, &acquirer->args.hold) == RLOCK_OK ? 0
								       : message_out_of_memory();
}

static int acquire_and_hold(struct acquirer *acquirer, struct opts *opts)
{
	const struct lease *lease;
	bool is_cancelled = false;
	int code = signals_setup();

	if (code == 0)
		code = caller_connect(opts, signals_fd(), &is_cancelled, &acquirer->args.conn);
	if (code != 0)
		return code;
	if (is_cancelled)
		return signals_die_by(signals_pending_end());
	code = find_owners(acquirer);
	if (code == 0)
		code = make_lease(acquirer);
	if (code != 0)
		return code;
	make_note(acquirer);
	fill_record(acquirer);
	code = make_hold(acquirer);
	if (code != 0)
		return code;
	begin_events(acquirer);
	if (acquirer->record.purpose == RLOCK_PURPOSE_OWNER)
		return hold_for_owner(acquirer);
	lease = acquirer->args.lease;
	if (is_busy(acquirer))
		return end_without_renewer(lease);
	code = front_run(&acquirer->args);
	if (lease->acquired_ms > 0)
		flock_print(opts, lease->acquired_ms - lease->begun_ms, false);
	return code;
}

/* Only this function decides the purpose by the options. Later code reads it from the record or the lease state. */
static enum rlock_purpose purpose_of(const struct opts *opts)
{
	if (opts->command != NULL)
		return RLOCK_PURPOSE_COMMAND;
	return opts->owner != NULL ? RLOCK_PURPOSE_OWNER : RLOCK_PURPOSE_PROCESS;
}

int cmd_lock(struct opts *opts)
{
	struct acquirer acquirer = {
		.opts = opts,
		.record = { .purpose = purpose_of(opts) },
		.args = { .target_fd = -1, .acquire = acquire, .ctx = &acquirer },
	};
	int code = prepare(&acquirer);

	if (code == 0)
		code = acquire_and_hold(&acquirer, opts);
	acquirer_clear(&acquirer);
	return code;
}

/* ---- sem --resize: how many permits a semaphore has ---- */

static int resize_one(const struct opts *opts, struct rlock_conn *conn)
{
	const char *plural = opts->permits == 1 ? "" : "s";
	char name[NAME_SHOWN_MAX];
	int64_t had;
	enum rlock_status status = rlock_resize(conn, &opts->names[0], opts->permits,
						rlock_now_ms() + DELIVERY_MS, &had);

	if (status != RLOCK_OK)
		return caller_report_failure(opts, conn, status);
	(void)names_show_one(opts, 0, name);
	if (had < 0)
		message_debug("%s: has %d permit%s in all; it did not exist before", name,
			      opts->permits, plural);
	else
		message_debug("%s: has %d permit%s in all; it had %" PRId64 " before", name,
			      opts->permits, plural, had);
	return 0;
}

static int resize(const struct opts *opts, struct rlock_conn *conn)
{
	return caller_each_name(opts, conn, resize_one);
}

int cmd_sem(struct opts *opts)
{
	return opts->resize ? caller_run(opts, resize) : cmd_lock(opts);
}
