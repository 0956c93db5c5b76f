/* Find a word in a list like "plain|fair", for tables that have such lists. */
#include <string.h>

#include "base/choice.h"

int choice_find(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (int index = 0; *words != '\0'; index++) {
		size_t word_len = strcspn(words, "|");

		if (word_len == len && memcmp(words, value, len) == 0)
			return index;
		words += word_len + (words[word_len] == '|' ? 1 : 0);
	}
	return -1;
}
