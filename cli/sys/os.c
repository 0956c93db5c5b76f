/*
 * Watch, signal and list processes by calls that only Linux has, and change how this process runs. The callers decide when.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/minmax.h"
#include "base/units.h"
#include "lib/base/array.h"
#include "lib/rlock.h"
#include "sys/file_read.h"
#include "sys/os.h"

/* ---- processes ---- */

int os_process_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int os_process_signal(int process_fd, int signal)
{
	return syscall(SYS_pidfd_send_signal, process_fd, signal, NULL, 0) == 0 ? 0 : errno;
}

/* Value, "rloc" in ASCII, that we send with a signal for all processes of a job. */
#define MARK_FOR_ALL 0x726c6f63

int os_process_signal_as_all(int process_fd, int signal)
{
	siginfo_t info = { .si_signo = signal, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = MARK_FOR_ALL;
	return syscall(SYS_pidfd_send_signal, process_fd, signal, &info, 0) == 0 ? 0 : errno;
}

bool os_process_await(pid_t pid, int64_t deadline_ms)
{
	struct pollfd end = { os_process_open(pid), POLLIN, 0 };

	if (end.fd < 0)
		return false;
	(void)rlock_poll(&end, 1, deadline_ms);
	(void)close(end.fd);
	return true;
}

/*
 * Fork by the system call, without the handlers of pthread_atfork. The child sets the name, and this process never has
 * it. Otherwise a scan of a job that we belong to could take us for the helper, and that job's lock would be released
 * although we still run.
 */
static pid_t fork_as(unsigned long flags, const char *name)
{
	pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);

	if (pid == 0)
		os_set_name(name);
	return pid;
}

pid_t os_fork_silently(const char *name)
{
	return fork_as(0, name);
}

pid_t os_fork_helper(const char *name)
{
	pid_t pid = os_fork_silently(name);

	if (pid == 0)
		(void)setsid();
	return pid;
}

static struct {
	char *stack;
	size_t size;
	/*
	 * 1 while the process uses our memory. When it executes a program or exits, the kernel clears this word, and
	 * wakes os_start_wait.
	 */
	_Atomic pid_t is_running;
} started;

pid_t os_start(int (*start)(void *ctx), void *ctx, size_t stack_bytes)
{
	const int flags = CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD;
	pid_t pid;

	started.size = stack_bytes;
	started.stack = mmap(NULL, started.size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (started.stack == MAP_FAILED)
		return -1;
	started.is_running = 1;
	pid = clone(start, started.stack + started.size, flags, ctx, NULL, NULL,
		    (void *)&started.is_running);
	if (pid >= 0 || errno != EINVAL)
		return pid;
	/*
	 * Under qemu-user only threads can share memory, and musl's clone denies CLONE_CHILD_CLEARTID. So start a process with a
	 * copy of our memory.
	 */
	started.is_running = 0;
	return clone(start, started.stack + started.size, SIGCHLD, ctx);
}

void os_start_wait(int wait_ms)
{
	const struct timespec wait = { .tv_sec = wait_ms / 1000,
				       .tv_nsec = wait_ms % 1000 * 1000000L };

	if (started.is_running)
		(void)syscall(SYS_futex, &started.is_running, FUTEX_WAIT, 1, &wait, NULL, 0);
	if (!started.is_running)
		(void)munmap(started.stack, started.size);
}

bool os_adopt_orphans(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

void os_stop_adopting(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

void os_die_with_parent(int signal)
{
	(void)prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0);
}

/* False: out of memory. */
static bool pid_list_add(struct pid_list *list, pid_t pid)
{
	pid_t *pids = array_room(list->pids, list->count, sizeof(*pids));

	if (pids == NULL)
		return false;
	list->pids = pids;
	list->pids[list->count++] = pid;
	return true;
}

void pid_list_free(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){ 0 };
}

/*
 * Add the names in a directory that are numbers. Add none if there is no such directory. False: descriptors or memory
 * are short.
 */
static bool list_numbers(const char *path, struct pid_list *out)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool is_complete = true;
	int64_t pid;

	if (dir == NULL)
		return !is_transient_errno(errno);
	while (is_complete && (errno = 0, entry = readdir(dir)) != NULL)
		if (number_parse(entry->d_name, &pid))
			is_complete = pid_list_add(out, (pid_t)pid);
	is_complete = is_complete && !is_transient_errno(errno);
	(void)closedir(dir);
	return is_complete;
}

bool os_list_processes(struct pid_list *out)
{
	return list_numbers("/proc", out) && out->count > 0;
}

/* Add the threads of a process. Add none if the process is gone. False: descriptors or memory are short. */
static bool list_threads(pid_t pid, struct pid_list *out)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return list_numbers(path, out);
}

/*
 * Add the children of a thread, from a file with one line of pids, which may have any length. False: descriptors or
 * memory are short.
 */
static bool list_children_of_thread(pid_t pid, pid_t thread, struct pid_list *out)
{
	char path[64], *text;
	const char *cursor;
	bool is_complete = true;
	struct stat st;
	int64_t child;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)thread);
	cursor = text = file_read_all(open(path, O_RDONLY | O_CLOEXEC), SIZE_MAX, 0, &st, &len);
	if (text == NULL)
		return !is_transient_errno(errno);
	while (is_complete && number_read(&cursor, &child))
		is_complete = pid_list_add(out, (pid_t)child);
	free(text);
	return is_complete;
}

bool os_list_children(pid_t pid, struct pid_list *out)
{
	struct pid_list threads = { 0 };
	bool is_complete = list_threads(pid, &threads);

	for (size_t i = 0; i < threads.count; i++)
		if (!list_children_of_thread(pid, threads.pids[i], out))
			is_complete = false;
	pid_list_free(&threads);
	/* Without CONFIG_PROC_CHILDREN, or without /proc, no such file exists, so check that our own does. */
	return is_complete && access("/proc/thread-self/children", R_OK) == 0;
}

/* ---- the scope of pids and times ---- */

/* Read an inode into *out; 0: there is no such file. False with errno: it cannot be read now. */
static bool read_inode(const char *path, uint64_t *out)
{
	struct stat st = { 0 };

	if (stat(path, &st) != 0 && is_transient_errno(errno))
		return false;
	*out = (uint64_t)st.st_ino;
	return true;
}

const struct os_scope *os_scope(void)
{
	static struct os_scope place;

	/* Read the files only once, because the scope never changes while a process lives. */
	if (place.boot[0] != '\0')
		return &place;
	if (!read_inode("/proc/self/ns/pid", &place.pids) ||
	    !read_inode("/proc/self/ns/time", &place.times) ||
	    (file_read_start(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 0, place.boot,
			     sizeof(place.boot)) <= 0 &&
	     is_transient_errno(errno)))
		return NULL;
	place.boot[strcspn(place.boot, "\n")] = '\0';
	if (place.boot[0] == '\0')
		memcpy(place.boot, "0", 2);
	return &place;
}

/* ---- children ---- */

static bool wait_child(idtype_t type, pid_t pid, siginfo_t *out, int flags)
{
	int error;

	do {
		*out = (siginfo_t){ 0 };
		error = waitid(type, (id_t)pid, out, WNOHANG | flags);
	} while (error != 0 && errno == EINTR);
	return error == 0 && out->si_pid != 0;
}

/*
 * The process that close_files has forked and that was not reaped yet; 0: none. It is forked silently, but a SIGCHLD comes
 * when it has ended: its children end after it, or become ours when it ends.
 */
static pid_t closer_parent;

bool os_child_peek(siginfo_t *out)
{
	if (closer_parent > 0 && wait_child(P_PID, closer_parent, out, (int)(WEXITED | __WCLONE)))
		closer_parent = 0;
	return wait_child(P_ALL, 0, out, WEXITED | WSTOPPED | WCONTINUED | WNOWAIT);
}

void os_child_take(const siginfo_t *child)
{
	siginfo_t taken;
	int what = child->si_code == CLD_STOPPED     ? WSTOPPED
		   : child->si_code == CLD_CONTINUED ? WCONTINUED
						     : WEXITED;

	/*
	 * If the child has changed again since the peek, there may be nothing to take. Then the next peek reports the
	 * new change.
	 */
	(void)wait_child(P_PID, child->si_pid, &taken, what);
}

bool os_has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* ---- events ---- */

int os_events_open(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

bool os_events_add(int events_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(events_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void os_events_remove(int events_fd, int fd)
{
	(void)epoll_ctl(events_fd, EPOLL_CTL_DEL, fd, NULL);
}

int os_timer_open(void)
{
	return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

bool os_timer_set(int timer_fd, int64_t at_ms)
{
	struct itimerspec at = { 0 };

	if (at_ms != INT64_MAX) {
		at_ms = max(at_ms, 0);
		/* Add a nanosecond, because a time of 0 would disarm the timer. */
		at.it_value.tv_sec = at_ms / 1000;
		at.it_value.tv_nsec = at_ms % 1000 * 1000000 + 1;
	}
	return timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0;
}

int os_signals_open(int fd, const sigset_t *set)
{
	return signalfd(fd, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool os_signals_read(int fd, struct os_signal *out)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	/* A signal with a code greater than SI_USER comes from the kernel. */
	*out = (struct os_signal){ .number = (int)info.ssi_signo,
				   .is_from_kernel = info.ssi_code > SI_USER,
				   .is_for_all = info.ssi_code == SI_QUEUE &&
						 info.ssi_int == MARK_FOR_ALL,
				   .sender = (pid_t)info.ssi_pid };
	return true;
}

/* ---- descriptors ---- */

/* An entry of the list that getdents64(2) reads. musl does not declare its struct dirent64 here. */
struct listed {
	uint64_t inode;
	int64_t next;
	uint16_t len;
	uint8_t type;
	char name[];
};

/* Close the descriptors from first on in one piece of the list, except dir. Returns how many. */
static size_t close_entries(const char *entries, long len, int first, int dir)
{
	size_t count = 0;

	for (long at = 0; at < len;) {
		const struct listed *entry = (const void *)(entries + at);
		int64_t fd;

		if (number_parse(entry->name, &fd) && fd >= first && fd != dir)
			count += close((int)fd) == 0;
		at += entry->len;
	}
	return count;
}

/*
 * Close the descriptors from first on that /proc lists. False: it lists none. A close changes the list, so read it from its start again
 * until nothing is left to close. Use only system calls: another thread may have had a lock of the C library when this process was forked.
 */
static bool close_listed(int first)
{
	_Alignas(struct listed) char entries[4096];
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long len;

	if (dir < 0)
		return false;
	do {
		(void)lseek(dir, 0, SEEK_SET);
		len = syscall(SYS_getdents64, dir, entries, sizeof(entries));
	} while (close_entries(entries, len, first, dir) > 0);
	(void)close(dir);
	return len > 0;
}

void os_close_from(int first)
{
	long limit;

	if (syscall(SYS_close_range, (unsigned int)first, ~0U, 0U) == 0)
		return;
	/*
	 * close_range(2) needs Linux 5.9, and some sandboxes forbid it. Without it close the descriptors that /proc lists: one that
	 * stays open would keep the caller's pipe open while the lock is held. Only without /proc close each possible number: that
	 * misses descriptors above the limit, and takes minutes if the limit is a thousand million, as in some containers.
	 */
	limit = close_listed(first) ? 0 : sysconf(_SC_OPEN_MAX);
	for (int fd = first; (long)fd < limit; fd++)
		(void)close(fd);
}

bool os_has_room(size_t count)
{
	int fds[OS_ROOM_MAX], error;
	size_t opened = 0;

	while (opened < count &&
	       (fds[opened] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) >= 0)
		opened++;
	error = errno;
	for (size_t i = 0; i < opened; i++)
		(void)close(fds[i]);
	errno = error;
	return opened == count;
}

/*
 * Read as fstat(2) does, but only what the kernel has cached, because a file system that hangs must not hang us. False
 * with errno.
 */
static bool stat_cached(int fd, struct stat *out)
{
	struct statx seen;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &seen) != 0)
		return false;
	*out = (struct stat){ .st_dev = makedev(seen.stx_dev_major, seen.stx_dev_minor),
			      .st_ino = seen.stx_ino,
			      .st_mode = seen.stx_mode };
	return true;
}

/*
 * Close a descriptor in a child that shares all descriptors with us. Replace a standard descriptor in one step: if its
 * number were free for a moment, the parent could open a socket under it.
 */
static void close_shared(int fd)
{
	int filler = fd <= STDERR_FILENO ? open("/", O_PATH | O_CLOEXEC) : -1;

	if (filler < 0) {
		(void)close(fd);
		return;
	}
	(void)dup3(filler, fd, O_CLOEXEC);
	(void)close(filler);
}

/*
 * Move all files that are on the file system of the first file to the front of the list. Returns the number of these
 * files.
 */
static size_t gather_file_system(struct pid_list *files)
{
	struct stat first = { 0 }, other = { 0 };
	size_t count = 0;

	(void)stat_cached(files->pids[0], &first);
	for (size_t i = 0; i < files->count; i++) {
		int fd = files->pids[i];

		if (i > 0 && stat_cached(fd, &other) && other.st_dev != first.st_dev)
			continue;
		files->pids[i] = files->pids[count];
		files->pids[count++] = fd;
	}
	return count;
}

/*
 * Close files, those of each file system in a child that shares our descriptors. A file system hangs as a whole, so one
 * child for each is enough. Do not use threads: one that hangs would keep this process from ending.
 */
static void close_in_children(struct pid_list files, const char *closer)
{
	while (files.count > 0) {
		size_t count = gather_file_system(&files);
		pid_t child = fork_as(CLONE_FILES | SIGCHLD, closer);

		/* If children cannot share descriptors, as under qemu-user, close the files in this process. */
		for (size_t i = 0; child <= 0 && i < count; i++)
			close_shared(files.pids[i]);
		if (child == 0)
			_exit(0);
		files.pids += count;
		files.count -= count;
	}
}

/*
 * Close files without waiting, because a close may hang with its file system. A helper forks the children that close
 * them: so they have its name from their first moment, and a scan of the job knows them. The end of the helper makes
 * them children of this process, or of the process that adopts our orphans. Do not wait for the helper either: it may be
 * stopped, and the lock must be renewed. os_child_peek reaps it.
 */
static void close_files(struct pid_list files, const char *closer)
{
	pid_t helper = files.count > 0 ? fork_as(CLONE_FILES, closer) : -1;

	if (helper == 0)
		os_set_title(closer);
	if (helper <= 0)
		close_in_children(files, closer);
	if (helper == 0)
		_exit(0);
	closer_parent = helper > 0 ? helper : 0;
}

/* All our own descriptors have close-on-exec. So those without it are inherited. */
void os_close_inherited(const char *closer)
{
	struct stat stat_of;
	struct pid_list fds = { 0 }, files;

	(void)list_numbers("/proc/self/fd", &fds);
	files = (struct pid_list){ fds.pids, 0 };
	for (size_t i = 0; i < fds.count; i++) {
		int fd = fds.pids[i], flags = fcntl(fd, F_GETFD);

		if (flags < 0 || (flags & FD_CLOEXEC) != 0)
			continue;
		if (stat_cached(fd, &stat_of) &&
		    (S_ISREG(stat_of.st_mode) || S_ISDIR(stat_of.st_mode)))
			files.pids[files.count++] = fd;
		else
			(void)close(fd);
	}
	/*
	 * Open the placeholders first. Otherwise a child that closes files could use a free standard number for a moment
	 * and leave it closed.
	 */
	(void)os_fill_standard_fds();
	close_files(files, closer);
	pid_list_free(&fds);
}

bool os_fill_standard_fds(void)
{
	/*
	 * Each open takes the lowest free number. Reads and writes of an O_PATH descriptor fail with EBADF, as if it
	 * were closed.
	 */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/", O_PATH | O_CLOEXEC) < 0)
			return false;
	return true;
}

int os_has_same_description(pid_t pid, int fd)
{
	long order =
		syscall(SYS_kcmp, (long)getpid(), (long)pid, (long)KCMP_FILE, (long)fd, (long)fd);

	/* pid has no descriptor of that number. */
	if (order < 0 && errno == EBADF)
		return 0;
	return order < 0 ? -1 : order == 0;
}

int os_watch_close(int fd)
{
	char path[32];
	struct stat stat_of;
	int closes_fd;

	if (!stat_cached(fd, &stat_of) || S_ISDIR(stat_of.st_mode))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	closes_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (closes_fd < 0 || inotify_add_watch(closes_fd, path, IN_CLOSE) >= 0)
		return closes_fd;
	(void)close(closes_fd);
	return -1;
}

void os_drain_fd(int fd)
{
	char events[256];

	/* One read is enough, since further events make the descriptor readable again. */
	(void)!read(fd, events, sizeof(events));
}

bool os_is_ready(int fd)
{
	struct pollfd poll_fd = { fd, POLLIN, 0 };

	return fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

/* ---- the name and title that ps shows ---- */

static struct {
	char **argv;
	int argc;
	/* the memory of argv's words, into which the title is written; and its size */
	char *room;
	size_t size;
	/*
	 * copy of argv's words, to which argv points once a title is in their place; NULL: no title was set, or out of
	 * memory
	 */
	char *words;
} title;

void os_set_name(const char *name)
{
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
}

void os_title_setup(int argc, char **argv)
{
	char *end;

	if (argc < 1)
		return;
	/* Use only words that follow each other in memory. The kernel puts them so. */
	end = argv[0];
	for (int i = 0; i < argc && argv[i] == end; i++) {
		end += strlen(end) + 1;
		title.argc = i + 1;
	}
	title.argv = argv;
	title.words = NULL;
	title.room = argv[0];
	title.size = (size_t)(end - argv[0]);
}

/* Move the words of argv, with those of COMMAND, to make room for a title. */
static void move_words(void)
{
	title.words = title.size > 0 ? malloc(title.size) : NULL;
	if (title.words == NULL)
		return;
	memcpy(title.words, title.room, title.size);
	for (int i = 0; i < title.argc; i++)
		title.argv[i] = title.words + (title.argv[i] - title.room);
}

void os_set_title(const char *text)
{
	size_t len;

	if (title.words == NULL)
		move_words();
	if (title.words == NULL)
		return;
	/* Keep a NUL as the last byte: without it, the kernel would show the environment after the title. */
	len = min_size(strlen(text), title.size - 1);
	memcpy(title.room, text, len);
	memset(title.room + len, 0, title.size - len);
}

void os_hide_memory(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* ---- priority ---- */

#define NICE_FIRST (-20)
/*
 * Priorities of SCHED_RR. A killed process gets a higher priority than we have: otherwise, while we scan thousands of
 * processes, no processor would be free for its end.
 */
#define REAL_TIME_OURS 1
#define REAL_TIME_KILLED 2

/* the change of the priority that os_lower_priority must undo, and the user's values before it */
static enum { IS_AS_FOUND, IS_REAL_TIME, IS_NICE } raised;
static int policy_found, nice_found;

/* Set a policy that has no real-time priority. Keep SCHED_RESET_ON_FORK, since we may lack the right to clear it. */
static void set_policy(int policy)
{
	const struct sched_param none = { .sched_priority = 0 };

	(void)sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &none);
}

/*
 * Set SCHED_RR with this priority, or with a lower one if RLIMIT_RTPRIO allows no more. False: SCHED_RR is not allowed.
 */
static bool make_real_time(pid_t thread, int priority)
{
	for (; priority >= REAL_TIME_OURS; priority--) {
		const struct sched_param wanted = { .sched_priority = priority };

		if (sched_setscheduler(thread, SCHED_RR | SCHED_RESET_ON_FORK, &wanted) == 0)
			return true;
	}
	return false;
}

static bool runs_at_least_as(pid_t thread, int priority)
{
	struct sched_param current;

	return sched_getparam(thread, &current) == 0 && current.sched_priority >= priority;
}

/*
 * If SCHED_RR is denied, set a nice value. A nice value counts only among the processes of one session (sched(7),
 * autogroup), so it helps less if other sessions are busy. Set SCHED_RESET_ON_FORK, so that the thread that resolves
 * names gets no SCHED_RR: it may run any library of the system.
 */
void os_raise_priority(void)
{
	struct rlimit limit;

	/* Keep a real-time priority that the user has given to this process by chrt(1). */
	if (raised != IS_AS_FOUND || runs_at_least_as(0, REAL_TIME_OURS))
		return;
	policy_found = sched_getscheduler(0);
	/*
	 * Do not use SCHED_RR with RLIMIT_RTTIME (systemd's LimitRTTIME=, rtkit): the kernel then kills a process that
	 * runs too long.
	 */
	if (getrlimit(RLIMIT_RTTIME, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
	    make_real_time(0, REAL_TIME_OURS)) {
		raised = IS_REAL_TIME;
		return;
	}
	errno = 0;
	nice_found = getpriority(PRIO_PROCESS, 0);
	if (errno == 0 && setpriority(PRIO_PROCESS, 0, NICE_FIRST) == 0)
		raised = IS_NICE;
}

void os_lower_priority(void)
{
	if (raised == IS_REAL_TIME)
		set_policy(policy_found);
	else if (raised == IS_NICE)
		(void)setpriority(PRIO_PROCESS, 0, nice_found);
	raised = IS_AS_FOUND;
}

/* Do not check RLIMIT_RTTIME, by which the kernel could kill the process: it already has SIGKILL. */
void os_raise_priority_of_killed(pid_t pid)
{
	struct pid_list threads = { 0 };

	(void)list_threads(pid, &threads);
	for (size_t i = 0; i < threads.count; i++)
		if (!runs_at_least_as(threads.pids[i], REAL_TIME_KILLED) &&
		    !make_real_time(threads.pids[i], REAL_TIME_KILLED))
			(void)setpriority(PRIO_PROCESS, (id_t)threads.pids[i], NICE_FIRST);
	pid_list_free(&threads);
}

/*
 * With SCHED_BATCH we do not interrupt a running process when we are woken, not even the process that wakes us
 * (sched(7)). Keep any policy that the user has given to this process by chrt(1).
 */
void os_let_others_run_first(void)
{
	os_lower_priority();
	if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER)
		set_policy(SCHED_BATCH);
}

/* ---- memory ---- */

/* Release the pages of the read-only segments of one library or program. Leave out pages that two segments share. */
static int release_segments(struct dl_phdr_info *object, size_t size, void *page_size)
{
	uintptr_t page = *(const uintptr_t *)page_size;
	bool is_first = false;

	(void)size;
	/* Release the first segment last, because it contains this list of segments. */
	for (size_t i = object->dlpi_phnum; i > 0 && !is_first; i--) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i - 1];
		uintptr_t start = object->dlpi_addr + segment->p_vaddr;
		uintptr_t end = start + segment->p_filesz;

		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0)
			continue;
		start = (start + page - 1) / page * page;
		end = end / page * page;
		is_first = segment->p_offset == 0;
		if (start < end)
			(void)madvise((void *)start, end - start, MADV_DONTNEED); /* NOLINT */
	}
	return 0;
}

/*
 * Return the pages that only the acquisition needed, since a holder sleeps for hours. The PSS of both processes of an
 * idle holder, as measured by make bench, is 360 kB with this call, and 760 kB without. With 20 holders, which share
 * pages, it is 240 kB and 295 kB each.
 */
void os_shrink_while_idle(void)
{
	long page = sysconf(_SC_PAGESIZE);
	uintptr_t page_size = page > 0 ? (uintptr_t)page : 4096, span = 64 * page_size;
	uintptr_t top = (uintptr_t)__builtin_frame_address(0) / page_size * page_size;

	(void)dl_iterate_phdr(release_segments, &page_size);
	/*
	 * Release stack pages below this frame, which deeper calls have used. No other mapping can be there, because
	 * the kernel leaves a gap below the stack.
	 */
	(void)madvise((void *)(top - span), span - page_size, MADV_DONTNEED); /* NOLINT */
}

/* Poll here, and not in the library: so fewer pages of code must be read again after the release of memory. */
void os_events_wait(int events_fd, bool is_long)
{
	struct pollfd events = { events_fd, POLLIN, 0 };

	if (is_long)
		os_shrink_while_idle();
	(void)poll(&events, 1, -1);
}

/* ---- check the kernel and /proc ---- */

/* Largest /proc/self/status, which can list 65,536 groups. */
#define STATUS_MAX (1 << 20)

/*
 * Explain why a call is missing. A sandbox can deny a call with EPERM, or with ENOSYS, as if the kernel did not have
 * it.
 */
static const char *missing(const char *call, int error)
{
	static char reason[256];
	bool is_denied = error == ENOSYS || error == EPERM || error == EACCES;

	(void)snprintf(
		reason, sizeof(reason), "%s%s: %s", call,
		is_denied
			? " needs Linux 5.3 or later, and no sandbox (seccomp) that forbids it, as "
			  "those of old container runtimes do"
			: "",
		strerror(error));
	return reason;
}

/*
 * Call this before a lock is acquired: an rlock that cannot watch processes could not terminate all of them. Only calls
 * that rlock cannot do without are checked.
 */
const char *os_check_kernel(void)
{
	int self_fd = os_process_open(getpid()), error;

	if (self_fd < 0)
		return missing("pidfd_open", errno);
	/* Send signal 0, which has no effect. */
	error = os_process_signal(self_fd, 0);
	(void)close(self_fd);
	return error == 0 ? NULL : missing("pidfd_send_signal", error);
}

/*
 * Whether a line of /proc/self/status has exactly one number, and that is our pid. False also if there is no such line.
 */
static bool has_our_pid(const char *status, const char *line)
{
	const char *cursor = file_find_value(status, line);
	int64_t pid;

	return cursor != NULL && number_read(&cursor, &pid) && *cursor == '\n' && pid == getpid();
}

static const char is_others[] = "/proc is that of another PID namespace; mount one for this "
				"namespace: unshare --fork --mount-proc";

static const char *judge_status(const char *status)
{
	const struct os_scope *place = os_scope();
	uint64_t of_children = 0;

	/* Accept a kernel without PID namespaces. It has neither NSpid nor ns/pid. */
	if (strstr(status, "\nNSpid:") == NULL && access("/proc/self/ns/pid", F_OK) != 0 &&
	    has_our_pid(status, "\nPid:\t"))
		return NULL;
	if (!has_our_pid(status, "\nNSpid:\t"))
		return is_others;
	/*
	 * Refuse if our children would be in another PID namespace than we are. They are in a program that unshare(1)
	 * starts without --fork.
	 */
	if (place == NULL || !read_inode("/proc/self/ns/pid_for_children", &of_children) ||
	    place->pids == 0 || place->pids != of_children)
		return "processes that start here belong to another PID namespace than /proc; "
		       "unshare --fork --mount-proc";
	return NULL;
}

/*
 * NSpid has one number for each PID namespace, from that of /proc down to ours. It must have one number only. It would
 * not be enough to compare /proc/self with getpid(), because the pids of one process in two namespaces can be equal by
 * chance.
 */
const char *os_check_proc(void)
{
	const char *reason;
	struct stat st;
	size_t len;
	char *status = file_read_all(open("/proc/self/status", O_RDONLY | O_CLOEXEC), STATUS_MAX, 0,
				     &st, &len);

	if (status != NULL)
		reason = judge_status(status);
	else if (is_transient_errno(errno))
		reason = "/proc cannot be read for lack of files or memory";
	/* In a /proc of another PID namespace, the link /proc/self exists, but leads nowhere. */
	else if (lstat("/proc/self", &st) == 0)
		reason = is_others;
	else
		reason = "there is no /proc; mount it: mount -t proc proc /proc";
	free(status);
	return reason;
}

static int require(const char *missing)
{
	if (missing == NULL)
		return 0;
	message_error_of_lock("cannot watch processes: %s", missing);
	return EXIT_SYSTEM;
}

int os_require_proc(void)
{
	return require(os_check_proc());
}

int os_check(void)
{
	const char *missing = os_check_kernel();

	return require(missing != NULL ? missing : os_check_proc());
}
