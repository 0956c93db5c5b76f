/*
 * Opens the runtime directory, if it belongs to this user alone. All checks are made on the opened directory, so that
 * what was checked is what is used. The callers decide what is kept in it. Where another user owns its path, there is a
 * second directory, for hold files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"

#define SECOND_PARENT "/run/user/%lu"
#define SECOND_NAME "rlock"

/* Why a directory cannot be used; empty when it just does not exist. */
struct trouble {
	char why[RLOCK_ERROR_MAX];
};

typedef int (*open_fn)(int parent_fd, const char *path, struct trouble *trouble);

/* ---- where ---- */

/* The path that the user has chosen; NULL: none. */
static const char *chosen_path(void)
{
	const char *chosen = getenv("RLOCK_RUNTIME_DIR");

	return chosen != NULL && *chosen != '\0' ? chosen : NULL;
}

const char *runtime_dir_path(void)
{
	/* This is room for one byte more than a path may have: the kernel rejects a path that is too long. */
	static char path[PATH_MAX + 1];
	const char *chosen = chosen_path();
	unsigned long uid = geteuid();

	if (chosen != NULL) {
		/* If the path ends in a slash, open(2) follows a symbolic link even with O_NOFOLLOW. */
		size_t len = strnlen(chosen, PATH_MAX);

		while (len > 1 && chosen[len - 1] == '/')
			len--;
		(void)snprintf(path, sizeof(path), "%.*s", (int)len, chosen);
	} else if (uid == 0) {
		(void)snprintf(path, sizeof(path), "/run/rlock");
	} else {
		(void)snprintf(path, sizeof(path), "/tmp/rlock-%lu", uid);
	}
	return path;
}

const char *runtime_dir_path_of(int dir_fd)
{
	static char opened[PATH_MAX + 1];
	char entry[64];
	ssize_t len;

	(void)snprintf(entry, sizeof(entry), "/proc/self/fd/%d", dir_fd);
	len = readlink(entry, opened, PATH_MAX);
	if (len < 0)
		return runtime_dir_path();
	opened[len] = '\0';
	return opened;
}

/*
 * Whether the path in /tmp, where any user can make a file, belongs to another user, whatever kind of file it is. The
 * answer is not to be trusted: it is only a reason to use the second directory.
 */
static bool is_strangers(uid_t *uid_out)
{
	struct stat st;

	if (chosen_path() != NULL || geteuid() == 0 || lstat(runtime_dir_path(), &st) != 0)
		return false;
	*uid_out = st.st_uid;
	return st.st_uid != geteuid();
}

/* ---- open and check ---- */

/* The user's umask may clear bits that we need, and another rlock must not find the file without them. */
int runtime_dir_create(int dir_fd, const char *name, int flags)
{
	mode_t mask = umask(0077);
	int fd = openat(dir_fd, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), err = errno;

	(void)umask(mask);
	errno = err;
	return fd;
}

static int make(int parent_fd, const char *path)
{
	mode_t mask = umask(0077);
	int result = mkdirat(parent_fd, path, 0700), err = errno;

	(void)umask(mask);
	errno = err;
	return result;
}

/* False, with the reason, for an opened directory that cannot be trusted. */
static bool is_trusted(int fd, struct trouble *trouble)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		(void)snprintf(trouble->why, sizeof(trouble->why), "cannot look at it: %s",
			       strerror(errno));
	else if (st.st_uid != geteuid())
		(void)snprintf(
			trouble->why, sizeof(trouble->why),
			"belongs to user %lu: remove it, or set RLOCK_RUNTIME_DIR to another one",
			(unsigned long)st.st_uid);
	/* We do not correct the mode: other users may already have put files into the directory. */
	else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		(void)snprintf(trouble->why, sizeof(trouble->why),
			       "other users may enter it, its mode is %04o: look at what is in it, "
			       "then chmod 700",
			       (unsigned int)(st.st_mode & 07777));
	else
		return true;
	return false;
}

/* Returns a descriptor, or -1 with errno and, if the directory exists, trouble->why. */
static int open_checked(int parent_fd, const char *path, struct trouble *trouble)
{
	int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *why = "";

	if (fd >= 0 && is_trusted(fd, trouble))
		return fd;
	if (fd >= 0) {
		(void)close(fd);
		errno = EPERM;
		return -1;
	}
	if (errno == ENOTDIR || errno == ELOOP)
		why = "not a directory, or a symbolic link";
	else if (errno != ENOENT)
		why = strerror(errno);
	(void)snprintf(trouble->why, sizeof(trouble->why), "%s", why);
	return -1;
}

static int make_and_open(int parent_fd, const char *path, struct trouble *trouble)
{
	int fd;

	if (make(parent_fd, path) != 0 && errno != EEXIST) {
		(void)snprintf(trouble->why, sizeof(trouble->why), "cannot make it: %s",
			       strerror(errno));
		return -1;
	}
	fd = open_checked(parent_fd, path, trouble);
	if (fd < 0 && trouble->why[0] == '\0')
		(void)snprintf(trouble->why, sizeof(trouble->why),
			       "removed as soon as it was made");
	return fd;
}

static int open_first(open_fn open_dir, struct trouble *trouble)
{
	const char *path = runtime_dir_path();

	trouble->why[0] = '\0';
	if (path[0] == '/')
		return open_dir(AT_FDCWD, path, trouble);
	(void)snprintf(trouble->why, sizeof(trouble->why),
		       "RLOCK_RUNTIME_DIR is not an absolute path");
	errno = EINVAL;
	return -1;
}

/* Only root makes the parent of the second directory, and it is removed when the user's last login ends. */
static int open_second_parent(void)
{
	char path[64];
	struct stat st;
	int fd;

	errno = ENOENT;
	if (chosen_path() != NULL || geteuid() == 0)
		return -1;
	(void)snprintf(path, sizeof(path), SECOND_PARENT, (unsigned long)geteuid());
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return fd;
	(void)close(fd);
	errno = EPERM;
	return -1;
}

static int open_second(open_fn open_dir, struct trouble *trouble)
{
	int parent_fd = open_second_parent(), fd, err = errno;

	(void)snprintf(trouble->why, sizeof(trouble->why), "%s",
		       parent_fd < 0 && is_transient_errno(err) ? strerror(err) : "");
	if (parent_fd < 0)
		return -1;
	fd = open_dir(parent_fd, SECOND_NAME, trouble);
	err = errno;
	(void)close(parent_fd);
	errno = err;
	return fd;
}

static bool has_second(void)
{
	int parent_fd = open_second_parent();

	if (parent_fd >= 0)
		(void)close(parent_fd);
	return parent_fd >= 0;
}

/* ---- what the header names ---- */

static void report_first(const struct trouble *trouble)
{
	const char *path = runtime_dir_path();
	uid_t uid;

	if (is_strangers(&uid))
		message_error(
			"runtime directory '%s': belongs to user %lu: ask an administrator to run: "
			"sudo sh -c 'rm -rf %s && mkdir -m 700 %s && chown %lu %s'",
			path, (unsigned long)uid, path, path, (unsigned long)geteuid(), path);
	else
		message_error("runtime directory '%s': %s", path, trouble->why);
}

static void report_second(const struct trouble *trouble)
{
	message_error("runtime directory '" SECOND_PARENT "/" SECOND_NAME "': %s",
		      (unsigned long)geteuid(), trouble->why);
}

int runtime_dir_open(void)
{
	struct trouble trouble;
	int fd = open_first(make_and_open, &trouble);

	if (fd < 0)
		report_first(&trouble);
	return fd;
}

int runtime_dir_open_for_holds(void)
{
	struct trouble trouble, second_trouble = { "" };
	int fd = open_first(make_and_open, &trouble);
	uid_t uid;

	if (fd < 0 && is_strangers(&uid))
		fd = open_second(make_and_open, &second_trouble);
	if (fd < 0)
		report_first(&trouble);
	return fd;
}

int runtime_dir_open_quietly(void)
{
	struct trouble trouble;

	return open_first(open_checked, &trouble);
}

int runtime_dir_open_all(bool is_needed, int fds_out[RUNTIME_DIR_COUNT])
{
	struct trouble first, second;
	bool has_first_failed, has_second_failed;
	uid_t uid;

	fds_out[0] = open_first(open_checked, &first);
	if (is_needed)
		has_first_failed = first.why[0] != '\0' && !(is_strangers(&uid) && has_second());
	else
		has_first_failed = is_transient_errno(errno);
	has_first_failed = fds_out[0] < 0 && has_first_failed;
	fds_out[1] = open_second(open_checked, &second);
	has_second_failed =
		fds_out[1] < 0 && (is_needed ? second.why[0] != '\0' : is_transient_errno(errno));
	if (!has_first_failed && !has_second_failed)
		return 0;
	if (has_first_failed)
		report_first(&first);
	else
		report_second(&second);
	for (size_t i = 0; i < RUNTIME_DIR_COUNT; i++)
		if (fds_out[i] >= 0)
			(void)close(fds_out[i]);
	return EXIT_SYSTEM;
}
