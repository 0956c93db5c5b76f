/*
 * Forks a helper process that reads one environment after the other and writes a byte for each into a pipe. Where the
 * next byte does not come and the helper sleeps, that read hangs: the helper is killed, and another one goes on
 * behind it. A process that hangs again seconds later is not asked any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/least.h"
#include "lib/rlock.h"
#include "sys/fds.h"
#include "sys/priority.h"
#include "sys/probe.h"

/* How often a helper that does not answer is looked at, and what it takes for a hang: 100 ms, or 1 s. */
#define LOOK_MS 50
#define WEIGHT_HANG 20
#define WEIGHT_ASLEEP 10
/* For one answer, however things are. */
#define ANSWER_MS 2000
/* So many may hang while the others wait for their signals; the rest is for the next look. */
#define HANGS_MAX 2
/* Between two tries of a process that hung. */
#define PAUSE_MS 200
/* Memory that is locked for a moment, by the fork of a large process, say, is none to be given up. */
#define PATIENCE_MS 2000
/* For a helper to go once it was killed: one whose read can't be interrupted is left to itself. */
#define REAP_MS 50

struct suspect {
	pid_t pid;
	uint64_t start;
	int64_t first_ms, last_ms; /* when it hung */
};

/* More that hang at a time are given up at once. */
#define SUSPECTS_MAX 256
static struct suspect suspects[SUSPECTS_MAX];
static size_t suspect_count;

/* A helper that was not gone yet when it was left to itself; 0: none. Nobody is told of its end. */
static pid_t leftover_helper;

struct probe {
	pid_t pid;
	int fd; /* where the answers come from: a byte each */
};

enum answer {
	ANSWER_CAME,
	ANSWER_HANGS,
	ANSWER_LATE, /* no time was left, or the helper is dead: nobody's fault */
};

/* ---- those that hung ---- */

static struct suspect *suspect_of(const struct proc *proc)
{
	for (size_t i = 0; i < suspect_count; i++)
		if (suspects[i].pid == proc->pid && suspects[i].start == proc->start)
			return &suspects[i];
	return NULL;
}

static bool is_given_up(const struct suspect *suspect)
{
	return suspect->last_ms - suspect->first_ms >= PATIENCE_MS;
}

bool probe_is_suspect(const struct proc *proc)
{
	const struct suspect *suspect = suspect_of(proc);

	return suspect != NULL && !is_given_up(suspect);
}

/* It answered: whatever held it up is over. */
static void forget_suspect(const struct proc *proc)
{
	struct suspect *suspect = suspect_of(proc);

	if (suspect != NULL)
		*suspect = suspects[--suspect_count];
}

/* What is known without asking. */
static void answer_from_memory(struct probe_question *question, int64_t now_ms)
{
	const struct suspect *suspect = suspect_of(question->proc);

	question->is_given_up = suspect != NULL && is_given_up(suspect);
	question->lookup = question->is_given_up ? PROC_GONE : PROC_UNSEEN;
	question->is_due = suspect == NULL ||
			   (!question->is_given_up && now_ms >= suspect->last_ms + PAUSE_MS);
}

static void record_hang(struct probe_question *question)
{
	struct suspect *suspect = suspect_of(question->proc);
	int64_t now_ms = rlock_now_ms();

	if (suspect == NULL && suspect_count < SUSPECTS_MAX) {
		suspect = &suspects[suspect_count++];
		*suspect = (struct suspect){ .pid = question->proc->pid,
					     .start = question->proc->start,
					     .first_ms = now_ms };
	}
	if (suspect != NULL)
		suspect->last_ms = now_ms;
	question->is_given_up = suspect == NULL || is_given_up(suspect);
	question->lookup = question->is_given_up ? PROC_GONE : PROC_UNSEEN;
}

/* ---- the helper ---- */

/*
 * It has the name of a renewer and, like one, a session of its own: whoever looks for a command's processes leaves
 * it alone. It keeps nobody's streams open, and does not outlive its parent unless it hangs.
 */
static void be_helper(pid_t parent, int fd, const struct probe_question *questions, size_t count,
		      const char *hold_id)
{
	(void)prctl(PR_SET_NAME, RENEWER_NAME, 0, 0, 0);
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	fds_close_but(&fd, 1);
	priority_raise();
	if (getppid() != parent)
		_exit(0);
	for (size_t i = 0; i < count; i++) {
		char answer;

		if (!questions[i].is_due)
			continue;
		answer = (char)proc_carries_hold(questions[i].proc->pid, hold_id);
		if (write(fd, &answer, 1) != 1)
			break;
	}
	_exit(0);
}

static bool reap_helper(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | __WALL) != 0 || info.si_pid != 0;
}

/*
 * Like fork(2), but the child's end sends no SIGCHLD: that would wake the keeper, which looks again, which starts
 * a helper again.
 */
static pid_t fork_untold(void)
{
	return (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
}

static bool probe_start(struct probe *probe, const struct probe_question *questions, size_t count,
			const char *hold_id)
{
	pid_t parent = getpid();
	sigset_t all, before;
	int fds[2];

	if (leftover_helper != 0 && reap_helper(leftover_helper))
		leftover_helper = 0;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	probe->pid = fork_untold();
	if (probe->pid == 0)
		be_helper(parent, fds[1], questions, count, hold_id);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)close(fds[1]);
	probe->fd = fds[0];
	if (probe->pid > 0)
		return true;
	(void)close(probe->fd);
	return false;
}

/* Nothing here waits for as long as the helper likes. */
static void probe_stop(struct probe *probe)
{
	struct pollfd end = { (int)syscall(SYS_pidfd_open, probe->pid, 0), POLLIN, 0 };

	(void)kill(probe->pid, SIGKILL);
	if (end.fd >= 0) {
		(void)rlock_poll(&end, 1, rlock_now_ms() + REAP_MS);
		(void)close(end.fd);
	}
	if (!reap_helper(probe->pid))
		leftover_helper = probe->pid;
	(void)close(probe->fd);
}

/* ---- its answers ---- */

static bool is_in_state(pid_t pid, const char *states)
{
	struct proc proc;

	return proc_read(pid, &proc) && strchr(states, proc.state) != NULL;
}

/*
 * Whether one look of a helper that does not answer shows a hang, and by what weight. It may not be its turn to run,
 * or that of the process it asks, within an exec, say: that one is given longer.
 */
static int weight_of_look(const struct probe *probe, const struct proc *asked)
{
	if (!is_in_state(probe->pid, "SD"))
		return 0;
	return is_in_state(asked->pid, "R") ? 1 : WEIGHT_ASLEEP;
}

static enum answer next_answer(const struct probe *probe, const struct proc *asked,
			       int64_t until_ms, char *out)
{
	struct pollfd answers = { probe->fd, POLLIN, 0 };
	int64_t now_ms = rlock_now_ms(), end_ms = now_ms + ANSWER_MS;
	int weight = 0;

	if (until_ms != 0 && until_ms < end_ms)
		end_ms = until_ms;
	for (;;) {
		int64_t retry_after_ms = now_ms + LOOK_MS;

		if (rlock_poll(&answers, 1, least(retry_after_ms, end_ms)) > 0)
			return read(probe->fd, out, 1) == 1 ? ANSWER_CAME : ANSWER_LATE;
		now_ms = rlock_now_ms();
		if (now_ms >= end_ms)
			return ANSWER_LATE;
		weight += weight_of_look(probe, asked);
		if (weight >= WEIGHT_HANG)
			return ANSWER_HANGS;
	}
}

/* How the last one came. *at is the question that it belongs to. */
static enum answer read_answers(const struct probe *probe, struct probe_question *questions,
				size_t count, int64_t until_ms, size_t *at)
{
	for (; *at < count; ++*at) {
		enum answer how;
		char answer;

		if (!questions[*at].is_due)
			continue;
		how = next_answer(probe, questions[*at].proc, until_ms, &answer);
		if (how != ANSWER_CAME)
			return how;
		questions[*at].lookup = (enum proc_lookup)answer;
		forget_suspect(questions[*at].proc);
	}
	return ANSWER_CAME;
}

/* Without means for a helper. Somebody who may hang is better than nobody who looks. */
static void read_here(struct probe_question *questions, size_t count, const char *hold_id)
{
	for (size_t i = 0; i < count; i++)
		if (questions[i].is_due)
			questions[i].lookup = proc_carries_hold(questions[i].proc->pid, hold_id);
}

void probe_ask(struct probe_question *questions, size_t count, const char *hold_id,
	       int64_t until_ms)
{
	int64_t now_ms = rlock_now_ms();
	bool is_late = until_ms != 0 && now_ms >= until_ms;
	size_t at = 0, hangs = 0, due = 0;

	for (size_t i = 0; i < count; i++) {
		answer_from_memory(&questions[i], now_ms);
		due += questions[i].is_due;
	}
	while (due > 0 && !is_late && at < count && hangs < HANGS_MAX) {
		struct probe probe;
		enum answer how;

		if (!probe_start(&probe, questions + at, count - at, hold_id)) {
			read_here(questions + at, count - at, hold_id);
			return;
		}
		how = read_answers(&probe, questions, count, until_ms, &at);
		probe_stop(&probe);
		if (how != ANSWER_HANGS)
			return;
		record_hang(&questions[at++]);
		hangs++;
	}
}
