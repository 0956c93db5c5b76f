/*
 * The nearest word by the number of slips: a letter too many, too few or wrong, or two that changed places.
 */
#include <string.h>

#include "base/least.h"
#include "options/nearest.h"

#define WORD_MAX 32

/* The distance of Damerau and Levenshtein. rows[i][j]: from the first i letters of a to the first j of b. */
static size_t count_slips(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= a_len; i++) {
		for (size_t j = 0; j <= b_len; j++) {
			size_t *slips = &rows[i][j];

			if (i == 0 || j == 0) {
				*slips = i + j;
				continue;
			}
			*slips = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			*slips = least_size(*slips, least_size(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				*slips = least_size(*slips, rows[i - 2][j - 2] + 1);
		}
	}
	return rows[a_len][b_len];
}

/* Near is one slip in three letters, and two at most. */
void nearest_try(struct nearest *nearest, const char *word)
{
	size_t typed_len = strlen(nearest->typed), len = strlen(word), slips;

	if (typed_len > WORD_MAX || len > WORD_MAX)
		return;
	slips = count_slips(nearest->typed, typed_len, word, len);
	if (slips > 2 || 3 * slips > len || (nearest->word != NULL && slips >= nearest->distance))
		return;
	nearest->word = word;
	nearest->distance = slips;
}
