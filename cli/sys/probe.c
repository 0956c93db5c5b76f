/*
 * Forks a helper process that reads one environment after the other and writes a byte for each into a pipe. If the next
 * byte does not come and the helper sleeps, that read hangs: the helper is killed, and another one goes on with the
 * next process. What a process in the table means to the caller is proc_table.c's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/least.h"
#include "lib/rlock.h"
#include "sys/helper.h"
#include "sys/os.h"
#include "sys/probe.h"

/* How often a silent helper is looked at, and the weight of looks that makes a hang: it takes 100 ms, or 1 s. */
#define LOOK_MS 50
#define WEIGHT_HANG 20
#define WEIGHT_ASLEEP 10
/* One answer is never waited for longer than this. */
#define ANSWER_MS 2000
/* So many may hang while the other processes wait for their signals; the rest is left to the next search. */
#define HANGS_MAX 2
/* Between two tries of a process that hung. */
#define PAUSE_MS 200
/* A process is not abandoned if its memory is locked for a moment only, by its fork of a large process, say. */
#define PATIENCE_MS 2000

struct suspect {
	pid_t pid;
	uint64_t start;
	int64_t first_ms, last_ms; /* when it hung */
};

/* If more hang at a time, these are abandoned at once. */
#define SUSPECTS_MAX 256
static struct suspect suspects[SUSPECTS_MAX];
static size_t suspect_count;

struct probe {
	pid_t pid;
	int fd; /* where the answers come from: a byte each */
};

enum answer {
	ANSWER_CAME,
	ANSWER_HANGS,
	ANSWER_LATE, /* no time was left, or the helper is dead: the process is not suspect for that */
};

/* ---- processes that hung ---- */

static struct suspect *suspect_of(const struct proc *proc)
{
	for (size_t i = 0; i < suspect_count; i++)
		if (suspects[i].pid == proc->pid && suspects[i].start == proc->start)
			return &suspects[i];
	return NULL;
}

static bool is_abandoned(const struct suspect *suspect)
{
	return suspect->last_ms - suspect->first_ms >= PATIENCE_MS;
}

bool probe_is_suspect(const struct proc *proc)
{
	const struct suspect *suspect = suspect_of(proc);

	return suspect != NULL && !is_abandoned(suspect);
}

/* The process could be read: what made it hang is over. */
static void forget_suspect(const struct proc *proc)
{
	struct suspect *suspect = suspect_of(proc);

	if (suspect != NULL)
		*suspect = suspects[--suspect_count];
}

/* Fills in what is known without a read. */
static void recall(struct probe_request *request, int64_t now_ms)
{
	const struct suspect *suspect = suspect_of(request->proc);

	request->is_abandoned = suspect != NULL && is_abandoned(suspect);
	request->lookup = request->is_abandoned ? PROC_GONE : PROC_UNSEEN;
	request->is_due = suspect == NULL ||
			  (!request->is_abandoned && now_ms >= suspect->last_ms + PAUSE_MS);
}

static void record_hang(struct probe_request *request)
{
	struct suspect *suspect = suspect_of(request->proc);
	int64_t now_ms = rlock_now_ms();

	if (suspect == NULL && suspect_count < SUSPECTS_MAX) {
		suspect = &suspects[suspect_count++];
		*suspect = (struct suspect){ .pid = request->proc->pid,
					     .start = request->proc->start,
					     .first_ms = now_ms };
	}
	if (suspect != NULL)
		suspect->last_ms = now_ms;
	request->is_abandoned = suspect == NULL || is_abandoned(suspect);
	request->lookup = request->is_abandoned ? PROC_GONE : PROC_UNSEEN;
}

/* ---- the helper ---- */

/* The helper keeps no stream of its parent open, and ends with its parent unless it hangs. */
static void be_helper(pid_t parent, int fd, const struct probe_request *requests, size_t count,
		      const char *hold_id)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	os_close_all_but(&fd, 1);
	os_raise_priority();
	if (getppid() != parent)
		_exit(0);
	for (size_t i = 0; i < count; i++) {
		char answer;

		if (!requests[i].is_due)
			continue;
		answer = (char)proc_carries_hold(requests[i].proc->pid, hold_id);
		if (write(fd, &answer, 1) != 1)
			break;
	}
	_exit(0);
}

static bool probe_start(struct probe *probe, const struct probe_request *requests, size_t count,
			const char *hold_id)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	probe->pid = helper_fork();
	if (probe->pid == 0)
		be_helper(parent, fds[1], requests, count, hold_id);
	(void)close(fds[1]);
	probe->fd = fds[0];
	if (probe->pid > 0)
		return true;
	(void)close(probe->fd);
	return false;
}

/* A helper that hangs must not hold us up: the wait for its end is bounded. */
static void probe_stop(struct probe *probe)
{
	(void)kill(probe->pid, SIGKILL);
	helper_reap(probe->pid);
	(void)close(probe->fd);
}

/* ---- its answers ---- */

static bool is_in_state(pid_t pid, const char *states)
{
	struct proc proc;

	return proc_read(pid, &proc) && strchr(states, proc.state) != NULL;
}

/*
 * How much one look at a silent helper counts towards a hang. A helper that does not sleep waits for a processor only;
 * so may the process that it reads, within an exec, say: that one is given longer.
 */
static int weight_of_look(const struct probe *probe, const struct proc *proc)
{
	if (!is_in_state(probe->pid, "SD"))
		return 0;
	return is_in_state(proc->pid, "R") ? 1 : WEIGHT_ASLEEP;
}

static enum answer next_answer(const struct probe *probe, const struct proc *proc, int64_t until_ms,
			       char *out)
{
	struct pollfd answers = { probe->fd, POLLIN, 0 };
	int64_t now_ms = rlock_now_ms(), end_ms = now_ms + ANSWER_MS;
	int weight = 0;

	if (until_ms != 0 && until_ms < end_ms)
		end_ms = until_ms;
	for (;;) {
		int64_t look_ms = now_ms + LOOK_MS;

		if (rlock_poll(&answers, 1, least(look_ms, end_ms)) > 0)
			return read(probe->fd, out, 1) == 1 ? ANSWER_CAME : ANSWER_LATE;
		now_ms = rlock_now_ms();
		if (now_ms >= end_ms)
			return ANSWER_LATE;
		weight += weight_of_look(probe, proc);
		if (weight >= WEIGHT_HANG)
			return ANSWER_HANGS;
	}
}

/* How the last answer came. *at is the request that it belongs to. */
static enum answer read_answers(const struct probe *probe, struct probe_request *requests,
				size_t count, int64_t until_ms, size_t *at)
{
	for (; *at < count; ++*at) {
		enum answer how;
		char answer;

		if (!requests[*at].is_due)
			continue;
		how = next_answer(probe, requests[*at].proc, until_ms, &answer);
		if (how != ANSWER_CAME)
			return how;
		requests[*at].lookup = (enum proc_lookup)answer;
		forget_suspect(requests[*at].proc);
	}
	return ANSWER_CAME;
}

/* Reads without a helper, where none can be started: it is better to hang, maybe, than not to search. */
static void read_here(struct probe_request *requests, size_t count, const char *hold_id)
{
	for (size_t i = 0; i < count; i++)
		if (requests[i].is_due)
			requests[i].lookup = proc_carries_hold(requests[i].proc->pid, hold_id);
}

void probe_run(struct probe_request *requests, size_t count, const char *hold_id, int64_t until_ms)
{
	int64_t now_ms = rlock_now_ms();
	bool is_late = until_ms != 0 && now_ms >= until_ms;
	size_t at = 0, hangs = 0, due = 0;

	for (size_t i = 0; i < count; i++) {
		recall(&requests[i], now_ms);
		due += requests[i].is_due;
	}
	while (due > 0 && !is_late && at < count && hangs < HANGS_MAX) {
		struct probe probe;
		enum answer how;

		if (!probe_start(&probe, requests + at, count - at, hold_id)) {
			read_here(requests + at, count - at, hold_id);
			return;
		}
		how = read_answers(&probe, requests, count, until_ms, &at);
		probe_stop(&probe);
		if (how != ANSWER_HANGS)
			return;
		record_hang(&requests[at++]);
		hangs++;
	}
}
