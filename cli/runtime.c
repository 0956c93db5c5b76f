/*
 * The runtime directory: where it is, and that it is nobody else's. All checks are made on the
 * opened directory, so that what was checked is what is used. What is kept in it is its users'
 * business.
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

#include "exits.h"
#include "runtime.h"
#include "say.h"

const char *runtime_path(void)
{
	/* One byte more than a path may have: the kernel refuses what is too long. */
	static char path[PATH_MAX + 1];
	const char *wanted = getenv("RLOCK_RUNTIME_DIR");
	unsigned long uid = geteuid();

	if (wanted != NULL && *wanted != '\0') {
		/* With a slash at the end open(2) follows a symbolic link, O_NOFOLLOW or not. */
		size_t len = strnlen(wanted, PATH_MAX);

		while (len > 1 && wanted[len - 1] == '/')
			len--;
		(void)snprintf(path, sizeof(path), "%.*s", (int)len, wanted);
	} else if (uid == 0) {
		(void)snprintf(path, sizeof(path), "/run/rlock");
	} else {
		(void)snprintf(path, sizeof(path), "/tmp/rlock-%lu", uid);
	}
	return path;
}

static int make(const char *path)
{
	mode_t mask = umask(0077); /* the user's may take away our own bits */
	int result = mkdir(path, 0700);
	int err = errno;

	(void)umask(mask);
	errno = err;
	return result;
}

/* NULL, or why the opened directory can't be trusted, in out. */
static const char *distrust(int fd, char out[RLOCK_ERROR_MAX])
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		(void)snprintf(out, RLOCK_ERROR_MAX, "cannot look at it: %s", strerror(errno));
		return out;
	}
	if (st.st_uid != geteuid()) {
		(void)snprintf(out, RLOCK_ERROR_MAX,
			       "belongs to user %lu: remove it, or set RLOCK_RUNTIME_DIR to "
			       "another one",
			       (unsigned long)st.st_uid);
		return out;
	}
	/* Not mended here: what stands in it already may have been put there by others. */
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		(void)snprintf(out, RLOCK_ERROR_MAX,
			       "others may enter it, its mode is %04o: look at what is in it, "
			       "then chmod 700",
			       (unsigned int)(st.st_mode & 07777));
		return out;
	}
	return NULL;
}

/* A descriptor, or -1 with errno, and why in *why_out; NULL there when there just is no such directory. */
static int open_checked(const char *path, char buffer[RLOCK_ERROR_MAX], const char **why_out)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*why_out = NULL;
	if (fd >= 0) {
		*why_out = distrust(fd, buffer);
		if (*why_out == NULL)
			return fd;
		(void)close(fd);
		errno = EPERM;
	} else if (errno == ENOTDIR || errno == ELOOP) {
		*why_out = "not a directory, or a symbolic link";
	} else if (errno != ENOENT) {
		*why_out = strerror(errno);
	}
	return -1;
}

static int say(const char *why)
{
	say_error("runtime directory '%s': %s", runtime_path(), why);
	return -1;
}

int runtime_open(void)
{
	const char *path = runtime_path(), *why;
	char buffer[RLOCK_ERROR_MAX];
	int fd;

	if (path[0] != '/')
		return say("RLOCK_RUNTIME_DIR is not an absolute path");
	if (make(path) != 0 && errno != EEXIST) {
		(void)snprintf(buffer, sizeof(buffer), "cannot make it: %s", strerror(errno));
		return say(buffer);
	}
	fd = open_checked(path, buffer, &why);
	if (fd < 0)
		return say(why != NULL ? why : "removed as soon as it was made");
	return fd;
}

static int look(const char **why_out, char buffer[RLOCK_ERROR_MAX])
{
	const char *path = runtime_path();

	*why_out = "RLOCK_RUNTIME_DIR is not an absolute path";
	errno = EINVAL;
	return path[0] == '/' ? open_checked(path, buffer, why_out) : -1;
}

int runtime_open_existing(int *fd_out)
{
	char buffer[RLOCK_ERROR_MAX];
	const char *why;

	*fd_out = look(&why, buffer);
	if (*fd_out >= 0 || why == NULL)
		return 0;
	(void)say(why);
	return EXIT_SYSTEM;
}

int runtime_open_quietly(void)
{
	char buffer[RLOCK_ERROR_MAX];
	const char *why;

	return look(&why, buffer);
}
