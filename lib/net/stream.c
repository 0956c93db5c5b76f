/*
 * Connect to the server of a URL, write queued commands and parse replies, in steps that never wait; connection.c
 * polls. The connection of hiredis is not used, since it waits by itself: cancel_fd and other servers must be polled at
 * the same time.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <linux/sockios.h>
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
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/events.h"
#include "base/text.h"
#include "net/stream.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/url.h"

/* ---- the names of hosts ---- */

/* A DNS query in a thread. The caller and the thread share it, and the last of the two frees it. */
struct rlock__resolver {
	atomic_int holders;
	pid_t pid; /* our pid when the thread was started: the child of a fork() has no such thread */
	int answered_fd;
	atomic_int error; /* Set after answer: a thread that reads error also sees answer. */
	struct addrinfo *answer;
	char port[8];
	char host[];
};

/* Free the query, answered or not. NULL is accepted. */
static void resolver_free(struct rlock__resolver *resolver)
{
	bool has_thread = resolver != NULL && resolver->pid == getpid();

	/* Read pid before the decrement: after that the thread may free the query. */
	if (resolver == NULL || (atomic_fetch_sub(&resolver->holders, 1) > 1 && has_thread))
		return;
	if (resolver->answer != NULL)
		freeaddrinfo(resolver->answer);
	(void)close(resolver->answered_fd);
	free(resolver);
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

static int thread_start(struct rlock__resolver *resolver)
{
	pthread_t thread;
	sigset_t all, before;
	int error;

	/* Block all signals: the program's own threads must handle them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, run_query, resolver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error == 0)
		(void)pthread_detach(thread);
	return error;
}

/* Begin a DNS query. NULL: with errno. */
static struct rlock__resolver *resolver_new(const char *host, const char *port)
{
	size_t host_size = strlen(host) + 1;
	struct rlock__resolver *resolver = calloc(1, sizeof(*resolver) + host_size);
	int error;

	if (resolver == NULL)
		return NULL;
	atomic_init(&resolver->holders, 2);
	atomic_init(&resolver->error, 0);
	resolver->pid = getpid();
	memcpy(resolver->host, host, host_size);
	memcpy(resolver->port, port, strlen(port) + 1);
	resolver->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = resolver->answered_fd < 0 ? errno : thread_start(resolver);
	if (error == 0)
		return resolver;
	atomic_store(&resolver->holders, 1);
	resolver_free(resolver);
	errno = error;
	return NULL;
}

/* If the backlog of a unix socket is full, retry after this pause: poll(2) does not report when there is room. */
#define FULL_BACKLOG_PAUSE_MS 10

/* ---- one address ---- */

/*
 * Begin or continue to connect. To continue, call connect(2) again: it then fails with EALREADY, or with EISCONN once the socket is
 * connected. RLOCK_ENET: with errno. Only the failure of the last address becomes an error.
 */
static enum rlock_status connect_address(struct rlock__connector *connector)
{
	const struct addrinfo *address = connector->address;

	connector->retry_ms = INT64_MAX;
	while (connect(connector->fd, address->ai_addr, address->ai_addrlen) != 0) {
		if (errno == EINTR)
			continue;
		if (errno == EISCONN)
			break;
		if (errno != EINPROGRESS && errno != EALREADY && errno != EAGAIN)
			return RLOCK_ENET;
		if (errno == EAGAIN)
			connector->retry_ms = rlock_now_ms() + FULL_BACKLOG_PAUSE_MS;
		if (rlock_now_ms() < connector->address_end_ms)
			return RLOCK_BUSY;
		errno = ETIMEDOUT;
		return RLOCK_ENET;
	}
	return RLOCK_OK;
}

/* Try the current address. Each address has an equal share of the remaining time. RLOCK_ENET, RLOCK_ESYS: with errno. */
static enum rlock_status try_address(struct rlock__connector *connector)
{
	int64_t now_ms = rlock_now_ms();

	connector->address_end_ms = now_ms + (connector->deadline_ms - now_ms) / connector->left;
	connector->fd = socket(connector->address->ai_family,
			       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* RLOCK_ENET tries the next address: a kernel without IPv6 has no such socket, but maybe IPv4. */
	if (connector->fd < 0)
		return errno == EAFNOSUPPORT ? RLOCK_ENET : RLOCK_ESYS;
	return connect_address(connector);
}

/* ---- all addresses ---- */

static void close_fd(struct rlock__connector *connector)
{
	if (connector->fd >= 0)
		(void)close(connector->fd);
	connector->fd = -1;
}

static void set_addresses(struct rlock__connector *connector, const struct addrinfo *addresses)
{
	connector->address = addresses;
	for (const struct addrinfo *entry = addresses; entry != NULL; entry = entry->ai_next)
		connector->left++;
}

static void find_socket(struct rlock__connector *connector)
{
	struct sockaddr_un *address = &connector->socket_address;
	size_t path_len = strlen(connector->url->path);

	assert(path_len < sizeof(address->sun_path));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, connector->url->path, path_len + 1);
	connector->socket = (struct addrinfo){ .ai_family = AF_UNIX,
					       .ai_addr = (struct sockaddr *)address,
					       .ai_addrlen = sizeof(*address) };
	set_addresses(connector, &connector->socket);
}

static enum rlock_status find_host(struct rlock__connector *connector, struct rlock__error *error)
{
	const struct rlock__endpoint *endpoint = connector->url->endpoints.items;
	/*
	 * Do not query for localhost, which is always this machine (RFC 6761): a container may lack /etc/hosts, and its
	 * DNS server the name.
	 */
	bool is_loopback = strcasecmp(endpoint->host, "localhost") == 0;
	const char *address = is_loopback ? NULL : endpoint->host;
	char port[8];

	(void)snprintf(port, sizeof(port), "%d", endpoint->port);
	if (resolve(address, port, AI_NUMERICHOST, &connector->found) == 0) {
		set_addresses(connector, connector->found);
		return RLOCK_OK;
	}
	/* Do not query for an IPv6 address. It was checked before, so only its zone ("%eth0") can be wrong. */
	if (strchr(endpoint->host, ':') != NULL)
		return rlock__fail_peer(error, RLOCK_ENET,
					"this machine has no such network interface");
	connector->resolver = resolver_new(endpoint->host, port);
	return connector->resolver != NULL
		       ? RLOCK_BUSY
		       : rlock__fail_peer(error, RLOCK_ESYS, "%s", strerror(errno));
}

static enum rlock_status read_resolver(struct rlock__connector *connector,
				       struct rlock__error *error)
{
	struct rlock__resolver *resolver = connector->resolver;
	uint64_t one;
	int failure;

	if (read(resolver->answered_fd, &one, sizeof(one)) < 0) {
		if (rlock_now_ms() < connector->deadline_ms)
			return RLOCK_BUSY;
		return rlock__fail_peer(error, RLOCK_ENET, "the DNS query took too long");
	}
	failure = atomic_load(&resolver->error);
	if (failure == 0) {
		connector->found = resolver->answer;
		resolver->answer = NULL;
		set_addresses(connector, connector->found);
	}
	resolver_free(resolver);
	connector->resolver = NULL;
	return failure == 0 ? RLOCK_OK
			    : rlock__fail_peer(error, RLOCK_ENET, "%s", gai_strerror(failure));
}

static enum rlock_status find_addresses(struct rlock__connector *connector,
					struct rlock__error *error)
{
	if (connector->resolver != NULL)
		return read_resolver(connector, error);
	if (rlock_url_scheme(connector->url) != RLOCK_SCHEME_UNIX)
		return find_host(connector, error);
	find_socket(connector);
	return RLOCK_OK;
}

/* Send keepalives: a NAT or a firewall may drop a connection that is idle during a long hold. Send small commands immediately. */
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
 * Whether the server of local: runs as this user. If a cleaner of /tmp has removed its directory, another user can create a server at
 * that path.
 */
static bool is_trusted(const struct rlock__connector *connector)
{
	struct ucred peer = { 0 };
	socklen_t peer_len = sizeof(peer);

	return !connector->url->is_own_server ||
	       (getsockopt(connector->fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0 &&
		peer.uid == geteuid());
}

enum rlock_status rlock__connector_advance(struct rlock__connector *connector,
					   struct rlock__error *error)
{
	enum rlock_status status =
		connector->address == NULL ? find_addresses(connector, error) : RLOCK_OK;

	if (status != RLOCK_OK)
		return status;
	assert(connector->address != NULL);
	status = connector->fd < 0 ? try_address(connector) : connect_address(connector);
	while (status == RLOCK_ENET && connector->address->ai_next != NULL) {
		close_fd(connector);
		connector->address = connector->address->ai_next;
		connector->left--;
		status = try_address(connector);
	}
	if (status == RLOCK_BUSY)
		return status;
	if (status != RLOCK_OK)
		return rlock__fail_peer(error, status, "%s", strerror(errno));
	if (!is_trusted(connector))
		return rlock__fail_peer(error, RLOCK_ENET, "the server there is another user's");
	connector->server_number =
		rlock__hash(0, connector->address->ai_addr, connector->address->ai_addrlen);
	if (rlock_url_scheme(connector->url) != RLOCK_SCHEME_UNIX)
		tune_tcp(connector->fd);
	return RLOCK_OK;
}

void rlock__connector_await(const struct rlock__connector *connector, struct pollfd *out,
			    int64_t *until_ms)
{
	if (connector->resolver != NULL) {
		*out = (struct pollfd){ connector->resolver->answered_fd, POLLIN, 0 };
		*until_ms = connector->deadline_ms;
		return;
	}
	*out = (struct pollfd){ connector->retry_ms == INT64_MAX ? connector->fd : -1, POLLOUT, 0 };
	*until_ms = rlock__time_min(connector->address_end_ms, connector->retry_ms);
}

void rlock__connector_begin(struct rlock__connector *connector, const struct rlock_url *url,
			    int64_t deadline_ms)
{
	*connector = (struct rlock__connector){ .url = url, .deadline_ms = deadline_ms, .fd = -1 };
}

void rlock__connector_clear(struct rlock__connector *connector)
{
	if (connector->url == NULL)
		return;
	close_fd(connector);
	resolver_free(connector->resolver);
	if (connector->found != NULL)
		freeaddrinfo(connector->found);
	*connector = (struct rlock__connector){ 0 };
}

/* ---- replies ---- */

/* Limit of elements in a reply, far above the largest one: that of inspect.lua has less than 2000. */
#define ELEMENTS_MAX (1 << 18)
#define BYTES_MAX (1 << 22)
/* Limit of a line, far above an error that quotes a script: hiredis parses an incomplete line again with each piece. */
#define LINE_MAX_BYTES (1 << 14)
#define DEPTH_MAX 7 /* nested arrays: the limit of hiredis 0.14, since later versions have none */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static bool is_too_deep(const redisReadTask *task)
{
	int depth = 1;

	for (task = task->parent; task != NULL; task = task->parent)
		depth++;
	return depth > DEPTH_MAX;
}

/* Make a reply that contains others, within the limits. hiredis 0.14 truncates a count that is too large to a negative one. */
static void *create_array(const redisReadTask *task, element_count count)
{
	struct rlock__stream *stream = task->privdata;

	if (is_too_deep(task)) {
		stream->excess = "its reply is nested too deeply";
		return NULL;
	}
	if (count > (element_count)(ELEMENTS_MAX - stream->elements)
#if HIREDIS_MAJOR < 1
	    || count < 0
#endif
	) {
		stream->excess = "its reply has too many elements";
		return NULL;
	}
	stream->elements += (size_t)count;
	return stream->usual->createArray(task, count);
}

/* Pass received bytes to the parser. False: out of memory. */
static bool feed(struct rlock__stream *stream, const char *bytes, size_t len)
{
	stream->bytes += len;
	if (redisReaderFeed(stream->replies, bytes, len) == REDIS_OK)
		return true;
	stream->error = ENOMEM;
	return false;
}

/* Whether the unparsed bytes begin with a line that is too long: each reply begins with a line. */
static bool has_endless_line(const redisReader *replies)
{
	return replies->len - replies->pos > LINE_MAX_BYTES &&
	       memchr(replies->buf + replies->pos, '\n', LINE_MAX_BYTES) == NULL;
}

static bool has_ended(const struct rlock__stream *stream)
{
	return stream->is_at_end || stream->error != 0 || rlock__tls_has_failed(stream->tls);
}

bool rlock__stream_next(struct rlock__stream *stream, struct redisReply **out)
{
	const redisReader *replies = stream->replies;
	void *reply = NULL;

	if (redisReaderGetReply(stream->replies, &reply) != REDIS_OK)
		return false;
	*out = reply;
	if (reply != NULL) {
		stream->elements = 0;
		stream->bytes = replies->len - replies->pos;
		return true;
	}
	if (stream->bytes > BYTES_MAX || has_endless_line(replies))
		stream->excess = "its reply is too long";
	return stream->excess == NULL && !has_ended(stream);
}

/* ---- open and close ---- */

/* Bytes of one read: most replies are shorter, and a small stack has room for this many. */
#define PIECE_BYTES 4096

bool rlock__stream_open(struct rlock__stream *stream, struct rlock__connector *connector,
			struct rlock__tls *tls)
{
	redisReader *replies = redisReaderCreate();

	if (replies == NULL) {
		rlock__tls_free(tls);
		return false;
	}
	*stream = (struct rlock__stream){ .replies = replies,
					  .usual = replies->fn,
					  .functions = *replies->fn,
					  .tls = tls,
					  .fd = connector->fd };
	stream->functions.createArray = create_array;
	replies->fn = &stream->functions;
	replies->privdata = stream;
	connector->fd = -1;
	rlock__connector_clear(connector);
	return true;
}

void rlock__stream_close(struct rlock__stream *stream)
{
	if (stream->replies == NULL)
		return;
	(void)close(stream->fd);
	rlock__tls_free(stream->tls);
	redisReaderFree(stream->replies);
	free(stream->output.text);
	*stream = (struct rlock__stream){ 0 };
}

/*
 * Let the next close reset the connection. Otherwise the kernel would continue to send for minutes after the close, although the
 * request is abandoned. A reset undoes nothing: the server carries out what its machine has received.
 */
void rlock__stream_reset(struct rlock__stream *stream)
{
	const struct linger reset = { 1, 0 };

	/* Change only an open stream: after a close, fd may be the number of another file. */
	if (stream->replies != NULL)
		(void)setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

/* ---- write ---- */

static bool append(struct rlock__stream *stream, const char *bytes, size_t len)
{
	if (rlock__text_append(&stream->output, bytes, len))
		return true;
	stream->error = ENOMEM;
	return false;
}

/* Append the records that TLS wants to send to the output. */
static bool append_records(struct rlock__stream *stream, char bytes[PIECE_BYTES])
{
	size_t len;

	while ((len = rlock__tls_take(stream->tls, bytes, PIECE_BYTES)) > 0)
		if (!append(stream, bytes, len))
			return false;
	return true;
}

bool rlock__stream_format(struct rlock__text *commands, int argc, const char **argv,
			  const size_t *lengths)
{
	char *command = NULL;
	long long len = redisFormatCommandArgv(&command, argc, argv, lengths);
	bool is_made = len >= 0 && rlock__text_append(commands, command, (size_t)len);

	if (len >= 0)
		redisFreeCommand(command);
	return is_made;
}

bool rlock__stream_queue(struct rlock__stream *stream, const struct rlock__text *commands)
{
	char bytes[PIECE_BYTES];

	if (stream->tls == NULL)
		return append(stream, commands->text, commands->len);
	return rlock__tls_write(stream->tls, commands->text, commands->len) &&
	       append_records(stream, bytes);
}

bool rlock__stream_flush(struct rlock__stream *stream)
{
	ssize_t len = send(stream->fd, stream->output.text + stream->sent,
			   stream->output.len - stream->sent, MSG_NOSIGNAL);

	if (len < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		stream->error = errno;
		/* Read once more: the server may have sent an error before it closed the connection. */
		(void)rlock__stream_fill(stream);
		return false;
	}
	stream->sent += (size_t)len;
	if (stream->sent == stream->output.len)
		stream->sent = stream->output.len = 0;
	return true;
}

bool rlock__stream_is_cut(const struct rlock__stream *stream)
{
	struct pollfd fd = { stream->fd, POLLRDHUP, 0 };

	return poll(&fd, 1, 0) > 0;
}

struct pollfd rlock__stream_await(const struct rlock__stream *stream)
{
	return (struct pollfd){ stream->fd, stream->output.len > 0 ? POLLOUT : POLLIN, 0 };
}

/* ---- read ---- */

/* Receive bytes. *len_out is 0 if there are none yet. */
static bool receive(struct rlock__stream *stream, char bytes[PIECE_BYTES], size_t *len_out)
{
	ssize_t len = recv(stream->fd, bytes, PIECE_BYTES, 0);

	*len_out = len > 0 ? (size_t)len : 0;
	if (len > 0) {
		if (stream->first == 0)
			stream->first = bytes[0];
		return true;
	}
	stream->is_at_end = len == 0;
	if (len == 0 || errno == EAGAIN || errno == EINTR)
		return len < 0;
	stream->error = errno;
	return false;
}

/* Decrypt the received records, and queue the replies of TLS itself. */
static bool read_records(struct rlock__stream *stream, char bytes[PIECE_BYTES])
{
	size_t len = 0;

	while (rlock__tls_read(stream->tls, bytes, PIECE_BYTES, &len))
		if (!feed(stream, bytes, len))
			return false;
	stream->is_at_end = stream->is_at_end || rlock__tls_has_ended(stream->tls);
	return append_records(stream, bytes);
}

bool rlock__stream_fill(struct rlock__stream *stream)
{
	char bytes[PIECE_BYTES];
	size_t len;
	bool is_open = receive(stream, bytes, &len);

	if (stream->tls == NULL)
		return is_open && feed(stream, bytes, len);
	/* Replies may have come together with the end of the stream: report that after them. */
	if (rlock__tls_receive(stream->tls, bytes, len))
		return read_records(stream, bytes);
	stream->error = ENOMEM;
	return false;
}

/* ---- TLS ---- */

/* Keep the last records of the handshake in the output, so that they are sent in one write with the first commands. */
bool rlock__stream_handshake(struct rlock__stream *stream, bool *is_over)
{
	*is_over = stream->tls == NULL;
	if (*is_over)
		return true;
	if (!rlock__stream_fill(stream) || has_ended(stream))
		return false;
	*is_over = rlock__tls_is_established(stream->tls);
	return *is_over || stream->output.len == 0 || rlock__stream_flush(stream);
}

bool rlock__stream_was_closed(const struct rlock__stream *stream)
{
	return stream->is_at_end || stream->error == ECONNRESET || stream->error == EPIPE;
}

#define TLS_ALERT 21

bool rlock__stream_may_lack_tls(const struct rlock__stream *stream)
{
	return stream->tls == NULL && (stream->first == TLS_ALERT ||
				       (stream->first == 0 && rlock__stream_was_closed(stream)));
}

const char *rlock__stream_why(const struct rlock__stream *stream)
{
	if (stream->is_at_end)
		return "the server closed the connection";
	if (stream->error == ENOMEM)
		return NULL;
	if (stream->error != 0)
		return strerror(stream->error);
	if (stream->excess != NULL)
		return stream->excess;
	return stream->replies->err == REDIS_ERR_OOM ? NULL : stream->replies->errstr;
}

/* How many of the bytes that were queued the network has not delivered. 0: unknown. */
static size_t undelivered_bytes(const struct rlock__stream *stream)
{
	int unsent = 0;

	if (ioctl(stream->fd, SIOCOUTQ, &unsent) != 0 || unsent < 0)
		return 0;
	return (size_t)unsent + stream->output.len - stream->sent;
}

void rlock__stream_end_output(struct rlock__stream *stream)
{
	(void)shutdown(stream->fd, SHUT_WR);
}

/*
 * Wait before the caller closes the socket: if an earlier reply arrived at a closed socket, the kernel would reset the connection, and
 * the server would not read the undo. Mask events: the signal that has ended a wait for a lock would also end this wait immediately.
 */
void rlock__stream_await_end(struct rlock__stream *stream, struct rlock__events *events,
			     size_t undo_len, int64_t deadline_ms)
{
	/* TCP counts the end of our side as one more byte. */
	const size_t end_len = 1;
	bool was_masked = rlock__events_mask(events, true);
	struct pollfd fds[2] = { { stream->fd, POLLIN, 0 } };
	char unread[512];
	ssize_t len = 1;

	while (len > 0 && rlock_now_ms() < deadline_ms &&
	       rlock__events_poll(events, fds, 1, deadline_ms) == RLOCK_OK)
		if (fds[0].revents != 0)
			len = read(stream->fd, unread, sizeof(unread));
	(void)rlock__events_mask(events, was_masked);
	/*
	 * If the network has not delivered all of an attempt, drop it and its undo. The kernel would go on sending them after the
	 * close: a server could grant us the lock when nobody waits for it any more. If only the undo is left, let the kernel send
	 * it: the server may have granted the attempt.
	 */
	if (undelivered_bytes(stream) > undo_len + end_len)
		rlock__stream_reset(stream);
}
