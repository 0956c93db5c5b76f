/*
 * Replaces system calls that valgrind 3.24 does not know; the dynamic linker loads this library into the programs that valgrind
 * watches. pidfd_send_signal(2) sends the signal by kill(2), to the pid of the descriptor: without it rlock could end no process.
 * clone(2) with shared memory, which os_start uses, becomes fork(2). clone(2) with shared descriptors fails.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS_MAX 6

#define PID_FIELD "Pid:"

/* The pid of the process of a pidfd; 0: it has ended. */
static pid_t pidfd_pid(int fd)
{
	char path[64], line[128];
	long pid = 0;
	FILE *info;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	if (info == NULL)
		return 0;
	while (pid == 0 && fgets(line, sizeof(line), info) != NULL)
		if (strncmp(line, PID_FIELD, strlen(PID_FIELD)) == 0)
			pid = strtol(line + strlen(PID_FIELD), NULL, 10);
	(void)fclose(info);
	return pid > 0 ? (pid_t)pid : 0;
}

static long pidfd_send_signal(int fd, int signal)
{
	pid_t pid = pidfd_pid(fd);

	if (pid > 0)
		return kill(pid, signal);
	errno = ESRCH;
	return -1;
}

/* Replaces clone of the C library for os_start: forks a child with a copy of the memory, and clears child_tid immediately. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's names are reserved. */
int clone(int (*start)(void *), void *stack, int flags, void *ctx, ...)
{
	pid_t pid = fork();
	va_list list;

	(void)stack;
	(void)flags;
	if (pid == 0)
		_exit(start(ctx));
	va_start(list, ctx);
	(void)va_arg(list, pid_t *);
	(void)va_arg(list, void *);
	*va_arg(list, pid_t *) = 0;
	va_end(list);
	return pid;
}

/* Replaces syscall of the C library, which gets all calls but the two that are replaced. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's names are reserved. */
long syscall(long number, ...)
{
	static long (*others)(long, ...);
	long arguments[ARGUMENTS_MAX];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS_MAX; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_pidfd_send_signal)
		return pidfd_send_signal((int)arguments[0], (int)arguments[1]);
	/* Fail for a child that shares our descriptors, as a kernel without such children does: rlock then closes the files itself. */
	if (number == SYS_clone && (arguments[0] & CLONE_FILES) != 0) {
		errno = EINVAL;
		return -1;
	}
	if (others == NULL)
		*(void **)&others = dlsym(RTLD_NEXT, "syscall");
	return others(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		      arguments[5]);
}
