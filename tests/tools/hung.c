/*
 * Processes that hang, as far as rlock can tell: a reader of their environments waits without an end, as for one that
 * the kernel keeps locked because of a network file system that does not answer. Only the command that is run here and
 * what it starts wait: on a machine that has other work to do, nothing else is to hang.
 */
#include "supervised.h"

static const char usage[] =
	"usage: hung DIRECTORY COMMAND [ARG...]\n"
	"A process hangs for as long as a file with its number for a name is in DIRECTORY. That file gets a line\n"
	"for each process that waits for it: its number. Ends by 73 when the kernel can't do this.\n";

struct hung {
	char file[32]; /* its number */
	char path[4096];
};

/* Whether that call opens an environment, of a process that hangs. */
static bool opens_hung(const void *directory, const struct seccomp_notif *notif, struct hung *out)
{
	char path[64];
	int len = 0;

	supervised_read_string((pid_t)notif->pid, notif->data.args[1], path, sizeof(path));
	if (sscanf(path, "/proc/%31[0-9]/environ%n", out->file, &len) != 1 || len == 0)
		return false;
	(void)snprintf(out->path, sizeof(out->path), "%s/%s", (const char *)directory, out->file);
	return access(out->path, F_OK) == 0;
}

static int decide(const void *directory, const struct seccomp_notif *notif)
{
	struct hung hung;
	int fd;

	if (!opens_hung(directory, notif, &hung))
		return CALL_IS_MADE;
	fd = open(hung.path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0) {
		(void)dprintf(fd, "%d\n", (int)notif->pid);
		(void)close(fd);
	}
	return CALL_WAITS;
}

static bool waits(const void *directory, const struct seccomp_notif *notif)
{
	struct hung hung;

	return opens_hung(directory, notif, &hung);
}

int main(int argc, char **argv)
{
	static const long calls[] = { SYS_openat };
	const struct supervision how = { "hung", calls, 1, argv[1], decide, waits };

	if (argc < 3) {
		(void)fputs(usage, stderr);
		return 64;
	}
	run_supervised(&how, argv + 2);
}
