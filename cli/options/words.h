/*
 * Read the words of a command line one by one, by the option table, as names, options and values. argv.c, usage.c and
 * the modules that correct a line all use this reader, so that they agree on what a word is.
 */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "options/table.h"

enum word_kind {
	WORD_NAME,
	WORD_OPTION, /* an option, with its value if it takes one */
	/* begins with a dash, but is no option of these verbs */
	WORD_UNKNOWN,
	WORD_WITHOUT_VALUE, /* an option that takes a value, which is missing */
	WORD_WITH_VALUE,    /* an option that takes no value, but has one */
};

struct word {
	enum word_kind kind;
	const struct opt *opt; /* NULL: not an option of these verbs */
	/*
	 * The name, or the option's value. WORD_WITHOUT_VALUE: the next word, which looks like an option, and so is no
	 * value. NULL: none.
	 */
	const char *value;
	/* letter of a short option; else 0 */
	char letter;
	/* index of the first word, and the number of words: 2 if the value is a word of its own */
	size_t at, span;
};

/* The unread rest of a line. Before the first word, at and byte are 0. */
struct words {
	unsigned verbs; /* sum of enum verb_set */
	char *const *words;
	size_t count;
	size_t at; /* index of the next word */
	/* index of the next letter in that word; 0: the word is not begun */
	size_t byte;
};

/* Whether the word has digits only, at least one. */
bool word_is_number(const char *word);

/* Whether the word is VARIABLE=VALUE. */
bool word_is_assignment(const char *word);

/* Read the next name or option: "-nw5s" contains two options. False: no more words. */
bool words_next(struct words *from, struct word *out);

/* The option in word that takes the next word as its value; NULL: there is none. */
const struct opt *words_awaiting(unsigned verbs, char *word);

#endif
