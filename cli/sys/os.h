/*
 * The calls that only Linux has: pidfds, epoll, timerfds, signalfds, and settings of the process itself. A port of
 * rlock to another system replaces os.c. A few other files also use timerfd, eventfd, memfd_create and statx.
 */
#ifndef OS_H
#define OS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- processes ---- */

/* Open a pidfd, which is readable when the process has ended. It is close-on-exec. -1 with errno. */
int os_process_open(pid_t pid);
/* Send a signal to the process of a pidfd, and never to another process that got its pid. Returns 0, or errno. */
int os_process_signal(int process_fd, int signal);
/*
 * Send a signal as os_process_signal does, but with a mark. An rlock that gets a signal with the mark does not pass it
 * on, since all processes of the job get it.
 */
int os_process_signal_as_all(int process_fd, int signal);

/* Wait until a process has ended, until deadline_ms at most. Do not reap it. False: no pidfd could be opened. */
bool os_process_await(pid_t pid, int64_t deadline_ms);

/*
 * Fork a child whose end sends no SIGCHLD, which would wake a process that waits for its command. Only a wait with __WALL
 * or __WCLONE finds the child, so a loop that waits for any child does not reap it. Others know it by proc.is_silent from
 * its first moment, and a little later by its name, too. No handler of pthread_atfork is called. So if this process has
 * other threads, the child must make async-signal-safe calls only. -1 with errno.
 */
pid_t os_fork_silently(const char *name);
/* Fork a helper silently. It leaves the session, so that no signal of the terminal reaches it. */
pid_t os_fork_helper(const char *name);
/*
 * Start a process that calls start(ctx) in our memory, as after vfork(2), and ends with its result. It has a stack of
 * its own, of stack_bytes. It does not suspend us, because an exec can take long. start must make async-signal-safe
 * calls only. The process shares our errno: call os_start_wait next, before any call that can fail. The object at ctx
 * must stay valid. Start one process at a time. Under qemu-user the process has a copy of our memory. Returns the pid;
 * -1 with errno.
 */
pid_t os_start(int (*start)(void *ctx), void *ctx, size_t stack_bytes);
/* Wait until the process of os_start has executed a program or ended, but for wait_ms at most. */
void os_start_wait(int wait_ms);
/* Adopt orphans: descendants whose parents end become children of this process. False with errno. Async-signal-safe. */
bool os_adopt_orphans(void);
/* Stop adopting orphans, because a program that this process executes must not get children that it does not know. */
void os_stop_adopting(void);
/* In a child: when the thread that forked the child ends, let the child get this signal. Async-signal-safe. */
void os_die_with_parent(int signal);

/* A growing list of pids. Initialise it with zeros, and free it by pid_list_free. */
struct pid_list {
	pid_t *pids;
	size_t count;
};
void pid_list_free(struct pid_list *list);

/*
 * os_child_peek: find the next child that has ended, was stopped or was continued, without waiting. False: there is
 * none.
 * os_child_take: reap that child, or take the report of its stop, so that the next peek finds another child.
 */
bool os_child_peek(siginfo_t *out);
void os_child_take(const siginfo_t *child);
/* Whether this process has a child, be it a zombie. It does not count helpers that it forked itself. */
bool os_has_children(void);

/* Add the pids of all processes in /proc. False: descriptors or memory are short, or there is no /proc. */
bool os_list_processes(struct pid_list *out);
/*
 * Add the children of all threads of a process, from /proc/PID/task/TID/children. These are few files, however many
 * processes run. A child can be missed while other children start or are reaped. False: the kernel has no such files,
 * there is no /proc, or descriptors or memory are short.
 */
bool os_list_children(pid_t pid, struct pid_list *out);

/*
 * The scope of pids and times. Two processes can compare pids only if their boot and pids are equal; and times only if
 * their times are equal as well. boot: boot id of this machine ("0": unknown). pids, times: inodes of our PID and time
 * namespaces (0: the kernel has no such namespaces). os_scope returns NULL with errno if they cannot be read now.
 */
struct os_scope {
	char boot[40];
	uint64_t pids, times;
};
const struct os_scope *os_scope(void);

/* ---- events ---- */

/*
 * os_events_open: open an epoll, which is readable when one of the added descriptors is. It is close-on-exec. -1 with
 * errno. os_events_add: add a descriptor. False with errno.
 */
int os_events_open(void);
bool os_events_add(int events_fd, int fd);
/* Remove fd. Do this before closing fd: while a copy is open in another process, the epoll would still report it. */
void os_events_remove(int events_fd, int fd);
/*
 * Sleep until one of the added descriptors is readable. is_long: release memory first, since the sleep may take hours.
 */
void os_events_wait(int events_fd, bool is_long);

/*
 * Open a timer on the clock of rlock_now_ms(), which also runs while the machine is suspended. It is close-on-exec. -1
 * with errno.
 */
int os_timer_open(void);
/*
 * Make the timer readable at that time, or immediately if it has passed; INT64_MAX disarms it. False: the timer is
 * unchanged.
 */
bool os_timer_set(int timer_fd, int64_t at_ms);

struct os_signal {
	int number;
	/* the kernel has sent it: for a key of the terminal, the end of a child, or alarm(2) */
	bool is_from_kernel;
	/* an outer rlock has sent it to all processes of its job, which include ours */
	bool is_for_all;
	/* pid of the sender, or of the child that ended; 0: the kernel, or a process outside our PID namespace */
	pid_t sender;
};

/* Open a signalfd for these signals, which must be blocked. fd -1: open a new one; else change fd. -1 with errno. */
int os_signals_open(int fd, const sigset_t *set);
/* Read the next signal without waiting. False: none is pending. */
bool os_signals_read(int fd, struct os_signal *out);

/* ---- this process ---- */

/* Close the descriptor first, and all descriptors with greater numbers. Async-signal-safe. */
void os_close_from(int first);
/*
 * Open a placeholder for each of the descriptors 0, 1 and 2 that is closed. Otherwise a socket of ours could get such a
 * number, and receive our messages. Reads and writes of a placeholder fail as if it were closed. Placeholders need no
 * /dev, and are close-on-exec, so that COMMAND finds the descriptor closed. False with errno. Async-signal-safe.
 */
bool os_fill_standard_fds(void);
/*
 * Close the descriptors that the process inherited, so that readers of the caller's pipes see their end. Open
 * placeholders for 0, 1 and 2. Our own descriptors are close-on-exec, and stay open. Since a close can hang, files are
 * closed by processes with the name closer, one for each file system. Do not wait for these processes. They become
 * children of this process, if it adopts orphans: reap them like other children.
 */
void os_close_inherited(const char *closer);
/* Whether count more descriptors (at most OS_ROOM_MAX) can be opened. False with errno. */
#define OS_ROOM_MAX 8
bool os_has_room(size_t count);
/*
 * Whether descriptor fd of the process and our fd are one open file description. Returns 1 or 0; -1: the kernel does
 * not tell.
 */
int os_has_same_description(pid_t pid, int fd);
/*
 * Open a descriptor that becomes readable when any process closes the file of fd. It is close-on-exec. -1: this cannot
 * be watched, or fd is a directory, where each close of a file in it would wake us.
 */
int os_watch_close(int fd);
/* Read a timer, or a descriptor of os_watch_close, so that it is not readable any more. */
void os_drain_fd(int fd);
/* Whether fd is readable now. For a pidfd that means: whether the process has ended. False for a negative fd. */
bool os_is_ready(int fd);

/*
 * os_set_name: set the name in /proc/PID/comm. os_set_title: set the line that ps -f shows, cut to the size of the
 * arguments. Call os_title_setup at the start of main. The first os_set_title moves the words of argv. After it use argv[i]
 * again: copies of these pointers are not valid any more. A child that must make async-signal-safe calls only may set a
 * title if its parent has set one.
 */
void os_set_name(const char *name);
void os_title_setup(int argc, char **argv);
void os_set_title(const char *text);
/* Forbid a core dump, and ptrace by our own user, because our memory has a password. */
void os_hide_memory(void);

/*
 * Raise the priority of this thread, which has deadlines and little to do. Use SCHED_RR where it is allowed, unless
 * RLIMIT_RTTIME could kill us for it; else a nice value; else change nothing. Call this after the start of COMMAND, which
 * would inherit the priority.
 */
void os_raise_priority(void);
/* Undo os_raise_priority. Call this before work that may take any time. The priority can be raised again. */
void os_lower_priority(void);
/* Raise the priority of a process that got SIGKILL, because each of its threads must run once more to end. */
void os_raise_priority_of_killed(pid_t pid);
/* Let other processes run before us, because our remaining work is less urgent than theirs. */
void os_let_others_run_first(void);
/* Release pages of program text and constants. The kernel reads them again when they are needed. */
void os_shrink_while_idle(void);

/* ---- check the kernel and /proc ---- */

/* Check that pidfds work. Returns NULL, or why not and what to do, for a message. */
const char *os_check_kernel(void);
/*
 * Check that /proc shows the processes of our own PID namespace. Returns NULL, or why not and what to do, for a
 * message.
 */
const char *os_check_proc(void);
/* Check /proc alone, before a hold is looked for. Returns 0, or the exit code after one line by message_error. */
int os_require_proc(void);
/*
 * Check the kernel and /proc, before a lock is acquired for a process. Returns 0, or the exit code after one line by
 * message_error.
 */
int os_check(void);

#endif
