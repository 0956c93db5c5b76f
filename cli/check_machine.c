/*
 * Looks at this machine: the runtime directory and what may happen to it, the kernel, and /proc. check_local.c looks for
 * local: servers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "check_local.h"
#include "check_machine.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"
#include "sys/os.h"

#define MOUNTS_MAX (1 << 20)

static bool is_in_tmp(const char *path)
{
	return strncmp(path, "/tmp/", 5) == 0 || strncmp(path, "/var/tmp/", 9) == 0;
}

/* For a unit with PrivateTmp=, systemd mounts a directory below /systemd-private-... over /tmp. */
static bool has_private_tmp(void)
{
	size_t len = 0;
	struct stat stat;
	char *mounts = file_read_all(AT_FDCWD, "/proc/self/mountinfo", 0, MOUNTS_MAX, &stat, &len);
	char *rest = mounts, *line;
	bool is_private = false;

	while ((line = strsep(&rest, "\n")) != NULL) {
		char root[256], point[256];

		/* A later mount hides the one before. */
		if (sscanf(line, "%*s %*s %*s %255s %255s", root, point) == 2 &&
		    strcmp(point, "/tmp") == 0)
			is_private = strstr(root, "/systemd-private-") != NULL;
	}
	free(mounts);
	return is_private;
}

/* Whether systemd-tmpfiles may delete old files below path. packaging/rlock.tmpfiles.conf exempts /tmp/rlock-* only. */
static bool has_cleaner(const char *path)
{
	static const char *const files[] = { "/etc/tmpfiles.d/rlock.conf",
					     "/run/tmpfiles.d/rlock.conf",
					     "/usr/local/lib/tmpfiles.d/rlock.conf",
					     "/usr/lib/tmpfiles.d/rlock.conf" };

	/* sd_booted(3) looks at it, too. */
	if (access("/run/systemd/system", F_OK) != 0 || !is_in_tmp(path))
		return false;
	if (strncmp(path, "/tmp/rlock-", strlen("/tmp/rlock-")) != 0)
		return true;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (access(files[i], F_OK) == 0)
			return false;
	return true;
}

static void check_surroundings(struct findings *findings, const char *path)
{
	const char *chosen = runtime_dir_path();
	struct stat st;

	if (lstat(chosen, &st) == 0 && !S_ISLNK(st.st_mode) && st.st_uid != geteuid())
		findings_add(findings, FINDING_NOTE, 0, "directory",
			     "%s belongs to user %lu, so that local: can't be used: remove it",
			     chosen, (unsigned long)st.st_uid);
	if (strncmp(path, "/tmp/", 5) == 0 && has_private_tmp())
		findings_add(
			findings, FINDING_NOTE, 0, "directory",
			"/tmp is this service's own: it shares no local: server and no lock without a "
			"command with others: set RLOCK_RUNTIME_DIR, or PrivateTmp=no");
	if (has_cleaner(path))
		findings_add(findings, FINDING_NOTE, 0, "directory",
			     "systemd-tmpfiles removes old files there: put 'x %s' into "
			     "/etc/tmpfiles.d/rlock.conf",
			     strncmp(path, "/tmp/rlock-", strlen("/tmp/rlock-")) == 0
				     ? "/tmp/rlock-*"
				     : path);
}

/* Why the directory cannot be used is printed as an error by the call that opens it. */
static void check_directory(struct findings *findings)
{
	int dir_fd = runtime_dir_open_for_holds();
	const char *path;

	if (dir_fd < 0) {
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "directory",
			     "%s can't be used for locks without a command: standard error has the "
			     "reason",
			     runtime_dir_path());
		return;
	}
	path = runtime_dir_path_of(dir_fd);
	findings_add(findings, FINDING_OK, 0, "directory", "%s", path);
	check_surroundings(findings, path);
	check_local(findings, dir_fd);
	(void)close(dir_fd);
}

static void check_system(struct findings *findings)
{
	const char *reason = os_check_proc();

	/* os_check_kernel() prints the reason as an error. */
	if (os_check_kernel() != 0)
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "kernel",
			     "cannot watch processes: standard error has the reason");
	else
		findings_add(findings, FINDING_OK, 0, "kernel", "has all that is needed");
	if (reason != NULL)
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "proc", "%s", reason);
	else
		findings_add(findings, FINDING_OK, 0, "proc",
			     "shows the processes of this PID namespace");
}

void check_machine(struct findings *findings)
{
	check_directory(findings);
	check_system(findings);
}
