/*
 * Prints the reply to one command as redis-cli does, in a fifth of its time: tests query their servers thousands of times. For options
 * of redis-cli use redis-cli itself. Both read the password from REDISCLI_AUTH.
 *
 * ask_redis.so is the same as a builtin of bash, which starts no process. Where bash cannot load builtins, tests use the program.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <hiredis/hiredis.h>

#define EX_USAGE 64

static const char usage[] =
	"usage: ask_redis SOCKET|PORT COMMAND [ARG...]\n"
	"Prints the reply as redis-cli does where it writes to no terminal. 1 without one.\n"
	"As a builtin of bash: ask_redis [-v NAME] SOCKET|PORT COMMAND [ARG...] sets the variable instead.\n";

/* Recursive, as a reply can contain nested arrays. NOLINTNEXTLINE(misc-no-recursion) */
static void print(const redisReply *reply, FILE *out)
{
	if (reply->type == REDIS_REPLY_ARRAY) {
		for (size_t i = 0; i < reply->elements; i++) {
			if (i > 0)
				(void)fputc('\n', out);
			print(reply->element[i], out);
		}
		return;
	}
	if (reply->type == REDIS_REPLY_INTEGER)
		(void)fprintf(out, "%lld", reply->integer);
	else if (reply->str != NULL)
		(void)fwrite(reply->str, 1, reply->len, out);
	if (reply->type == REDIS_REPLY_ERROR)
		(void)fputc('\n', out);
}

/* Whether the reply is a report that has line ends of its own: redis-cli adds none. */
static bool is_report(const char *const *command, int count)
{
	return strcasecmp(command[0], "info") == 0 ||
	       (strcasecmp(command[0], "client") == 0 && count > 1 &&
		strcasecmp(command[1], "list") == 0);
}

/*
 * Send the command to the server at `place`: the path of a socket if it contains a slash, else a port of this machine. Write the
 * reply to out. Returns an exit status.
 */
static int ask(const char *place, const char *password, int count, const char **command, FILE *out)
{
	redisContext *context = strchr(place, '/') != NULL
					? redisConnectUnix(place)
					: redisConnect("127.0.0.1", (int)strtol(place, NULL, 10));
	redisReply *reply = NULL;
	int status = 1;

	if (context != NULL && context->err == 0) {
		if (password != NULL)
			freeReplyObject(redisCommand(context, "AUTH %s", password));
		reply = redisCommandArgv(context, count, command, NULL);
	}
	if (reply == NULL) {
		(void)fprintf(stderr, "ask_redis: %s: %s: %s\n", place, command[0],
			      context == NULL ? "out of memory" : context->errstr);
	} else {
		print(reply, out);
		if (!is_report(command, count))
			(void)fputc('\n', out);
		status = fflush(out) == 0 ? 0 : 1;
	}
	freeReplyObject(reply);
	redisFree(context);
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 3 || argv[1][0] == '-') {
		(void)fputs(usage, stderr);
		return EX_USAGE;
	}
	return ask(argv[1], getenv("REDISCLI_AUTH"), argc - 2, (const char **)argv + 2, stdout);
}

/* ---- the builtin ---- */

/* Copied from bash's headers, which are a separate package. The layout has not changed since bash 2. */
struct word {
	char *text;
	int flags;
};
struct word_list {
	struct word_list *next;
	struct word *word;
};
struct builtin {
	const char *name;
	int (*function)(struct word_list *);
	int flags;
	const char *const *long_doc;
	const char *short_doc;
	const char *handle;
};
#define BUILTIN_ENABLED 1

/* bash has these functions; in the program they are NULL. */
__attribute__((weak)) extern const char *get_string_value(const char *name);
__attribute__((weak)) extern void *bind_variable(const char *name, const char *value, int flags);

/* Set the shell variable name to the output, as $(...) does. */
static int ask_for_variable(const char *name, const char *password, int count, const char **words)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int status;

	if (out == NULL)
		return 1;
	status = ask(words[0], password, count - 1, words + 1, out);
	if (fclose(out) != 0)
		status = 1;
	while (text != NULL && length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	if (text == NULL || bind_variable(name, text, 0) == NULL)
		status = 1;
	free(text);
	return status;
}

static int ask_by_builtin(struct word_list *list)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction old;
	const char **words;
	int status = EX_USAGE, count = 0, first = 0;

	for (const struct word_list *at = list; at != NULL; at = at->next)
		count++;
	words = calloc((size_t)count + 1, sizeof(*words));
	if (words == NULL)
		return 1;
	for (const struct word_list *at = list; at != NULL; at = at->next)
		words[first++] = at->word->text;
	/* The server can close the connection between two writes: SIGPIPE must not end the shell. */
	(void)sigaction(SIGPIPE, &ignore, &old);
	if (count >= 4 && strcmp(words[0], "-v") == 0)
		status = ask_for_variable(words[1], get_string_value("REDISCLI_AUTH"), count - 2,
					  words + 2);
	else if (count >= 2 && words[0][0] != '-')
		status = ask(words[0], get_string_value("REDISCLI_AUTH"), count - 1, words + 1,
			     stdout);
	else
		(void)fputs(usage, stderr);
	(void)sigaction(SIGPIPE, &old, NULL);
	free(words);
	return status;
}

static const char *const long_doc[] = { usage, NULL };

/* bash looks up this symbol when it loads the builtin. */
extern struct builtin ask_redis_struct;
struct builtin ask_redis_struct = {
	.name = "ask_redis",
	.function = ask_by_builtin,
	.flags = BUILTIN_ENABLED,
	.long_doc = long_doc,
	.short_doc = "ask_redis [-v NAME] SOCKET|PORT COMMAND [ARG...]",
};
