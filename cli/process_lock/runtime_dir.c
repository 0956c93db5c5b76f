/*
 * Open the runtime directory if it belongs to this user alone. All checks are made on the opened directory, so that no
 * other user can replace it after a check. The callers decide which files it has. If another user owns its path, hold
 * files are kept in a second directory.
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

#include "base/message.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"

#define SECOND_PARENT "/run/user/%lu"
#define SECOND_NAME "rlock"

/* ---- the paths ---- */

/* The path of RLOCK_RUNTIME_DIR; NULL: the variable is not set, or empty. */
static const char *chosen_path(void)
{
	const char *chosen = getenv("RLOCK_RUNTIME_DIR");

	return chosen != NULL && *chosen != '\0' ? chosen : NULL;
}

const char *runtime_dir_path(void)
{
	/*
	 * Room for one byte more than a path may have. So a path that is too long, and is cut, is still too long, and
	 * the kernel rejects it.
	 */
	static char path[PATH_MAX + 1];
	const char *chosen = chosen_path();
	unsigned long uid = geteuid();

	if (chosen != NULL) {
		/* Remove slashes at the end: with them, open(2) would follow a symbolic link even with O_NOFOLLOW. */
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
 * Whether the path in /tmp, where any user can make a file, belongs to another user, whatever kind of file it is. Use
 * the answer only to choose the second directory, or a message, because the other user can change it at any time.
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

/*
 * Replace the user's umask before the file is made, because it may clear bits of the mode that we need. A change after
 * that would be too late: another rlock could find the file without these bits.
 */
int runtime_dir_create(int dir_fd, const char *name, int flags)
{
	mode_t mask = umask(0077);
	int fd = openat(dir_fd, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), err = errno;

	(void)umask(mask);
	errno = err;
	return fd;
}

/*
 * The functions below that have a parameter why write there, in RLOCK_ERROR_MAX bytes, why a directory cannot be used.
 * open_first and open_second leave it empty if the directory does not exist and was not to be made. open_second also
 * leaves it empty if the parent directory cannot be used, unless the cause may pass.
 */

/* Whether the opened directory belongs to this user, and no other user may enter it. False: why has the reason. */
static bool is_trusted(int fd, char *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		(void)snprintf(why, RLOCK_ERROR_MAX, "cannot look at it: %s", strerror(errno));
	else if (st.st_uid != geteuid())
		/*
		 * Refuse a directory of another user. After sudo -E it is the directory of the first user, and has the
		 * files of that user's locks.
		 */
		(void)snprintf(why, RLOCK_ERROR_MAX,
			       "belongs to user %lu, and may have files of that user's locks: %s",
			       (unsigned long)st.st_uid,
			       chosen_path() != NULL
				       ? "unset RLOCK_RUNTIME_DIR, or give it a directory of yours"
				       : "set RLOCK_RUNTIME_DIR to a directory of yours");
	/* Do not correct the mode, because other users may already have put files into the directory. */
	else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		(void)snprintf(why, RLOCK_ERROR_MAX,
			       "other users may enter it, its mode is %04o; look at what is in it, "
			       "then chmod 700",
			       (unsigned int)(st.st_mode & 07777));
	else
		return true;
	return false;
}

/*
 * Open the directory; is_made: make it first if necessary. Returns a descriptor, or -1 with errno and the reason in
 * why.
 */
static int open_checked(int parent_fd, const char *path, bool is_made, char *why)
{
	mode_t mask = umask(0077);
	int fd, err = is_made && mkdirat(parent_fd, path, 0700) != 0 ? errno : EEXIST;

	(void)umask(mask);
	if (err != EEXIST) {
		(void)snprintf(why, RLOCK_ERROR_MAX,
			       "cannot make it: %s; RLOCK_RUNTIME_DIR can name another one",
			       strerror(err));
		errno = err;
		return -1;
	}
	fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_trusted(fd, why))
		return fd;
	if (fd >= 0) {
		(void)close(fd);
		errno = EPERM;
	} else if (errno == ENOTDIR || errno == ELOOP) {
		(void)snprintf(why, RLOCK_ERROR_MAX, "not a directory, or a symbolic link");
	} else if (errno != ENOENT || is_made) {
		(void)snprintf(why, RLOCK_ERROR_MAX, "%s", strerror(errno));
	}
	return -1;
}

static int open_first(bool is_made, char *why)
{
	const char *path = runtime_dir_path();

	why[0] = '\0';
	if (path[0] == '/')
		return open_checked(AT_FDCWD, path, is_made, why);
	(void)snprintf(why, RLOCK_ERROR_MAX, "RLOCK_RUNTIME_DIR is not an absolute path");
	errno = EINVAL;
	return -1;
}

/*
 * Open the parent of the second directory. It may not exist: only root can make it, and it is removed when the user's
 * last login ends. Returns a descriptor, or -1 with errno.
 */
static int open_second_parent(void)
{
	char path[64], why[RLOCK_ERROR_MAX];

	errno = ENOENT;
	if (chosen_path() != NULL || geteuid() == 0)
		return -1;
	(void)snprintf(path, sizeof(path), SECOND_PARENT, (unsigned long)geteuid());
	return open_checked(AT_FDCWD, path, false, why);
}

static int open_second(bool is_made, char *why)
{
	int parent_fd = open_second_parent(), fd, err = errno;

	(void)snprintf(why, RLOCK_ERROR_MAX, "%s",
		       parent_fd < 0 && is_transient_errno(err) ? strerror(err) : "");
	if (parent_fd < 0)
		return -1;
	fd = open_checked(parent_fd, SECOND_NAME, is_made, why);
	err = errno;
	(void)close(parent_fd);
	errno = err;
	return fd;
}

/* ---- the functions of the header ---- */

static void report_first(const char *why)
{
	const char *path = runtime_dir_path();
	uid_t uid;

	if (is_strangers(&uid))
		message_error_of_lock(
			"runtime directory '%s': belongs to user %lu; ask an administrator to run: "
			"sudo sh -c 'rm -rf %s && mkdir -m 700 %s && chown %lu %s'",
			path, (unsigned long)uid, path, path, (unsigned long)geteuid(), path);
	else
		message_error_of_lock("runtime directory '%s': %s", path, why);
}

int runtime_dir_open(bool is_for_holds)
{
	char why[RLOCK_ERROR_MAX], second_why[RLOCK_ERROR_MAX];
	int fd = open_first(true, why);
	uid_t uid;

	if (fd < 0 && is_for_holds && is_strangers(&uid))
		fd = open_second(true, second_why);
	if (fd < 0)
		report_first(why);
	return fd;
}

int runtime_dir_open_quietly(void)
{
	char why[RLOCK_ERROR_MAX];

	return open_first(false, why);
}

/*
 * Whether the search ends because a directory could not be opened. If the directory is needed, each failure ends the
 * search, unless the directory does not exist. Otherwise only a transient errno does.
 */
static bool is_failure(bool is_needed, const char *why)
{
	return is_needed ? why[0] != '\0' : is_transient_errno(errno);
}

int runtime_dir_open_all(bool is_needed, int fds_out[RUNTIME_DIR_COUNT])
{
	char why[RLOCK_ERROR_MAX];
	int parent_fd = -1;
	uid_t uid;

	fds_out[0] = open_first(false, why);
	if (fds_out[0] < 0 && is_failure(is_needed, why)) {
		parent_fd = is_strangers(&uid) ? open_second_parent() : -1;
		if (parent_fd < 0) {
			report_first(why);
			return EXIT_SYSTEM;
		}
		(void)close(parent_fd);
	}
	fds_out[1] = open_second(false, why);
	if (fds_out[1] >= 0 || !is_failure(is_needed, why))
		return 0;
	message_error_of_lock("runtime directory '" SECOND_PARENT "/" SECOND_NAME "': %s",
			      (unsigned long)geteuid(), why);
	if (fds_out[0] >= 0)
		(void)close(fds_out[0]);
	return EXIT_SYSTEM;
}
