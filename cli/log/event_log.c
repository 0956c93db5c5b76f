/*
 * Write the events of a lock as lines: to a file, to syslog, or by message.c to standard error. Values can contain any
 * bytes, and are escaped. No descriptor stays open between two lines, so that a command cannot inherit one, and a
 * rotated file is opened anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/message.h"
#include "base/minmax.h"
#include "base/units.h"
#include "lib/rlock.h"
#include "log/event_log.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"

#define SYSLOG_SOCKET "/dev/log"
#define SYSLOG_HEAD_MAX 64
/*
 * Longest wait for room in the queue of the log daemon. The queue may hold only ten lines, and many jobs can start in
 * the same minute. After a wait in vain, later lines do not wait.
 */
#define SYSLOG_PATIENCE_MS 50

/*
 * Longest wait for the process that writes a line to the file, so that lines keep their order and an error is reported. The
 * deadline of messages limits the wait as well.
 */
#define FILE_PATIENCE_MS 2000

/* Longest time that another process needs to write one line. A line that is not complete then was cut off. */
#define WRITE_MS 20

enum sink { SINK_NONE, SINK_FILE, SINK_SYSLOG, SINK_STDERR };

static enum sink sink;
/* absolute path of the file, since the renewer changes its directory */
static char *path;
/* the option or line that named the log, and its value, for warnings */
static char *subject;
/* the file could not be written, so the lines go to syslog */
static bool has_left_file;
/* a warning of a lost line was printed, so no other is printed */
static bool has_warned;
/* a line could not be sent to syslog, so later lines do not wait for room */
static bool has_failed;
/* writes the lines of this process; NULL: this process writes them itself */
static event_log_writer other_writer;

/* ---- a file ---- */

/*
 * Open the file. Follow a symbolic link, because links lead to logs on other disks; the kernel's protected_symlinks
 * guards links in /tmp. With O_NONBLOCK do not wait for a FIFO without a reader, or for a stopped terminal.
 */
static int open_file(void)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
}

/*
 * Whether the file does not end with a newline: a full disk has cut off the last line. While another process writes a line, the
 * file may end in that line as well, so read again for WRITE_MS. False also if the file has no end, as a FIFO, or is not readable.
 */
static bool ends_in_cut_line(int fd)
{
	int64_t deadline_ms = rlock_now_ms() + WRITE_MS;
	int read_fd = -1;
	bool is_cut;
	struct stat st;
	char last;

	/* Open the file again to read it. Do not open it for both from the start: many logs may only be written. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		read_fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	do
		is_cut = read_fd >= 0 && fstat(read_fd, &st) == 0 && st.st_size > 0 &&
			 pread(read_fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
	while (is_cut && rlock_now_ms() < deadline_ms &&
	       rlock_poll(NULL, 0, rlock_now_ms() + 1) == 0);
	return is_cut;
}

/*
 * In the child: write the line with one call, so that lines of many processes do not mix. If the file ends in a line that was
 * cut off, begin with a newline, so that a reader can tell the two apart. Returns 0, or the errno.
 */
static int append(const char *line, size_t len)
{
	char newline = '\n';
	struct iovec parts[] = { { &newline, 1 }, { (char *)line, len } };
	int fd = open_file();
	bool has_newline = fd >= 0 && ends_in_cut_line(fd);
	ssize_t written;

	if (fd < 0)
		return errno;
	/* Ignore SIGXFSZ, because the kernel would end us by it if the file may not grow (ulimit -f). */
	(void)signal(SIGXFSZ, SIG_IGN);
	written = has_newline ? writev(fd, parts, 2) : write(fd, line, len);
	if (written == (ssize_t)(has_newline ? len + 1 : len))
		return 0;
	/* A part was written. Write a newline after it: that succeeds, or its errno is the reason. */
	if (written > 0)
		written = write(fd, &newline, 1);
	return written < 0 ? errno : ENOSPC;
}

/*
 * Wait for the child that writes a line. A child that hangs counts as successful: the file gets the line when its file system
 * answers. Returns the child's exit code.
 */
static int await_writer(pid_t pid)
{
	siginfo_t info = { 0 };

	(void)os_process_await(pid, min(rlock_now_ms() + FILE_PATIENCE_MS, message_deadline()));
	if (waitid(P_PID, (id_t)pid, &info, (int)(WEXITED | WNOHANG | __WALL)) != 0)
		return 0;
	return info.si_pid != 0 && info.si_code == CLD_EXITED ? info.si_status : 0;
}

/*
 * Write the line in a child of its own. This process holds a lock or watches the renewer, and a file system that does not
 * answer must not hang it. False with errno: not the whole line was written.
 */
static bool write_file(const char *line, size_t len)
{
	pid_t pid = os_fork_helper(HELPER_NAME);

	if (pid == 0) {
		/* Readers of the caller's pipes must see their end, even if the child hangs. */
		os_close_from(0);
		_exit(append(line, len));
	}
	errno = pid > 0 ? await_writer(pid) : errno;
	return errno == 0;
}

/* ---- the system's log ---- */

/* Connect to the log daemon. -1 with errno: no daemon listens. */
static int connect_syslog(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SYSLOG_SOCKET };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	error = errno;
	(void)close(fd);
	errno = error;
	return -1;
}

/* Returns why a line for syslog is lost. error: the errno of the attempt */
static const char *why_lost(int error)
{
	if (error == ENOENT || error == ECONNREFUSED)
		return "no log daemon listens at " SYSLOG_SOCKET;
	return error == EAGAIN ? "the log daemon does not read " SYSLOG_SOCKET : strerror(error);
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

/*
 * Send the line to the log daemon. Do not use syslog(3), which would wait for a daemon that does not read, and so delay
 * the release. The format is that of RFC 3164, which all daemons know. False with errno.
 */
static bool write_syslog(const char *line, size_t len, int priority)
{
	char message[SYSLOG_HEAD_MAX + LOG_LINE_MAX], at[32];
	time_t now = time(NULL);
	struct tm local;
	size_t head_len;
	int fd = connect_syslog(), error;
	bool is_sent;

	if (fd < 0)
		return false;
	if (localtime_r(&now, &local) == NULL ||
	    strftime(at, sizeof(at), "%b %e %H:%M:%S", &local) == 0)
		memcpy(at, "-", 2);
	head_len = (size_t)snprintf(message, SYSLOG_HEAD_MAX,
				    "<%d>%s rlock[%d]: ", LOG_USER | priority, at, (int)getpid());
	/* Leave out the newline, since the daemon adds one. */
	memcpy(message + head_len, line, len - 1);
	is_sent = send_when_there_is_room(fd, message, head_len + len - 1);
	error = errno;
	(void)close(fd);
	errno = error;
	return is_sent;
}

/* ---- where a line goes ---- */

/* Print one warning, and write all further lines to syslog, because a log must not keep a job from running. */
static void leave_file(const char *what)
{
	int error = errno, fd = connect_syslog();

	has_left_file = true;
	sink = SINK_SYSLOG;
	if (fd >= 0) {
		message_warning("%s: %s: %s; the log goes to syslog", subject, what,
				strerror(error));
		(void)close(fd);
		return;
	}
	has_warned = true;
	message_warning("%s: %s: %s; its lines are lost: %s", subject, what, strerror(error),
			why_lost(errno));
}

void event_log_write(const char *line, size_t len, int priority)
{
	if (other_writer != NULL) {
		other_writer(line, len, priority);
		return;
	}
	if (sink == SINK_FILE && !write_file(line, len))
		leave_file("cannot be written to");
	if (sink == SINK_STDERR)
		message_line(line, len);
	if (sink != SINK_SYSLOG || write_syslog(line, len, priority))
		return;
	has_failed = true;
	if (has_warned)
		return;
	has_warned = true;
	message_warning("%s: its lines are lost: %s%s", subject, why_lost(errno),
			has_left_file ? "" : "; give stderr or a file");
}

const char *event_log_check(const char *target)
{
	int fd;

	if (strcmp(target, "syslog") != 0)
		return NULL;
	fd = connect_syslog();
	if (fd < 0)
		return why_lost(errno);
	(void)close(fd);
	return NULL;
}

/* ---- a line ---- */

/*
 * Whether lines are JSON objects; false: key=value, quoted where necessary. The functions below ignore errors of the
 * stream, because fclose reports them.
 */
static bool has_json;

/* A value without quotes has only these bytes, and is not empty. */
#define BARE_BYTES                                                                                 \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"!#$%&'()*+,-./:;<>?@[]^_`{|}~"

/*
 * Write a quoted value. Put a backslash before quotes and backslashes, so that a reader can tell them from the \xNN
 * that rlock_escape writes for other bytes.
 */
static void put_quoted(FILE *out, const char *bytes, size_t len)
{
	size_t at = 0;

	(void)putc('"', out);
	while (at < len) {
		uint32_t character;
		size_t read = rlock_character_read(bytes + at, len - at, &character);
		char shown[32];

		if (read == 0)
			read = 1;
		if (bytes[at] == '"' || bytes[at] == '\\')
			(void)putc('\\', out);
		(void)fputs(rlock_escape(bytes + at, read, shown, sizeof(shown)), out);
		at += read;
	}
	(void)putc('"', out);
}

static void put_key(struct json *line, const char *key)
{
	(void)fprintf(line->out, "%s%s=", line->needs_comma ? " " : "", key);
	line->needs_comma = true;
}

/* Write a field whose value can have any bytes. */
static void put_bytes(struct json *line, const char *key, const char *bytes, size_t len)
{
	size_t bare = 0;

	if (has_json) {
		json_bytes(line, key, bytes, len);
		return;
	}
	put_key(line, key);
	while (bare < len && bytes[bare] != '\0' && strchr(BARE_BYTES, bytes[bare]) != NULL)
		bare++;
	if (len > 0 && bare == len)
		(void)fwrite(bytes, 1, len, line->out);
	else
		put_quoted(line->out, bytes, len);
}

static void put_text(struct json *line, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		put_bytes(line, key, text, strlen(text));
}

static void put_number(struct json *line, const char *key, int64_t number)
{
	if (has_json) {
		json_number(line, key, number);
		return;
	}
	put_key(line, key);
	(void)fprintf(line->out, "%" PRId64, number);
}

/* ---- an event ---- */

static const struct {
	const char *name;
	int priority;
	/* the lock was held before the event, so the line contains for how long */
	bool is_of_hold;
} kinds[] = {
	[EVENT_WAITED] = { "waited", LOG_INFO, false },
	[EVENT_ACQUIRED] = { "acquired", LOG_INFO, false },
	[EVENT_BUSY] = { "busy", LOG_INFO, false },
	[EVENT_TIMED_OUT] = { "timed_out", LOG_INFO, false },
	[EVENT_CANCELLED] = { "cancelled", LOG_INFO, false },
	[EVENT_FAILED] = { "failed", LOG_WARNING, false },
	[EVENT_RELEASED] = { "released", LOG_INFO, true },
	[EVENT_EXPIRES] = { "expires", LOG_WARNING, true },
	[EVENT_LOST] = { "lost", LOG_WARNING, true },
	[EVENT_BROKEN] = { "broken", LOG_WARNING, true },
	[EVENT_STOP_REQUESTED] = { "asked", LOG_WARNING, false },
};

/*
 * Which fields to omit from a line that is too long: the named field, and all fields before it in this list. Without all of
 * them every line fits: in JSON a name has 3,755 bytes at most, and the other fields have less than 300.
 */
enum left_out {
	LEFT_OUT_NOTHING,
	LEFT_OUT_SERVER,
	LEFT_OUT_NOTE,
	LEFT_OUT_REASON,
	LEFT_OUT_USER,
	LEFT_OUT_OWNER,
	LEFT_OUT_HOST,
	LEFT_OUT_COUNT,
};

static struct event_hold current;

int event_log_setup(const char *where, const char *target, bool is_json)
{
	char shown[256];
	int fd;

	free(subject);
	free(path);
	path = NULL;
	if (asprintf(&subject, "%s '%s'", where,
		     rlock_escape(target, strlen(target), shown, sizeof(shown))) < 0) {
		subject = NULL;
		return message_out_of_memory();
	}
	has_json = is_json;
	if (strcmp(target, "syslog") == 0) {
		sink = SINK_SYSLOG;
		return 0;
	}
	if (strcmp(target, "stderr") == 0) {
		sink = SINK_STDERR;
		return 0;
	}
	sink = SINK_FILE;
	path = file_path_absolute(target);
	fd = path != NULL ? open_file() : -1;
	if (fd >= 0)
		(void)close(fd);
	else
		leave_file("cannot be opened");
	return 0;
}

void event_log_set_writer(event_log_writer writer)
{
	other_writer = writer;
}

void event_log_set_hold(const struct event_hold *hold)
{
	current = *hold;
}

void event_log_set_acquired(const struct rlock_hold *hold, int64_t acquired_ms)
{
	current.hold = hold;
	current.acquired_ms = acquired_ms;
}

enum event_kind event_kind_of_release(enum rlock_status status)
{
	if (status == RLOCK_OK || status == RLOCK_NOT_NOTIFIED)
		return EVENT_RELEASED;
	return status == RLOCK_NOT_HELD ? EVENT_LOST : EVENT_EXPIRES;
}

static void put_course(struct json *line, const struct event *event)
{
	if (event->kind <= EVENT_FAILED)
		put_number(line, "waited_ms", event->waited_ms);
	if (kinds[event->kind].is_of_hold && current.acquired_ms != 0)
		put_number(line, "held_ms", rlock_now_ms() - current.acquired_ms);
	if ((event->kind == EVENT_BUSY || event->kind == EVENT_TIMED_OUT) &&
	    event->holder_held_ms >= 0)
		put_number(line, "holder_held_ms", event->holder_held_ms);
	if (event->kept_ms > 0)
		put_number(line, "kept_ms", event->kept_ms);
	if (event->has_ended && event->signal != 0)
		put_number(line, "signal", event->signal);
	else if (event->has_ended)
		put_number(line, "status", event->status);
}

static void put_fields(struct json *line, const struct event *event, size_t index,
		       enum left_out left_out)
{
	const struct rlock_name *name = &current.names[index];
	char at[WALL_CLOCK_TEXT_MAX], user[USER_NAME_MAX];
	struct utsname host;

	(void)wall_clock_print(true, at);
	put_text(line, "time", at);
	put_text(line, "event", kinds[event->kind].name);
	put_bytes(line, "name", name->text, name->len);
	if (current.kind != RLOCK_ANY)
		put_text(line, "kind", rlock_kind_name(current.kind));
	if (left_out < LEFT_OUT_OWNER)
		put_text(line, "owner",
			 current.hold != NULL ? rlock_hold_owner(current.hold, index)
					      : current.owner);
	if (left_out < LEFT_OUT_HOST && uname(&host) == 0)
		put_text(line, "host", host.nodename);
	if (current.pid != 0)
		put_number(line, "pid", current.pid);
	if (left_out < LEFT_OUT_USER)
		put_text(line, "user", user_name(user));
	put_course(line, event);
	if (left_out < LEFT_OUT_REASON)
		put_text(line, "reason", event->reason);
	if (left_out < LEFT_OUT_NOTE)
		put_text(line, "note", current.note);
	if (left_out < LEFT_OUT_SERVER)
		put_text(line, "server", current.server);
}

/* Returns the line, malloc'ed. NULL: out of memory. */
static char *make_line(const struct event *event, size_t index, enum left_out left_out,
		       size_t *len_out)
{
	struct json line = { NULL, false };
	char *text = NULL;

	line.out = open_memstream(&text, len_out);
	if (line.out == NULL)
		return NULL;
	if (has_json)
		json_open(&line, NULL, '{');
	put_fields(&line, event, index, left_out);
	if (has_json)
		json_close(&line, '}');
	(void)putc('\n', line.out);
	if (fclose(line.out) == 0)
		return text;
	free(text);
	return NULL;
}

/*
 * Write the line of the index-th name without the fields left_out. False: the line is still too long, and was not
 * written.
 */
static bool write_line(const struct event *event, size_t index, enum left_out left_out)
{
	size_t len = 0;
	char *line = make_line(event, index, left_out, &len);
	bool has_room = len <= LOG_LINE_MAX;

	if (line == NULL)
		message_warning("--log: out of memory: a line is missing");
	else if (has_room)
		event_log_write(line, len, kinds[event->kind].priority);
	free(line);
	return has_room;
}

void event_log(const struct event *event)
{
	if (sink == SINK_NONE)
		return;
	for (size_t i = 0; i < current.name_count; i++)
		for (enum left_out left_out = LEFT_OUT_NOTHING;
		     left_out < LEFT_OUT_COUNT && !write_line(event, i, left_out); left_out++)
			;
}
