/* Find a word in a list like "plain|fair", for tables that have such lists, or the nearest word to a mistyped one. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/choice.h"
#include "base/minmax.h"

typedef int (*compare_fn)(const char *a, const char *b, size_t len);

static int find(const char *words, const char *value, compare_fn compare)
{
	size_t len = strlen(value);

	for (int index = 0; *words != '\0'; index++) {
		size_t word_len = strcspn(words, "|");

		if (word_len == len && compare(words, value, len) == 0)
			return index;
		words += word_len + (words[word_len] == '|' ? 1 : 0);
	}
	return -1;
}

int choice_find(const char *words, const char *value)
{
	return find(words, value, strncmp);
}

int choice_find_any_case(const char *words, const char *value)
{
	return find(words, value, strncasecmp);
}

/* ---- the word that was meant ---- */

#define WORD_MAX 32

/* Whether two letters are the same, in capitals or not. */
static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * The edit distance of Damerau and Levenshtein. rows[i][j]: the distance between the first i letters of a and the first
 * j of b.
 */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= a_len; i++) {
		for (size_t j = 0; j <= b_len; j++) {
			size_t *distance = &rows[i][j];

			if (i == 0 || j == 0) {
				*distance = i + j;
				continue;
			}
			*distance = rows[i - 1][j - 1] + !is_same(a[i - 1], b[j - 1]);
			*distance =
				min_size(*distance, min_size(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) &&
			    is_same(a[i - 2], b[j - 1]))
				*distance = min_size(*distance, rows[i - 2][j - 2] + 1);
		}
	}
	return rows[a_len][b_len];
}

/* A word is near if the distance is at most two edits, and at most one edit for each three letters of the word. */
void nearest_try(struct nearest *nearest, const char *word)
{
	size_t typed_len = strlen(nearest->typed), len = strlen(word), distance;

	if (typed_len > WORD_MAX || len > WORD_MAX)
		return;
	distance = edit_distance(nearest->typed, typed_len, word, len);
	if (distance > 2 || 3 * distance > len ||
	    (nearest->word != NULL && distance >= nearest->distance))
		return;
	nearest->word = word;
	nearest->distance = distance;
}
