/*
 * librlock against a server that says anything. The input is one line of what is asked for, and behind it
 * what the server says:
 *
 *   letters  p ping, a acquire, r renew, u release, l keep until, f find, b break, q stop, i inspect, s list, in that order; and first
 *            F, R, W a fair, read or write lock, M permits of a semaphore, 2 two names, 3 three servers of which two must agree, unless it is M,
 *            w wait, T a token, P a password, D a database, N a name for the connection,
 *            I an inherited owner, H only that holder is to be broken or stopped
 *   marks    a stream of the server ends at "@@\n", where it closes it, or at "@~\n", where it falls
 *            silent; the next connection has what follows. At "@-\n" it makes a pause.
 *
 * Time is not waited for: when nothing is there to be read, it passes.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "conn.h"
#include "hold.h"
#include "rlock.h"
#include "url/url.h"

#include "fuzz.h"

#define ID "0123456789abcdef0123456789abcdef"
#define OWNER "00000000-0000-4000-8000-000000000000:1"
#define INHERITED "00000000-0000-4000-8000-000000000000:2"
#define SERVERS_MAX 3
#define STREAMS_MAX 256
#define LEASE_MS 30000
#define LETTERS_MAX 8
#define WAIT_MS 1500 /* so long that on_wait is called */
#define DELIVERY_MS 200
/* How long a server takes to hang up, which limits the number of retries. */
#define HANG_UP_MS 400

static const struct rlock_name names[] = { { "job", 3 }, { "other job", 9 } };

/* ---- the servers ---- */

static struct {
	int listeners[SERVERS_MAX];
	size_t count;             /* of those, how many are in use */
	int streams[STREAMS_MAX]; /* accepted; -1: closed */
	size_t stream_count;
	int speaking; /* the stream that has not been told all yet; -1: none */
	const uint8_t *left;
	size_t left_size;
} server = { .speaking = -1 };

static int64_t now_ms;

static void server_url(size_t index, const char *options, char *out, size_t out_size)
{
	(void)snprintf(out, out_size, "unix://%s/%zu%s", fuzz_directory(), index, options);
}

static void server_listen(size_t index)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%zu", fuzz_directory(),
		       index);
	server.listeners[index] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ALWAYS(bind(server.listeners[index], (struct sockaddr *)&address, sizeof(address)) == 0);
	ALWAYS(listen(server.listeners[index], STREAMS_MAX) == 0);
}

enum mark { MARK_PAUSE = '-', MARK_CLOSE = '@', MARK_SILENCE = '~' };

/* How much there is to be said before the next mark, and which one that is. */
static size_t server_cut(enum mark *mark_out, size_t *mark_size_out)
{
	const uint8_t *text = server.left;

	*mark_out = MARK_CLOSE;
	*mark_size_out = 0;
	for (size_t i = 0; i + 3 <= server.left_size; i++) {
		if (text[i] != '@' || text[i + 2] != '\n')
			continue;
		if (text[i + 1] != MARK_PAUSE && text[i + 1] != MARK_CLOSE &&
		    text[i + 1] != MARK_SILENCE)
			continue;
		*mark_out = (enum mark)text[i + 1];
		*mark_size_out = 3;
		return i;
	}
	return server.left_size;
}

/* The next piece. False when there is no stream to say it on. */
static bool server_speak(void)
{
	enum mark mark;
	size_t mark_size, len;

	if (server.speaking < 0)
		return false;
	len = server_cut(&mark, &mark_size);
	/* The peer may have hung up meanwhile. */
	if (len > 0)
		(void)send(server.speaking, server.left, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	server.left += len + mark_size;
	server.left_size -= len + mark_size;
	if (mark == MARK_CLOSE)
		(void)shutdown(server.speaking, SHUT_WR);
	if (mark != MARK_PAUSE)
		server.speaking = -1;
	return true;
}

/* A connection that comes while another one is spoken to is closed. */
static void server_accept(int listener)
{
	int stream = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (stream < 0)
		return;
	if (server.left_size == 0 || server.speaking >= 0 || server.stream_count == STREAMS_MAX) {
		(void)close(stream);
		now_ms += HANG_UP_MS;
		return;
	}
	server.streams[server.stream_count++] = stream;
	server.speaking = stream;
	(void)server_speak();
}

static void server_hang_up(void)
{
	for (size_t i = 0; i < server.stream_count; i++)
		(void)close(server.streams[i]);
	server.stream_count = 0;
	server.speaking = -1;
}

/* ---- the library's clock, instead of lib/base/clock.c ---- */

int64_t rlock_now_ms(void)
{
	return now_ms;
}

int64_t rlock__jitter_ms(int64_t most_ms)
{
	ALWAYS(most_ms >= 0 && most_ms < INT64_MAX);
	return most_ms / 2;
}

int rlock_poll(struct pollfd *fds, size_t count, int64_t deadline_ms)
{
	int ready;

	do {
		for (size_t i = 0; i < server.count; i++)
			server_accept(server.listeners[i]);
		ready = poll(fds, count, 0);
	} while (ready == 0 && server_speak());
	if (ready == 0) {
		/* It would never return. */
		ALWAYS(deadline_ms < INT64_MAX);
		if (deadline_ms > now_ms)
			now_ms = deadline_ms;
	}
	/* A server that keeps us busy takes its time, too. */
	now_ms += ready > 0;
	return ready;
}

/* ---- what is asked for ---- */

struct plan {
	const char *letters;
	size_t name_count;
	enum rlock_kind kind;
	struct rlock_conn *conn;
};

static bool has(const struct plan *plan, char letter)
{
	return strchr(plan->letters, letter) != NULL;
}

static enum rlock_kind kind_of(const struct plan *plan)
{
	return has(plan, 'F')   ? RLOCK_FAIR
	       : has(plan, 'R') ? RLOCK_READ
	       : has(plan, 'W') ? RLOCK_WRITE
	       : has(plan, 'M') ? RLOCK_SEMAPHORE
				: RLOCK_PLAIN;
}

static void check_error(const struct plan *plan, enum rlock_status status)
{
	ALWAYS(strcmp(rlock_status_name(status), "unknown") != 0);
	if (status == RLOCK_OK)
		return;
	ALWAYS(status != RLOCK_ENOMEM && status != RLOCK_ESYS && status != RLOCK_EINVAL);
	ALWAYS(fuzz_is_shown_safely(rlock_conn_error(plan->conn)));
	ALWAYS(rlock_conn_error(plan->conn)[0] != '\0');
	ALWAYS(rlock_conn_error_name(plan->conn) < plan->name_count);
}

static void connect_to(struct plan *plan)
{
	struct rlock_url *urls[SERVERS_MAX] = { NULL };
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	size_t count = server.count = has(plan, '3') && !has(plan, 'M') ? 3 : 1;
	char text[256], why[RLOCK_ERROR_MAX];

	opts.client_name = has(plan, 'N') ? "rlock" : NULL;
	opts.quorum = count / 2 + 1;
	for (size_t i = 0; i < count; i++) {
		server_url(i, has(plan, 'D') ? "?db=3" : "", text, sizeof(text));
		ALWAYS(rlock_url_parse(text, &urls[i], why) == RLOCK_OK);
		if (has(plan, 'P'))
			ALWAYS(rlock_url_set_password(urls[i], "secret") == RLOCK_OK);
	}
	ALWAYS(rlock_conn_new(urls, count, &opts, &plan->conn) == RLOCK_OK);
	for (size_t i = 0; i < count; i++)
		rlock_url_free(urls[i]);
}

static void check_blocker(void *ctx, const struct rlock_blocker *blocker)
{
	const struct plan *plan = ctx;
	char shown[RLOCK_OWNER_MAX];

	ALWAYS(blocker->name_index < plan->name_count);
	(void)rlock_escape(blocker->owner, blocker->owner_len, shown, sizeof(shown));
	(void)rlock_escape(blocker->note, blocker->note_len, shown, sizeof(shown));
}

static bool is_one_of_ours(const struct plan *plan, const char *owner)
{
	return strcmp(owner, OWNER) == 0 || (has(plan, 'I') && strcmp(owner, INHERITED) == 0);
}

static void acquire(struct plan *plan, struct rlock_hold **hold)
{
	static const char *const inherited[] = { INHERITED };
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_hold *acquired = NULL;
	enum rlock_status status;

	request.kind = plan->kind;
	request.permits = 3;
	request.take = 2;
	request.names = names;
	request.name_count = plan->name_count;
	request.lease_ms = LEASE_MS;
	request.wait_ms = has(plan, 'w') ? WAIT_MS : 0;
	request.owner = OWNER;
	request.inherited = inherited;
	request.inherited_count = has(plan, 'I');
	request.note = "a note";
	request.issue_token = has(plan, 'T');
	request.on_wait = check_blocker;
	request.ctx = plan;
	status = rlock_acquire(plan->conn, &request, &acquired);
	check_error(plan, status);
	ALWAYS((status == RLOCK_OK) == (acquired != NULL));
	if (acquired == NULL)
		return;
	for (size_t i = 0; i < plan->name_count; i++)
		ALWAYS(is_one_of_ours(plan, rlock_hold_owner(acquired, i)));
	rlock_hold_free(*hold);
	*hold = acquired;
}

static void find(struct plan *plan, struct rlock_hold **hold)
{
	struct rlock_hold *found = NULL;
	enum rlock_status status = rlock_find(plan->conn, &names[0], OWNER, RLOCK_ANY, &found);

	check_error(plan, status);
	ALWAYS((status == RLOCK_OK) == (found != NULL));
	if (found == NULL)
		return;
	ALWAYS(rlock_hold_id(found)[0] != '\0');
	rlock_hold_free(*hold);
	*hold = found;
	plan->name_count = 1;
}

static void break_lock(const struct plan *plan)
{
	char was[RLOCK_OWNER_MAX] = "", note[RLOCK_NOTE_MAX] = "";

	check_error(plan, rlock_break(plan->conn, &names[0], has(plan, 'H') ? OWNER : NULL,
				      RLOCK_ANY, was, note));
	ALWAYS(fuzz_is_shown_safely(was));
	ALWAYS(fuzz_is_shown_safely(note));
}

static void stop(const struct plan *plan)
{
	const char *owner = has(plan, 'H') ? OWNER : NULL;
	struct rlock_stop found = { 0 };

	/* The second time it asks for what is left. */
	for (int i = 0; i < 2; i++) {
		enum rlock_status status =
			rlock_stop(plan->conn, &names[0], owner, "me@here", &found);

		check_error(plan, status);
		for (size_t n = 0; n < found.count; n++) {
			ALWAYS(fuzz_is_shown_safely(found.holds[n].owner));
			ALWAYS(fuzz_is_shown_safely(found.holds[n].note));
			ALWAYS(strlen(found.holds[n].id) < RLOCK_HOLD_ID_MAX);
		}
	}
	rlock_stop_clear(&found);
}

static void renew(const struct plan *plan, struct rlock_hold *hold)
{
	size_t index = 0;
	const char *by;

	check_error(plan, rlock_renew(plan->conn, hold, LEASE_MS, rlock_now_ms() + DELIVERY_MS));
	by = rlock_hold_told_by(hold, &index);
	ALWAYS(by == NULL || (fuzz_is_shown_safely(by) && index < plan->name_count));
}

static void check_inspections(const struct rlock_inspection *inspections, size_t count)
{
	for (size_t i = 0; inspections != NULL && i < count; i++) {
		const struct rlock_inspection *inspection = &inspections[i];
		size_t len = 0;

		ALWAYS(fuzz_is_shown_safely(inspection->error));
		for (size_t n = 0; n < inspection->holder_count; n++)
			len += strlen(inspection->holders[n].owner.text) +
			       strlen(inspection->holders[n].note.text);
		if (inspection->last != NULL) {
			ALWAYS(fuzz_is_shown_safely(inspection->last->end.reason));
			len += strlen(inspection->last->owner.text) +
			       strlen(inspection->last->kind);
		}
		for (size_t n = 0; n < inspection->queue_count; n++)
			len += strlen(inspection->queue[n].note.text);
		for (size_t n = 0; n < inspection->unseen_count; n++)
			ALWAYS(fuzz_is_shown_safely(inspection->unseen[n].why));
		ALWAYS(len < SIZE_MAX / 2);
	}
}

static void inspect(const struct plan *plan)
{
	struct rlock_inspection *inspections = NULL;
	size_t count = 0;
	enum rlock_status status = rlock_inspect(plan->conn, &names[0], &inspections, &count);

	check_error(plan, status);
	ALWAYS(status != RLOCK_OK || inspections != NULL);
	check_inspections(inspections, count);
	rlock_inspections_free(inspections, count);
}

static void check_locks(void *ctx, const struct rlock_inspection *locks, size_t count)
{
	(void)ctx;
	check_inspections(locks, count);
}

static void list(const struct plan *plan)
{
	const struct rlock_list_request request = { .pattern = { "*", 1 },
						    .on_locks = check_locks };

	check_error(plan, rlock_list(plan->conn, &request));
}

static void ask(struct plan *plan, char letter, struct rlock_hold **hold)
{
	switch (letter) {
	case 'p':
		check_error(plan, rlock_conn_ping(plan->conn));
		break;
	case 'a':
		acquire(plan, hold);
		break;
	case 'r':
		renew(plan, *hold);
		break;
	case 'u':
		check_error(plan, rlock_release(plan->conn, *hold, rlock_now_ms() + DELIVERY_MS));
		break;
	case 'l':
		check_error(plan,
			    rlock_keep_until(plan->conn, *hold, 500, rlock_now_ms() + DELIVERY_MS));
		break;
	case 'f':
		find(plan, hold);
		break;
	case 'b':
		break_lock(plan);
		break;
	case 'q':
		stop(plan);
		break;
	case 'i':
		inspect(plan);
		break;
	case 's':
		list(plan);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *letters = fuzz_line(&data, &size);
	struct plan plan = { letters, has(&(struct plan){ .letters = letters }, '2') ? 2 : 1,
			     RLOCK_PLAIN, NULL };
	struct rlock_hold *hold = NULL;

	if (server.listeners[0] == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		for (size_t i = 0; i < SERVERS_MAX; i++)
			server_listen(i);
	}
	now_ms = 1000000;
	server.left = data;
	server.left_size = size;
	plan.kind = kind_of(&plan);
	ALWAYS(rlock_hold_new(plan.kind, names, plan.name_count, ID, now_ms, LEASE_MS, &hold) ==
	       RLOCK_OK);
	connect_to(&plan);
	for (size_t i = 0; i < LETTERS_MAX && letters[i] != '\0'; i++)
		ask(&plan, letters[i], &hold);
	rlock_hold_free(hold);
	rlock_conn_free(plan.conn);
	/* The last connections are closed here. */
	for (size_t i = 0; i < server.count; i++)
		server_accept(server.listeners[i]);
	server_hang_up();
	free(letters);
	return 0;
}
