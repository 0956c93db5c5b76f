/*
 * An exec that takes long, as from a network file system that does not answer, or where a scanner of files has to agree first:
 * the call is made, and does not return. The kernel asks (seccomp's user notifications).
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#include "supervised.h"

static const char usage[] =
	"usage: slow_exec RECORD PROGRAM COMMAND [ARG...]\n"
	"An exec of a file called PROGRAM takes as long as the file RECORD is there, which gets a line for each process that\n"
	"waits so: its number. Ends by 73 when the kernel can't do this.\n";

#define WAITING_MAX 16
#define LOOK_MS 10

struct wish {
	const char *record, *program;
};

static bool is_wished(const struct seccomp_notif *notif, const struct wish *wish)
{
	char path[PATH_MAX];
	const char *slash;

	supervised_read_string((pid_t)notif->pid, notif->data.args[0], path, sizeof(path));
	slash = strrchr(path, '/');
	return strcmp(slash == NULL ? path : slash + 1, wish->program) == 0;
}

/* Whether it is to wait: there is such a file. */
static bool record(pid_t pid, const struct wish *wish)
{
	int fd = open(wish->record, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return false;
	(void)dprintf(fd, "%d\n", (int)pid);
	(void)close(fd);
	return true;
}

/* One that has been killed meanwhile takes no answer. */
static void let_through(int listener_fd, uint64_t id)
{
	struct seccomp_notif_resp answer = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	(void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void supervise(const void *ctx, int listener_fd)
{
	const struct wish *wish = ctx;
	struct pollfd listener = { listener_fd, POLLIN, 0 };
	uint64_t waiting[WAITING_MAX];
	size_t count = 0;

	for (;;) {
		struct seccomp_notif notif = { 0 };

		if (poll(&listener, 1, count > 0 ? LOOK_MS : -1) > 0) {
			if ((listener.revents & POLLIN) == 0)
				return;
			if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) != 0)
				continue;
			if (count < WAITING_MAX && is_wished(&notif, wish) &&
			    record((pid_t)notif.pid, wish))
				waiting[count++] = notif.id;
			else
				let_through(listener_fd, notif.id);
		}
		if (access(wish->record, F_OK) != 0)
			while (count > 0)
				let_through(listener_fd, waiting[--count]);
	}
}

int main(int argc, char **argv)
{
	static const long calls[] = { SYS_execve };
	struct wish wish;

	if (argc < 4) {
		(void)fputs(usage, stderr);
		return 64;
	}
	wish = (struct wish){ argv[1], argv[2] };
	run_supervised("slow_exec", calls, 1, supervise, &wish, argv + 3);
}
