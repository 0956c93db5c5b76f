/*
 * librlock against a server that sends anything. The first line of the input selects the requests and their options, the rest
 * is what the server sends:
 *
 *   requests p ping, a acquire, r renew, u release, l keep until, f find, b break, q stop, i inspect, s list; they are
 *            sent in the order of their letters, if these are among the first LETTERS_MAX
 *   options  F, R, W a fair, read or write lock, M permits of a semaphore, 2 two names,
 *            3 three servers of which two must agree (not with M),
 *            w wait, T a token, P a password, D a database, N a name for the connection,
 *            I an inherited owner, H break and stop the holds of OWNER only
 *   marks    in the rest of the input: "@@\n": the server closes the connection here; "@~\n": the server falls
 *            silent here; the next connection gets the rest. "@-\n": a pause.
 *
 * The clock is simulated: when there is nothing to read, time jumps ahead.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
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
/* Simulated time until a server hangs up. It limits how often the library retries. */
#define HANG_UP_MS 400

static const struct rlock_name names[] = { { "job", 3 }, { "other job", 9 } };
static int64_t now_ms;

/* ---- the servers, on sockets "0" to "2" ---- */

static struct {
	int listeners[SERVERS_MAX];
	size_t count;             /* number of listeners in use */
	int streams[STREAMS_MAX]; /* accepted connections */
	size_t stream_count;
	int speaking; /* the stream that gets the next piece; -1: none */
	const uint8_t *left;
	size_t left_size;
} server = { .speaking = -1 };

static void server_listen(size_t index)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%zu", index);
	ALWAYS(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	ALWAYS(listen(listener, STREAMS_MAX) == 0);
	server.listeners[index] = listener;
}

/* Send the next piece, up to a mark, to the connection in speaking. False: there is no such connection. */
static bool server_speak(void)
{
	static const char marks[][4] = { "@@\n", "@~\n", "@-\n" };
	const uint8_t *end = server.left + server.left_size;
	char mark = '@';

	if (server.speaking < 0)
		return false;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const uint8_t *found =
			memmem(server.left, (size_t)(end - server.left), marks[i], 3);

		if (found != NULL) {
			end = found;
			mark = marks[i][1];
		}
	}
	/* Ignore errors, since the peer can have closed the connection. */
	if (end > server.left)
		(void)send(server.speaking, server.left, (size_t)(end - server.left),
			   MSG_NOSIGNAL | MSG_DONTWAIT);
	server.left_size -= (size_t)(end - server.left);
	server.left = end;
	if (server.left_size > 0) {
		server.left += 3;
		server.left_size -= 3;
	}
	if (mark == '@')
		(void)shutdown(server.speaking, SHUT_WR);
	if (mark != '-')
		server.speaking = -1;
	return true;
}

/* Accept connections. Close a connection at once if another one still gets a piece, or if nothing is left to send. */
static void servers_accept(void)
{
	for (size_t i = 0; i < server.count; i++) {
		int stream = accept4(server.listeners[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (stream < 0)
			continue;
		if (server.left_size == 0 || server.speaking >= 0 ||
		    server.stream_count == STREAMS_MAX) {
			(void)close(stream);
			now_ms += HANG_UP_MS;
			continue;
		}
		server.streams[server.stream_count++] = stream;
		server.speaking = stream;
		(void)server_speak();
	}
}

/* ---- the library's clock, instead of lib/base/clock.c ---- */

int64_t rlock_now_ms(void)
{
	return now_ms;
}

int64_t rlock_deadline_ms(int64_t duration_ms)
{
	return duration_ms < INT64_MAX - now_ms ? now_ms + duration_ms : INT64_MAX;
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
		servers_accept();
		ready = poll(fds, count, 0);
	} while (ready == 0 && server_speak());
	if (ready == 0) {
		/* The library must not poll without a deadline if no event can come: such a poll would never return. */
		ALWAYS(deadline_ms < INT64_MAX);
		if (deadline_ms > now_ms)
			now_ms = deadline_ms;
	}
	/* Let time pass also if there is always something to read. */
	now_ms += ready > 0;
	return ready;
}

/* ---- requests ---- */

static struct {
	const char *letters;
	size_t name_count;
	struct rlock_conn *conn;
	struct rlock_hold *hold;
} plan;

static bool has(char letter)
{
	return strchr(plan.letters, letter) != NULL;
}

static enum rlock_kind kind(void)
{
	return has('F')   ? RLOCK_FAIR
	       : has('R') ? RLOCK_READ
	       : has('W') ? RLOCK_WRITE
	       : has('M') ? RLOCK_SEMAPHORE
			  : RLOCK_PLAIN;
}

static void connect_to_servers(void)
{
	struct rlock_url *urls[SERVERS_MAX] = { NULL };
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	char text[sizeof("unix://0?db=3") + 256], directory[256];
	struct rlock_url_error error;

	ALWAYS(getcwd(directory, sizeof(directory)) != NULL);
	server.count = has('3') && !has('M') ? 3 : 1;
	opts.client_name = has('N') ? "rlock" : NULL;
	opts.quorum = server.count / 2 + 1;
	for (size_t i = 0; i < server.count; i++) {
		(void)snprintf(text, sizeof(text), "unix://%s/%zu%s", directory, i,
			       has('D') ? "?db=3" : "");
		ALWAYS(rlock_url_parse(text, &urls[i], &error) == RLOCK_OK);
		ALWAYS(!has('P') || rlock_url_set_password(urls[i], "secret") == RLOCK_OK);
	}
	ALWAYS(rlock_conn_new(urls, server.count, &opts, &plan.conn) == RLOCK_OK);
	for (size_t i = 0; i < server.count; i++)
		rlock_url_free(urls[i]);
}

static void check_blocker(void *ctx, const struct rlock_blocker *blocker)
{
	char shown[RLOCK_OWNER_MAX];

	(void)ctx;
	ALWAYS(blocker->name_index < plan.name_count);
	(void)rlock_escape(blocker->owner, blocker->owner_len, shown, sizeof(shown));
	(void)rlock_escape(blocker->note, blocker->note_len, shown, sizeof(shown));
}

static struct rlock_hold *make_hold(const char *const *owners)
{
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_hold *hold = NULL;

	spec.kind = kind();
	spec.names = names;
	spec.name_count = plan.name_count;
	spec.id = ID;
	spec.owner = OWNER;
	spec.owners = owners;
	spec.note = "a note";
	spec.sent_ms = now_ms;
	spec.lease_ms = LEASE_MS;
	spec.permits = 3;
	spec.take = 2;
	ALWAYS(rlock_hold_new(&spec, &hold) == RLOCK_OK);
	return hold;
}

/* Check the new hold, which replaces the old one. */
static void check_hold(struct rlock_hold *hold)
{
	rlock_hold_free(plan.hold);
	plan.hold = hold;
}

static enum rlock_status acquire(void)
{
	static const char *const inherited[] = { INHERITED };
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_hold *hold = make_hold(NULL);
	enum rlock_status status;

	request.wait_ms = has('w') ? WAIT_MS : 0;
	request.inherited = inherited;
	request.inherited_count = has('I');
	request.issue_token = has('T');
	request.on_wait = check_blocker;
	status = rlock_acquire(plan.conn, hold, &request);
	for (size_t i = 0; status == RLOCK_OK && i < plan.name_count; i++) {
		const char *owner = rlock_hold_owner(hold, i);

		ALWAYS(strcmp(owner, OWNER) == 0 || (has('I') && strcmp(owner, INHERITED) == 0));
	}
	if (status == RLOCK_OK)
		check_hold(hold);
	else
		rlock_hold_free(hold);
	return status;
}

static enum rlock_status find(void)
{
	struct rlock_hold *found = NULL;
	enum rlock_status status =
		rlock_find(plan.conn, &names[0], OWNER, RLOCK_ANY, RLOCK_PURPOSE_UNKNOWN,
			   rlock_now_ms() + DELIVERY_MS, &found);

	ALWAYS((status == RLOCK_OK) == (found != NULL));
	if (found == NULL)
		return status;
	ALWAYS(rlock_hold_id(found)[0] != '\0');
	check_hold(found);
	plan.name_count = 1;
	return status;
}

static enum rlock_status break_lock(void)
{
	char was[RLOCK_OWNER_MAX] = "", note[RLOCK_NOTE_MAX] = "";
	enum rlock_status status = rlock_break(plan.conn, &names[0], has('H') ? OWNER : NULL,
					       RLOCK_ANY, rlock_now_ms() + DELIVERY_MS, was, note);

	ALWAYS(fuzz_is_shown_safely(was) && fuzz_is_shown_safely(note));
	return status;
}

static enum rlock_status stop(void)
{
	struct rlock_stop_request found = { 0 };
	enum rlock_status status = RLOCK_OK;

	/* Call it twice: the second call asks the holds that the first one has not asked. */
	for (int i = 0; i < 2; i++) {
		status = rlock_request_stop(plan.conn, &names[0], has('H') ? OWNER : NULL,
					    "me@here", rlock_now_ms() + DELIVERY_MS, &found);
		for (size_t n = 0; n < found.count; n++) {
			ALWAYS(fuzz_is_shown_safely(found.holds[n].owner));
			ALWAYS(fuzz_is_shown_safely(found.holds[n].note));
			ALWAYS(strlen(found.holds[n].id) < RLOCK_HOLD_ID_MAX);
		}
	}
	rlock_stop_request_clear(&found);
	return status;
}

static enum rlock_status renew(void)
{
	size_t index = 0;
	enum rlock_status status =
		rlock_renew(plan.conn, plan.hold, LEASE_MS, rlock_now_ms() + DELIVERY_MS);
	const char *by = rlock_hold_stop_requested_by(plan.hold, &index);

	ALWAYS(by == NULL || (fuzz_is_shown_safely(by) && index < plan.name_count));
	return status;
}

/* All text members must be set. */
static void check_locks(void *ctx, const struct rlock_inspection *locks, size_t count)
{
	size_t len = 0;

	(void)ctx;
	for (size_t i = 0; i < count; i++) {
		const struct rlock_inspection *lock = &locks[i];

		ALWAYS(fuzz_is_shown_safely(lock->error));
		for (size_t n = 0; n < lock->holder_count; n++)
			len += strlen(lock->holders[n].owner.text) +
			       strlen(lock->holders[n].note.text);
		if (lock->last != NULL) {
			ALWAYS(fuzz_is_shown_safely(lock->last->reason));
			len += strlen(lock->last->owner.text) + strlen(lock->last->kind);
		}
		for (size_t n = 0; n < lock->queue_count; n++)
			len += strlen(lock->queue[n].note.text);
		for (size_t n = 0; n < lock->unseen_count; n++)
			ALWAYS(fuzz_is_shown_safely(lock->unseen[n].why));
	}
	ALWAYS(len < SIZE_MAX / 2);
}

static enum rlock_status inspect(void)
{
	struct rlock_inspection *inspections = NULL;
	size_t count = 0;
	enum rlock_status status =
		rlock_inspect(plan.conn, &names[0], INT64_MAX, &inspections, &count);

	ALWAYS(status != RLOCK_OK || inspections != NULL);
	if (inspections != NULL)
		check_locks(NULL, inspections, count);
	rlock_inspections_free(inspections, count);
	return status;
}

static enum rlock_status ask(char letter)
{
	const struct rlock_list_request request = { .pattern = { "*", 1 },
						    .on_locks = check_locks };

	switch (letter) {
	case 'p':
		return rlock_conn_ping(plan.conn);
	case 'a':
		return acquire();
	case 'r':
		return renew();
	case 'u':
		return rlock_release(plan.conn, plan.hold, rlock_now_ms() + DELIVERY_MS);
	case 'l':
		return rlock_keep_until(plan.conn, plan.hold, 500, rlock_now_ms() + DELIVERY_MS);
	case 'f':
		return find();
	case 'b':
		return break_lock();
	case 'q':
		return stop();
	case 'i':
		return inspect();
	case 's':
		return rlock_list(plan.conn, &request);
	default:
		return RLOCK_OK;
	}
}

static void check_status(enum rlock_status status)
{
	ALWAYS(strcmp(rlock_status_name(status), "unknown") != 0);
	if (status == RLOCK_OK)
		return;
	ALWAYS(status != RLOCK_ENOMEM && status != RLOCK_ESYS && status != RLOCK_EINVAL);
	ALWAYS(fuzz_is_shown_safely(rlock_conn_error(plan.conn)));
	ALWAYS(rlock_conn_error(plan.conn)[0] != '\0');
	ALWAYS(rlock_conn_error_name(plan.conn) < plan.name_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *letters = fuzz_line(&data, &size);

	if (server.listeners[0] == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		fuzz_enter_directory();
		for (size_t i = 0; i < SERVERS_MAX; i++)
			server_listen(i);
	}
	now_ms = 1000000;
	server.left = data;
	server.left_size = size;
	plan.letters = letters;
	plan.name_count = has('2') ? 2 : 1;
	/* Give the two names two owners, so that each name is regained by a separate request. */
	plan.hold = make_hold((const char *const[]){ OWNER, INHERITED });
	connect_to_servers();
	for (size_t i = 0; i < LETTERS_MAX && letters[i] != '\0'; i++)
		check_status(ask(letters[i]));
	rlock_hold_free(plan.hold);
	rlock_conn_free(plan.conn);
	/* Accept and close the last connections. */
	servers_accept();
	while (server.stream_count > 0)
		(void)close(server.streams[--server.stream_count]);
	server.speaking = -1;
	free(letters);
	return 0;
}
