/*
 * A fault proxy for the tests: stands between a client and a Redis server and, on command, loses,
 * delays, holds or spoils what passes. It knows so much of the protocol that a fault hits the reply
 * to one certain request; what the requests mean is the tests' business.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: faultproxy LISTEN TARGET CONTROL\n"
	"       faultproxy -c CONTROL COMMAND...\n"
	"LISTEN and TARGET are unix:PATH or tcp:ADDRESS:PORT (port 0 picks one), CONTROL is\n"
	"unix:PATH. Prints \"listen\" with the address, then \"ready\". With -c: sends one\n"
	"command and prints the answer, \"ok\" if there is no other; 1 if that is an error.\n"
	"\n"
	"pass                  no faults any more; what was held goes on\n"
	"delay MS              each piece from the server to a client waits\n"
	"far MS                the same, and so do the first ones of a new connection, up and down, for\n"
	"                      TCP's handshake: for its clients, the server is a round trip of MS away\n"
	"trickle on|off        replies go out a byte at a time, one in a millisecond\n"
	"cut                   close all connections now\n"
	"half-close            the clients see an end, but are still heard\n"
	"refuse on|off         close what connects at once\n"
	"blackhole on|off [up|down|both]\n"
	"                      let nothing through, to the server or from it, until off\n"
	"silence               let nothing more through on what is connected now; what connects\n"
	"                      later passes\n"
	"cut-before MATCH [N]  such a request is not forwarded: its connection is closed instead\n"
	"drop-reply MATCH [N]  the reply is awaited, thrown away, and the connection closed\n"
	"hold-reply MATCH [N]  the reply, and what follows it, waits for a release\n"
	"stall-reply MATCH [N] the reply is thrown away, and the connection closed a while later\n"
	"end-reply MATCH [N]   in its place the client sees an end, but is still heard\n"
	"trickle-reply MATCH [N]\n"
	"                      the reply goes out a byte at a time, one in a millisecond\n"
	"garbage MATCH [N]     something that is no reply takes its place\n"
	"spare MATCH [N]       such a request passes, and uses up no rule that was given later\n"
	"at N up|down cut|flip|stop|late\n"
	"                      the next connection is closed before that byte (from 0) to or from\n"
	"                      the server, or the byte is inverted, or nothing passes from it on,\n"
	"                      or it and what follows it that way is late\n"
	"stall MS              how long a stalled reply is waited for, and how late what is late is\n"
	"                      (300)\n"
	"release               what was held goes on\n"
	"count                 connections=N requests=N replies=N dropped=N writes_up=N spoiled=N\n"
	"                      bytes_up=N bytes_down=N\n"
	"reset-count           all of these from 0\n"
	"state                 open=N held=N rules=N: connections, replies, rules not used up\n"
	"log FILE              append each request's words, escaped, as a line; - ends that\n"
	"quit\n"
	"\n"
	"MATCH is looked for in each word of a request, in any case; * is every request, and A!B\n"
	"one with A and without B. A rule\n"
	"is good for N of them (1). Before a connection is closed for a rule, the requests in\n"
	"front are answered. writes_up counts what was read from clients in one piece, that is,\n"
	"round trips; spoiled the faults of \"at\" that happened. Not understood: CLIENT REPLY,\n"
	"MONITOR. What is not the protocol, as TLS, passes, and only its bytes are counted.\n";

#define READ_SIZE 65536
#define BACKLOG 511
#define UP_MAX (1 << 20) /* read no more from a client while so much waits for the server */
#define HELD INT64_MAX   /* a due time that doesn't come */
#define MS INT64_C(1000) /* in microseconds */
#define GARBAGE "\x01 this is no reply\r\n"

/* Bytes that grow at the end and are taken from the front. */
struct buffer {
	char *bytes;
	size_t len, room;
};

struct endpoint {
	struct sockaddr_storage addr;
	socklen_t len;
};

enum fault {
	FAULT_NONE,
	FAULT_CUT,
	FAULT_DROP,
	FAULT_HOLD,
	FAULT_STALL,
	FAULT_END,
	FAULT_TRICKLE,
	FAULT_GARBAGE,
};

/* What becomes of one byte of a connection, whatever the protocol is. */
enum spoil {
	SPOIL_NONE,
	SPOIL_CUT,
	SPOIL_FLIP,
	SPOIL_STOP,
	SPOIL_LATE,
};

struct spoiler {
	enum spoil spoil;
	bool is_up;
	size_t position;
};

struct rule {
	struct rule *next;
	enum fault fault;
	char *match;
	long left;
};

/* A request that was forwarded and not answered yet. */
struct request {
	struct request *next;
	enum fault fault;
	size_t replies_left; /* SUBSCRIBE has one for each channel */
};

/* A piece on its way to a client. */
struct piece {
	struct piece *next;
	int64_t due_us;
	size_t len, sent;
	bool trickles;
	char bytes[];
};

struct conn {
	struct conn *next;
	int client, server;
	bool is_connecting;    /* to the server */
	bool has_no_more_up;   /* the client sends no more */
	bool has_no_more_down; /* the server sends no more */
	bool is_up_shut;       /* and has been told so */
	bool is_half_closed;   /* the client gets no more */
	bool is_silent;        /* nothing is read or written any more */
	bool is_opaque;        /* not Redis' protocol */
	bool is_subscriber;    /* messages arrive that answer no request */
	bool is_ending;        /* to be closed when the requests in front are answered */
	bool is_dead;          /* to be closed and freed now */
	size_t channels[3];    /* subscribed to: plain, by pattern, sharded */
	struct buffer up_in, up_out, down_in;
	struct request *requests, **requests_end;
	struct piece *pieces, **pieces_end;
	int64_t next_byte_us; /* when it trickles */
	struct spoiler spoiler;
	size_t up_count, down_count;      /* bytes read from either side */
	int64_t up_from_us, down_from_us; /* nothing goes to that side before */
};

/* A client of the control socket. */
struct control {
	struct control *next;
	int fd;
	bool is_dead;
	struct buffer in;
};

struct counts {
	unsigned long connections, requests, replies, dropped, writes_up, spoiled, bytes_up,
		bytes_down;
};

static struct {
	int listener, control_listener;
	struct endpoint target;
	struct conn *conns;
	struct control *controls;
	struct rule *rules;
	struct counts counts;
	FILE *log;
	int64_t delay_us, stall_us;
	bool trickles, refuses, holes_up, holes_down, is_far;
	struct spoiler spoiler; /* of the next connection */
	bool is_over;
} proxy = { .stall_us = 300 * MS };

/* ---- small things ---- */

_Noreturn static void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "faultproxy: %s: %s\n", what, why);
	exit(2);
}

static void *need(void *memory)
{
	if (memory == NULL)
		die("memory", strerror(ENOMEM));
	return memory;
}

/* In microseconds, since a round trip may take one millisecond. */
static int64_t now_us(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void buffer_add(struct buffer *buffer, const char *bytes, size_t len)
{
	if (buffer->room - buffer->len < len) {
		buffer->room = (buffer->len + len) * 2;
		buffer->bytes = need(realloc(buffer->bytes, buffer->room));
	}
	if (len > 0)
		memcpy(buffer->bytes + buffer->len, bytes, len);
	buffer->len += len;
}

static void buffer_take(struct buffer *buffer, size_t len)
{
	buffer->len -= len;
	if (buffer->len > 0)
		memmove(buffer->bytes, buffer->bytes + len, buffer->len);
}

/* One read(2) into buffer; its result. */
static ssize_t buffer_read(struct buffer *buffer, int fd)
{
	static char bytes[READ_SIZE];
	ssize_t len = read(fd, bytes, sizeof(bytes));

	if (len > 0)
		buffer_add(buffer, bytes, (size_t)len);
	return len;
}

static bool is_temporary(int err)
{
	return err == EAGAIN || err == EINTR;
}

/* ---- the protocol ---- */

static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* The length of the line at bytes with its end, 0 when that hasn't come yet. */
static size_t line_len(const char *bytes, size_t len)
{
	const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;

	return end == NULL ? 0 : (size_t)(end - bytes) + 1;
}

/* The number behind a line's first byte; false if there is none. */
static bool line_number(const char *line, size_t len, long *out)
{
	char *end;

	if (len < 4 || line[len - 2] != '\r')
		return false;
	*out = strtol(line + 1, &end, 10);
	return end == line + len - 2 && *out >= -1 && *out <= INT_MAX;
}

/*
 * The length of the whole value at bytes (RESP2 or RESP3; streamed ones aside), 0 when a part of it
 * hasn't come yet, -1 when it is no value.
 */
static long value_len(const char *bytes, size_t len)
{
	static const char simple[] = "+-:_#,(", sized[] = "$=!", counted[] = "*~>%|";
	size_t pos = 0;
	long missing, number;

	for (missing = 1; missing > 0; missing--) {
		const char *at = bytes + pos;
		size_t line = line_len(at, len - pos);

		if (pos == len)
			return 0;
		if (!is_one_of(*at, simple) && !is_one_of(*at, sized) && !is_one_of(*at, counted))
			return -1;
		if (line == 0)
			return 0;
		pos += line;
		if (is_one_of(*at, simple))
			continue;
		if (!line_number(at, line, &number))
			return -1;
		if (number < 0)
			continue; /* null: nothing follows */
		if (is_one_of(*at, sized))
			pos += (size_t)number + 2;
		else
			missing += is_one_of(*at, "%|") ? 2 * number : number;
		if (*at == '|')
			missing++; /* attributes stand before a value */
		if (pos > len)
			return 0;
	}
	return (long)pos;
}

/* The same of a request, which may be a bare line. */
static long request_len(const char *bytes, size_t len)
{
	if (bytes[0] == '*')
		return value_len(bytes, len);
	if (isalnum((unsigned char)bytes[0]) || bytes[0] == '\r' || bytes[0] == '\n')
		return (long)line_len(bytes, len);
	return -1;
}

struct words {
	const char *pos, *end;
	bool is_inline;
};

static struct words words_of(const char *request, size_t len)
{
	struct words words = { request, request + len, request[0] != '*' };

	if (!words.is_inline)
		words.pos += line_len(request, len);
	return words;
}

static bool is_blank(char c)
{
	return isspace((unsigned char)c) != 0;
}

/* The next word of a whole request; false behind the last one. */
static bool next_word(struct words *words, const char **text_out, size_t *len_out)
{
	size_t line;
	long len;

	while (words->is_inline && words->pos < words->end && is_blank(*words->pos))
		words->pos++;
	if (words->pos >= words->end)
		return false;
	*text_out = words->pos;
	if (words->is_inline) {
		while (words->pos < words->end && !is_blank(*words->pos))
			words->pos++;
		*len_out = (size_t)(words->pos - *text_out);
		return true;
	}
	line = line_len(words->pos, (size_t)(words->end - words->pos));
	if (*words->pos != '$' || !line_number(words->pos, line, &len) || len < 0)
		return false;
	*text_out = words->pos + line;
	*len_out = (size_t)len;
	words->pos = *text_out + len + 2;
	return true;
}

static bool word_is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && strncasecmp(text + len - end_len, end, end_len) == 0;
}

static bool contains(const char *text, size_t len, const char *match, size_t match_len)
{
	size_t i;

	for (i = 0; i + match_len <= len; i++)
		if (strncasecmp(text + i, match, match_len) == 0)
			return true;
	return false;
}

static bool has_word(const char *request, size_t len, const char *match, size_t match_len)
{
	struct words words = words_of(request, len);
	const char *text;
	size_t text_len;

	while (next_word(&words, &text, &text_len))
		if (contains(text, text_len, match, match_len))
			return true;
	return false;
}

static bool request_matches(const char *request, size_t len, const char *match)
{
	const char *without = strchr(match, '!');
	size_t match_len = without != NULL ? (size_t)(without - match) : strlen(match);

	if (strcmp(match, "*") == 0)
		return true;
	return has_word(request, len, match, match_len) &&
	       (without == NULL || !has_word(request, len, without + 1, strlen(without + 1)));
}

/* Whether it is a message to a subscriber, or another push, and not the answer to a request. */
static bool is_push(const struct conn *conn, const char *reply, size_t len)
{
	struct words words = { reply + line_len(reply, len), reply + len, false };
	const char *kind;
	size_t kind_len;

	if (reply[0] != '>' && !(reply[0] == '*' && conn->is_subscriber))
		return false;
	if (!next_word(&words, &kind, &kind_len))
		return reply[0] == '>';
	if (reply[0] == '>')
		return !ends_with(kind, kind_len, "subscribe");
	return word_is(kind, kind_len, "message") || word_is(kind, kind_len, "pmessage") ||
	       word_is(kind, kind_len, "smessage");
}

/* How many replies a request gets; keeps count of what conn is subscribed to. */
static size_t count_replies(struct conn *conn, const char *request, size_t len)
{
	struct words words = words_of(request, len);
	const char *verb, *text;
	size_t verb_len, text_len, args = 0, replies;
	size_t *channels;
	bool leaves;

	if (!next_word(&words, &verb, &verb_len))
		return 0; /* an empty line has no answer */
	if (!ends_with(verb, verb_len, "subscribe"))
		return 1;
	while (next_word(&words, &text, &text_len))
		args++;
	leaves = ends_with(verb, verb_len, "unsubscribe");
	if (verb_len == strlen(leaves ? "unsubscribe" : "subscribe"))
		channels = &conn->channels[0];
	else
		channels = &conn->channels[tolower((unsigned char)verb[0]) == 'p' ? 1 : 2];
	conn->is_subscriber = true;
	replies = args;
	if (!leaves) {
		*channels += args;
	} else {
		if (args == 0)
			replies = *channels;
		*channels -= replies < *channels ? replies : *channels;
	}
	return replies > 0 ? replies : 1;
}

static void log_request(const char *request, size_t len)
{
	struct words words = words_of(request, len);
	const char *text, *blank = "";
	size_t text_len, i;

	while (next_word(&words, &text, &text_len)) {
		(void)fputs(blank, proxy.log);
		blank = " ";
		if (text_len == 0)
			(void)fputs("\"\"", proxy.log);
		for (i = 0; i < text_len; i++) {
			unsigned char c = (unsigned char)text[i];

			if (c > ' ' && c < 0x7f && c != '\\' && c != '"')
				(void)putc(c, proxy.log);
			else
				(void)fprintf(proxy.log, "\\x%02x", c);
		}
	}
	(void)putc('\n', proxy.log);
	(void)fflush(proxy.log);
}

/* ---- rules ---- */

static void rules_clear(void)
{
	while (proxy.rules != NULL) {
		struct rule *rule = proxy.rules;

		proxy.rules = rule->next;
		free(rule->match);
		free(rule);
	}
}

static void rules_add(enum fault fault, const char *match, long times)
{
	struct rule **end = &proxy.rules;
	struct rule *rule = need(calloc(1, sizeof(*rule)));

	rule->fault = fault;
	rule->match = need(strdup(match));
	rule->left = times;
	while (*end != NULL)
		end = &(*end)->next;
	*end = rule;
}

/* What is to happen to a request: the oldest rule that matches it, which is used up by that. */
static enum fault rules_apply(const char *request, size_t len)
{
	struct rule **at = &proxy.rules;
	struct rule *rule;
	enum fault fault;

	while (*at != NULL && !request_matches(request, len, (*at)->match))
		at = &(*at)->next;
	rule = *at;
	if (rule == NULL)
		return FAULT_NONE;
	fault = rule->fault;
	if (--rule->left <= 0) {
		*at = rule->next;
		free(rule->match);
		free(rule);
	}
	return fault;
}

/* ---- connections ---- */

static void conn_open(int client)
{
	struct conn *conn = need(calloc(1, sizeof(*conn)));
	int one = 1;

	conn->client = client;
	conn->requests_end = &conn->requests;
	conn->pieces_end = &conn->pieces;
	conn->server =
		socket(proxy.target.addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connect(conn->server, (struct sockaddr *)&proxy.target.addr, proxy.target.len) != 0) {
		conn->is_connecting = errno == EINPROGRESS;
		conn->is_dead = !conn->is_connecting;
	}
	/* Of no use, and no harm, on a unix socket. */
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(conn->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (proxy.is_far) {
		conn->up_from_us = now_us() + proxy.delay_us;
		conn->down_from_us = conn->up_from_us + proxy.delay_us;
	}
	conn->spoiler = proxy.spoiler;
	proxy.spoiler.spoil = SPOIL_NONE;
	conn->next = proxy.conns;
	proxy.conns = conn;
}

static void conn_drop_requests(struct conn *conn)
{
	while (conn->requests != NULL) {
		struct request *request = conn->requests;

		conn->requests = request->next;
		free(request);
	}
	conn->requests_end = &conn->requests;
}

static void conn_drop_piece(struct conn *conn)
{
	struct piece *piece = conn->pieces;

	conn->pieces = piece->next;
	if (conn->pieces == NULL)
		conn->pieces_end = &conn->pieces;
	free(piece);
}

static void conn_free(struct conn *conn)
{
	(void)close(conn->client);
	(void)close(conn->server);
	conn_drop_requests(conn);
	while (conn->pieces != NULL)
		conn_drop_piece(conn);
	free(conn->up_in.bytes);
	free(conn->up_out.bytes);
	free(conn->down_in.bytes);
	free(conn);
}

static struct piece *conn_add_piece(struct conn *conn, const char *bytes, size_t len,
				    int64_t due_us)
{
	struct piece *piece = need(malloc(sizeof(*piece) + len));

	piece->next = NULL;
	piece->due_us = due_us;
	piece->len = len;
	piece->sent = 0;
	piece->trickles = false;
	memcpy(piece->bytes, bytes, len);
	*conn->pieces_end = piece;
	conn->pieces_end = &piece->next;
	return piece;
}

/* One whole request from the client. */
static void conn_take_request(struct conn *conn, const char *bytes, size_t len)
{
	enum fault fault = rules_apply(bytes, len);
	size_t replies;

	if (fault == FAULT_CUT) {
		conn->is_ending = true;
		return;
	}
	buffer_add(&conn->up_out, bytes, len);
	replies = count_replies(conn, bytes, len);
	if (replies > 0) {
		struct request *request = need(calloc(1, sizeof(*request)));

		request->fault = fault;
		request->replies_left = replies;
		*conn->requests_end = request;
		conn->requests_end = &request->next;
		proxy.counts.requests++;
		if (proxy.log != NULL)
			log_request(bytes, len);
	}
}

static void conn_take_up(struct conn *conn)
{
	struct buffer *in = &conn->up_in;
	size_t pos = 0;

	while (pos < in->len && !conn->is_ending) {
		long len = conn->is_opaque ? (long)(in->len - pos)
					   : request_len(in->bytes + pos, in->len - pos);

		if (len == 0)
			break;
		if (len < 0)
			conn->is_opaque = true;
		else if (conn->is_opaque)
			buffer_add(&conn->up_out, in->bytes + pos, (size_t)len);
		else
			conn_take_request(conn, in->bytes + pos, (size_t)len);
		if (len > 0)
			pos += (size_t)len;
	}
	buffer_take(in, pos);
}

/* The request that a reply belongs to has been answered in full. */
static void conn_answered(struct conn *conn)
{
	struct request *request = conn->requests;

	conn->requests = request->next;
	if (conn->requests == NULL)
		conn->requests_end = &conn->requests;
	if (request->fault == FAULT_DROP) {
		proxy.counts.dropped++;
		conn->is_ending = true;
		conn_drop_requests(conn); /* their replies are lost with the connection */
	}
	free(request);
}

static void conn_half_close(struct conn *conn)
{
	(void)shutdown(conn->client, SHUT_WR);
	conn->is_half_closed = true;
}

/* A piece without a byte, behind which the connection may end. */
static void conn_stall(struct conn *conn, int64_t until_us)
{
	(void)conn_add_piece(conn, "", 0, until_us);
	conn->is_ending = true;
	conn_drop_requests(conn);
}

/* What goes to the client in the place of a reply, or is done to it. */
static void conn_pass_reply(struct conn *conn, const char *bytes, size_t len, enum fault fault)
{
	int64_t due_us = now_us() + proxy.delay_us;

	switch (fault) {
	case FAULT_DROP:
		break;
	case FAULT_STALL:
		conn_stall(conn, now_us() + proxy.stall_us);
		break;
	case FAULT_END:
		conn_half_close(conn);
		break;
	case FAULT_GARBAGE:
		(void)conn_add_piece(conn, GARBAGE, strlen(GARBAGE), due_us);
		break;
	case FAULT_HOLD:
		(void)conn_add_piece(conn, bytes, len, HELD);
		break;
	case FAULT_TRICKLE:
		conn_add_piece(conn, bytes, len, due_us)->trickles = true;
		break;
	case FAULT_NONE:
	case FAULT_CUT:
		(void)conn_add_piece(conn, bytes, len, due_us);
		break;
	}
}

/* One whole reply from the server. */
static void conn_take_reply(struct conn *conn, const char *bytes, size_t len)
{
	struct request *request = is_push(conn, bytes, len) ? NULL : conn->requests;
	enum fault fault = request != NULL ? request->fault : FAULT_NONE;

	proxy.counts.replies++;
	conn_pass_reply(conn, bytes, len, fault);
	/* A reply that stalls takes all requests with it. */
	if (conn->requests == request && request != NULL && --request->replies_left == 0)
		conn_answered(conn);
}

/* Whether nothing that the server still says is for the client. */
static bool is_deaf(const struct conn *conn)
{
	return conn->is_ending && conn->requests == NULL;
}

static void conn_take_down(struct conn *conn)
{
	struct buffer *in = &conn->down_in;
	size_t pos = 0;

	while (pos < in->len && !is_deaf(conn)) {
		long len = conn->is_opaque ? (long)(in->len - pos)
					   : value_len(in->bytes + pos, in->len - pos);

		if (len == 0)
			break;
		if (len < 0)
			conn->is_opaque = true;
		else if (conn->is_opaque)
			(void)conn_add_piece(conn, in->bytes + pos, (size_t)len,
					     now_us() + proxy.delay_us);
		else
			conn_take_reply(conn, in->bytes + pos, (size_t)len);
		if (len > 0)
			pos += (size_t)len;
	}
	buffer_take(in, pos);
}

/* ---- moving bytes ---- */

/*
 * So many bytes have come, at the end of in, after count others of that way. False when nothing passes any more; what
 * stands before the byte is on its way to the other side then.
 */
static bool conn_spoil(struct conn *conn, struct buffer *in, size_t len, size_t count, int to)
{
	const size_t position = conn->spoiler.position;
	char *byte;

	if (position < count || position >= count + len)
		return true;
	proxy.counts.spoiled++;
	byte = in->bytes + (in->len - len) + (position - count);
	if (conn->spoiler.spoil == SPOIL_FLIP) {
		*byte = (char)~*byte;
		conn->spoiler.spoil = SPOIL_NONE;
		return true;
	}
	(void)send(to, in->bytes, (size_t)(byte - in->bytes), MSG_NOSIGNAL);
	if (conn->spoiler.spoil == SPOIL_LATE) {
		buffer_take(in, (size_t)(byte - in->bytes));
		*(conn->spoiler.is_up ? &conn->up_from_us : &conn->down_from_us) =
			now_us() + proxy.stall_us;
		conn->spoiler.spoil = SPOIL_NONE;
		return true;
	}
	in->len = 0;
	if (conn->spoiler.spoil == SPOIL_CUT)
		conn->is_dead = true;
	else
		conn->is_silent = true;
	conn->spoiler.spoil = SPOIL_NONE;
	return false;
}

static bool conn_takes(struct conn *conn, bool is_up, ssize_t len)
{
	size_t *count = is_up ? &conn->up_count : &conn->down_count;
	size_t before = *count;

	*count += (size_t)len;
	*(is_up ? &proxy.counts.bytes_up : &proxy.counts.bytes_down) += (unsigned long)len;
	if (conn->spoiler.spoil == SPOIL_NONE || conn->spoiler.is_up != is_up)
		return true;
	return conn_spoil(conn, is_up ? &conn->up_in : &conn->down_in, (size_t)len, before,
			  is_up ? conn->server : conn->client);
}

static void conn_read_client(struct conn *conn)
{
	ssize_t len = buffer_read(&conn->up_in, conn->client);

	if (len > 0 && !conn_takes(conn, true, len))
		return;
	if (len > 0) {
		proxy.counts.writes_up++;
		conn_take_up(conn);
	} else if (len == 0) {
		conn->has_no_more_up = true;
	} else if (!is_temporary(errno)) {
		conn->is_dead = true;
	}
}

static void conn_read_server(struct conn *conn)
{
	ssize_t len = buffer_read(&conn->down_in, conn->server);

	if (len > 0 && !conn_takes(conn, false, len))
		return;
	if (len > 0)
		conn_take_down(conn);
	else if (len == 0 || !is_temporary(errno))
		conn->has_no_more_down = true;
}

static void conn_write_server(struct conn *conn)
{
	ssize_t len;
	socklen_t err_len = sizeof(int);
	int err = 0;

	if (conn->is_connecting) {
		(void)getsockopt(conn->server, SOL_SOCKET, SO_ERROR, &err, &err_len);
		conn->is_connecting = false;
		conn->is_dead = err != 0;
		return;
	}
	len = send(conn->server, conn->up_out.bytes, conn->up_out.len, MSG_NOSIGNAL);
	if (len > 0)
		buffer_take(&conn->up_out, (size_t)len);
	else if (len < 0 && !is_temporary(errno))
		conn->up_out.len = 0; /* reading will tell; there may be last words */
}

static bool is_trickling(const struct piece *piece)
{
	return proxy.trickles || piece->trickles;
}

/* When the first piece may go, HELD for not at all. */
static int64_t conn_due_us(const struct conn *conn)
{
	int64_t due_us;

	if (conn->pieces == NULL || proxy.holes_down || conn->is_silent)
		return HELD;
	due_us = conn->pieces->due_us;
	if (due_us < conn->down_from_us)
		due_us = conn->down_from_us;
	return is_trickling(conn->pieces) && due_us < conn->next_byte_us ? conn->next_byte_us
									 : due_us;
}

static void conn_write_client(struct conn *conn)
{
	while (!conn->is_dead && conn_due_us(conn) <= now_us()) {
		struct piece *piece = conn->pieces;
		size_t left = piece->len - piece->sent;
		ssize_t len = (ssize_t)left;

		if (!conn->is_half_closed)
			len = send(conn->client, piece->bytes + piece->sent,
				   is_trickling(piece) && left > 0 ? 1 : left, MSG_NOSIGNAL);
		if (len < 0) {
			conn->is_dead = !is_temporary(errno);
			return;
		}
		piece->sent += (size_t)len;
		if (piece->sent == piece->len)
			conn_drop_piece(conn);
		conn->next_byte_us = now_us() + MS;
	}
}

/* What follows from all that was read and written. */
static void conn_settle(struct conn *conn)
{
	if (conn->has_no_more_up && conn->up_out.len == 0 && !conn->is_up_shut &&
	    !conn->is_connecting && !proxy.holes_up) {
		(void)shutdown(conn->server, SHUT_WR);
		conn->is_up_shut = true;
	}
	if (conn->pieces == NULL && !proxy.holes_down && (conn->has_no_more_down || is_deaf(conn)))
		conn->is_dead = true;
}

static short conn_client_events(const struct conn *conn, int64_t now)
{
	short events = 0;

	if (conn->is_silent)
		return 0;
	if (!conn->has_no_more_up && !conn->is_ending && !proxy.holes_up &&
	    conn->up_out.len < UP_MAX)
		events |= POLLIN;
	if (conn_due_us(conn) <= now)
		events |= POLLOUT;
	return events;
}

static short conn_server_events(const struct conn *conn, int64_t now)
{
	short events = 0;

	if (conn->is_silent)
		return 0;
	if (!conn->has_no_more_down && !conn->is_connecting && !is_deaf(conn) && !proxy.holes_down)
		events |= POLLIN;
	if (conn->is_connecting ||
	    (conn->up_out.len > 0 && !proxy.holes_up && conn->up_from_us <= now))
		events |= POLLOUT;
	return events;
}

/* ---- commands ---- */

/* Each gives NULL or what is wrong; what it puts into answer takes the place of "ok". */
typedef const char *command_fn(struct buffer *answer, int argc, char **argv);

static bool parse_switch(const char *text, bool *out)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return false;
	*out = strcmp(text, "on") == 0;
	return true;
}

static bool parse_number(const char *text, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *out >= 0;
}

static const char *do_release(struct buffer *answer, int argc, char **argv)
{
	struct conn *conn;
	struct piece *piece;

	(void)answer, (void)argc, (void)argv;
	for (conn = proxy.conns; conn != NULL; conn = conn->next)
		for (piece = conn->pieces; piece != NULL; piece = piece->next)
			if (piece->due_us == HELD)
				piece->due_us = 0;
	return NULL;
}

static const char *do_pass(struct buffer *answer, int argc, char **argv)
{
	rules_clear();
	proxy.spoiler.spoil = SPOIL_NONE;
	proxy.delay_us = 0;
	proxy.is_far = false;
	proxy.trickles = proxy.refuses = proxy.holes_up = proxy.holes_down = false;
	return do_release(answer, argc, argv);
}

static const char *do_delay(struct buffer *answer, int argc, char **argv)
{
	long ms;

	(void)answer, (void)argc;
	if (!parse_number(argv[1], &ms))
		return "not a number of milliseconds";
	proxy.delay_us = ms * MS;
	proxy.is_far = strcmp(argv[0], "far") == 0;
	return NULL;
}

static const char *do_stall(struct buffer *answer, int argc, char **argv)
{
	long ms;

	(void)answer, (void)argc;
	if (!parse_number(argv[1], &ms))
		return "not a number of milliseconds";
	proxy.stall_us = ms * MS;
	return NULL;
}

static const char *do_trickle(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc;
	return parse_switch(argv[1], &proxy.trickles) ? NULL : "neither on nor off";
}

static const char *do_refuse(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc;
	return parse_switch(argv[1], &proxy.refuses) ? NULL : "neither on nor off";
}

static const char *do_blackhole(struct buffer *answer, int argc, char **argv)
{
	const char *way = argc > 2 ? argv[2] : "both";
	bool up = strcmp(way, "down") != 0, down = strcmp(way, "up") != 0;
	bool is_on;

	(void)answer;
	if (!parse_switch(argv[1], &is_on))
		return "neither on nor off";
	if (strcmp(way, "up") != 0 && strcmp(way, "down") != 0 && strcmp(way, "both") != 0)
		return "neither up nor down nor both";
	if (up)
		proxy.holes_up = is_on;
	if (down)
		proxy.holes_down = is_on;
	return NULL;
}

static const char *do_silence(struct buffer *answer, int argc, char **argv)
{
	struct conn *conn;

	(void)answer, (void)argc, (void)argv;
	for (conn = proxy.conns; conn != NULL; conn = conn->next)
		conn->is_silent = true;
	return NULL;
}

static const char *do_cut(struct buffer *answer, int argc, char **argv)
{
	struct conn *conn;

	(void)answer, (void)argc, (void)argv;
	for (conn = proxy.conns; conn != NULL; conn = conn->next) {
		/* Before the answer to this command, which the sweep is not. */
		(void)shutdown(conn->client, SHUT_RDWR);
		(void)shutdown(conn->server, SHUT_RDWR);
		conn->is_dead = true;
	}
	return NULL;
}

static const char *do_half_close(struct buffer *answer, int argc, char **argv)
{
	struct conn *conn;

	(void)answer, (void)argc, (void)argv;
	for (conn = proxy.conns; conn != NULL; conn = conn->next)
		conn_half_close(conn);
	return NULL;
}

static const char *do_rule(struct buffer *answer, int argc, char **argv)
{
	static const struct {
		const char *name;
		enum fault fault;
	} faults[] = {
		{ "cut-before", FAULT_CUT },  { "drop-reply", FAULT_DROP },
		{ "hold-reply", FAULT_HOLD }, { "stall-reply", FAULT_STALL },
		{ "end-reply", FAULT_END },   { "trickle-reply", FAULT_TRICKLE },
		{ "garbage", FAULT_GARBAGE }, { "spare", FAULT_NONE },
	};
	long times = 1;
	size_t i = 0;

	(void)answer;
	if (argc > 2 && (!parse_number(argv[2], &times) || times == 0))
		return "not a number of times";
	while (strcmp(argv[0], faults[i].name) != 0)
		i++;
	rules_add(faults[i].fault, argv[1], times);
	return NULL;
}

static const char *do_at(struct buffer *answer, int argc, char **argv)
{
	static const char *const spoils[] = { [SPOIL_CUT] = "cut",
					      [SPOIL_FLIP] = "flip",
					      [SPOIL_STOP] = "stop",
					      [SPOIL_LATE] = "late" };
	long position;

	(void)answer, (void)argc;
	if (!parse_number(argv[1], &position))
		return "not a number of bytes";
	if (strcmp(argv[2], "up") != 0 && strcmp(argv[2], "down") != 0)
		return "neither up nor down";
	for (int i = SPOIL_CUT; i <= SPOIL_LATE; i++) {
		if (strcmp(argv[3], spoils[i]) != 0)
			continue;
		proxy.spoiler = (struct spoiler){ .spoil = (enum spoil)i,
						  .is_up = strcmp(argv[2], "up") == 0,
						  .position = (size_t)position };
		return NULL;
	}
	return "neither cut nor flip nor stop nor late";
}

static const char *do_count(struct buffer *answer, int argc, char **argv)
{
	char text[256];
	int len = snprintf(
		text, sizeof(text),
		"connections=%lu requests=%lu replies=%lu dropped=%lu writes_up=%lu spoiled=%lu"
		" bytes_up=%lu bytes_down=%lu",
		proxy.counts.connections, proxy.counts.requests, proxy.counts.replies,
		proxy.counts.dropped, proxy.counts.writes_up, proxy.counts.spoiled,
		proxy.counts.bytes_up, proxy.counts.bytes_down);

	(void)argc, (void)argv;
	buffer_add(answer, text, (size_t)len);
	return NULL;
}

static const char *do_reset_count(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc, (void)argv;
	proxy.counts = (struct counts){ 0 };
	return NULL;
}

static const char *do_state(struct buffer *answer, int argc, char **argv)
{
	unsigned long open = 0, held = 0, rules = 0;
	struct conn *conn;
	struct piece *piece;
	struct rule *rule;
	char text[96];
	int len;

	(void)argc, (void)argv;
	for (conn = proxy.conns; conn != NULL; conn = conn->next) {
		open++;
		for (piece = conn->pieces; piece != NULL; piece = piece->next)
			held += piece->due_us == HELD;
	}
	for (rule = proxy.rules; rule != NULL; rule = rule->next)
		rules++;
	len = snprintf(text, sizeof(text), "open=%lu held=%lu rules=%lu", open, held, rules);
	buffer_add(answer, text, (size_t)len);
	return NULL;
}

static const char *do_log(struct buffer *answer, int argc, char **argv)
{
	FILE *file = NULL;

	(void)answer, (void)argc;
	if (strcmp(argv[1], "-") != 0) {
		file = fopen(argv[1], "ae");
		if (file == NULL)
			return strerror(errno);
	}
	if (proxy.log != NULL)
		(void)fclose(proxy.log);
	proxy.log = file;
	return NULL;
}

static const char *do_quit(struct buffer *answer, int argc, char **argv)
{
	(void)answer, (void)argc, (void)argv;
	proxy.is_over = true;
	return NULL;
}

static const struct {
	const char *name;
	int args_min, args_max;
	command_fn *run;
} commands[] = {
	{ "pass", 0, 0, do_pass },
	{ "delay", 1, 1, do_delay },
	{ "far", 1, 1, do_delay },
	{ "trickle", 1, 1, do_trickle },
	{ "silence", 0, 0, do_silence },
	{ "cut", 0, 0, do_cut },
	{ "half-close", 0, 0, do_half_close },
	{ "refuse", 1, 1, do_refuse },
	{ "blackhole", 1, 2, do_blackhole },
	{ "cut-before", 1, 2, do_rule },
	{ "drop-reply", 1, 2, do_rule },
	{ "hold-reply", 1, 2, do_rule },
	{ "stall-reply", 1, 2, do_rule },
	{ "end-reply", 1, 2, do_rule },
	{ "trickle-reply", 1, 2, do_rule },
	{ "garbage", 1, 2, do_rule },
	{ "spare", 1, 2, do_rule },
	{ "at", 3, 3, do_at },
	{ "stall", 1, 1, do_stall },
	{ "release", 0, 0, do_release },
	{ "count", 0, 0, do_count },
	{ "reset-count", 0, 0, do_reset_count },
	{ "state", 0, 0, do_state },
	{ "log", 1, 1, do_log },
	{ "quit", 0, 0, do_quit },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))
#define WORDS_MAX 5 /* one more than any command takes */

static const char *run_command(char *line, struct buffer *answer)
{
	char *argv[WORDS_MAX];
	char *save = NULL, *word;
	int argc = 0;
	size_t i;

	for (word = strtok_r(line, " \t\r\n", &save); word != NULL && argc < WORDS_MAX;
	     word = strtok_r(NULL, " \t\r\n", &save))
		argv[argc++] = word;
	for (i = 0; argc > 0 && i < COMMAND_COUNT; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (argc - 1 < commands[i].args_min || argc - 1 > commands[i].args_max)
			return "wrong number of arguments";
		return commands[i].run(answer, argc, argv);
	}
	return "unknown command";
}

/* ---- the control socket ---- */

static void control_open(int fd)
{
	struct control *control = need(calloc(1, sizeof(*control)));

	control->fd = fd;
	control->next = proxy.controls;
	proxy.controls = control;
}

static void control_answer(struct control *control, char *line)
{
	struct buffer answer = { 0 };
	const char *wrong = run_command(line, &answer);

	if (wrong != NULL) {
		answer.len = 0;
		buffer_add(&answer, "error ", strlen("error "));
		buffer_add(&answer, wrong, strlen(wrong));
	} else if (answer.len == 0) {
		buffer_add(&answer, "ok", strlen("ok"));
	}
	buffer_add(&answer, "\n", 1);
	if (send(control->fd, answer.bytes, answer.len, MSG_NOSIGNAL) != (ssize_t)answer.len)
		control->is_dead = true;
	free(answer.bytes);
}

static void control_read(struct control *control)
{
	struct buffer *in = &control->in;
	ssize_t got = buffer_read(in, control->fd);
	size_t len;

	if (got == 0 || (got < 0 && !is_temporary(errno)))
		control->is_dead = true;
	while ((len = line_len(in->bytes, in->len)) > 0) {
		in->bytes[len - 1] = '\0';
		control_answer(control, in->bytes);
		buffer_take(in, len);
	}
}

/* ---- the loop ---- */

static void accept_client(void)
{
	int fd = accept4(proxy.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	proxy.counts.connections++;
	if (proxy.refuses)
		(void)close(fd);
	else
		conn_open(fd);
}

static void accept_control(void)
{
	int fd = accept4(proxy.control_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		control_open(fd);
}

/* Free what is dead. */
static void sweep(void)
{
	struct conn **conn = &proxy.conns;
	struct control **control = &proxy.controls;

	while (*conn != NULL) {
		struct conn *dead = *conn;

		conn_settle(dead);
		if (dead->is_dead) {
			*conn = dead->next;
			conn_free(dead);
		} else {
			conn = &dead->next;
		}
	}
	while (*control != NULL) {
		struct control *dead = *control;

		if (dead->is_dead) {
			*control = dead->next;
			(void)close(dead->fd);
			free(dead->in.bytes);
			free(dead);
		} else {
			control = &dead->next;
		}
	}
}

/* One descriptor of the poll set; without events it is left out, or a hang-up would keep us busy.
 */
static void want(struct pollfd *slot, int fd, short events)
{
	*slot = (struct pollfd){ .fd = events != 0 ? fd : -1, .events = events };
}

/* Fill the set, in the order in which serve() reads it. Until when to wait. */
static int64_t gather(struct pollfd *set, int64_t now)
{
	const struct conn *conn;
	const struct control *control;
	int64_t until_us = HELD;

	want(set++, proxy.listener, POLLIN);
	want(set++, proxy.control_listener, POLLIN);
	for (control = proxy.controls; control != NULL; control = control->next)
		want(set++, control->fd, POLLIN);
	for (conn = proxy.conns; conn != NULL; conn = conn->next) {
		int64_t due_us = conn_due_us(conn);

		want(set++, conn->client, conn_client_events(conn, now));
		want(set++, conn->server, conn_server_events(conn, now));
		if (due_us > now && due_us < until_us)
			until_us = due_us;
		if (conn->up_from_us > now && conn->up_from_us < until_us)
			until_us = conn->up_from_us;
	}
	return until_us;
}

static void serve_conn(struct conn *conn, const struct pollfd *client, const struct pollfd *server)
{
	const short in = POLLIN | POLLHUP | POLLERR, out = POLLOUT | POLLHUP | POLLERR;

	if ((server->events & POLLIN) != 0 && (server->revents & in) != 0)
		conn_read_server(conn);
	if ((client->events & POLLIN) != 0 && (client->revents & in) != 0)
		conn_read_client(conn);
	if ((server->events & POLLOUT) != 0 && (server->revents & out) != 0)
		conn_write_server(conn);
	if ((client->events & POLLOUT) != 0 && (client->revents & out) != 0)
		conn_write_client(conn);
}

static void serve(const struct pollfd *set)
{
	const struct pollfd *listener = set++, *control_listener = set++;
	struct control *control;
	struct conn *conn;
	bool was_commanded = false;

	for (control = proxy.controls; control != NULL; control = control->next, set++) {
		if (set->revents != 0) {
			control_read(control);
			was_commanded = true;
		}
	}
	/* New ones go to the front of their list, so they are accepted when that has been read. */
	if (control_listener->revents != 0)
		accept_control();
	if (was_commanded)
		return; /* what is in set was wanted before the command; it will come again */
	for (conn = proxy.conns; conn != NULL; conn = conn->next, set += 2)
		serve_conn(conn, set, set + 1);
	if (listener->revents != 0)
		accept_client();
}

static void loop(void)
{
	struct pollfd *set = NULL;

	while (!proxy.is_over) {
		const struct control *control;
		const struct conn *conn;
		size_t count = 2;
		int64_t now = now_us(), until_us;
		struct timespec timeout;

		for (control = proxy.controls; control != NULL; control = control->next)
			count++;
		for (conn = proxy.conns; conn != NULL; conn = conn->next)
			count += 2;
		set = need(realloc(set, count * sizeof(*set)));
		until_us = gather(set, now);
		timeout.tv_sec = (until_us - now) / (1000 * MS);
		timeout.tv_nsec = (until_us - now) % (1000 * MS) * 1000;
		if (ppoll(set, count, until_us == HELD ? NULL : &timeout, NULL) < 0 &&
		    errno != EINTR)
			die("poll", strerror(errno));
		serve(set);
		sweep();
	}
	free(set);
}

/* ---- addresses ---- */

static void endpoint_parse(struct endpoint *endpoint, const char *text)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&endpoint->addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&endpoint->addr;
	char host[INET_ADDRSTRLEN];
	const char *colon;
	long port;

	memset(endpoint, 0, sizeof(*endpoint));
	if (strncmp(text, "unix:", 5) == 0 && strlen(text + 5) < sizeof(un->sun_path)) {
		un->sun_family = AF_UNIX;
		memcpy(un->sun_path, text + 5, strlen(text + 5) + 1);
		endpoint->len = sizeof(*un);
		return;
	}
	colon = strrchr(text, ':');
	if (strncmp(text, "tcp:", 4) != 0 || colon < text + 4 ||
	    (size_t)(colon - text - 4) >= sizeof(host) || !parse_number(colon + 1, &port) ||
	    port > UINT16_MAX)
		die(text, "neither unix:PATH nor tcp:ADDRESS:PORT");
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text - 4), text + 4);
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	endpoint->len = sizeof(*in);
	if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
		die(text, "not an IPv4 address");
}

static int endpoint_listen(const char *text)
{
	struct endpoint endpoint;
	const char *path = text + strlen("unix:");
	struct stat st;
	int one = 1;
	int fd;

	endpoint_parse(&endpoint, text);
	if (endpoint.addr.ss_family == AF_UNIX && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	fd = socket(endpoint.addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die(text, strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&endpoint.addr, endpoint.len) != 0 ||
	    listen(fd, BACKLOG) != 0)
		die(text, strerror(errno));
	return fd;
}

/* What was listened on, with the port that was picked. */
static void print_listen(const char *text)
{
	struct sockaddr_in in = { 0 };
	socklen_t len = sizeof(in);
	char host[INET_ADDRSTRLEN];

	if (strncmp(text, "tcp:", 4) == 0 &&
	    getsockname(proxy.listener, (struct sockaddr *)&in, &len) == 0 &&
	    inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host)) != NULL)
		(void)printf("listen tcp:%s:%u\n", host, (unsigned int)ntohs(in.sin_port));
	else
		(void)printf("listen %s\n", text);
	(void)printf("ready\n");
	(void)fflush(stdout);
}

static void remove_socket(const char *text)
{
	if (strncmp(text, "unix:", 5) == 0)
		(void)unlink(text + 5);
}

/* ---- the two ways to be called ---- */

static int run_proxy(const char *listen_text, const char *target, const char *control)
{
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		die("signal", strerror(errno));
	endpoint_parse(&proxy.target, target);
	proxy.listener = endpoint_listen(listen_text);
	proxy.control_listener = endpoint_listen(control);
	print_listen(listen_text);
	loop();

	while (proxy.conns != NULL || proxy.controls != NULL) {
		struct control *each;

		(void)do_cut(NULL, 0, NULL);
		for (each = proxy.controls; each != NULL; each = each->next)
			each->is_dead = true;
		sweep();
	}
	rules_clear();
	if (proxy.log != NULL)
		(void)fclose(proxy.log);
	remove_socket(listen_text);
	remove_socket(control);
	return 0;
}

static int send_command(const char *control, int count, char **words)
{
	struct endpoint endpoint;
	struct buffer text = { 0 };
	bool is_error;
	int i, fd;

	endpoint_parse(&endpoint, control);
	fd = socket(endpoint.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&endpoint.addr, endpoint.len) != 0)
		die(control, strerror(errno));
	for (i = 0; i < count; i++) {
		buffer_add(&text, words[i], strlen(words[i]));
		buffer_add(&text, i + 1 < count ? " " : "\n", 1);
	}
	if (send(fd, text.bytes, text.len, MSG_NOSIGNAL) != (ssize_t)text.len)
		die(control, strerror(errno));
	text.len = 0;
	while (line_len(text.bytes, text.len) == 0)
		if (buffer_read(&text, fd) <= 0)
			die(control, "no answer");
	(void)fwrite(text.bytes, 1, text.len, stdout);
	is_error = strncmp(text.bytes, "error", strlen("error")) == 0;
	free(text.bytes);
	(void)close(fd);
	return is_error ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "-c") == 0)
		return send_command(argv[2], argc - 3, argv + 3);
	if (argc == 4)
		return run_proxy(argv[1], argv[2], argv[3]);
	(void)fputs(usage, stderr);
	return 64;
}
