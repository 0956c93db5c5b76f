/*
 * Read the words of a command line as getopt_long does, with three more rules:
 * No option is abbreviated, since a new option would change the meaning of the abbreviation.
 * A value that is a word of its own must not look like an option: in `--url $URL --wait 5s`, URL may be unset or empty.
 * A digit after the letter of an option that takes no value is a mistake, as in -n5: getopt_long would read it as a
 * letter.
 */
#include <ctype.h>
#include <string.h>

#include "options/words.h"

static const struct opt *by_letter(unsigned verbs, char letter)
{
	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & verbs) != 0 && opt_table[id].letter != NULL &&
		    opt_table[id].letter[0] == letter)
			return &opt_table[id];
	return NULL;
}

static bool takes_next_word(const struct opt *opt)
{
	return opt->value != NULL && (opt->scope & OPTIONAL_VALUE) == 0;
}

/* Whether a word looks like an option. A long option does even if its name is mistyped. */
static bool looks_like_option(unsigned verbs, const char *word)
{
	const struct opt *opt = NULL;

	if (word[0] != '-' || word[1] == '\0')
		return false;
	if (word[1] == '-')
		return isalpha((unsigned char)word[2]) != 0;
	for (word++; *word != '\0' && (opt == NULL || opt->value == NULL); word++) {
		opt = by_letter(verbs, *word);
		if (opt == NULL)
			return false;
	}
	return true;
}

static void take_next_word(struct words *from, struct word *out)
{
	out->kind = WORD_WITHOUT_VALUE;
	if (out->at + 1 == from->count)
		return;
	out->value = from->words[out->at + 1];
	if (looks_like_option(from->verbs, out->value))
		return;
	out->kind = WORD_OPTION;
	out->span = 2;
}

static void read_long(struct words *from, const char *word, struct word *out)
{
	const char *name = word + 2;
	size_t len = strcspn(name, "=");

	out->opt = table_by_name(from->verbs, name, len);
	if (name[len] == '=')
		out->value = name + len + 1;
	if (out->opt == NULL)
		out->kind = WORD_UNKNOWN;
	else if (out->value != NULL)
		out->kind = out->opt->value != NULL ? WORD_OPTION : WORD_WITH_VALUE;
	else if (takes_next_word(out->opt))
		take_next_word(from, out);
	else
		out->kind = WORD_OPTION;
}

/* Read one option letter. Set from->byte to the index of the next letter; 0: no letter is left in this word. */
static void read_letter(struct words *from, const char *word, struct word *out)
{
	const char *rest = word + from->byte + 1;

	out->letter = word[from->byte];
	out->opt = by_letter(from->verbs, out->letter);
	from->byte = 0;
	if (out->opt == NULL) {
		out->kind = WORD_UNKNOWN;
	} else if (out->opt->value != NULL) {
		out->kind = WORD_OPTION;
		if (*rest != '\0')
			out->value = rest;
		else
			take_next_word(from, out);
	} else if (*rest == '=' || isdigit((unsigned char)*rest)) {
		out->kind = WORD_WITH_VALUE;
		out->value = rest + (*rest == '=' ? 1 : 0);
	} else {
		out->kind = WORD_OPTION;
		from->byte = *rest != '\0' ? (size_t)(rest - word) : 0;
	}
}

bool word_is_number(const char *word)
{
	return *word != '\0' && word[strspn(word, "0123456789")] == '\0';
}

bool word_is_assignment(const char *word)
{
	size_t len =
		strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return len > 0 && word[len] == '=' && !isdigit((unsigned char)*word);
}

bool words_next(struct words *from, struct word *out)
{
	const char *word;

	if (from->at >= from->count)
		return false;
	word = from->words[from->at];
	*out = (struct word){ .kind = WORD_NAME, .at = from->at, .span = 1 };
	if (word[0] != '-' || word[1] == '\0') {
		out->value = word;
	} else if (word[1] == '-') {
		read_long(from, word, out);
	} else {
		from->byte += from->byte == 0 ? 1 : 0;
		read_letter(from, word, out);
	}
	from->at += from->byte == 0 ? out->span : 0;
	return true;
}

const struct opt *words_awaiting(unsigned verbs, char *word)
{
	struct words from = { .verbs = verbs, .words = &word, .count = 1 };
	struct word read = { .kind = WORD_NAME };

	while (words_next(&from, &read))
		;
	return read.kind == WORD_WITHOUT_VALUE ? read.opt : NULL;
}
