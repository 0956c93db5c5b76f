/*
 * Hands a lock without a command over to its renewer. The hold file is part of that: by it `rlock unlock` finds both.
 * What the renewer does from then on is renewer_loop.c's; which process the lock is for was found out before.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "base/output.h"
#include "hold/detached.h"
#include "hold/finish.h"
#include "hold/lease_state.h"
#include "hold/renewer.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"

/* ---- the hold file ---- */

struct hold_file *detached_file_new(const struct opts *opts, enum rlock_kind kind, pid_t target,
				    uint64_t target_start)
{
	struct hold_file *file = hold_file_new(target, target_start);

	if (file == NULL)
		return NULL;
	file->kind = kind;
	file->is_fixed_lease = opts->is_fixed_lease;
	file->lease_ms = opts->lease_ms;
	return file;
}

static bool fill_hold_file(const struct detached_args *args)
{
	const struct opts *opts = args->opts;
	struct hold_file *file = args->file;

	for (size_t i = 0; i < opts->name_count; i++)
		if (!hold_file_add_name(file, opts->names[i].text, opts->names[i].len,
					rlock_hold_owner(args->hold, i)))
			return false;
	file->server = strdup(opts->server);
	memcpy(file->hold_id, rlock_hold_id(args->hold), RLOCK_HOLD_ID_MAX);
	file->sent_ms = rlock_hold_sent_ms(args->hold);
	file->acquired_ms = args->acquired_ms;
	return file->server != NULL;
}

/* ---- the renewer ---- */

static void fill_lease_state(struct lease_state *lease_state, const struct detached_args *args)
{
	const struct opts *opts = args->opts;

	lease_state_init(lease_state, opts, args->hold, args->acquired_ms);
	lease_state->max_run_end_ms = INT64_MAX;
	lease_state->is_shared = args->file->kind == RLOCK_READ;
	lease_state->is_for_caller = true;
	lease_state->on_lost = opts->on_lost == ON_LOST_DEFAULT ? ON_LOST_TERM : opts->on_lost;
	lease_state->job_pid = args->file->pid;
	lease_state->job_start = args->file->start;
	lease_state->is_held = true;
}

/*
 * The renewer goes on after our end. An rlock further up that waits for the processes of its command, or terminates
 * them, must not meet a renewer that it cannot tell from them yet. It can tell once the renewer has closed the
 * descriptors that it has from us.
 */
static pid_t start_known_renewer(const struct renewer_args *args)
{
	int gate[2];
	char byte;
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) != 0)
		return -1;
	pid = renewer_start(args);
	(void)close(gate[1]);
	if (pid > 0)
		(void)!read(gate[0], &byte, sizeof(byte));
	(void)close(gate[0]);
	return pid;
}

/* Until is_committed is set, the lock is ours: if we end before that, the renewer releases it (renewer_loop.c: is_over). */
static int start_renewer(const struct detached_args *args, struct lease_state *lease_state)
{
	struct hold_file *file = args->file;
	struct renewer_args renewer = {
		.lease_state = lease_state,
		.conn = args->conn,
		.hold = args->hold,
		.keeper_fd = (int)syscall(SYS_pidfd_open, getpid(), 0),
		.target_fd = args->target_fd,
		.wakeup_fd = -1,
		.begin_fd = -1,
		.hold_file = file,
	};
	enum proc_lookup lookup;
	struct proc proc;

	if (renewer.keeper_fd >= 0) {
		file->renewer = start_known_renewer(&renewer);
		(void)close(renewer.keeper_fd);
	}
	if (renewer.keeper_fd < 0 || file->renewer < 0) {
		message_error("cannot start the renewer: %s", strerror(errno));
		return EXIT_SYSTEM;
	}
	/* The unlock that kills the renewer one day must not kill another process that got its pid. */
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

/* ---- the lock ---- */

/* A script that reads the fencing token from us must not go on without one. */
static int print_tokens(const struct detached_args *args)
{
	if (!args->opts->fence)
		return 0;
	for (size_t i = 0; i < args->opts->name_count; i++)
		(void)printf("%" PRId64 "\n", rlock_hold_token(args->hold, i));
	return output_end(0);
}

/* 0 when the renewer has the lock, or *signal_out is the signal that came before that; else the exit code. */
static int hand_over(const struct detached_args *args, struct lease_state *lease_state,
		     int *signal_out)
{
	int code;

	if (lease_state == NULL || !fill_hold_file(args))
		return message_out_of_memory();
	fill_lease_state(lease_state, args);
	code = start_renewer(args, lease_state);
	if (code != 0)
		return code;
	/* A signal that is sent from here on is sent while the lock is held and can be released. */
	*signal_out = signals_pending_end(args->signals);
	if (*signal_out != 0)
		return 0;
	code = print_tokens(args);
	if (code != 0)
		return code;
	lease_state->is_committed = true;
	/* If the process has ended, the renewer may have ended before the file existed, without removing it. */
	if (os_is_ready(args->target_fd))
		hold_file_remove(args->file);
	return 0;
}

static int hold_for_process(const struct detached_args *args)
{
	struct lease_state *lease_state = lease_state_new();
	int signal = 0, code = hand_over(args, lease_state, &signal);

	if (code != 0 || signal != 0) {
		renewer_kill(args->file->renewer);
		renewer_reap(args->file->renewer);
		hold_file_remove(args->file);
		finish_unused(args->conn, args->hold);
	}
	lease_state_free(lease_state);
	return signal != 0 ? signals_die_by(signal) : code;
}

static int hold_for_owner(const struct detached_args *args)
{
	int code = print_tokens(args);

	if (code != 0)
		finish_unused(args->conn, args->hold);
	return code;
}

int detached_start(const struct detached_args *args)
{
	int signal = signals_pending_end(args->signals);

	/* It came when the lock had been acquired, but would have ended the wait. */
	if (signal != 0) {
		finish_unused(args->conn, args->hold);
		return signals_die_by(signal);
	}
	return args->file != NULL ? hold_for_process(args) : hold_for_owner(args);
}
