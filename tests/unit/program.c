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
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

int rlock_main(int argc, char **argv);

static int listener = -1, port, config_fd = -1;
static char config[64];

/* ---- the server ---- */

void program_setup(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	char url[64];

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) != 0 ||
	    listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) != 0)
		abort();
	port = ntohs(address.sin_port);
	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
	(void)strcpy(config, "/tmp/rlock-unit-XXXXXX");
	config_fd = mkostemp(config, O_CLOEXEC);
	(void)unsetenv("RLOCK_HELD");
	(void)unsetenv("REDISCLI_AUTH");
	if (config_fd < 0 || setenv("RLOCK_URL", url, 1) != 0 ||
	    setenv("RLOCK_CONFIG", config, 1) != 0)
		abort();
}

bool program_asked_no_server(void)
{
	int fd = accept(listener, NULL, NULL);

	if (fd >= 0)
		(void)close(fd);
	return fd < 0;
}

void program_teardown(void)
{
	(void)close(listener);
	(void)close(config_fd);
	(void)unlink(config);
	(void)unsetenv("RLOCK_URL");
	(void)unsetenv("RLOCK_CONFIG");
}

int program_port(void)
{
	return port;
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

/* ---- a call ---- */

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

static void read_back(FILE *file, char out[SAID_MAX])
{
	rewind(file);
	out[fread(out, 1, SAID_MAX - 1, file)] = '\0';
	(void)fclose(file);
}

/* In the child. Nothing of the tests is on its streams, which unit.c writes line by line. */
static int call(char *line, FILE *out, FILE *err)
{
	char *words[PROGRAM_WORDS_MAX];
	int status;

	/* As in a new process: the tests may have read options here. */
	optind = 0;
	if (dup2(fileno(out), STDOUT_FILENO) < 0 || dup2(fileno(err), STDERR_FILENO) < 0)
		abort();
	status = rlock_main(program_cut(line, words), words);
	return fflush(NULL) == 0 ? status : -1;
}

void program_call(const char *line, struct said *said)
{
	size_t size = strlen("rlock ") + strlen(line) + 2;
	FILE *out = tmpfile(), *err = tmpfile();
	char *copy = malloc(size);
	int status = 0;
	pid_t pid;

	if (out == NULL || err == NULL || copy == NULL)
		abort();
	(void)snprintf(copy, size, "rlock %s", line);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0)
		_exit(call(copy, out, err));
	(void)waitpid(pid, &status, 0);
	said->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	read_back(out, said->out);
	read_back(err, said->err);
	free(copy);
}

bool program_says(const char *said, const char *text)
{
	static const char gap[] = " ... ";

	while (text != NULL && said != NULL) {
		const char *end = strstr(text, gap);
		size_t len = end != NULL ? (size_t)(end - text) : strlen(text);

		said = memmem(said, strlen(said), text, len);
		text = end != NULL ? end + strlen(gap) : NULL;
	}
	return said != NULL;
}

bool program_refused(const struct said *said, int status, const char *text)
{
	size_t len = strlen(said->err);

	return said->status == status && said->out[0] == '\0' && len > 0 &&
	       strchr(said->err, '\n') == said->err + len - 1 &&
	       strncmp(said->err, "rlock: ", strlen("rlock: ")) == 0 &&
	       program_says(said->err, text);
}
