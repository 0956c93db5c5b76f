/*
 * Calls main() of rlock, which the Makefile compiles under another name for the tests.
 */
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"
#include "unit.h"

int rlock_main(int argc, char **argv);

static int listener = -1, config_fd = -1;
static char config[64], listener_url[64];

void program_setup(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	(void)strcpy(config, "/tmp/rlock-unit-XXXXXX");
	config_fd = mkostemp(config, O_CLOEXEC);
	if (config_fd < 0 || bind(listener, (struct sockaddr *)&address, len) != 0 ||
	    listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) != 0)
		abort();
	(void)snprintf(listener_url, sizeof(listener_url), "redis://127.0.0.1:%d",
		       ntohs(address.sin_port));
	(void)unsetenv("RLOCK_HELD");
	(void)unsetenv("REDISCLI_AUTH");
	(void)setenv("RLOCK_CONFIG", config, 1);
	program_set_url(NULL);
}

void program_teardown(void)
{
	CHECK(accept(listener, NULL, NULL) < 0, "no server was asked anything");
	(void)close(listener);
	(void)close(config_fd);
	(void)unlink(config);
	(void)unsetenv("RLOCK_URL");
	(void)unsetenv("RLOCK_CONFIG");
}

void program_set_url(const char *url)
{
	(void)setenv("RLOCK_URL", url != NULL ? url : listener_url, 1);
}

const char *program_config(void)
{
	return config;
}

void program_configure(const char *text, size_t len)
{
	if (ftruncate(config_fd, 0) != 0 || pwrite(config_fd, text, len, 0) != (ssize_t)len)
		abort();
}

int program_cut(char *line, char **words)
{
	char *to = line;
	int count = 0;

	while (*line != '\0' && count < PROGRAM_WORDS_MAX - 1) {
		bool is_quoted = false;

		words[count++] = to;
		for (; *line != '\0' && (is_quoted || *line != ' '); line++) {
			if (*line == '\'')
				is_quoted = !is_quoted;
			else
				*to++ = *line;
		}
		while (*line == ' ')
			line++;
		*to++ = '\0';
	}
	words[count] = NULL;
	return count;
}

static void read_back(FILE *file, char out[OUTPUT_MAX])
{
	rewind(file);
	out[fread(out, 1, OUTPUT_MAX - 1, file)] = '\0';
	(void)fclose(file);
}

static const char *line_called;
static FILE *stdout_file, *stderr_file;

/* Call rlock in the child. The streams are line-buffered (unit.c), so the child does not print output of the tests again. */
static int call(void)
{
	char line[8192], *words[PROGRAM_WORDS_MAX];
	int status;

	(void)snprintf(line, sizeof(line), "rlock %s", line_called);
	/* Reset getopt to its state in a new process, since the tests may have used it. */
	optind = 0;
	if (dup2(fileno(stdout_file), STDOUT_FILENO) < 0 ||
	    dup2(fileno(stderr_file), STDERR_FILENO) < 0)
		abort();
	status = rlock_main(program_cut(line, words), words);
	return fflush(NULL) == 0 ? status : -1;
}

void program_call(const char *line, struct call_result *result)
{
	line_called = line;
	stdout_file = tmpfile();
	stderr_file = tmpfile();
	if (stdout_file == NULL || stderr_file == NULL)
		abort();
	result->status = unit_fork(call);
	read_back(stdout_file, result->out);
	read_back(stderr_file, result->err);
}

bool program_message_has(const char *message, const char *text)
{
	static const char gap[] = " ... ";

	while (text != NULL && message != NULL) {
		const char *end = strstr(text, gap);
		size_t len = end != NULL ? (size_t)(end - text) : strlen(text);

		message = memmem(message, strlen(message), text, len);
		text = end != NULL ? end + strlen(gap) : NULL;
	}
	return message != NULL;
}

bool program_refused(const struct call_result *result, int status, const char *text)
{
	size_t len = strlen(result->err);

	return result->status == status && result->out[0] == '\0' && len > 0 &&
	       strchr(result->err, '\n') == result->err + len - 1 &&
	       strncmp(result->err, "rlock: ", strlen("rlock: ")) == 0 &&
	       program_message_has(result->err, text);
}
