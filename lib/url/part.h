/*
 * A part of a text.
 */
#ifndef RLOCK_URL_PART_H
#define RLOCK_URL_PART_H

#include <stdbool.h>
#include <stddef.h>

struct rlock__part {
	const char *text;
	size_t len;
};

/* Cut off what precedes the first of stops, or all of it. The stop stays in rest. */
struct rlock__part rlock__part_cut(struct rlock__part *rest, const char *stops);
/* Drop text from the start of rest; false, and rest as it was, when it starts otherwise. */
bool rlock__part_skip(struct rlock__part *rest, const char *text);
bool rlock__part_contains(struct rlock__part part, char c);
char rlock__part_lower(char c);
/* Whether it is word, in capitals or not; word is in lower case. */
bool rlock__part_is_word(struct rlock__part part, const char *word);
/* Digits and nothing else. *out keeps its value when the number is above max. */
bool rlock__part_number(struct rlock__part part, int max, int *out);

#endif
