/*
 * Finds the private server of local: on its socket, and has it started when no server listens there. Of many rlock
 * processes one has it started, under a file lock. local_server_start.c does that, and runtime_dir.c checks that the
 * directory is this user's alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "local.h"
#include "local_server.h"
#include "local_server_start.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"

#define LOCK_FILE "local.lock"

/* The pause between two looks. A server needs some 10 ms to start, and many waiting processes should not slow it. */
#define PAUSE_MIN_MS 2
#define PAUSE_MAX_MS 50

struct search {
	int dir_fd;
	char socket_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	pid_t server; /* the process that we wait for; 0: unknown */
	int64_t deadline_ms;
	int64_t pause_ms;
	int cancel_fd;
	bool is_cancelled;
	int exit_code;
};

enum search_state {
	UP,   /* a server listens */
	DOWN, /* none does: go on */
	OVER, /* the search ends: is_cancelled, or exit_code after a message */
};

static enum search_state fail(struct search *search, int exit_code)
{
	search->exit_code = exit_code;
	return OVER;
}

/* ---- look and wait ---- */

static enum search_state look(struct search *search)
{
	pid_t pid = 0;
	int err = local_server_connect(search->dir_fd, &pid);

	if (err == 0)
		return UP;
	if (err == ENOENT || err == ECONNREFUSED)
		return DOWN;
	message_error("local: cannot connect to '%s': %s", search->socket_path, strerror(err));
	return fail(search, EXIT_SYSTEM);
}

static enum search_state fail_late(struct search *search)
{
	if (local_server_runs(search->dir_fd, search->server))
		message_error(
			"local: the private server, process %ld, does not answer on '%s': if this "
			"stays so, end it, and with it its locks: kill %ld",
			(long)search->server, search->socket_path, (long)search->server);
	else
		message_error(
			"local: the private server on '%s' did not come up in time: try again, or give a longer --connect-timeout",
			search->socket_path);
	return fail(search, EXIT_UNREACHABLE);
}

/* Waits, each time a little longer. DOWN, or OVER. */
static enum search_state pause_once(struct search *search)
{
	struct pollfd cancel = { .fd = search->cancel_fd, .events = POLLIN };
	int64_t now_ms = rlock_now_ms();
	int64_t until_ms = now_ms + search->pause_ms + getpid() % PAUSE_MIN_MS;

	if (now_ms >= search->deadline_ms)
		return fail_late(search);
	if (until_ms > search->deadline_ms)
		until_ms = search->deadline_ms;
	search->pause_ms *= 2;
	if (search->pause_ms > PAUSE_MAX_MS)
		search->pause_ms = PAUSE_MAX_MS;
	if (rlock_poll(&cancel, 1, until_ms) < 0) {
		message_error("local: cannot wait: %s", strerror(errno));
		return fail(search, EXIT_SYSTEM);
	}
	if (cancel.revents != 0) {
		search->is_cancelled = true;
		return OVER;
	}
	return DOWN;
}

/* Waits until search->server listens; DOWN when it has ended. */
static enum search_state await(struct search *search)
{
	enum search_state search_state;

	search->pause_ms = PAUSE_MIN_MS;
	do {
		search_state = look(search);
		if (search_state == DOWN && !local_server_runs(search->dir_fd, search->server))
			return DOWN;
		if (search_state == DOWN)
			search_state = pause_once(search);
	} while (search_state == DOWN);
	return search_state;
}

/*
 * A server that runs but does not listen starts still (the rlock that started it was killed), or is about to end, and
 * would then remove the socket of the next one. Or its socket was removed: then its locks are still held, and with a
 * second server there would be two holders.
 */
static enum search_state await_previous(struct search *search)
{
	search->server = local_server_read_pid(search->dir_fd);
	return await(search);
}

/* One try. DOWN with the locked file in *fd_out, or with -1 when another process has locked it. */
static enum search_state try_lock(struct search *search, int *fd_out)
{
	int fd = runtime_dir_create(search->dir_fd, LOCK_FILE, O_RDWR);
	bool has_lock = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	/* Cleaners of /tmp remove old files. */
	if (has_lock && file_is_named(fd, search->dir_fd, LOCK_FILE)) {
		*fd_out = fd;
		return DOWN;
	}
	if (!has_lock && (fd < 0 || errno != EWOULDBLOCK)) {
		message_error("local: cannot lock '%s/" LOCK_FILE "': %s", runtime_dir_path(),
			      strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		return fail(search, EXIT_SYSTEM);
	}
	(void)close(fd);
	return DOWN;
}

/* DOWN with the locked file in *fd_out, for the caller to close; UP when a server listens meanwhile. */
static enum search_state lock(struct search *search, int *fd_out)
{
	enum search_state search_state = try_lock(search, fd_out);

	while (search_state == DOWN && *fd_out < 0) {
		search_state = pause_once(search);
		if (search_state == DOWN)
			search_state = look(search);
		if (search_state == DOWN)
			search_state = try_lock(search, fd_out);
	}
	/* The process that had the lock before may have started a server. */
	return search_state == DOWN ? look(search) : search_state;
}

/* ---- start ---- */

static enum search_state start(struct search *search)
{
	char program[PATH_MAX];
	enum search_state search_state;
	int err;

	if (!local_server_start_find_program(program)) {
		message_error(
			"local: neither redis-server nor valkey-server is installed: install one, "
			"or name a server with --url");
		return fail(search, EXIT_CONFIG);
	}
	if (unlinkat(search->dir_fd, LOCAL_SERVER_SOCKET, 0) != 0 && errno != ENOENT) {
		message_error("local: cannot remove the stale '%s': %s", search->socket_path,
			      strerror(errno));
		return fail(search, EXIT_SYSTEM);
	}
	message_debug("local: starting '%s' on '%s'", program, search->socket_path);
	err = local_server_start(search->dir_fd, program, search->socket_path, search->deadline_ms,
				 &search->server);
	if (err == ETIMEDOUT)
		return fail_late(search);
	if (err != 0) {
		message_error("local: cannot start '%s': %s", program, strerror(err));
		return fail(search, EXIT_SYSTEM);
	}
	search_state = await(search);
	if (search_state != DOWN)
		return search_state;
	message_error("local: '%s' ended at once: to see why, run: %s --port 0 --unixsocket %s",
		      program, program, search->socket_path);
	return fail(search, EXIT_SYSTEM);
}

/* ---- what the header names ---- */

static enum search_state find_or_start(struct search *search)
{
	enum search_state search_state = look(search);
	int lock_fd = -1;

	if (search_state != DOWN)
		return search_state;
	search_state = lock(search, &lock_fd);
	if (search_state != DOWN)
		goto out;
	search_state = await_previous(search);
	if (search_state == DOWN)
		search_state = start(search);
out:
	if (lock_fd >= 0)
		(void)close(lock_fd);
	return search_state;
}

int local_resolve(struct rlock_url *url, int64_t deadline_ms, int cancel_fd, _Bool *is_cancelled)
{
	struct search search = {
		.dir_fd = runtime_dir_open(),
		.deadline_ms = deadline_ms,
		.pause_ms = PAUSE_MIN_MS,
		.cancel_fd = cancel_fd,
	};
	int len;

	*is_cancelled = false;
	if (search.dir_fd < 0)
		return EXIT_SYSTEM;
	len = snprintf(search.socket_path, sizeof(search.socket_path), "%s/" LOCAL_SERVER_SOCKET,
		       runtime_dir_path());
	if (len < 0 || (size_t)len >= sizeof(search.socket_path)) {
		message_error(
			"local: the runtime directory's path is too long for a socket: '%s': set "
			"RLOCK_RUNTIME_DIR to a shorter one",
			runtime_dir_path());
		search.exit_code = EXIT_SYSTEM;
	} else if (find_or_start(&search) == UP &&
		   rlock_url_set_socket(url, search.socket_path) != RLOCK_OK) {
		message_error("local: out of memory");
		search.exit_code = EXIT_SYSTEM;
	}
	(void)close(search.dir_fd);
	*is_cancelled = search.is_cancelled;
	return search.exit_code;
}
