/*
 * Descriptors, memory and the renewer of a keeper. What they do is for keeper.c and renewer.c.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "hold/equipment.h"
#include "hold/renewer.h"
#include "sys/os.h"

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* All that may fail, one after the other: errno is that of the one that did. */
static bool make_all(struct equipment *equipment)
{
	equipment->self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (equipment->self_fd < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       equipment->wakeup_fd) != 0)
		return false;
	equipment->lease_state = lease_state_new();
	return equipment->lease_state != NULL && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

bool equipment_make(struct equipment *equipment)
{
	if (equipment->lease_state != NULL)
		return true;
	/* Look before the renewer is forked: it would count as a child. */
	equipment->counts_all_adopted = !has_children();
	if (make_all(equipment))
		return true;
	equipment_free(equipment);
	return false;
}

bool equipment_start_renewer(struct equipment *equipment, struct rlock_conn *conn,
			     struct rlock_hold *hold)
{
	const struct renewer_args args = {
		.lease_state = equipment->lease_state,
		.conn = conn,
		.hold = hold,
		.keeper_fd = equipment->self_fd,
		.target_fd = -1,
		.wakeup_fd = equipment->wakeup_fd[1],
		.begin_fd = equipment->begin_fd,
	};
	pid_t pid = renewer_start(&args);

	if (pid < 0)
		return false;
	equipment->renewer = pid;
	return true;
}

void equipment_reserve_renewer(struct equipment *equipment, struct rlock_conn *conn,
			       struct rlock_hold *hold)
{
	if (!equipment_make(equipment))
		return;
	equipment->begin_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (equipment->begin_fd >= 0 && equipment_start_renewer(equipment, conn, hold))
		message_debug("the renewer is ready");
}

/* One in reserve may have been killed during the wait. */
static bool has_renewer(struct equipment *equipment)
{
	siginfo_t info = { 0 };

	if (equipment->renewer > 0 &&
	    waitid(P_PID, (id_t)equipment->renewer, &info, WEXITED | WNOHANG) == 0 &&
	    info.si_pid != 0)
		equipment->renewer = 0;
	return equipment->renewer > 0;
}

bool equipment_begin_renewing(struct equipment *equipment, struct rlock_conn *conn,
			      struct rlock_hold *hold)
{
	equipment->lease_state->is_held = true;
	if (!has_renewer(equipment))
		return equipment_start_renewer(equipment, conn, hold);
	/* Not at once: it would take the processor from the command that is about to start. */
	os_timer_set(equipment->begin_fd, rlock_now_ms() + RENEWER_PAUSE_MS);
	return true;
}

static void close_one(int *fd)
{
	int error = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = error;
}

void equipment_reap_renewer(struct equipment *equipment)
{
	renewer_reap(equipment->renewer);
	equipment->renewer = 0;
}

void equipment_free(struct equipment *equipment)
{
	renewer_kill(equipment->renewer);
	equipment_reap_renewer(equipment);
	close_one(&equipment->self_fd);
	close_one(&equipment->wakeup_fd[0]);
	close_one(&equipment->wakeup_fd[1]);
	close_one(&equipment->begin_fd);
	lease_state_free(equipment->lease_state);
	equipment->lease_state = NULL;
}
