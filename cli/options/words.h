/*
 * Reads the words of a command line one by one, by the option table: which is a name, which an option, and which the value
 * of one. All that reads a line asks here: what is done, what is reported, and what is hidden as a password.
 */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "options/table.h"

enum word_kind {
	WORD_NAME,
	WORD_OPTION,        /* with its value, if it takes one */
	WORD_UNKNOWN,       /* it begins with a dash, and is no option of these verbs */
	WORD_WITHOUT_VALUE, /* the option takes a value, and has none */
	WORD_WITH_VALUE,    /* the option takes no value, and has one */
};

struct word {
	enum word_kind kind;
	const struct opt *opt; /* NULL: none */
	/* The name, or the option's value; for WORD_WITHOUT_VALUE the next word, if that is an option. NULL: none. */
	const char *value;
	char letter;     /* of a short option; 0: a long one, or none */
	size_t at, span; /* the first of its words, and their number: 2 with a value of its own */
};

/* The rest of a line. Begin with at and byte 0. */
struct words {
	unsigned verbs; /* sum of enum verb_set */
	char *const *words;
	size_t count;
	size_t at;   /* the next word */
	size_t byte; /* within that one: the next letter; 0: its start */
};

/* Read the next name or option: "-nw5s" contains two options. False: the line has ended. */
bool words_next(struct words *from, struct word *out);

/* The option whose value is the word after this one; NULL: none. */
const struct opt *words_awaiting(unsigned verbs, char *word);

#endif
