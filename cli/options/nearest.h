/*
 * Which word of several a mistyped one was meant to be.
 */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

/* Begin with the word that was typed, and all else zero. */
struct nearest {
	const char *typed;
	const char *word; /* of those tried the one that is nearest; NULL: none is near */
	size_t distance;
};

void nearest_try(struct nearest *nearest, const char *word);

#endif
