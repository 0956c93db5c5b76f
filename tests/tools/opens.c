/*
 * Which files a command and all that it starts open: each path goes into a file. The kernel asks (seccomp's user
 * notifications), so that nothing is traced, and no call can be made in another way than by the system call.
 */
#include <limits.h>

#include "supervised.h"

static const char usage[] =
	"usage: opens RECORD PROGRAM COMMAND [ARG...]\n"
	"RECORD gets a line for each file that a process whose name begins with PROGRAM opens: \"PID PATH\", with the path\n"
	"of the directory before one that is relative to a descriptor. Ends by 73 when the kernel can't do this.\n";

struct watch {
	const char *record, *program;
};

/* What the path begins at: nothing where it is absolute. */
static void directory_of(pid_t pid, int dir_fd, const char *file, char *out, size_t size)
{
	char link[64];
	ssize_t len;

	out[0] = '\0';
	if (file[0] == '/' || dir_fd == AT_FDCWD)
		return;
	(void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, dir_fd);
	len = readlink(link, out, size - 2);
	if (len < 0)
		len = snprintf(out, size - 2, "?");
	out[len] = '/';
	out[len + 1] = '\0';
}

static int record(const void *ctx, const struct seccomp_notif *notif)
{
	static char line[2 * PATH_MAX + 32], directory[PATH_MAX], path[PATH_MAX];
	static int record_fd = -1;
	const struct watch *watch = ctx;
	bool has_directory = true;
	char name[32];
	int len;

#ifdef SYS_open
	has_directory = notif->data.nr != SYS_open;
#endif
	if (!supervised_is_named((pid_t)notif->pid, watch->program, name))
		return CALL_IS_MADE;
	if (record_fd < 0)
		record_fd = open(watch->record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	supervised_read_string((pid_t)notif->pid, notif->data.args[has_directory ? 1 : 0], path,
			       sizeof(path));
	directory_of((pid_t)notif->pid, has_directory ? (int)notif->data.args[0] : AT_FDCWD, path,
		     directory, sizeof(directory));
	len = snprintf(line, sizeof(line), "%d %s%s\n", (int)notif->pid, directory, path);
	(void)!write(record_fd, line, (size_t)len);
	return CALL_IS_MADE;
}

int main(int argc, char **argv)
{
	static const long calls[] = {
		SYS_openat,
#ifdef SYS_open
		SYS_open,
#endif
#ifdef SYS_openat2
		SYS_openat2,
#endif
	};
	struct watch watch;

	if (argc < 4) {
		(void)fputs(usage, stderr);
		return 64;
	}
	watch = (struct watch){ argv[1], argv[2] };
	run_supervised(&(struct supervision){ "opens", calls, sizeof(calls) / sizeof(calls[0]),
					      &watch, record, NULL },
		       argv + 3);
}
