/*
 * Writes to a file, to the system's log, or by message.c to standard error. Nothing stays open between two lines: so no
 * command inherits a descriptor, the renewer needs none, and a file that was rotated is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "lib/rlock.h"
#include "log/log_sink.h"
#include "sys/file_read.h"

#define SYSLOG_SOCKET "/dev/log"
#define SYSLOG_HEAD_MAX 64
/*
 * A log daemon's queue may have room for ten lines only, and a fleet's jobs begin at the same minute. A daemon that is
 * stuck is waited for once.
 */
#define SYSLOG_PATIENCE_MS 50

enum sink { SINK_NONE, SINK_FILE, SINK_SYSLOG, SINK_STDERR };

static enum sink sink;
static char *path;       /* of the file, absolute: the renewer's directory is another */
static char *path_shown; /* as it was given */
static bool has_failed;
static log_sink_writer other_writer; /* NULL: this process writes */

/* ---- a file ---- */

/*
 * A symbolic link is followed: logs are moved to other disks by links, and the kernel's protected_symlinks guards those
 * in /tmp. With O_NONBLOCK a FIFO without a reader, or a terminal that was stopped, is an error at once.
 */
static int open_file(void)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
}

/* The obstacle may go away, and is no mistake of the user's: a FIFO without a reader, a full disk. */
static bool is_obstacle_temporary(int error)
{
	struct stat stat_of;

	if (error == ENXIO)
		return stat(path, &stat_of) == 0 && S_ISFIFO(stat_of.st_mode);
	return error == ENOSPC || error == EDQUOT;
}

static char *absolute(const char *name)
{
	char *directory, *joined = NULL;

	if (name[0] == '/')
		return strdup(name);
	directory = getcwd(NULL, 0);
	if (directory != NULL && asprintf(&joined, "%s/%s", directory, name) < 0)
		joined = NULL;
	free(directory);
	return joined;
}

static int file_setup(const char *name)
{
	char shown[256];
	int fd = -1, error;

	path_shown = strdup(rlock_escape(name, strlen(name), shown, sizeof(shown)));
	path = absolute(name);
	if (path != NULL)
		fd = open_file();
	error = errno;
	if (path_shown == NULL)
		return message_out_of_memory();
	if (fd >= 0)
		(void)close(fd);
	else if (path == NULL || !is_obstacle_temporary(error)) {
		message_error("--log '%s': cannot be opened: %s", path_shown, strerror(error));
		return is_transient_errno(error) ? EXIT_SYSTEM : EXIT_CONFIG;
	}
	sink = SINK_FILE;
	return 0;
}

/* One write, for the lines of many processes go to one file. A file that may not grow (ulimit -f) would end us. */
static bool write_file(const char *line, size_t len)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction found;
	int fd = open_file(), error;
	ssize_t written;

	if (fd < 0)
		return false;
	(void)sigaction(SIGXFSZ, &ignore, &found);
	written = write(fd, line, len);
	error = written < 0 ? errno : ENOSPC;
	(void)sigaction(SIGXFSZ, &found, NULL);
	(void)close(fd);
	errno = error;
	return written == (ssize_t)len;
}

/* ---- the system's log ---- */

/*
 * syslog(3) waits for a daemon that does not read, and while it waits no release is sent. So the line is
 * sent from here, in the form that all daemons know (RFC 3164).
 */
static size_t print_head(int priority, char out[SYSLOG_HEAD_MAX])
{
	time_t now = time(NULL);
	struct tm local;
	char at[32];
	int len;

	if (localtime_r(&now, &local) == NULL ||
	    strftime(at, sizeof(at), "%b %e %H:%M:%S", &local) == 0)
		memcpy(at, "-", 2);
	len = snprintf(out, SYSLOG_HEAD_MAX, "<%d>%s rlock[%d]: ", LOG_USER | priority, at,
		       (int)getpid());
	return len < 0 ? 0 : (size_t)len;
}

static bool send_when_there_is_room(int fd, const char *message, size_t len)
{
	struct pollfd room = { fd, POLLOUT, 0 };
	int64_t deadline_ms = rlock_now_ms() + (has_failed ? 0 : SYSLOG_PATIENCE_MS);

	do {
		if (send(fd, message, len, MSG_NOSIGNAL) == (ssize_t)len)
			return true;
	} while (errno == EAGAIN && rlock_poll(&room, 1, deadline_ms) > 0 &&
		 rlock_now_ms() < deadline_ms);
	return false;
}

static bool write_syslog(const char *line, size_t len, int priority)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SYSLOG_SOCKET };
	char message[SYSLOG_HEAD_MAX + LOG_LINE_MAX];
	size_t head_len = print_head(priority, message);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
	bool is_sent;

	if (fd < 0)
		return false;
	/* A daemon adds the end of the line itself. */
	memcpy(message + head_len, line, len - 1);
	is_sent = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
		  send_when_there_is_room(fd, message, head_len + len - 1);
	error = errno;
	(void)close(fd);
	errno = error;
	return is_sent;
}

/* ---- all of them ---- */

int log_sink_setup(const char *target)
{
	if (strcmp(target, "syslog") == 0)
		sink = SINK_SYSLOG;
	else if (strcmp(target, "stderr") == 0)
		sink = SINK_STDERR;
	else
		return file_setup(target);
	return 0;
}

bool log_sink_is_open(void)
{
	return sink != SINK_NONE;
}

void log_sink_set_writer(log_sink_writer writer)
{
	other_writer = writer;
}

static bool write_line(const char *line, size_t len, int priority)
{
	switch (sink) {
	case SINK_FILE:
		return write_file(line, len);
	case SINK_SYSLOG:
		return write_syslog(line, len, priority);
	case SINK_STDERR:
		message_line(line, len);
		break;
	case SINK_NONE:
		break;
	}
	return true;
}

void log_sink_write(const char *line, size_t len, int priority)
{
	if (other_writer != NULL) {
		other_writer(line, len, priority);
		return;
	}
	if (write_line(line, len, priority) || has_failed)
		return;
	has_failed = true;
	message_warning("--log '%s': cannot be written to: %s",
			sink == SINK_FILE ? path_shown : SYSLOG_SOCKET, strerror(errno));
}
