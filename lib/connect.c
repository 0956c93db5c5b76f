/*
 * From a URL to a connected, non-blocking socket, within a deadline. What is said over it is conn.c's
 * business.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

#define FULL_BACKLOG_PAUSE_MS 10 /* a unix socket can't be polled for a free place */

/* RLOCK_OK: fd is ready for events. A deadline that passes is RLOCK_ENET; RLOCK_ESYS sets errno. */
static enum rlock_status wait_ready(int fd, short events, int64_t deadline_ms, int cancel_fd)
{
	struct pollfd fds[] = { { fd, events, 0 }, { cancel_fd, POLLIN, 0 } };

	if (rlock_poll(fds, 2, deadline_ms) < 0)
		return RLOCK_ESYS;
	if (fds[1].revents != 0)
		return RLOCK_CANCELLED;
	return fds[0].revents != 0 ? RLOCK_OK : RLOCK_ENET;
}

/* A connection that is under way: how it ends. RLOCK_ENET and RLOCK_ESYS set errno. */
static enum rlock_status finish(int fd, int64_t deadline_ms, int cancel_fd)
{
	enum rlock_status status = wait_ready(fd, POLLOUT, deadline_ms, cancel_fd);
	int error = 0;
	socklen_t error_len = sizeof(error);

	if (status == RLOCK_ENET)
		errno = ETIMEDOUT;
	if (status != RLOCK_OK)
		return status;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len) == 0)
		errno = error;
	return errno == 0 ? RLOCK_OK : RLOCK_ENET;
}

/* RLOCK_OK, or why not: RLOCK_ENET and RLOCK_ESYS set errno. */
static enum rlock_status connect_fd(int fd, const struct sockaddr *address, socklen_t address_len,
				    int64_t deadline_ms, int cancel_fd)
{
	while (connect(fd, address, address_len) != 0) {
		int64_t again_ms = rlock_now_ms() + FULL_BACKLOG_PAUSE_MS;
		enum rlock_status status;

		if (errno == EINTR)
			continue;
		if (errno == EINPROGRESS)
			return finish(fd, deadline_ms, cancel_fd);
		if (errno != EAGAIN)
			return RLOCK_ENET;
		status = wait_ready(-1, 0, again_ms < deadline_ms ? again_ms : deadline_ms,
				    cancel_fd);
		if (status == RLOCK_CANCELLED || status == RLOCK_ESYS)
			return status;
		if (again_ms >= deadline_ms) {
			errno = ETIMEDOUT;
			return RLOCK_ENET;
		}
	}
	return RLOCK_OK;
}

/* One address; the descriptor is closed unless it is given out. */
static enum rlock_status connect_to(const struct sockaddr *address, socklen_t address_len,
				    int64_t deadline_ms, int cancel_fd, int *fd_out)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
	enum rlock_status status;

	if (fd < 0)
		return RLOCK_ESYS;
	status = connect_fd(fd, address, address_len, deadline_ms, cancel_fd);
	if (status == RLOCK_OK) {
		*fd_out = fd;
		return status;
	}
	error = errno;
	(void)close(fd);
	errno = error;
	return status;
}

static enum rlock_status connect_unix(const char *path, int64_t deadline_ms, int cancel_fd,
				      int *fd_out)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t path_len = strlen(path);

	if (path_len >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return RLOCK_EINVAL;
	}
	memcpy(address.sun_path, path, path_len + 1);
	return connect_to((const struct sockaddr *)&address, sizeof(address), deadline_ms,
			  cancel_fd, fd_out);
}

/* Every address in turn; those before the last one get an even share of the time that is left. */
static enum rlock_status connect_any(const struct addrinfo *addresses, int64_t deadline_ms,
				     int cancel_fd, int *fd_out)
{
	enum rlock_status status = RLOCK_ENET;
	int left = 0;

	for (const struct addrinfo *entry = addresses; entry != NULL; entry = entry->ai_next)
		left++;
	errno = EADDRNOTAVAIL;
	for (const struct addrinfo *entry = addresses; entry != NULL && status == RLOCK_ENET;
	     entry = entry->ai_next, left--) {
		int64_t now_ms = rlock_now_ms();

		status = connect_to(entry->ai_addr, entry->ai_addrlen,
				    now_ms + (deadline_ms - now_ms) / left, cancel_fd, fd_out);
	}
	return status;
}

/* A connection that is idle through a long hold must not be forgotten by a NAT or a firewall. */
static void tune_tcp(int fd)
{
	const int on = 1, idle_s = 45, interval_s = 15, probes = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static enum rlock_status connect_tcp(const struct rlock_url *url, int64_t deadline_ms,
				     int cancel_fd, int *fd_out, const char **why_out)
{
	struct addrinfo *addresses = NULL;
	enum rlock_status status =
		rlock__lookup(url->host, url->port, deadline_ms, cancel_fd, &addresses, why_out);

	if (status != RLOCK_OK)
		return status;
	status = connect_any(addresses, deadline_ms, cancel_fd, fd_out);
	if (status == RLOCK_OK)
		tune_tcp(*fd_out);
	else
		*why_out = strerror(errno);
	freeaddrinfo(addresses);
	return status;
}

enum rlock_status rlock__connect(const struct rlock_url *url, int64_t deadline_ms, int cancel_fd,
				 int *fd_out, const char **why_out)
{
	enum rlock_status status;

	if (rlock_url_scheme(url) != RLOCK_SCHEME_UNIX)
		return connect_tcp(url, deadline_ms, cancel_fd, fd_out, why_out);
	status = connect_unix(url->path, deadline_ms, cancel_fd, fd_out);
	if (status != RLOCK_OK)
		*why_out = strerror(errno);
	return status;
}
