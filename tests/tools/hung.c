/*
 * Processes that hang, as far as rlock can tell: a reader of their environments waits without an end, as for one that
 * the kernel keeps locked because of a network file system that does not answer. Only the command that is run here and
 * what it starts wait: on a machine that has other work to do, nothing else is to hang.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "supervised.h"

static const char usage[] =
	"usage: hung DIRECTORY COMMAND [ARG...]\n"
	"A process hangs for as long as a file with its number for a name is in DIRECTORY. That file gets a line\n"
	"for each process that waits for it: its number. Ends by 73 when the kernel can't do this.\n";

#define WAITING_MAX 256
#define LOOK_MS 20

struct waiting {
	uint64_t id;
	char file[32];
};

/* ---- what hangs ---- */

static bool is_hung(int dir_fd, const char *file)
{
	return faccessat(dir_fd, file, F_OK, 0) == 0;
}

/* Whether that call opens an environment, of a process that hangs: its number is in file then. */
static bool opens_hung(const struct seccomp_notif *notif, int dir_fd, char file[32])
{
	char path[64];
	int len = 0;

	supervised_read_string((pid_t)notif->pid, notif->data.args[1], path, sizeof(path));
	return sscanf(path, "/proc/%31[0-9]/environ%n", file, &len) == 1 && len > 0 &&
	       is_hung(dir_fd, file);
}

static void record(const struct seccomp_notif *notif, int dir_fd, const char *file)
{
	int fd = openat(dir_fd, file, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)dprintf(fd, "%d\n", (int)notif->pid);
	(void)close(fd);
}

/* ---- the supervisor ---- */

/* One that has been killed meanwhile takes no answer. */
static void let_through(int listener_fd, uint64_t id)
{
	struct seccomp_notif_resp answer = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	(void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void look_again(int listener_fd, int dir_fd, struct waiting *waiting, size_t *count)
{
	size_t left = 0;

	for (size_t i = 0; i < *count; i++) {
		if (is_hung(dir_fd, waiting[i].file))
			waiting[left++] = waiting[i];
		else
			let_through(listener_fd, waiting[i].id);
	}
	*count = left;
}

static void answer_one(int listener_fd, int dir_fd, struct waiting *waiting, size_t *count)
{
	struct seccomp_notif notif = { 0 };

	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) != 0)
		return;
	if (*count == WAITING_MAX || !opens_hung(&notif, dir_fd, waiting[*count].file)) {
		let_through(listener_fd, notif.id);
		return;
	}
	record(&notif, dir_fd, waiting[*count].file);
	waiting[(*count)++].id = notif.id;
}

static void supervise(const void *directory, int listener_fd)
{
	struct pollfd listener = { listener_fd, POLLIN, 0 };
	int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static struct waiting waiting[WAITING_MAX];
	size_t count = 0;

	/* All that is run here waits for it at each file that it opens: on a machine that is busy, too. */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (;;) {
		if (poll(&listener, 1, count > 0 ? LOOK_MS : -1) > 0) {
			if ((listener.revents & POLLIN) == 0)
				return;
			answer_one(listener_fd, dir_fd, waiting, &count);
		}
		look_again(listener_fd, dir_fd, waiting, &count);
	}
}

int main(int argc, char **argv)
{
	static const long calls[] = { SYS_openat };

	if (argc < 3) {
		(void)fputs(usage, stderr);
		return 64;
	}
	run_supervised("hung", calls, 1, supervise, argv[1], argv + 2);
}
