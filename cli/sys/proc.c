/*
 * Read one process in /proc. The callers decide which process to read, and what to do then.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/units.h"
#include "lib/rlock.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"

#define STAT_MAX 1024

/* Fields of /proc/PID/stat from the parent on, by their numbers in proc(5). */
enum {
	FIELD_PARENT = 4,
	FIELD_SESSION = 6,
	FIELD_FLAGS = 9,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_SIGNALS = 31,    /* the pending signals */
	FIELD_END_SIGNAL = 38, /* the signal that the end of the process sends to its parent */
	FIELD_END = 52
};

/*
 * The kernel's PF_EXITING, and PF_SIGNALED: a signal ends the process. A debugger that asked for that stops the process between the
 * two, when no signal is pending any more.
 */
#define IS_EXITING (0x4 | 0x400)

/*
 * Read the wanted field, which comes after the start time. Skip the fields before it, because some are too large for an
 * int64_t.
 */
static bool read_later(const char *cursor, int wanted, int64_t *out)
{
	for (int field = FIELD_START + 1; field < wanted; field++) {
		cursor = strchr(cursor + 1, ' ');
		if (cursor == NULL)
			return false;
	}
	return number_read(&cursor, out);
}

static bool read_numbers(const char *cursor, struct proc *out)
{
	int64_t numbers[FIELD_START + 1], signals, end_signal, end;

	for (int field = FIELD_PARENT; field <= FIELD_START; field++)
		if (!number_read(&cursor, &numbers[field]))
			return false;
	out->parent = (pid_t)numbers[FIELD_PARENT];
	out->session = (pid_t)numbers[FIELD_SESSION];
	out->threads = (long)numbers[FIELD_THREADS];
	out->start = (uint64_t)numbers[FIELD_START];
	out->is_killed = (numbers[FIELD_FLAGS] & IS_EXITING) != 0 ||
			 (read_later(cursor, FIELD_SIGNALS, &signals) &&
			  (signals & 1 << (SIGKILL - 1)) != 0);
	out->is_silent = read_later(cursor, FIELD_END_SIGNAL, &end_signal) && end_signal == 0;
	out->end = read_later(cursor, FIELD_END, &end) ? (int)end : 0;
	return true;
}

/*
 * Read the text of a stat file. The name in it can contain blanks and parentheses, so it ends at the last closing
 * parenthesis.
 */
static bool parse_stat(const char *text, struct proc *out)
{
	struct proc proc = { .pid = out->pid };
	const char *open_paren = strchr(text, '('), *close_paren = strrchr(text, ')');
	size_t name_len;

	if (open_paren == NULL || close_paren < open_paren || close_paren[1] != ' ' ||
	    close_paren[2] == '\0')
		return false;
	proc.state = close_paren[2];
	if (!read_numbers(close_paren + 3, &proc))
		return false;
	name_len = min_size((size_t)(close_paren - open_paren - 1), sizeof(proc.name) - 1);
	memcpy(proc.name, open_paren + 1, name_len);
	*out = proc;
	return true;
}

enum proc_lookup proc_find(pid_t pid, struct proc *out)
{
	char path[32], text[STAT_MAX];
	struct proc proc = { .pid = pid };

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read_start(AT_FDCWD, path, 0, text, sizeof(text)) < 0)
		/*
		 * A process that ends while it is read counts as gone: the errno is then ESRCH, which is not transient.
		 */
		return is_transient_errno(errno) ? PROC_UNSEEN : PROC_GONE;
	if (!parse_stat(text, &proc))
		return PROC_GONE;
	*out = proc;
	return PROC_SEEN;
}

bool proc_read(pid_t pid, struct proc *out)
{
	return proc_find(pid, out) == PROC_SEEN;
}

pid_t proc_parent(pid_t pid)
{
	struct proc proc;

	return proc_read(pid, &proc) ? proc.parent : 0;
}

/*
 * Compute the tick from our clock. The kernel counts ticks on the clock of rlock_now_ms(), and a time namespace shifts
 * both in the same way (time_namespaces(7)).
 */
uint64_t proc_start_between(int64_t from_ms, int64_t until_ms)
{
	long ticks = sysconf(_SC_CLK_TCK);
	int64_t tick_ms = ticks > 0 && 1000 % ticks == 0 ? 1000 / ticks : 0;

	if (tick_ms == 0 || from_ms / tick_ms != until_ms / tick_ms)
		return 0;
	return (uint64_t)(from_ms / tick_ms);
}

uint64_t proc_own_start(int64_t forked_ms)
{
	uint64_t start = proc_start_between(forked_ms, rlock_now_ms());
	struct proc self;

	return start == 0 && proc_read(getpid(), &self) ? self.start : start;
}

bool proc_is_stopped(pid_t pid)
{
	struct proc proc;

	return proc_read(pid, &proc) && proc.state == 'T';
}

bool proc_is_idle(pid_t pid)
{
	struct proc proc;

	return proc_read(pid, &proc) && (proc.state == 'T' || proc.is_killed);
}

bool proc_is_hidden(pid_t pid)
{
	struct proc proc;

	return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) &&
	       proc_find(pid, &proc) == PROC_GONE;
}

/*
 * The value after key in /proc/PID/status. Only the first bytes are read, because lines of any length follow. NULL:
 * unknown.
 */
static const char *status_find(pid_t pid, const char *key, char text[STAT_MAX])
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (file_read_start(AT_FDCWD, path, 0, text, STAT_MAX) < 0)
		return NULL;
	return file_find_value(text, key);
}

pid_t proc_of_thread(pid_t thread)
{
	char text[STAT_MAX];
	const char *cursor = status_find(thread, "\nTgid:\t", text);
	int64_t pid;

	return cursor != NULL && number_read(&cursor, &pid) ? (pid_t)pid : thread;
}

/* The line "Uid:" has the real user id first, then the effective one. */
bool proc_is_of_our_user(pid_t pid)
{
	char text[STAT_MAX];
	const char *cursor = status_find(pid, "\nUid:\t", text);
	int64_t real, effective;

	return cursor != NULL && number_read(&cursor, &real) && *cursor++ == '\t' &&
	       number_read(&cursor, &effective) && effective == geteuid();
}

/*
 * Print the name of the program's file to which link leads, without the " (deleted)" that the kernel appends if the
 * file was replaced. False with errno.
 */
static bool program_of_link(const char *link, char *out, size_t size)
{
	static const char deleted[] = " (deleted)";
	ssize_t len = readlink(link, out, size - 1);
	char *slash;

	if (len < 0)
		return false;
	if ((size_t)len >= sizeof(deleted) &&
	    memcmp(out + len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		len -= (ssize_t)sizeof(deleted) - 1;
	out[len] = '\0';
	slash = strrchr(out, '/');
	if (slash != NULL)
		memmove(out, slash + 1, strlen(slash));
	return true;
}

bool proc_runs_our_program(pid_t pid)
{
	char link[64], ours[PATH_MAX], its[PATH_MAX];

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	/*
	 * ENOENT: the process is ending, and has lost its program before its name. If a helper counted as one of the job's
	 * processes then, rlock flock would exit, and release the lock a moment later: the next flock -n would find it busy.
	 */
	if (!program_of_link(link, its, sizeof(its)))
		return errno == EACCES || errno == EPERM || errno == ENOENT;
	return program_of_link("/proc/self/exe", ours, sizeof(ours)) && strcmp(its, ours) == 0;
}

/*
 * Without the look at the link exe, a failed command of another user would count as ended with 0: of a process that we may not trace,
 * the kernel shows 0 as its status. It then denies to read that link, too. A zombie that we may trace has no such link (ENOENT).
 */
bool proc_read_end(pid_t pid, siginfo_t *out)
{
	struct proc proc;
	char path[32], program[1];
	bool is_exit;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (!proc_read(pid, &proc) ||
	    (proc.end == 0 && readlink(path, program, sizeof(program)) < 0 && errno != ENOENT))
		return false;
	is_exit = WIFEXITED(proc.end);
	*out = (siginfo_t){ .si_code = is_exit ? CLD_EXITED : CLD_KILLED,
			    .si_status = is_exit ? WEXITSTATUS(proc.end) : WTERMSIG(proc.end) };
	return true;
}

bool proc_is_gone(const struct proc *proc)
{
	return proc->state == 'X' || (proc->state == 'Z' && proc->threads <= 1);
}

bool proc_has_ended(pid_t pid, uint64_t start)
{
	struct proc proc;
	enum proc_lookup lookup = proc_find(pid, &proc);

	if (lookup == PROC_SEEN)
		return (start != 0 && proc.start != start) || proc_is_gone(&proc);
	return lookup == PROC_GONE;
}

int proc_open(pid_t pid, uint64_t start)
{
	int fd = os_process_open(pid), error;
	enum proc_lookup lookup;
	struct proc proc;

	if (fd < 0 || start == 0)
		return fd;
	/* Check the start time only after the open, because another process may have got the pid before the open. */
	lookup = proc_find(pid, &proc);
	if (lookup == PROC_SEEN && proc.start == start)
		return fd;
	error = lookup == PROC_UNSEEN ? errno : ESRCH;
	(void)close(fd);
	errno = error;
	return -1;
}

/* Inode of the machine's own time namespace (PROC_TIME_INIT_INO of the kernel). */
#define FIRST_TIME_NAMESPACE 0xEFFFFFFA

/*
 * Whether start times of records are on our clock. In another time namespace they are not, since it shifts the clock.
 */
static bool has_clock_of_records(const struct os_scope *place)
{
	return place->times == 0 || place->times == FIRST_TIME_NAMESPACE;
}

static void describe_place(const struct os_scope *place, struct rlock_process *out)
{
	char digits[17] = "";
	size_t count = 0;

	/* Take the first 64 bits of the boot id "xxxxxxxx-xxxx-xxxx-..."; 0: it is not a boot id. */
	for (const char *id = place->boot; *id != '\0' && count < sizeof(digits) - 1; id++)
		if (*id != '-')
			digits[count++] = *id;
	out->boot = strtoull(digits, NULL, 16);
	out->pid_namespace = place->pids;
}

void proc_describe(pid_t pid, struct rlock_process *out)
{
	const struct os_scope *place = os_scope();
	struct proc proc;

	*out = (struct rlock_process){ 0 };
	if (place == NULL)
		return;
	describe_place(place, out);
	out->pid = out->boot != 0 ? pid : 0;
	if (out->pid != 0 && has_clock_of_records(place) && proc_read(pid, &proc))
		out->start = proc.start;
}

bool proc_is_here(const struct rlock_process *process)
{
	const struct os_scope *place = os_scope();
	struct rlock_process ours = { 0 };

	if (place != NULL)
		describe_place(place, &ours);
	return place != NULL && process->pid > 0 && process->boot == ours.boot &&
	       process->pid_namespace == ours.pid_namespace;
}

bool proc_is_of_record(const struct proc *proc, const struct rlock_process *process)
{
	const struct os_scope *place = os_scope();

	return proc->pid == process->pid && (process->start == 0 || process->start == proc->start ||
					     (place != NULL && !has_clock_of_records(place)));
}

bool proc_has_ended_here(const struct rlock_process *process)
{
	struct proc proc;

	if (!proc_is_here(process))
		return false;
	/*
	 * Only ESRCH proves that the process has ended. For a process of another user the errno is EPERM, even if /proc
	 * hides it.
	 */
	if (kill((pid_t)process->pid, 0) != 0)
		return errno == ESRCH;
	return proc_read((pid_t)process->pid, &proc) && !proc_is_of_record(&proc, process);
}
