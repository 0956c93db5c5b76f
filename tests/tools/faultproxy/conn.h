/*
 * A connection of a client, with the one to the server that belongs to it, and the list of all of them.
 */
#ifndef FAULTPROXY_CONN_H
#define FAULTPROXY_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "conditions.h"
#include "pieces.h"
#include "rules.h"

struct endpoint;

/* A request that was forwarded and not answered yet. */
struct request {
	struct request *next;
	enum fault fault;
	size_t replies_left; /* SUBSCRIBE has one for each channel */
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
	struct pieces pieces;
	int64_t next_byte_us; /* when it trickles */
	struct spoiler spoiler;
	size_t up_count, down_count;      /* bytes read from either side */
	int64_t up_from_us, down_from_us; /* nothing goes to that side before */
};

/* Takes over client; connects to target without waiting, and what is to happen to the next connection befalls this one. */
void conn_open(int client, const struct endpoint *target);

/* The first one of all; the newest comes first. */
struct conn *conn_first(void);
/* Free those that are dead. */
void conn_sweep(void);
/* At once, on both sides; they are dead then. */
void conn_cut_all(void);

/* The client sees an end, and is still heard. */
void conn_half_close(struct conn *conn);

void conn_add_request(struct conn *conn, enum fault fault, size_t replies);
void conn_drop_request(struct conn *conn);
void conn_drop_requests(struct conn *conn);

#endif
