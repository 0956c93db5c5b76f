/*
 * Helpers of the fuzz targets.
 */
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

	len += newline != NULL;
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

static char remove_all[] = "exec rm -r /tmp/rlock-fuzz-XXXXXX";

static void remove_directory(void)
{
	(void)system(remove_all); /* NOLINT(cert-env33-c) */
}

void fuzz_enter_directory(void)
{
	char *directory = strchr(remove_all, '/');

	ALWAYS(mkdtemp(directory) != NULL && chdir(directory) == 0 &&
	       atexit(remove_directory) == 0);
}
