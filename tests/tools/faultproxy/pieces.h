/*
 * What is on its way to a client: pieces, each of which has a time before which it does not go.
 */
#ifndef FAULTPROXY_PIECES_H
#define FAULTPROXY_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
	struct piece *next;
	int64_t due_us; /* NEVER_US: it is held */
	size_t len, sent;
	bool trickles;
	char bytes[];
};

struct pieces {
	struct piece *first, **end;
};

void pieces_init(struct pieces *pieces);
void pieces_free(struct pieces *pieces);

/* A copy of the bytes goes to the end. */
struct piece *pieces_add(struct pieces *pieces, const char *bytes, size_t len, int64_t due_us);
void pieces_drop_first(struct pieces *pieces);

size_t pieces_count_held(const struct pieces *pieces);
void pieces_release_held(struct pieces *pieces);

#endif
