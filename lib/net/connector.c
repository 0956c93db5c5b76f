/*
 * From a URL to a connected, non-blocking socket, in steps that never wait, within a deadline.
 * The poll between the steps is for request.c; what is sent over the socket, for session.c.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/connector.h"
#include "rlock.h"
#include "url/url.h"

/* ---- names ---- */

/* One DNS query, shared by the caller and the thread; the last of the two frees it. */
struct rlock__resolver {
	atomic_int holders;
	int answered_fd;
	atomic_int error; /* set after answer: by reading it the caller's thread sees answer, too */
	struct addrinfo *answer;
	char port[8];
	char host[];
};

/* Whether it was answered or not. */
static void resolver_free(struct rlock__resolver *resolver)
{
	if (atomic_fetch_sub(&resolver->holders, 1) > 1)
		return;
	if (resolver->answer != NULL)
		freeaddrinfo(resolver->answer);
	(void)close(resolver->answered_fd);
	free(resolver);
}

/* The same in the child of a fork(), which does not have the thread. */
static void resolver_after_fork_child(struct rlock__resolver *resolver)
{
	atomic_store(&resolver->holders, 1); /* the child has no such thread */
	resolver_free(resolver);
}

static int resolve(const char *host, const char *port, int flags, struct addrinfo **out)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags | AI_NUMERICSERV };

	return getaddrinfo(host, port, &hints, out);
}

static void *run_query(void *arg)
{
	struct rlock__resolver *resolver = arg;
	const uint64_t one = 1;

	atomic_store(&resolver->error,
		     resolve(resolver->host, resolver->port, AI_ADDRCONFIG, &resolver->answer));
	(void)!write(resolver->answered_fd, &one, sizeof(one));
	resolver_free(resolver);
	return NULL;
}

static struct rlock__resolver *resolver_new(const char *host, const char *port)
{
	size_t host_size = strlen(host) + 1;
	struct rlock__resolver *resolver = calloc(1, sizeof(*resolver) + host_size);

	if (resolver == NULL)
		return NULL;
	resolver->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (resolver->answered_fd < 0) {
		free(resolver);
		return NULL;
	}
	atomic_init(&resolver->holders, 2);
	atomic_init(&resolver->error, 0);
	memcpy(resolver->host, host, host_size);
	memcpy(resolver->port, port, strlen(port) + 1);
	return resolver;
}

static int thread_start(struct rlock__resolver *resolver)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int error = pthread_attr_init(&attr);

	if (error != 0)
		return error;
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, run_query, resolver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

/*
 * RLOCK_OK: host is an address in numbers, and *out a list that freeaddrinfo frees; or *out is NULL, and a query
 * *resolver_out is under way. RLOCK_ESYS: *why_out is a constant.
 */
static enum rlock_status resolver_start(const char *host, int port, struct addrinfo **out,
					struct rlock__resolver **resolver_out, const char **why_out)
{
	struct rlock__resolver *resolver;
	char port_text[8];
	int error;

	(void)snprintf(port_text, sizeof(port_text), "%d", port);
	if (resolve(host, port_text, AI_NUMERICHOST, out) == 0)
		return RLOCK_OK;
	resolver = resolver_new(host, port_text);
	if (resolver == NULL) {
		*why_out = strerror(errno);
		return RLOCK_ESYS;
	}
	error = thread_start(resolver);
	if (error != 0) {
		resolver_after_fork_child(resolver);
		*why_out = strerror(error);
		return RLOCK_ESYS;
	}
	*out = NULL;
	*resolver_out = resolver;
	return RLOCK_OK;
}

/* Readable when the answer is there. */
static int resolver_fd(const struct rlock__resolver *resolver)
{
	return resolver->answered_fd;
}

/* The answer, once it is there, and only once: RLOCK_OK and a list, or RLOCK_ENET. */
static enum rlock_status resolver_result(struct rlock__resolver *resolver, struct addrinfo **out,
					 const char **why_out)
{
	int error = atomic_load(&resolver->error);

	if (error != 0) {
		*why_out = gai_strerror(error);
		return RLOCK_ENET;
	}
	*out = resolver->answer;
	resolver->answer = NULL;
	return RLOCK_OK;
}

#define FULL_BACKLOG_PAUSE_MS 10 /* poll can't tell when a unix socket accepts again */

struct rlock__connector {
	const struct rlock_url *url;
	int64_t deadline_ms;
	struct rlock__resolver *resolver; /* NULL: no DNS query is under way */
	struct addrinfo *found;           /* the addresses of the host */
	const struct addrinfo *address;   /* the one that is tried; NULL before the first */
	int left;                         /* of the addresses, this one included */
	int64_t address_end_ms;           /* when its share of the time is over */
	int64_t retry_ms; /* when to connect again after a full backlog; INT64_MAX: it was not full */
	int fd;           /* -1: none */
	struct addrinfo socket; /* of unix://, a list of one */
	struct sockaddr_un socket_address;
	enum rlock_status status; /* of the address that is tried, or of finding one */
	const char *why;          /* of a failure */
};

struct rlock__connector *rlock__connector_new(const struct rlock_url *url, int64_t deadline_ms)
{
	struct rlock__connector *connector = calloc(1, sizeof(*connector));

	if (connector == NULL)
		return NULL;
	connector->url = url;
	connector->deadline_ms = deadline_ms;
	connector->fd = -1;
	return connector;
}

static void close_fd(struct rlock__connector *connector)
{
	if (connector->fd >= 0)
		(void)close(connector->fd);
	connector->fd = -1;
}

void rlock__connector_free(struct rlock__connector *connector)
{
	if (connector == NULL)
		return;
	close_fd(connector);
	if (connector->resolver != NULL)
		resolver_free(connector->resolver);
	if (connector->found != NULL)
		freeaddrinfo(connector->found);
	free(connector);
}

void rlock__connector_after_fork_child(struct rlock__connector *connector)
{
	if (connector != NULL && connector->resolver != NULL) {
		resolver_after_fork_child(connector->resolver);
		connector->resolver = NULL;
	}
	rlock__connector_free(connector);
}

void rlock__connector_await(const struct rlock__connector *connector, struct pollfd *out,
			    int64_t *until_ms)
{
	if (connector->resolver != NULL) {
		*out = (struct pollfd){ resolver_fd(connector->resolver), POLLIN, 0 };
		*until_ms = connector->deadline_ms;
		return;
	}
	*out = (struct pollfd){ connector->retry_ms == INT64_MAX ? connector->fd : -1, POLLOUT, 0 };
	*until_ms = rlock__sooner(connector->address_end_ms, connector->retry_ms);
}

/* ---- one address: true when it has succeeded or failed ---- */

static bool end(struct rlock__connector *connector, enum rlock_status status, int error)
{
	connector->status = status;
	connector->why = error != 0 ? strerror(error) : NULL;
	return true;
}

static bool connect_address(struct rlock__connector *connector)
{
	const struct addrinfo *address = connector->address;

	connector->retry_ms = INT64_MAX;
	while (connect(connector->fd, address->ai_addr, address->ai_addrlen) != 0) {
		if (errno == EINTR)
			continue;
		if (errno == EINPROGRESS)
			return false;
		if (errno != EAGAIN)
			return end(connector, RLOCK_ENET, errno);
		connector->retry_ms = rlock_now_ms() + FULL_BACKLOG_PAUSE_MS;
		return false;
	}
	return end(connector, RLOCK_OK, 0);
}

/* Each address gets an even share of the time that is left. */
static bool try_address(struct rlock__connector *connector)
{
	int64_t now_ms = rlock_now_ms();

	connector->address_end_ms = now_ms + (connector->deadline_ms - now_ms) / connector->left;
	connector->fd = socket(connector->address->ai_family,
			       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connector->fd < 0)
		return end(connector, RLOCK_ESYS, errno);
	return connect_address(connector);
}

static bool go_on(struct rlock__connector *connector, bool is_ready)
{
	int64_t now_ms = rlock_now_ms();
	int error = 0;
	socklen_t error_len = sizeof(error);

	if (!is_ready && now_ms >= connector->address_end_ms)
		return end(connector, RLOCK_ENET, ETIMEDOUT);
	if (now_ms >= connector->retry_ms)
		return connect_address(connector);
	if (!is_ready)
		return false;
	if (getsockopt(connector->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0)
		error = errno;
	return end(connector, error == 0 ? RLOCK_OK : RLOCK_ENET, error);
}

/* ---- all of them ---- */

static void set_addresses(struct rlock__connector *connector, const struct addrinfo *addresses)
{
	connector->address = addresses;
	for (const struct addrinfo *entry = addresses; entry != NULL; entry = entry->ai_next)
		connector->left++;
}

static enum rlock_status find_socket(struct rlock__connector *connector)
{
	struct sockaddr_un *address = &connector->socket_address;
	size_t path_len = strlen(connector->url->path);

	if (path_len >= sizeof(address->sun_path)) {
		(void)end(connector, RLOCK_EINVAL, ENAMETOOLONG);
		return RLOCK_EINVAL;
	}
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, connector->url->path, path_len + 1);
	connector->socket.ai_family = AF_UNIX;
	connector->socket.ai_addr = (struct sockaddr *)address;
	connector->socket.ai_addrlen = sizeof(*address);
	set_addresses(connector, &connector->socket);
	return RLOCK_OK;
}

/* RLOCK_OK without an address: a DNS query is under way. */
static enum rlock_status find_host(struct rlock__connector *connector)
{
	const struct rlock__endpoint *endpoint = connector->url->endpoints.items;

	connector->status = resolver_start(endpoint->host, endpoint->port, &connector->found,
					   &connector->resolver, &connector->why);
	if (connector->status != RLOCK_OK)
		return connector->status;
	set_addresses(connector, connector->found);
	return RLOCK_OK;
}

static enum rlock_status read_resolver(struct rlock__connector *connector, bool is_ready)
{
	if (is_ready) {
		connector->status =
			resolver_result(connector->resolver, &connector->found, &connector->why);
		resolver_free(connector->resolver);
		connector->resolver = NULL;
		set_addresses(connector, connector->found);
	} else if (rlock_now_ms() >= connector->deadline_ms) {
		connector->status = RLOCK_ENET;
		connector->why = "the DNS query took too long";
	}
	return connector->status;
}

static enum rlock_status find_address(struct rlock__connector *connector, bool is_ready)
{
	if (connector->resolver != NULL)
		return read_resolver(connector, is_ready);
	if (rlock_url_scheme(connector->url) == RLOCK_SCHEME_UNIX)
		return find_socket(connector);
	return find_host(connector);
}

enum rlock_status rlock__connector_resolve(struct rlock__connector *connector, bool is_ready,
					   const char **why_out)
{
	enum rlock_status status = find_address(connector, is_ready);

	if (status != RLOCK_OK)
		*why_out = connector->why;
	else if (connector->address == NULL)
		return RLOCK_BUSY;
	return status;
}

/* FNV-1a. */
static uint64_t number_of(const struct addrinfo *address)
{
	const unsigned char *bytes = (const unsigned char *)address->ai_addr;
	uint64_t number = 14695981039346656037ULL;

	for (socklen_t i = 0; i < address->ai_addrlen; i++)
		number = (number ^ bytes[i]) * 1099511628211ULL;
	return number;
}

/* Without keepalives a NAT or a firewall may drop a connection that is idle during a long hold. */
static void tune_tcp(int fd)
{
	const int on = 1, idle_s = 45, interval_s = 15, probes = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/*
 * Where a cleaner of /tmp has removed the directory of local:, any user can make another one at its path, with another
 * server.
 */
static bool is_trusted(const struct rlock__connector *connector)
{
	struct ucred peer = { 0 };
	socklen_t peer_len = sizeof(peer);

	return !connector->url->is_own_server ||
	       (getsockopt(connector->fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0 &&
		peer.uid == geteuid());
}

/* true: it is over, with connector->status. */
static bool try_addresses(struct rlock__connector *connector, bool is_ready)
{
	bool is_over = connector->fd < 0 ? try_address(connector) : go_on(connector, is_ready);

	while (is_over && connector->status == RLOCK_ENET && connector->address->ai_next != NULL) {
		close_fd(connector);
		connector->address = connector->address->ai_next;
		connector->left--;
		is_over = try_address(connector);
	}
	return is_over;
}

enum rlock_status rlock__connector_connect(struct rlock__connector *connector, bool is_ready,
					   struct rlock__connected *out)
{
	if (!try_addresses(connector, is_ready))
		return RLOCK_BUSY;
	if (connector->status == RLOCK_OK && !is_trusted(connector)) {
		connector->status = RLOCK_ENET;
		connector->why = "the server there is another user's";
	}
	*out = (struct rlock__connected){ .fd = -1, .why = connector->why };
	if (connector->status != RLOCK_OK)
		return connector->status;
	out->fd = connector->fd;
	out->server_number = number_of(connector->address);
	connector->fd = -1;
	if (rlock_url_scheme(connector->url) != RLOCK_SCHEME_UNIX)
		tune_tcp(out->fd);
	return RLOCK_OK;
}
