/*
 * The queue of what a client is to get. What is behind a piece that is not due waits with it, as in a stream.
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "die.h"
#include "pieces.h"

void pieces_init(struct pieces *pieces)
{
	pieces->first = NULL;
	pieces->end = &pieces->first;
}

void pieces_free(struct pieces *pieces)
{
	while (pieces->first != NULL)
		pieces_drop_first(pieces);
}

struct piece *pieces_add(struct pieces *pieces, const char *bytes, size_t len, int64_t due_us)
{
	struct piece *piece = die_if_null(malloc(sizeof(*piece) + len));

	piece->next = NULL;
	piece->due_us = due_us;
	piece->len = len;
	piece->sent = 0;
	piece->trickles = false;
	memcpy(piece->bytes, bytes, len);
	*pieces->end = piece;
	pieces->end = &piece->next;
	return piece;
}

void pieces_drop_first(struct pieces *pieces)
{
	struct piece *piece = pieces->first;

	pieces->first = piece->next;
	if (pieces->first == NULL)
		pieces->end = &pieces->first;
	free(piece);
}

size_t pieces_count_held(const struct pieces *pieces)
{
	const struct piece *piece;
	size_t count = 0;

	for (piece = pieces->first; piece != NULL; piece = piece->next)
		count += piece->due_us == NEVER_US;
	return count;
}

void pieces_release_held(struct pieces *pieces)
{
	struct piece *piece;

	for (piece = pieces->first; piece != NULL; piece = piece->next)
		if (piece->due_us == NEVER_US)
			piece->due_us = 0;
}
