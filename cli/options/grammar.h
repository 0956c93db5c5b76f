/*
 * The shape of the command line, "VERB [OPTION...] NAME... [-- COMMAND [ARG...]]".
 */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>

#include "options/opts.h"

struct words {
	char **words; /* what stands between the verb and "--": copies */
	size_t count;
	bool is_cut;    /* whether there is a "--" */
	char **command; /* what follows it: argv itself, NULL-terminated */
	void *block;
	size_t block_size;
};

/* Overwrites passwords in argv. False when out of memory; words_free is fine with that too. */
bool words_cut(int argc, char **argv, struct words *out);
void words_free(struct words *words);

/*
 * Whether a verb that needs a command got words for one, but no "--" before them. To be called
 * before the words are understood: 0, or the exit code after one line on stderr.
 */
int grammar_check_cut(const struct verb *verb, const struct words *words);

/* Whether all parts are there that the verb needs, and none that it can't have. The same. */
int grammar_check(const struct verb *verb, const struct words *words, bool has_name);

#endif
