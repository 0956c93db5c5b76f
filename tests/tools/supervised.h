/*
 * Runs a command whose system calls a supervisor decides upon. The kernel asks it (seccomp's user notifications):
 * nothing is traced, so that signals, parents and exit statuses are as ever. For programs of one file.
 */
#ifndef SUPERVISED_H
#define SUPERVISED_H

#include <errno.h>
#include <fcntl.h>
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

#define SUPERVISED_CALLS_MAX 32
#define EXIT_CANNOT 73 /* the kernel can't do this */
#define NOT_YET (-1)
#define NEVER (-2)

#define SUPERVISED_HELD_MAX 256
#define SUPERVISED_LOOK_MS 10

/* What becomes of a call: 0, it is made; less than that, it fails with that error; or it waits. */
#define CALL_IS_MADE 0
#define CALL_WAITS 1

struct supervision {
	const char *program; /* for messages */
	const long *calls;   /* that are asked for */
	size_t count;
	const void *ctx;
	int (*decide)(const void *ctx, const struct seccomp_notif *notif);
	/* Whether it waits still; NULL where none waits. */
	bool (*waits)(const void *ctx, const struct seccomp_notif *notif);
};

static inline _Noreturn void cannot(const char *program, const char *what)
{
	(void)fprintf(stderr, "%s: %s: %s\n", program, what, strerror(errno));
	exit(EXIT_CANNOT);
}

/* What the string there begins with; nothing where it can't be read. */
static inline void supervised_read_string(pid_t pid, uint64_t address, char *out, size_t size)
{
	struct iovec here = { out, size - 1 };
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	struct iovec there = { (void *)(uintptr_t)address, size - 1 };

	memset(out, 0, size);
	/* It may be so near to the end of a page that less can be read. */
	while (here.iov_len > 0 && process_vm_readv(pid, &here, 1, &there, 1, 0) < 0)
		there.iov_len = here.iov_len = here.iov_len / 2;
}

/* Whether the process has a name that begins so; what it has goes to name. */
static inline bool supervised_is_named(pid_t pid, const char *program, char name[32])
{
	char path[64];
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, name, 31);
	(void)close(fd);
	if (len <= 0)
		return false;
	name[len - 1] = '\0';
	return strncmp(name, program, strlen(program)) == 0;
}

/* One that has been killed meanwhile takes no answer. */
static inline void supervised_answer(int listener_fd, uint64_t id, int error)
{
	struct seccomp_notif_resp answer = { .id = id, .error = error };

	if (error == 0)
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	(void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* Until nothing is left that could ask. All that is run here waits for it, on a machine that is busy, too. */
static inline void supervise(const struct supervision *how, int listener_fd)
{
	static struct seccomp_notif held[SUPERVISED_HELD_MAX];
	struct pollfd listener = { listener_fd, POLLIN, 0 };
	size_t count = 0;

	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (;;) {
		struct seccomp_notif notif = { 0 };
		int decided;

		for (size_t i = count; i-- > 0;) {
			if (how->waits != NULL && how->waits(how->ctx, &held[i]))
				continue;
			supervised_answer(listener_fd, held[i].id, 0);
			held[i] = held[--count];
		}
		if (poll(&listener, 1, count > 0 ? SUPERVISED_LOOK_MS : -1) <= 0)
			continue;
		if ((listener.revents & POLLIN) == 0)
			return;
		if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) != 0)
			continue;
		decided = how->decide(how->ctx, &notif);
		if (decided == CALL_WAITS && count < SUPERVISED_HELD_MAX)
			held[count++] = notif;
		else
			supervised_answer(listener_fd, notif.id, decided < 0 ? decided : 0);
	}
}

/* It shares the table of descriptors with the command-to-be, and so finds the listener in its own. */
static inline _Noreturn void supervised_be_supervisor(const struct supervision *how,
						      atomic_int *listener)
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
	supervise(how, listener_fd);
	_exit(0);
}

/* An orphan: the command has no child that it has not started. */
static inline int supervised_start_supervisor(const struct supervision *how, atomic_int *listener)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0) {
		if (syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL) == 0)
			supervised_be_supervisor(how, listener);
		_exit(0);
	}
	return pid < 0 ? -1 : waitpid(pid, NULL, 0);
}

static inline int supervised_ask_for_each(const long *calls, size_t count)
{
	struct sock_filter filter[SUPERVISED_CALLS_MAX + 3];
	struct sock_fprog program = { .filter = filter };
	unsigned short at = 0;

	filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		filter[at++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], (uint8_t)(count - i), 0);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	program.len = at;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

static inline void supervised_tell(atomic_int *listener, int fd)
{
	*listener = fd;
	(void)syscall(SYS_futex, listener, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* This process becomes the command. */
static inline _Noreturn void run_supervised(const struct supervision *how, char **command)
{
	atomic_int *listener = mmap(NULL, sizeof(*listener), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd;

	if (listener == MAP_FAILED)
		cannot(how->program, "mmap");
	*listener = NOT_YET;
	if (supervised_start_supervisor(how, listener) < 0)
		cannot(how->program, "clone");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		cannot(how->program, "prctl");
	fd = supervised_ask_for_each(how->calls, how->count);
	supervised_tell(listener, fd < 0 ? NEVER : fd);
	if (fd < 0)
		cannot(how->program, "seccomp");
	(void)execvp(command[0], command);
	cannot(how->program, command[0]);
}

#endif
