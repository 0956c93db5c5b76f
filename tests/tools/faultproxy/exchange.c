/*
 * Which reply belongs to which request, and what a fault does to either. When bytes are read and written is transfer.c's
 * business; what is not Redis' protocol passes here as it is.
 */
#include <ctype.h>
#include <string.h>

#include "faultproxy.h"

#define GARBAGE "\x01 this is no reply\r\n"

/* ---- subscribers ---- */

/* Whether it is a message to a subscriber, or another push, and not the answer to a request. */
static bool is_push(const struct conn *conn, const char *reply, size_t len)
{
	struct resp_words words = resp_array_words(reply, len);
	const char *kind;
	size_t kind_len;

	if (reply[0] != '>' && !(reply[0] == '*' && conn->is_subscriber))
		return false;
	if (!resp_next_word(&words, &kind, &kind_len))
		return reply[0] == '>';
	if (reply[0] == '>')
		return !resp_word_ends_with(kind, kind_len, "subscribe");
	return resp_word_is(kind, kind_len, "message") ||
	       resp_word_is(kind, kind_len, "pmessage") || resp_word_is(kind, kind_len, "smessage");
}

/* Which count of channels a (P|S)SUBSCRIBE or (P|S)UNSUBSCRIBE is about. */
static size_t *channels_of(struct conn *conn, const char *verb, size_t verb_len, bool leaves)
{
	if (verb_len == strlen(leaves ? "unsubscribe" : "subscribe"))
		return &conn->channels[0];
	return &conn->channels[tolower((unsigned char)verb[0]) == 'p' ? 1 : 2];
}

/* How many replies a request gets; keeps count of what conn is subscribed to. */
static size_t count_replies(struct conn *conn, const char *request, size_t len)
{
	struct resp_words words = resp_request_words(request, len);
	const char *verb, *text;
	size_t verb_len, text_len, args = 0, replies;
	size_t *channels;
	bool leaves;

	if (!resp_next_word(&words, &verb, &verb_len))
		return 0; /* an empty line has no answer */
	if (!resp_word_ends_with(verb, verb_len, "subscribe"))
		return 1;
	while (resp_next_word(&words, &text, &text_len))
		args++;
	leaves = resp_word_ends_with(verb, verb_len, "unsubscribe");
	channels = channels_of(conn, verb, verb_len, leaves);
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

/* ---- from the client ---- */

/* One whole request. */
static void take_request(struct conn *conn, const char *bytes, size_t len)
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
		conn_add_request(conn, fault, replies);
		counts.requests++;
		request_log_add(bytes, len);
	}
}

void exchange_take_up(struct conn *conn)
{
	struct buffer *in = &conn->up_in;
	size_t pos = 0;

	while (pos < in->len && !conn->is_ending) {
		long len = conn->is_opaque ? (long)(in->len - pos)
					   : resp_request_len(in->bytes + pos, in->len - pos);

		if (len == 0)
			break;
		if (len < 0)
			conn->is_opaque = true;
		else if (conn->is_opaque)
			buffer_add(&conn->up_out, in->bytes + pos, (size_t)len);
		else
			take_request(conn, in->bytes + pos, (size_t)len);
		if (len > 0)
			pos += (size_t)len;
	}
	buffer_take(in, pos);
}

/* ---- from the server ---- */

/* A piece without a byte, behind which the connection may end. */
static void stall(struct conn *conn)
{
	pieces_add(&conn->pieces, "", 0, clock_now_us() + conditions.stall_us);
	conn->is_ending = true;
	conn_drop_requests(conn);
}

/* What goes to the client in the place of a reply, or is done to it. */
static void pass_reply(struct conn *conn, const char *bytes, size_t len, enum fault fault)
{
	int64_t due_us = clock_now_us() + conditions.delay_us;

	switch (fault) {
	case FAULT_DROP:
		break;
	case FAULT_STALL:
		stall(conn);
		break;
	case FAULT_END:
		conn_half_close(conn);
		break;
	case FAULT_GARBAGE:
		pieces_add(&conn->pieces, GARBAGE, strlen(GARBAGE), due_us);
		break;
	case FAULT_HOLD:
		pieces_add(&conn->pieces, bytes, len, NEVER_US);
		break;
	case FAULT_NONE:
	case FAULT_CUT:
		pieces_add(&conn->pieces, bytes, len, due_us);
		break;
	}
}

/* The first request has been answered in full. */
static void end_request(struct conn *conn, enum fault fault)
{
	conn_drop_request(conn);
	if (fault == FAULT_DROP) {
		counts.dropped++;
		conn->is_ending = true;
		conn_drop_requests(conn); /* their replies are lost with the connection */
	}
}

/* One whole reply. */
static void take_reply(struct conn *conn, const char *bytes, size_t len)
{
	struct request *request = is_push(conn, bytes, len) ? NULL : conn->requests;
	enum fault fault = request != NULL ? request->fault : FAULT_NONE;

	counts.replies++;
	pass_reply(conn, bytes, len, fault);
	/* A reply that stalls takes all requests with it. */
	if (conn->requests == request && request != NULL && --request->replies_left == 0)
		end_request(conn, fault);
}

bool exchange_is_over(const struct conn *conn)
{
	return conn->is_ending && conn->requests == NULL;
}

void exchange_take_down(struct conn *conn)
{
	struct buffer *in = &conn->down_in;
	size_t pos = 0;

	while (pos < in->len && !exchange_is_over(conn)) {
		long len = conn->is_opaque ? (long)(in->len - pos)
					   : resp_value_len(in->bytes + pos, in->len - pos);

		if (len == 0)
			break;
		if (len < 0)
			conn->is_opaque = true;
		else if (conn->is_opaque)
			pieces_add(&conn->pieces, in->bytes + pos, (size_t)len,
				   clock_now_us() + conditions.delay_us);
		else
			take_reply(conn, in->bytes + pos, (size_t)len);
		if (len > 0)
			pos += (size_t)len;
	}
	buffer_take(in, pos);
}
