/*
 * Waits for leftover processes: one of them is enough to keep the lock, and its pidfd becomes readable when it ends.
 * It leaves finding them to proc_tree.c.
 */
#include <unistd.h>

#include "base/least.h"
#include "hold/job_processes.h"
#include "hold/leftovers.h"
#include "sys/os.h"

/* How soon to look again without a pidfd, e.g. for lack of descriptors: soon at first, then less often. */
#define PACE_MIN_MS 5
#define PACE_MAX_MS 1000

void leftovers_init(struct leftovers *leftovers, const struct lease_state *lease_state)
{
	*leftovers =
		(struct leftovers){ .lease_state = lease_state, .fd = -1, .again_ms = INT64_MAX };
}

void leftovers_clear(struct leftovers *leftovers)
{
	if (leftovers->fd >= 0)
		(void)close(leftovers->fd);
	leftovers->fd = -1;
}

static void look_again_later(struct leftovers *leftovers, int64_t now_ms)
{
	leftovers->pace_ms = most(PACE_MIN_MS, least(2 * leftovers->pace_ms, PACE_MAX_MS));
	leftovers->again_ms = now_ms + leftovers->pace_ms;
}

/* No look is due while the known one runs, or before again_ms. */
static bool is_look_due(const struct leftovers *leftovers, int64_t now_ms)
{
	if (leftovers->fd >= 0)
		return os_is_ready(leftovers->fd);
	return leftovers->again_ms == INT64_MAX || now_ms >= leftovers->again_ms;
}

/* Looks at processes: whether one runs. */
static bool look(struct leftovers *leftovers, const struct proc_filter *filter, int64_t now_ms)
{
	bool was_none = leftovers->is_none;
	struct proc one = { 0 };

	leftovers_clear(leftovers);
	leftovers->again_ms = INT64_MAX;
	leftovers->is_none = !proc_tree_find_running(filter, &one);
	/*
	 * One look may miss a process that was just born, or that shows no environment because it is within its exec.
	 */
	if (leftovers->is_none && was_none)
		return false;
	if (one.pid > 0)
		leftovers->fd = proc_open(one.pid, one.start);
	if (leftovers->fd < 0)
		look_again_later(leftovers, now_ms);
	else
		leftovers->pace_ms = 0;
	return true;
}

/* True also when that cannot be told now. */
static bool leftovers_run(struct leftovers *leftovers, pid_t keeper, pid_t renewer)
{
	int64_t now_ms = rlock_now_ms();
	struct proc_filter filter;

	if (!leftovers->lease_state->wait_all)
		return false;
	if (!is_look_due(leftovers, now_ms))
		return true;
	filter = job_processes(leftovers->lease_state, 0, keeper, renewer);
	return look(leftovers, &filter, now_ms);
}

int64_t leftovers_end_ms(struct leftovers *leftovers, pid_t keeper, pid_t renewer)
{
	/* The keeper may have been stopped when the last one ended; the renewer was not. */
	int64_t gone_ms = leftovers->lease_state->job_gone_ms;

	if (gone_ms == 0 && leftovers_run(leftovers, keeper, renewer))
		return 0;
	leftovers_clear(leftovers);
	leftovers->again_ms = INT64_MAX;
	return gone_ms != 0 ? gone_ms : rlock_now_ms();
}
