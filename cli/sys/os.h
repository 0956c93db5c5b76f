/*
 * The one place that knows Linux: processes by descriptor, events, timers, signals by descriptor, and what a process
 * may ask of the kernel for itself. Another system needs another os.c, and nothing else.
 */
#ifndef OS_H
#define OS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- processes ---- */

/* A descriptor of that process, readable when it has ended, close-on-exec; -1 with errno. */
int os_process_open(pid_t pid);
/* Send it a signal, and to no other process that got its pid. 0, or errno. */
int os_process_signal(int process_fd, int signal);
/* Send a signal as os_process_signal does, with a mark for an rlock below: all processes of the job get this signal. */
int os_process_signal_as_all(int process_fd, int signal);

/*
 * Like fork(2), but the child's end sends no SIGCHLD, and only a wait with __WALL finds the child: a loop that waits
 * for any child does not meet it. Handlers of pthread_atfork are not called: in the child async-signal-safe calls
 * only. The child has that name, as by os_set_name.
 */
pid_t os_fork_silently(const char *name);
/*
 * Like vfork(2): a process that calls start(ctx) in our memory, on a stack of its own, until it executes a program or ends,
 * with what that returns. But we go on at once: to execute a program may take long. start makes async-signal-safe calls
 * only, needs no more stack than stack_bytes, and shares errno with us: call os_start_wait next, and nothing else that
 * can fail. What ctx points to stays where it is. -1 with errno. For one process at a time. An emulator of another machine
 * may give it a copy of our memory.
 */
pid_t os_start(int (*start)(void *ctx), void *ctx, size_t stack_bytes);
/* Sleep until that process has our memory no longer, for wait_ms at most. */
void os_start_wait(int wait_ms);
/* Orphans among our descendants become our children. False with errno. Async-signal-safe. */
bool os_adopt_orphans(void);
/* No more, so that a program that this process waits for finds things as without us. */
void os_stop_adopting(void);
/* In a child: this signal comes when the thread that forked it ends. Async-signal-safe. */
void os_die_with_parent(int signal);

/* A growing list of pids. Zero-initialise, pid_list_free. */
struct pid_list {
	pid_t *pids;
	size_t count;
};
void pid_list_free(struct pid_list *list);

/*
 * The next child that has ended, was stopped or was continued, without waiting; what it says stays until it is taken,
 * which reaps one that has ended. False: there is none.
 */
bool os_child_peek(siginfo_t *out);
void os_child_take(const siginfo_t *child);

/* Add all processes that /proc shows. False when files or memory are short, or without /proc. */
bool os_list_processes(struct pid_list *out);
/*
 * Add the children of all threads of that process, from the kernel's lists: a few files to read, however many processes
 * there are. It may miss one while others start or are reaped. False where the kernel keeps no such lists, without
 * /proc, and when files or memory are short.
 */
bool os_list_children(pid_t pid, struct pid_list *out);

/*
 * Where pids and times mean the same: the id of the boot of this machine, "0" where the kernel tells none, and the inodes
 * of our namespaces, 0 where it has no such. NULL with errno when they can't be told now.
 */
struct os_scope {
	char boot[40];
	uint64_t pids, times;
};
const struct os_scope *os_scope(void);

/* ---- events ---- */

/*
 * One descriptor that is readable when one of those added is, or when it is closed at its other end; close-on-exec. -1,
 * or false, with errno.
 */
int os_events_open(void);
bool os_events_add(int events_fd, int fd);
/* To be called before fd is closed: copies of it may be open in other processes. */
void os_events_remove(int events_fd, int fd);
/* Sleep until one is readable. is_long: that may take hours, and os_shrink_while_idle comes first. */
void os_events_wait(int events_fd, bool is_long);

/* A timer on the clock of rlock_now_ms(), which notices a suspended machine; close-on-exec. -1 with errno. */
int os_timer_open(void);
/* It becomes readable at that time, which may have passed; INT64_MAX disarms it. False: it is as before. */
bool os_timer_set(int timer_fd, int64_t at_ms);

struct os_signal {
	int number;
	bool is_from_kernel; /* a terminal's, a child's end, or of alarm(2) */
	bool is_for_all; /* another rlock has sent it to each process of its job, and ours are among them */
	pid_t sender; /* of a child's end: the child; 0: the kernel, or a process outside of our PID namespace */
};

/* fd -1: a new descriptor to read these signals, which are blocked; else fd has these from now on. -1 with errno. */
int os_signals_open(int fd, const sigset_t *set);
/* The next one without waiting; false: there is none. */
bool os_signals_read(int fd, struct os_signal *out);

/* ---- ourselves ---- */

/* Close this one and all above it. Async-signal-safe. */
void os_close_from(int first);
/*
 * What is closed of descriptors 0, 1 and 2 becomes one that fails every use as before, so that no socket or file can
 * take its number, and a message goes to no server. It is close-on-exec: COMMAND finds it closed. It needs no /dev.
 * False with errno. Async-signal-safe.
 */
bool os_fill_standard_fds(void);
/*
 * Close the descriptors that the process was given, and fill 0, 1 and 2: pipes of the caller see their end. Its own, which
 * are close-on-exec, stay. Files are closed by children, one for each file system, which may hang in that: they have the
 * name closer, nothing waits for them, and the process reaps them as any other child.
 */
void os_close_inherited(const char *closer);
/* Whether so many more descriptors, OS_ROOM_MAX at most, can be opened. False with errno. */
#define OS_ROOM_MAX 8
bool os_has_room(size_t count);
/*
 * Whether that process has at this number the same open file description as we: 1, or 0; -1 where the kernel does not
 * say so.
 */
int os_has_same_description(pid_t pid, int fd);
/* As fstatat(2), from what the kernel knows: a file system that hangs does not hang us. False with errno. */
struct stat;
bool os_stat_cached(int dir_fd, const char *path, struct stat *out);
/*
 * A descriptor that is readable when a process has closed the file that fd is open on, close-on-exec; -1 where that
 * can't be told, as of a directory, where each file in it would count.
 */
int os_watch_close(int fd);
/* Take from a timer, or from what os_watch_close has opened, that it is readable. */
void os_drain_fd(int fd);
/* Whether fd is readable now: of a process's, whether it has ended. False for a negative one. */
bool os_is_ready(int fd);

/*
 * The name in /proc/PID/comm; and the line that ps -f shows, cut to the room that the arguments had. os_title_setup:
 * once, first of all in main. os_set_title moves the words of argv the first time: argv[i] is right after it, copies of its
 * pointers are not. In a child that async-signal-safe calls are left to only after its parent has called it.
 */
void os_set_name(const char *name);
void os_title_setup(int argc, char **argv);
void os_set_title(const char *text);
/* No core dump of ours, and no ptrace by our own user: we know a password. */
void os_hide_memory(void);

/*
 * For this thread: it has a deadline and little to do. Only after the start of COMMAND, which could inherit it. It is
 * SCHED_RR only where RLIMIT_RTTIME cannot kill us for it, else a nice value; where neither may be set, nothing
 * happens.
 */
void os_raise_priority(void);
/* Take os_raise_priority back, before work without a bound; it can be raised again. */
void os_lower_priority(void);
/* For a process that got SIGKILL: each of its threads has to run once more to end, before our next look at others. */
void os_raise_priority_of_killed(pid_t pid);
/* Let other processes run before us, whose own work is less urgent than theirs. */
void os_let_others_run_first(void);
/*
 * Release the pages of program text and constants: the kernel reads them from the files again when they are needed.
 * Pages that the process has written stay.
 */
void os_shrink_while_idle(void);

/* ---- what the system must be able to do for a lock to be held at all ---- */

/* For a message why not, and what to do, or NULL: processes can be watched and signalled by descriptor. */
const char *os_check_kernel(void);
/* The same: /proc shows the processes of our own PID namespace. */
const char *os_check_proc(void);
/* Both, for a lock that is held for a command or another process. 0, or the exit code after one line by message_error. */
int os_check(void);

#endif
