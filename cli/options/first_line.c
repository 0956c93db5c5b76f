/*
 * Cuts a text down to its first line, however that ends. Where the text is from is for the callers.
 */
#include <string.h>

#include "options/first_line.h"

const char *first_line_cut(char *text, size_t len)
{
	size_t line_len = strcspn(text, "\n");

	if (line_len < len && text[line_len] == '\0')
		return "a NUL byte in its first line";
	if (line_len > 0 && text[line_len - 1] == '\r')
		line_len--;
	text[line_len] = '\0';
	return line_len == 0 ? "its first line is empty" : NULL;
}
