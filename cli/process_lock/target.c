/*
 * Opens the process that a lock without a command is for: the one that --pid names, or the calling one if it still
 * exists. short_lived.c judges whether a caller lives long enough to be given a lock, and hold_file.c writes down which
 * process it is.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "process_lock/target.h"
#include "sys/proc.h"

/*
 * A process is born in its caller's session, and leaves it only to lead one of its own. If we do not lead ours, a
 * parent in another session is not the caller: the caller has ended, and that parent has adopted us. If we do lead it,
 * only process 1 is taken for an adopter: a caller that is process 1 says so by --pid.
 */
static bool is_orphan(pid_t parent)
{
	pid_t session = getsid(0);

	return getsid(parent) != session && (parent == 1 || session != getpid());
}

static int report_unseen(pid_t pid, int error)
{
	message_error("cannot watch process %d: %s", (int)pid, strerror(error));
	return EXIT_SYSTEM;
}

static int report_none(pid_t pid, bool is_parent)
{
	if (access("/proc/self/stat", R_OK) != 0) {
		message_error("cannot tell which process the lock is for: there is no /proc here");
		return EXIT_SYSTEM;
	}
	if (proc_is_hidden(pid)) {
		message_error("process %d can't be watched: /proc does not show it (hidepid?)",
			      (int)pid);
		return EXIT_SYSTEM;
	}
	if (is_parent && pid == 0)
		message_error(
			"the calling process is outside of this container: name the process in it that the "
			"lock is for with --pid");
	else if (is_parent)
		message_error(
			"the calling process has ended: name the process that the lock is for with --pid");
	else
		message_error("--pid %d: there is no such process", (int)pid);
	return EXIT_USAGE;
}

int target_open(pid_t pid, pid_t *pid_out, uint64_t *start_out, int *code_out)
{
	bool is_parent = pid == 0;
	enum proc_lookup lookup;
	struct proc target;
	int fd;

	if (is_parent)
		pid = getppid();
	lookup = proc_look(pid, &target);
	if (lookup == PROC_UNSEEN) {
		*code_out = report_unseen(pid, errno);
		return -1;
	}
	if (lookup == PROC_GONE || proc_is_gone(&target) || (is_parent && is_orphan(pid))) {
		*code_out = report_none(pid, is_parent);
		return -1;
	}
	fd = proc_open(pid, target.start);
	if (fd < 0) {
		*code_out = report_unseen(pid, errno);
		return -1;
	}
	*pid_out = pid;
	*start_out = target.start;
	*code_out = 0;
	return fd;
}
