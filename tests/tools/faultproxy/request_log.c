/*
 * The log of requests: each request that was forwarded, in its order on each connection, so that a test can look for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "request_log.h"
#include "resp.h"

static FILE *log_file;

const char *request_log_open(const char *path)
{
	FILE *file = fopen(path, "ae");

	if (file == NULL)
		return strerror(errno);
	request_log_close();
	log_file = file;
	return NULL;
}

void request_log_close(void)
{
	if (log_file != NULL)
		(void)fclose(log_file);
	log_file = NULL;
}

static void write_word(const char *text, size_t len)
{
	size_t i;

	if (len == 0)
		(void)fputs("\"\"", log_file);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > ' ' && c < 0x7f && c != '\\' && c != '"')
			(void)putc(c, log_file);
		else
			(void)fprintf(log_file, "\\x%02x", c);
	}
}

void request_log_add(const char *request, size_t len)
{
	struct resp_words words = resp_request_words(request, len);
	const char *text, *blank = "";
	size_t text_len;

	if (log_file == NULL)
		return;
	while (resp_next_word(&words, &text, &text_len)) {
		(void)fputs(blank, log_file);
		blank = " ";
		write_word(text, text_len);
	}
	(void)putc('\n', log_file);
	(void)fflush(log_file);
}
