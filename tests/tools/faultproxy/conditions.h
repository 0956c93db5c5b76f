/*
 * What the network is like at the moment, for every connection, and what is to happen to the next one.
 */
#ifndef FAULTPROXY_CONDITIONS_H
#define FAULTPROXY_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct conditions {
	int64_t delay_us; /* of each piece to a client */
	int64_t stall_us; /* how late is what is late */
	bool is_far;      /* a new connection waits for a handshake, too */
	bool trickles;
	bool refuses;
	bool holes_up, holes_down; /* nothing passes to the server, or from it */
	struct spoiler spoiler;    /* of the next connection */
};

extern struct conditions conditions;

/* All is well again; stall_us stays. */
void conditions_clear(void);

#endif
