/*
 * run, lock and the verbs like them: acquire the lock; then hold it for a command, or leave it to a renewer that
 * belongs to the calling process. keeper.c and renewer.c do the holding.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exits.h"
#include "base/message.h"
#include "caller.h"
#include "cli.h"
#include "hold/finish.h"
#include "hold/command.h"
#include "hold/keeper.h"
#include "hold/renewer.h"
#include "options/names.h"
#include "options/usage.h"
#include "process_lock/hold_file.h"
#include "process_lock/hold_file_find.h"
#include "process_lock/inherited.h"
#include "process_lock/passing.h"
#include "process_lock/runtime_dir.h"
#include "process_lock/target.h"
#include "sys/fds.h"
#include "sys/kernel.h"
#include "sys/proc_tree.h"

#define PROGRESS_MS 1000

/* Everything that acquiring a lock needs; taker_clear frees it. */
struct taker {
	const struct verb *verb;
	struct opts *opts;
	struct signals signals;
	char *path;    /* of the command; NULL without one */
	int target_fd; /* pidfd of the process that a lock without a command is for; -1: none */
	pid_t target;
	uint64_t target_start;
	struct hold_file *hold_file; /* its file; NULL: the lock is not for a process */
	int cancel_fd;               /* the signals', or an epoll of them and the target */
	char **owners;
	size_t owner_count;
	char owner[RLOCK_OWNER_MAX]; /* of --owner; empty: a new one */
	char note[RLOCK_NOTE_MAX];
	struct rlock_conn *conn;
	struct rlock_hold *hold;
	int64_t had_ms;
};

/* ---- before the lock ---- */

static const char *program_of(const struct taker *taker, struct proc *proc)
{
	const char *program, *slash;

	if (taker->opts->command != NULL) {
		program = taker->opts->command[0];
		slash = strrchr(program, '/');
		return slash != NULL && slash[1] != '\0' ? slash + 1 : program;
	}
	return taker->target_fd >= 0 && proc_read(taker->target, proc) ? proc->name : "rlock";
}

/*
 * The note is "user@host pid 123 pg_dump". The user's name is taken from the environment, because looking it up opens
 * half a dozen files.
 */
static void make_note(struct taker *taker)
{
	const char *user = getenv("LOGNAME");
	struct utsname host;
	struct proc proc;
	char uid[24];
	pid_t pid = taker->target_fd >= 0 ? taker->target : getpid();

	if (taker->opts->note != NULL) {
		(void)snprintf(taker->note, sizeof(taker->note), "%s", taker->opts->note);
		return;
	}
	if (user == NULL || user[0] == '\0')
		user = getenv("USER");
	if (user == NULL || user[0] == '\0') {
		(void)snprintf(uid, sizeof(uid), "uid%u", (unsigned)getuid());
		user = geteuid() == 0 ? "root" : uid;
	}
	if (uname(&host) != 0)
		memcpy(host.nodename, "?", 2);
	(void)snprintf(taker->note, sizeof(taker->note), "%s@%s pid %d %s", user, host.nodename,
		       (int)pid, program_of(taker, &proc));
}

/*
 * The first process of a machine or a container usually ignores SIGTERM; the processes that it started would be ended.
 */
static int say_process_1(const struct verb *verb, const struct opts *opts)
{
	char names[NAMES_SHOWN_MAX];
	struct usage_line line;

	usage_begin(&line, verb->name);
	usage_add_plain(&line, "--on-lost ignore");
	/* An --on-lost that the user gave must not stand beside this one. */
	if (opts->on_lost == ON_LOST_DEFAULT) {
		usage_add(&line, opts->words, opts->word_count);
	} else {
		usage_add_plain(&line, "--pid 1");
		usage_add_names(&line, opts->names, opts->name_count);
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

static int find_target(struct taker *taker)
{
	const struct opts *opts = taker->opts;
	int code = 0;

	if (!is_for_process(opts))
		return 0;
	taker->target_fd =
		target_open((pid_t)opts->pid, &taker->target, &taker->target_start, &code);
	if (code == 0 && opts->pid == 1 && opts->on_lost != ON_LOST_IGNORE)
		code = say_process_1(taker->verb, opts);
	if (code == 0 && opts->pid == 0)
		code = passing_check(taker->target, taker->verb, opts);
	return code;
}

/* Makes one descriptor of everything that ends a wait. */
static int join_cancels(struct taker *taker)
{
	const int fds[] = { taker->signals.fd, taker->target_fd };

	taker->cancel_fd = taker->signals.fd;
	if (taker->target_fd < 0)
		return 0;
	taker->cancel_fd = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; taker->cancel_fd >= 0 && i < sizeof(fds) / sizeof(fds[0]); i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(taker->cancel_fd, EPOLL_CTL_ADD, fds[i], &event) != 0) {
			(void)close(taker->cancel_fd);
			taker->cancel_fd = -1;
		}
	}
	if (taker->cancel_fd >= 0)
		return 0;
	message_error("cannot wait: %s", strerror(errno));
	return EXIT_SYSTEM;
}

/* Finds the owners by which this process and those above it may hold these names already. */
static int find_owners(struct taker *taker)
{
	const struct opts *opts = taker->opts;
	const char *value = getenv(INHERITED_VARIABLE);

	if (opts->owner != NULL) {
		(void)snprintf(taker->owner, sizeof(taker->owner), OWNER_FORMAT, opts->owner);
		return 0;
	}
	for (size_t i = 0; value != NULL && i < opts->name_count; i++)
		inherited_owners(value, &opts->names[i], &taker->owners, &taker->owner_count);
	return hold_file_find_owners(taker->target_fd >= 0 ? taker->target : getpid(), opts->names,
				     opts->name_count, &taker->owners, &taker->owner_count);
}

/* ---- taking it ---- */

static void tell_progress(void *ctx, const struct rlock_blocker *blocker)
{
	const struct taker *taker = ctx;
	char name[NAME_SHOWN_MAX], note[RLOCK_NOTE_MAX], holder[RLOCK_OWNER_MAX];

	if (!message_is_verbose() && !isatty(STDERR_FILENO))
		return;
	(void)rlock_escape(blocker->holder, blocker->holder_len, holder, sizeof(holder));
	(void)rlock_escape(blocker->note, blocker->note_len, note, sizeof(note));
	message_info("%s: waiting for %s%s%s%s", name_show(taker->opts, blocker->name_index, name),
		     note, note[0] != '\0' ? " (" : "", holder, note[0] != '\0' ? ")" : "");
}

static enum rlock_status acquire(struct taker *taker)
{
	const struct opts *opts = taker->opts;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	enum rlock_status status;

	request.kind = taker->verb->kind;
	request.names = opts->names;
	request.name_count = opts->name_count;
	request.lease_ms = opts->lease_ms;
	request.wait_ms = opts->wait_ms;
	request.owner = taker->owner[0] != '\0' ? taker->owner : NULL;
	request.inherited = (const char *const *)taker->owners;
	request.inherited_count = taker->owner_count;
	request.note = taker->note;
	request.draw_token = opts->fence;
	request.progress = tell_progress;
	request.progress_ctx = taker;
	request.progress_ms = PROGRESS_MS;
	status = rlock_acquire(taker->conn, &request, &taker->hold);
	taker->had_ms = rlock_now_ms();
	return status;
}

/* The wait was cut short by a signal, which also ends us, or by the end of the process that the lock was for. */
static int end_cancelled(const struct taker *taker)
{
	struct signalfd_siginfo info;
	int signal = signals_next(&taker->signals, &info);

	return signal != 0 ? signals_die_by(signal) : taker->opts->conflict_exit_code;
}

static int end_not_had(const struct taker *taker, enum rlock_status status)
{
	const struct opts *opts = taker->opts;
	char name[NAME_SHOWN_MAX], waited[DURATION_TEXT_MAX];

	if (status == RLOCK_CANCELLED)
		return end_cancelled(taker);
	if (status != RLOCK_BUSY)
		return caller_say_failure(opts, taker->conn, status);
	(void)name_show(opts, rlock_conn_error_name(taker->conn), name);
	if (opts->no_wait)
		message_debug("%s: busy: %s", name, rlock_conn_error(taker->conn));
	else
		message_info("%s: not had within %s: %s", name,
			     duration_print(opts->wait_ms, waited), rlock_conn_error(taker->conn));
	return opts->conflict_exit_code;
}

/* ---- having it ---- */

static int hold_for_command(const struct taker *taker)
{
	const struct keeper_job job = {
		.opts = taker->opts,
		.kind = taker->verb->kind,
		.path = taker->path,
		.signals = (struct signals *)&taker->signals,
		.conn = taker->conn,
		.hold = taker->hold,
		.had_ms = taker->had_ms,
	};

	return keeper_run(&job);
}

/* Everything that can fail about the state of a lock without a command fails here, before the lock is acquired. */
static int make_hold_file(struct taker *taker)
{
	const struct opts *opts = taker->opts;
	struct hold_file *file = calloc(1, sizeof(*file));

	taker->hold_file = file;
	if (file == NULL) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	file->claim_fd = -1;
	file->dir_fd = runtime_dir_open_for_holds();
	file->pid = taker->target;
	file->pid_namespace = proc_namespace();
	file->start = taker->target_start;
	file->kind = taker->verb->kind;
	file->is_fixed_lease = opts->is_fixed_lease;
	file->lease_ms = opts->lease_ms;
	return file->dir_fd >= 0 ? 0 : EXIT_SYSTEM;
}

static bool fill_hold_file(const struct taker *taker)
{
	const struct opts *opts = taker->opts;
	struct hold_file *file = taker->hold_file;

	for (size_t i = 0; i < opts->name_count; i++)
		if (!hold_file_add_name(file, opts->names[i].text, opts->names[i].len,
					rlock_hold_owner(taker->hold, i)))
			return false;
	file->server = strdup(opts->server);
	memcpy(file->hold_id, rlock_hold_id(taker->hold), RLOCK_HOLD_ID_MAX);
	file->sent_ms = rlock_hold_sent_ms(taker->hold);
	file->had_ms = taker->had_ms;
	return file->server != NULL;
}

static void fill_lease_state(struct lease_state *lease_state, const struct taker *taker)
{
	const struct opts *opts = taker->opts;

	lease_state_init(lease_state, opts, taker->hold, taker->had_ms);
	lease_state->max_run_end_ms = INT64_MAX;
	lease_state->is_shared = taker->verb->kind == RLOCK_READ;
	lease_state->is_for_caller = true;
	lease_state->on_lost = opts->on_lost == ON_LOST_DEFAULT ? ON_LOST_TERM : opts->on_lost;
	lease_state->job_pid = taker->target;
	lease_state->job_start = taker->target_start;
}

/*
 * The renewer goes on after our end. An rlock further up that waits for the processes of its command, or terminates
 * them, must not meet a renewer that it cannot tell from them yet. It can tell once the renewer has closed the
 * descriptors that it has from us.
 */
static pid_t start_known_renewer(const struct renewer_job *job)
{
	int gate[2];
	char byte;
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) != 0)
		return -1;
	pid = renewer_start(job);
	(void)close(gate[1]);
	if (pid > 0)
		(void)!read(gate[0], &byte, sizeof(byte));
	(void)close(gate[0]);
	return pid;
}

/* The renewer waits for is_committed: until the file says which process the lock is for, the lock is still ours. */
static int start_renewer(const struct taker *taker, struct lease_state *lease_state)
{
	struct hold_file *file = taker->hold_file;
	struct renewer_job job = {
		.lease_state = lease_state,
		.conn = taker->conn,
		.hold = taker->hold,
		.keeper_fd = (int)syscall(SYS_pidfd_open, getpid(), 0),
		.target_fd = taker->target_fd,
		.knock_fd = -1,
		.hold_file = file,
	};
	enum proc_lookup lookup;
	struct proc proc;

	if (job.keeper_fd >= 0) {
		file->renewer = start_known_renewer(&job);
		(void)close(job.keeper_fd);
	}
	if (job.keeper_fd < 0 || file->renewer < 0) {
		message_error("cannot start the renewer: %s", strerror(errno));
		return EXIT_SYSTEM;
	}
	/* The unlock that kills the renewer one day must not kill another process that was given its number. */
	lookup = proc_look(file->renewer, &proc);
	if (lookup != PROC_SEEN) {
		int error = lookup == PROC_UNSEEN ? errno : ESRCH;

		message_error("cannot watch the renewer: %s",
			      proc_is_hidden(file->renewer) ? "/proc does not show it (hidepid?)"
							    : strerror(error));
		return EXIT_SYSTEM;
	}
	file->renewer_start = proc.start;
	return hold_file_save(file);
}

static void stop_renewer(const struct hold_file *file)
{
	siginfo_t info;

	if (file->renewer <= 0)
		return;
	(void)kill(file->renewer, SIGKILL);
	while (waitid(P_PID, (id_t)file->renewer, &info, WEXITED) != 0 && errno == EINTR)
		;
}

static void give_back(const struct taker *taker)
{
	rlock_conn_set_cancel(taker->conn, -1);
	(void)finish_release(taker->conn, taker->hold);
}

/* The lock was acquired, but a signal came that would have ended the wait: release the lock, and end by the signal. */
static int end_pending(const struct taker *taker, int signal)
{
	give_back(taker);
	return signals_die_by(signal);
}

/* A script that reads the fencing token from us must not go on without one. */
static int print_tokens(const struct taker *taker)
{
	bool is_printed = true;

	if (!taker->opts->fence)
		return 0;
	for (size_t i = 0; i < taker->opts->name_count; i++)
		is_printed =
			printf("%" PRId64 "\n", rlock_hold_token(taker->hold, i)) > 0 && is_printed;
	if (fflush(stdout) == 0 && is_printed)
		return 0;
	message_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

static int hold_for_caller(const struct taker *taker)
{
	struct lease_state *lease_state = lease_state_new();
	int code, signal = 0;

	if (lease_state == NULL || !fill_hold_file(taker)) {
		message_error("out of memory");
		code = EXIT_SYSTEM;
	} else {
		fill_lease_state(lease_state, taker);
		code = start_renewer(taker, lease_state);
	}
	/* A signal that is sent from here on is sent while the lock is held and can be released. */
	if (code == 0)
		signal = signals_pending_end(&taker->signals);
	if (code == 0 && signal == 0)
		code = print_tokens(taker);
	if (code == 0 && signal == 0) {
		lease_state->is_committed = true;
		/* If the process has ended, the renewer may have ended before the file existed, without removing it. */
		if (fd_is_ready(taker->target_fd))
			hold_file_remove(taker->hold_file);
	} else {
		stop_renewer(taker->hold_file);
		hold_file_remove(taker->hold_file);
		give_back(taker);
	}
	lease_state_free(lease_state);
	return signal != 0 ? signals_die_by(signal) : code;
}

/* No process watches over a lock of --owner: its lease is all that it has. */
static int hold_for_owner(const struct taker *taker)
{
	int code = print_tokens(taker);

	if (code != 0)
		give_back(taker);
	return code;
}

/* ---- all of it ---- */

static void taker_clear(struct taker *taker)
{
	rlock_hold_free(taker->hold);
	rlock_conn_free(taker->conn);
	hold_file_free(taker->hold_file);
	owners_free(taker->owners, taker->owner_count);
	free(taker->path);
	if (taker->cancel_fd >= 0 && taker->cancel_fd != taker->signals.fd)
		(void)close(taker->cancel_fd);
	if (taker->target_fd >= 0)
		(void)close(taker->target_fd);
	if (taker->signals.fd >= 0)
		(void)close(taker->signals.fd);
}

static int take(struct taker *taker)
{
	bool is_cancelled = false;
	enum rlock_status status;
	int signal, code = signals_setup(&taker->signals);

	if (code == 0)
		code = join_cancels(taker);
	if (code == 0)
		code = caller_connect(taker->opts, taker->cancel_fd, &is_cancelled, &taker->conn);
	if (code != 0)
		return code;
	if (is_cancelled)
		return end_cancelled(taker);
	code = find_owners(taker);
	if (code != 0)
		return code;
	make_note(taker);
	status = acquire(taker);
	if (status != RLOCK_OK)
		return end_not_had(taker, status);
	if (taker->opts->command != NULL)
		return hold_for_command(taker);
	signal = signals_pending_end(&taker->signals);
	if (signal != 0)
		return end_pending(taker, signal);
	return taker->hold_file != NULL ? hold_for_caller(taker) : hold_for_owner(taker);
}

int cmd_lock(const struct verb *verb, struct opts *opts)
{
	struct taker taker = { .verb = verb,
			       .opts = opts,
			       .target_fd = -1,
			       .cancel_fd = -1,
			       .signals = { .fd = -1 } };
	/* What could fail on this machine is found out before the lock is acquired. */
	int code = is_for_process(opts) ? kernel_check() : 0;

	if (code == 0)
		code = opts->command != NULL ? command_look_up(verb, opts, &taker.path)
					     : find_target(&taker);
	if (code == 0 && taker.target_fd >= 0)
		code = make_hold_file(&taker);
	if (code == 0)
		code = take(&taker);
	taker_clear(&taker);
	return code;
}
