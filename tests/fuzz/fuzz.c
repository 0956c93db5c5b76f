/*
 * Helpers of the fuzz targets.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

void fuzz_fail(const char *claim, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: not true: %s\n", file, line, claim);
	abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	ALWAYS(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

char *fuzz_line(const uint8_t **data, size_t *size)
{
	const uint8_t *newline = *size > 0 ? memchr(*data, '\n', *size) : NULL;
	size_t len = newline != NULL ? (size_t)(newline - *data) : *size;
	char *line = fuzz_text(*data, len);

	if (newline != NULL)
		len++;
	*data += len;
	*size -= len;
	return line;
}

bool fuzz_is_shown_safely(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static char directory[] = "/tmp/rlock-fuzz-XXXXXX";

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
	(void)stat;
	(void)type;
	(void)walk;
	return remove(path);
}

static void remove_directory(void)
{
	(void)nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_directory(void)
{
	static bool is_made;

	if (!is_made) {
		ALWAYS(mkdtemp(directory) != NULL);
		(void)atexit(remove_directory);
		is_made = true;
	}
	return directory;
}
