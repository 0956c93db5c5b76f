/* Find a word in a list like "plain|fair", or the nearest of several words. */
#ifndef CHOICE_H
#define CHOICE_H

#include <stddef.h>

/* The index of value among words like "plain|fair"; -1: value is none of these words. */
int choice_find(const char *words, const char *value);
/* As choice_find, but capitals and small letters are the same. */
int choice_find_any_case(const char *words, const char *value);

/* The search for the word nearest to a mistyped one. Initialise typed, and the rest with zero. */
struct nearest {
	const char *typed;
	/* nearest word so far; NULL: none is near */
	const char *word;
	size_t distance;
};

void nearest_try(struct nearest *nearest, const char *word);

#endif
