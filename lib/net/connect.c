/*
 * From a URL to a connected, non-blocking socket, in steps that never wait, within a deadline. Who
 * polls between the steps, and what is said over the socket, is connection.c's business.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/connect.h"
#include "net/lookup.h"
#include "rlock.h"
#include "url/url.h"

#define FULL_BACKLOG_PAUSE_MS 10 /* a unix socket can't be polled for a free place */

struct rlock__attempt {
	const struct rlock_url *url;
	int64_t deadline_ms;
	struct rlock__question *question; /* NULL: there is nothing to look up (any more) */
	struct addrinfo *found;           /* what it was answered */
	const struct addrinfo *address;   /* the one that is tried; NULL before the first */
	int left;                         /* of the addresses, this one included */
	int64_t address_end_ms;           /* when its share of the time is over */
	int64_t again_ms; /* when to ask for a place in a full backlog; INT64_MAX: there was one */
	int fd;           /* -1: none */
	struct addrinfo socket; /* of unix://, a list of one */
	struct sockaddr_un socket_address;
	struct rlock__connected result;
};

struct rlock__attempt *rlock__attempt_new(const struct rlock_url *url, int64_t deadline_ms)
{
	struct rlock__attempt *attempt = calloc(1, sizeof(*attempt));

	if (attempt == NULL)
		return NULL;
	attempt->url = url;
	attempt->deadline_ms = deadline_ms;
	attempt->fd = -1;
	return attempt;
}

static void close_fd(struct rlock__attempt *attempt)
{
	if (attempt->fd >= 0)
		(void)close(attempt->fd);
	attempt->fd = -1;
}

void rlock__attempt_free(struct rlock__attempt *attempt)
{
	if (attempt == NULL)
		return;
	close_fd(attempt);
	if (attempt->question != NULL)
		rlock__question_let_go(attempt->question);
	if (attempt->found != NULL)
		freeaddrinfo(attempt->found);
	free(attempt);
}

void rlock__attempt_disown(struct rlock__attempt *attempt)
{
	if (attempt != NULL && attempt->question != NULL) {
		rlock__question_disown(attempt->question);
		attempt->question = NULL;
	}
	rlock__attempt_free(attempt);
}

void rlock__attempt_await(const struct rlock__attempt *attempt, struct pollfd *out,
			  int64_t *until_ms)
{
	if (attempt->question != NULL) {
		*out = (struct pollfd){ rlock__question_fd(attempt->question), POLLIN, 0 };
		*until_ms = attempt->deadline_ms;
		return;
	}
	*out = (struct pollfd){ attempt->again_ms == INT64_MAX ? attempt->fd : -1, POLLOUT, 0 };
	*until_ms = rlock__sooner(attempt->address_end_ms, attempt->again_ms);
}

/* ---- one address: true when it is over with it, one way or the other ---- */

static bool end(struct rlock__attempt *attempt, enum rlock_status status, int error)
{
	attempt->result.status = status;
	attempt->result.why = error != 0 ? strerror(error) : NULL;
	return true;
}

static bool call_server(struct rlock__attempt *attempt)
{
	const struct addrinfo *address = attempt->address;

	attempt->again_ms = INT64_MAX;
	while (connect(attempt->fd, address->ai_addr, address->ai_addrlen) != 0) {
		if (errno == EINTR)
			continue;
		if (errno == EINPROGRESS)
			return false;
		if (errno != EAGAIN)
			return end(attempt, RLOCK_ENET, errno);
		attempt->again_ms = rlock_now_ms() + FULL_BACKLOG_PAUSE_MS;
		return false;
	}
	return end(attempt, RLOCK_OK, 0);
}

/* Those before the last one get an even share of the time that is left. */
static bool try_address(struct rlock__attempt *attempt)
{
	int64_t now_ms = rlock_now_ms();

	attempt->address_end_ms = now_ms + (attempt->deadline_ms - now_ms) / attempt->left;
	attempt->fd =
		socket(attempt->address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (attempt->fd < 0)
		return end(attempt, RLOCK_ESYS, errno);
	return call_server(attempt);
}

static bool go_on(struct rlock__attempt *attempt, bool is_ready)
{
	int64_t now_ms = rlock_now_ms();
	int error = 0;
	socklen_t error_len = sizeof(error);

	if (!is_ready && now_ms >= attempt->address_end_ms)
		return end(attempt, RLOCK_ENET, ETIMEDOUT);
	if (now_ms >= attempt->again_ms)
		return call_server(attempt);
	if (!is_ready)
		return false;
	if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0)
		error = errno;
	return end(attempt, error == 0 ? RLOCK_OK : RLOCK_ENET, error);
}

/* ---- all of them ---- */

static void set_addresses(struct rlock__attempt *attempt, const struct addrinfo *addresses)
{
	attempt->address = addresses;
	for (const struct addrinfo *entry = addresses; entry != NULL; entry = entry->ai_next)
		attempt->left++;
}

static enum rlock_status find_socket(struct rlock__attempt *attempt)
{
	struct sockaddr_un *address = &attempt->socket_address;
	size_t path_len = strlen(attempt->url->path);

	if (path_len >= sizeof(address->sun_path)) {
		(void)end(attempt, RLOCK_EINVAL, ENAMETOOLONG);
		return RLOCK_EINVAL;
	}
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, attempt->url->path, path_len + 1);
	attempt->socket.ai_family = AF_UNIX;
	attempt->socket.ai_addr = (struct sockaddr *)address;
	attempt->socket.ai_addrlen = sizeof(*address);
	set_addresses(attempt, &attempt->socket);
	return RLOCK_OK;
}

/* RLOCK_OK without an address: it is being looked up. */
static enum rlock_status find_host(struct rlock__attempt *attempt)
{
	struct rlock__connected *result = &attempt->result;

	result->status = rlock__question_ask(attempt->url->host, attempt->url->port,
					     &attempt->found, &attempt->question, &result->why);
	if (result->status == RLOCK_OK)
		set_addresses(attempt, attempt->found);
	return result->status;
}

static enum rlock_status take_answer(struct rlock__attempt *attempt, bool is_ready)
{
	struct rlock__connected *result = &attempt->result;

	if (is_ready) {
		result->status =
			rlock__question_answer(attempt->question, &attempt->found, &result->why);
		rlock__question_let_go(attempt->question);
		attempt->question = NULL;
		set_addresses(attempt, attempt->found);
	} else if (rlock_now_ms() >= attempt->deadline_ms) {
		result->status = RLOCK_ENET;
		result->why = "the name look-up took too long";
	}
	return result->status;
}

static enum rlock_status find_address(struct rlock__attempt *attempt, bool is_ready)
{
	if (attempt->question != NULL)
		return take_answer(attempt, is_ready);
	if (rlock_url_scheme(attempt->url) == RLOCK_SCHEME_UNIX)
		return find_socket(attempt);
	return find_host(attempt);
}

static bool advance(struct rlock__attempt *attempt, bool is_ready)
{
	bool is_over;

	if (attempt->address == NULL) {
		if (find_address(attempt, is_ready) != RLOCK_OK)
			return true;
		if (attempt->address == NULL)
			return false;
		is_over = try_address(attempt);
	} else {
		is_over = go_on(attempt, is_ready);
	}
	while (is_over && attempt->result.status == RLOCK_ENET &&
	       attempt->address->ai_next != NULL) {
		close_fd(attempt);
		attempt->address = attempt->address->ai_next;
		attempt->left--;
		is_over = try_address(attempt);
	}
	return is_over;
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

bool rlock__attempt_advance(struct rlock__attempt *attempt, bool is_ready,
			    struct rlock__connected *out)
{
	if (!advance(attempt, is_ready))
		return false;
	*out = attempt->result;
	out->fd = -1;
	if (out->status != RLOCK_OK)
		return true;
	out->fd = attempt->fd;
	attempt->fd = -1;
	if (rlock_url_scheme(attempt->url) != RLOCK_SCHEME_UNIX)
		tune_tcp(out->fd);
	return true;
}
