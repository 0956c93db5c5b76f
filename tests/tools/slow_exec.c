/*
 * An exec that takes long, as from a network file system that does not answer, or where a scanner of files has to agree first:
 * the call is made, and does not return. The kernel asks (seccomp's user notifications).
 */
#include <limits.h>

#include "supervised.h"

static const char usage[] =
	"usage: slow_exec RECORD PROGRAM COMMAND [ARG...]\n"
	"An exec of a file called PROGRAM takes as long as the file RECORD is there, which gets a line for each process that\n"
	"waits so: its number. Ends by 73 when the kernel can't do this.\n";

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

/* It waits if there is such a file. */
static int decide(const void *ctx, const struct seccomp_notif *notif)
{
	const struct wish *wish = ctx;
	int fd = -1;

	if (is_wished(notif, wish))
		fd = open(wish->record, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return CALL_IS_MADE;
	(void)dprintf(fd, "%d\n", (int)notif->pid);
	(void)close(fd);
	return CALL_WAITS;
}

static bool waits(const void *ctx, const struct seccomp_notif *notif)
{
	const struct wish *wish = ctx;

	(void)notif;
	return access(wish->record, F_OK) == 0;
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
	run_supervised(&(struct supervision){ "slow_exec", calls, 1, &wish, decide, waits },
		       argv + 3);
}
