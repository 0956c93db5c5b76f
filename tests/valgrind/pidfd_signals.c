/*
 * To be loaded into what valgrind watches: 3.24 knows pidfds, but not pidfd_send_signal(2), and rlock
 * could stop no process. The signal goes to the process that the descriptor is of by its number. Nor does it
 * know a process that has the memory of another one, which goes on: os_start gets a plain child instead. Nor one that
 * shares descriptors alone.
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

/* 0 when there is none any more. */
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

/* The C library's name, too. The flags are those of os_start. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its own names are reserved. */
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

/* The C library's name: it goes there for all else. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its own names are reserved. */
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
	/* A child that shares our descriptors and nothing else: as where the kernel makes none. */
	if (number == SYS_clone && (arguments[0] & CLONE_FILES) != 0) {
		errno = EINVAL;
		return -1;
	}
	if (others == NULL)
		*(void **)&others = dlsym(RTLD_NEXT, "syscall");
	return others(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		      arguments[5]);
}
