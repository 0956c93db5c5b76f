/*
 * Finds the word that a mistyped one was probably meant to be.
 */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

/* Initialise typed, and all else with zero. */
struct nearest {
	const char *typed;
	const char *word; /* the nearest of the words tried; NULL: none is near */
	size_t distance;
};

void nearest_try(struct nearest *nearest, const char *word);

#endif
