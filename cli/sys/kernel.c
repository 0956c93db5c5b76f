/*
 * Checks that the kernel has the calls without which no lock can be held, before one is acquired: a keeper that cannot
 * watch a process would have to release the lock again, and a terminator would leave processes running. It leaves out
 * calls that rlock can do without: where these fail, the code that makes them goes on.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/number.h"
#include "base/message.h"
#include "sys/kernel.h"

/* pidfd_open(2) is the youngest call that we cannot do without. */
#define NEEDED_MAJOR 5
#define NEEDED_MINOR 3

/* False when the release is unknown. */
static bool is_too_old(const struct utsname *kernel)
{
	const char *cursor = kernel->release;
	int64_t major, minor = 0;

	if (!number_read(&cursor, &major) || *cursor++ != '.')
		return false;
	(void)number_read(&cursor, &minor);
	return major < NEEDED_MAJOR || (major == NEEDED_MAJOR && minor < NEEDED_MINOR);
}

/* A sandbox forbids with EPERM, or pretends with ENOSYS that there is no such call. */
static int report_missing(const char *call, int error)
{
	struct utsname kernel;

	if (error != ENOSYS && error != EPERM && error != EACCES)
		message_error("cannot watch processes: %s: %s", call, strerror(error));
	else if (uname(&kernel) == 0 && is_too_old(&kernel))
		message_error(
			"cannot watch processes: %s needs Linux %d.%d or later, and this kernel is "
			"%s: %s",
			call, NEEDED_MAJOR, NEEDED_MINOR, kernel.release, strerror(error));
	else
		message_error(
			"cannot watch processes: a sandbox (seccomp) forbids %s, as those of old "
			"container runtimes do: update the runtime, or allow the call: %s",
			call, strerror(error));
	return EXIT_SYSTEM;
}

int kernel_check(void)
{
	int self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0), error = 0;

	if (self_fd < 0)
		return report_missing("pidfd_open", errno);
	/* Signal 0 has no effect. */
	if (syscall(SYS_pidfd_send_signal, self_fd, 0, NULL, 0) != 0)
		error = errno;
	(void)close(self_fd);
	return error == 0 ? 0 : report_missing("pidfd_send_signal", error);
}
