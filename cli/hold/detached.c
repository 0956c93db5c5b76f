/*
 * What a lock for a process has beside its renewer: the hold file, and tokens on standard output. When the lock is the
 * process's, front.c and renewer.c agree upon.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "base/output.h"
#include "hold/detached.h"
#include "process_lock/hold_file.h"
#include "sys/proc.h"

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

static bool fill(const struct hold_args *args, const struct rlock_hold *hold)
{
	const struct opts *opts = args->opts;
	struct hold_file *file = args->hold_file;

	for (size_t i = 0; i < opts->name_count; i++)
		if (!hold_file_add_name(file, opts->names[i].text, opts->names[i].len,
					rlock_hold_owner(hold, i)))
			return false;
	file->server = strdup(opts->server);
	memcpy(file->hold_id, rlock_hold_id(hold), RLOCK_HOLD_ID_MAX);
	file->sent_ms = rlock_hold_sent_ms(hold);
	file->acquired_ms = args->lease->acquired_ms;
	return file->server != NULL;
}

/* 0, or the exit code after one line by message_error. */
static int look_at_renewer(pid_t renewer, struct proc *out)
{
	switch (proc_look(renewer, out)) {
	case PROC_SEEN:
		return 0;
	case PROC_UNSEEN:
		message_error("cannot watch the renewer: %s", strerror(errno));
		break;
	default:
		message_error("cannot watch the renewer: /proc does not show it (hidepid?)");
	}
	return EXIT_SYSTEM;
}

/* The unlock that kills the renewer one day must not kill another process that got its pid: so its start is in the file. */
int detached_save(const struct hold_args *args, const struct rlock_hold *hold)
{
	struct proc self;
	int code;

	if (!fill(args, hold))
		return message_out_of_memory();
	code = look_at_renewer(getpid(), &self);
	if (code != 0)
		return code;
	args->hold_file->renewer = self.pid;
	args->hold_file->renewer_start = self.start;
	return hold_file_save(args->hold_file);
}

/* Its name is all that this process knows of it. */
void detached_remove(const struct hold_args *args)
{
	memcpy(args->hold_file->hold_id, args->lease->hold_id, RLOCK_HOLD_ID_MAX);
	hold_file_remove(args->hold_file);
}

int detached_check_renewer(pid_t renewer)
{
	struct proc proc;

	return look_at_renewer(renewer, &proc);
}

int detached_print_tokens(const struct opts *opts, const struct lease *lease)
{
	if (!opts->fence)
		return 0;
	for (size_t i = 0; i < opts->name_count; i++)
		(void)printf("%" PRId64 "\n", lease->names[i].token);
	return output_end(0);
}
