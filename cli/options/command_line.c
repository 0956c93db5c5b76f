/*
 * Cuts the command line at "--". command_line_check.c finds out whether a part is missing, and argv.c reads the options
 * and names.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/rlock.h"
#include "options/command_line.h"

bool command_line_cut(int argc, char **argv, struct command_line *out)
{
	size_t first = argc < 2 ? (size_t)argc : 2;
	size_t end = first, i;
	size_t size = 0;
	char *text = NULL;

	while (end < (size_t)argc && strcmp(argv[end], "--") != 0)
		size += strlen(argv[end++]) + 1;
	*out = (struct command_line){ 0 };
	out->count = end - first;
	out->block_size = (out->count + 2) * sizeof(char *) + size;
	out->block = malloc(out->block_size);
	if (out->block != NULL) {
		out->words = (char **)out->block + 1; /* argtable wants a word before the first */
		out->words[-1] = argv[0];
		out->words[out->count] = NULL;
		text = (char *)(out->words + out->count + 1);
	}
	for (i = first; i < end; i++) {
		if (text != NULL) {
			out->words[i - first] = text;
			text = stpcpy(text, argv[i]) + 1;
		}
		/* Any word may contain a password: which words are values of options is not known yet. */
		rlock_url_hide_password(argv[i]);
	}
	out->is_cut = end < (size_t)argc;
	out->command = argv + end + (out->is_cut ? 1 : 0);
	return out->block != NULL;
}

void command_line_free(struct command_line *line)
{
	/* There may be a password in the words. */
	if (line->block != NULL)
		explicit_bzero(line->block, line->block_size);
	free(line->block);
	*line = (struct command_line){ 0 };
}
