/*
 * Simulates an operating system that denies calls or is slow. It runs a command, and when one of its processes makes the N-th of certain
 * system calls, the call fails without being made, or is delayed. It uses seccomp's user notifications, answered by a supervisor process,
 * instead of ptrace: signals, parents and exit statuses stay as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
	"usage: refuse RECORD PROGRAM CALL[,CALL...] HOW FIRST[+] COMMAND [ARG...]\n"
	"The FIRST of these calls fails with the error HOW, such as EMFILE; with a + it and all later ones. HOW can also be\n"
	"  STOP  the process is stopped before the call, once per process\n"
	"  KILL  the process is killed before the call; its parent's pid is added to the line\n"
	"  WAIT  the call waits until the file RECORD does not exist\n"
	"  HANG  if the call opens the environment of process N, it waits until the directory RECORD has no file N\n"
	"Only calls of processes whose name begins with PROGRAM count, and none of the dynamic linker. RECORD\n"
	"gets a line for each call: \"CALL NUMBER NAME PID\"; a call that waits adds \"PID\" to the file that it waits for. Exits\n"
	"with 73 if the kernel cannot do this.\n";

#define CALLS_MAX 32
#define STOPPED_MAX 64
#define HELD_MAX 256
#define POLL_MS 10
#define EXIT_CANNOT 73
#define NOT_YET (-1)
#define NEVER (-2)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAMED(call)                                                                                \
	{                                                                                          \
		.name = #call, .number = SYS_##call                                                \
	}
#define ERROR(error)                                                                               \
	{                                                                                          \
		.name = #error, .number = (error)                                                  \
	}

/*
 * The system calls that CALL can name. getpid is among them since it is the first call of the process that becomes the command.
 */
#define CALLS(X)                                                                                   \
	X(openat), X(clone), X(clone3), X(execve), X(socket), X(socketpair), X(connect), X(pipe2), \
		X(dup), X(fcntl), X(sched_setscheduler), X(eventfd2), X(epoll_create1),            \
		X(epoll_ctl), X(epoll_pwait), X(timerfd_create), X(timerfd_settime), X(signalfd4), \
		X(pidfd_open), X(pidfd_send_signal), X(kill), X(kcmp), X(mmap), X(ppoll),          \
		X(waitid), X(read), X(write), X(recvfrom), X(recvmsg), X(sendto), X(sendmsg),      \
		X(exit_group), X(setpgid), X(getrandom), X(getdents64), X(setsid), X(prctl),       \
		X(rt_sigprocmask), X(getpid), X(close_range)
#define OLD_CALLS(X) X(open), X(fork), X(vfork), X(poll), X(pipe), X(mkdir), X(epoll_wait)
#define ERRORS(X)                                                                                  \
	X(EAGAIN), X(EINTR), X(EIO), X(EMFILE), X(ENFILE), X(ENOMEM), X(ENOSPC), X(EROFS),         \
		X(ENOSYS), X(EPERM), X(EINVAL), X(ECONNREFUSED)

struct named {
	const char *name;
	long number;
};
static const struct named known_calls[] = {
#ifdef SYS_open
	OLD_CALLS(NAMED),
#endif
	CALLS(NAMED)
};
static const struct named errors[] = { ERRORS(ERROR) };

static const char *record, *program, *how;
static const struct named *calls[CALLS_MAX];
static size_t call_count;
static long first;
static bool is_for_good;

/* A call that is not answered until a file does not exist. */
struct hold_entry {
	uint64_t id;
	char file[PATH_MAX];
};

static _Noreturn void cannot(const char *what)
{
	(void)fprintf(stderr, "refuse: %s: %s\n", what, strerror(errno));
	exit(EXIT_CANNOT);
}

static const struct named *find(const struct named *among, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(among[i].name, name) == 0)
			return &among[i];
	return NULL;
}

/* ---- the caller ---- */

/* Read the first line of /proc/PID/NAME. */
static bool read_line(pid_t pid, const char *name, char line[512])
{
	char path[64];
	FILE *file;
	bool is_read;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	file = fopen(path, "re");
	is_read = file != NULL && fgets(line, 512, file) != NULL;
	if (file != NULL)
		(void)fclose(file);
	line[is_read ? strcspn(line, "\n") : 0] = '\0';
	return is_read;
}

/* Whether the call comes from the dynamic linker: rlock cannot handle its errors. */
static bool is_of_linker(pid_t pid, uint64_t address)
{
	char path[64], line[PATH_MAX + 128];
	bool is_linker = false;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		char *end;
		uint64_t from = strtoull(line, &end, 16), to = strtoull(end + 1, NULL, 16);

		if (address >= from && address < to)
			is_linker = strstr(line, "/ld") != NULL;
	}
	if (maps != NULL)
		(void)fclose(maps);
	return is_linker;
}

/*
 * Whether the call counts: a process of the program makes it, and not the dynamic linker. name: set to the name of the process.
 * After the first call that counts, do not check for the linker any more: it has loaded all libraries by then.
 */
static bool counts(const struct seccomp_notif *notif, char name[512])
{
	static pid_t loaded;
	pid_t pid = (pid_t)notif->pid;

	if (!read_line(pid, "comm", name) || strncmp(name, program, strlen(program)) != 0)
		return false;
	if (pid != loaded && is_of_linker(pid, notif->data.instruction_pointer))
		return false;
	loaded = pid;
	return true;
}

/*
 * Whether this process was stopped before. If not, record that it is now. A stopped process repeats its call when it continues,
 * and must not be stopped again.
 */
static bool was_stopped_before(pid_t pid)
{
	static pid_t stopped[STOPPED_MAX];
	static size_t count;

	for (size_t i = 0; i < count; i++)
		if (stopped[i] == pid)
			return true;
	if (count < STOPPED_MAX)
		stopped[count++] = pid;
	return false;
}

/* ---- decisions ---- */

/* Whether the call opens the environment of a process; *file: the path that a file of this pid has in RECORD. */
static bool opens_hung(const struct seccomp_notif *notif, char *file)
{
	char path[64] = "", number[32];
	struct iovec here = { path, sizeof(path) - 1 };
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	struct iovec there = { (void *)(uintptr_t)notif->data.args[1], sizeof(path) - 1 };
	int len = 0;

	/* The memory after the path may not exist: read less. */
	while (here.iov_len > 0 && process_vm_readv((pid_t)notif->pid, &here, 1, &there, 1, 0) < 0)
		there.iov_len = here.iov_len = here.iov_len / 2;
	if (sscanf(path, "/proc/%31[0-9]/environ%n", number, &len) != 1 || len == 0)
		return false;
	(void)snprintf(file, PATH_MAX, "%s/%s", record, number);
	return true;
}

static const char *call_name(int number)
{
	for (size_t i = 0; i < call_count; i++)
		if (calls[i]->number == number)
			return calls[i]->name;
	return "?";
}

static pid_t parent_of(pid_t pid)
{
	char stat[512];
	const char *rest = read_line(pid, "stat", stat) ? strrchr(stat, ')') : NULL;

	return rest == NULL ? 0 : (pid_t)strtol(rest + sizeof(") S"), NULL, 10);
}

/*
 * Decide about a call. An error number: the call fails. 0: the call is made; if out->id is set, only once the file out->file does
 * not exist.
 */
static int decide(const struct seccomp_notif *notif, struct hold_entry *out)
{
	static int record_fd = -1;
	static long number;
	const struct named *error = find(errors, COUNT(errors), how);
	bool is_hang = strcmp(how, "HANG") == 0;
	pid_t pid = (pid_t)notif->pid;
	char name[512], parent[32] = "";

	(void)snprintf(out->file, sizeof(out->file), "%s", record);
	if ((is_hang && !opens_hung(notif, out->file)) || !counts(notif, name))
		return 0;
	number++;
	if (number != first && !(is_for_good && number > first))
		return 0;
	if (is_hang || strcmp(how, "WAIT") == 0) {
		int fd = open(out->file, O_WRONLY | O_APPEND | O_CLOEXEC);

		if (fd < 0)
			return 0;
		(void)dprintf(fd, "%d\n", (int)pid);
		(void)close(fd);
		out->id = notif->id;
		return 0;
	}
	if (strcmp(how, "STOP") == 0 && was_stopped_before(pid))
		return 0;
	if (record_fd < 0)
		record_fd = open(record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (strcmp(how, "KILL") == 0)
		(void)snprintf(parent, sizeof(parent), " %d", (int)parent_of(pid));
	(void)dprintf(record_fd, "%s %ld %s %d%s\n", call_name(notif->data.nr), number, name,
		      (int)pid, parent);
	if (error != NULL)
		return (int)error->number;
	if (strcmp(how, "STOP") == 0) {
		(void)kill(pid, SIGSTOP);
		return 0;
	}
	(void)kill(pid, SIGKILL);
	/* Refuse the call: if the answer comes before the process has died, the kernel would still make the call. */
	return EINTR;
}

/* ---- the supervisor ---- */

/*
 * Let the call fail with this error, or, if error is 0, let it be made. Ignore a failure of the ioctl: the process may have been
 * killed.
 */
static void answer(int listener_fd, uint64_t id, int error)
{
	struct seccomp_notif_resp response = { .id = id, .error = -error };

	if (error == 0)
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	while (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno == EINTR)
		;
}

/*
 * Answer calls until no process is left that could make one. Raise our priority, since a process waits for the answer to each of
 * its calls.
 */
static void supervise(int listener_fd)
{
	static struct hold_entry held[HELD_MAX + 1];
	struct pollfd listener = { listener_fd, POLLIN, 0 };
	size_t count = 0;

	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (;;) {
		struct seccomp_notif notif = { 0 };
		int error;

		for (size_t i = count; i-- > 0;) {
			if (access(held[i].file, F_OK) == 0)
				continue;
			answer(listener_fd, held[i].id, 0);
			held[i] = held[--count];
		}
		if (poll(&listener, 1, count > 0 ? POLL_MS : -1) <= 0)
			continue;
		if ((listener.revents & (POLLHUP | POLLNVAL)) != 0)
			return;
		if ((listener.revents & POLLIN) == 0)
			continue;
		if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) != 0)
			continue;
		held[count].id = 0;
		error = decide(&notif, &held[count]);
		if (count < HELD_MAX && held[count].id != 0)
			count++;
		else
			answer(listener_fd, notif.id, error);
	}
}

/* The supervisor shares its descriptor table with the process that becomes the command, so it finds the listener there. */
static _Noreturn void be_supervisor(atomic_int *listener)
{
	int listener_fd;

	while (*listener == NOT_YET)
		(void)syscall(SYS_futex, listener, FUTEX_WAIT, NOT_YET, NULL, NULL, 0);
	listener_fd = *listener;
	if (listener_fd == NEVER || unshare(CLONE_FILES) != 0)
		_exit(0);
	(void)setsid();
	if (listener_fd > 0)
		(void)syscall(SYS_close_range, 0U, (unsigned int)listener_fd - 1, 0U);
	(void)syscall(SYS_close_range, (unsigned int)listener_fd + 1, ~0U, 0U);
	supervise(listener_fd);
	_exit(0);
}

/* Start the supervisor as an orphan, since the command must not have a child that it has not started itself. */
static void start_supervisor(atomic_int *listener)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0) {
		if (syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL) == 0)
			be_supervisor(listener);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) < 0)
		cannot("clone");
}

/* ---- the command ---- */

static int ask_for_each_call(void)
{
	struct sock_filter filter[CALLS_MAX + 3];
	struct sock_fprog code = { .filter = filter };
	unsigned short at = 0;

	filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < call_count; i++)
		filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							    (uint32_t)calls[i]->number,
							    (uint8_t)(call_count - i), 0);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	code.len = at;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &code);
}

/* Parse the names of calls. Ignore a call that this architecture lacks, since no program can make it. */
static void read_calls(char *names)
{
	for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
		const struct named *call = find(known_calls, COUNT(known_calls), name);

		if (call != NULL && call_count < CALLS_MAX)
			calls[call_count++] = call;
	}
}

int main(int argc, char **argv)
{
	atomic_int *listener;
	char *end;
	int fd;

	if (argc >= 7 && (find(errors, COUNT(errors), argv[4]) != NULL ||
			  strstr("STOP KILL WAIT HANG", argv[4]) != NULL)) {
		record = argv[1];
		program = argv[2];
		read_calls(argv[3]);
		how = argv[4];
		first = strtol(argv[5], &end, 10);
		is_for_good = *end == '+';
	}
	if (call_count == 0 || first <= 0) {
		(void)fputs(usage, stderr);
		return 64;
	}
	listener = mmap(NULL, sizeof(*listener), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (listener == MAP_FAILED)
		cannot("mmap");
	*listener = NOT_YET;
	start_supervisor(listener);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		cannot("prctl");
	fd = ask_for_each_call();
	*listener = fd < 0 ? NEVER : fd;
	(void)syscall(SYS_futex, listener, FUTEX_WAKE, 1, NULL, NULL, 0);
	if (fd < 0)
		cannot("seccomp");
	/* This process becomes the command. */
	(void)execvp(argv[6], argv + 6);
	cannot(argv[6]);
}
