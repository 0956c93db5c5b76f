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

/* Whether the opened directory may be trusted; says why not. */
static bool is_ours(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		say_error("runtime directory '%s': cannot look at it: %s", path, strerror(errno));
		return false;
	}
	if (st.st_uid != geteuid()) {
		say_error("runtime directory '%s': belongs to user %lu: remove it, or set "
			  "RLOCK_RUNTIME_DIR to another one",
			  path, (unsigned long)st.st_uid);
		return false;
	}
	/* Not mended here: what stands in it already may have been put there by others. */
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		say_error("runtime directory '%s': others may enter it, its mode is %04o: look at "
			  "what is "
			  "in it, then chmod 700",
			  path, (unsigned int)(st.st_mode & 07777));
		return false;
	}
	return true;
}

static int open_checked(bool may_make)
{
	const char *path = runtime_path();
	int fd;

	if (path[0] != '/') {
		say_error("runtime directory '%s': RLOCK_RUNTIME_DIR is not an absolute path",
			  path);
		return -1;
	}
	if (may_make && make(path) != 0 && errno != EEXIST) {
		say_error("runtime directory '%s': cannot make it: %s", path, strerror(errno));
		return -1;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ENOTDIR || errno == ELOOP)
			say_error("runtime directory '%s': not a directory, or a symbolic link",
				  path);
		else if (errno != ENOENT || may_make)
			say_error("runtime directory '%s': cannot open it: %s", path,
				  strerror(errno));
		return -1;
	}
	if (!is_ours(fd, path)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

int runtime_open(void)
{
	return open_checked(true);
}

int runtime_open_existing(void)
{
	return open_checked(false);
}
