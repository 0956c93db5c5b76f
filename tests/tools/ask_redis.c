/*
 * What redis-cli prints for one command, in a fifth of its time: tests look at their servers thousands of times.
 * Whatever needs an option of redis-cli's is for redis-cli. REDISCLI_AUTH counts for both.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <hiredis/hiredis.h>

static const char usage[] =
	"usage: ask_redis SOCKET COMMAND [ARG...]\n"
	"       ask_redis --serve\n"
	"Prints the reply as redis-cli does where it writes to no terminal. 1 without one.\n"
	"--serve: reads requests, each the number of its words and then the words; after a reply comes the exit status.\n"
	"A NUL ends each of these.\n";

/* Of a request to --serve. */
enum { WORDS_MAX = 64 };

/* Arrays in arrays are as deep as the command has them. NOLINTNEXTLINE(misc-no-recursion) */
static void print(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ARRAY) {
		for (size_t i = 0; i < reply->elements; i++) {
			if (i > 0)
				putchar('\n');
			print(reply->element[i]);
		}
		return;
	}
	if (reply->type == REDIS_REPLY_INTEGER)
		printf("%lld", reply->integer);
	else if (reply->str != NULL)
		(void)fwrite(reply->str, 1, reply->len, stdout);
	if (reply->type == REDIS_REPLY_ERROR)
		putchar('\n');
}

/* These reports have the line ends that they want: redis-cli adds none. */
static bool is_report(char *const *command)
{
	if (strcasecmp(command[0], "info") == 0)
		return true;
	return strcasecmp(command[0], "client") == 0 && command[1] != NULL &&
	       strcasecmp(command[1], "list") == 0;
}

/* As redis-cli does with a password in the environment. */
static void log_in(redisContext *context)
{
	const char *password = getenv("REDISCLI_AUTH");

	if (password != NULL)
		freeReplyObject(redisCommand(context, "AUTH %s", password));
}

/* ask SOCKET COMMAND...: prints the reply; the exit status. */
static int ask(int argc, char **argv)
{
	redisContext *context = redisConnectUnix(argv[0]);
	redisReply *reply;

	if (context == NULL || context->err != 0) {
		(void)fprintf(stderr, "ask_redis: cannot connect to %s: %s\n", argv[0],
			      context == NULL ? "out of memory" : context->errstr);
		redisFree(context);
		return 1;
	}
	log_in(context);
	reply = redisCommandArgv(context, argc - 1, (const char **)argv + 1, NULL);
	if (reply == NULL) {
		(void)fprintf(stderr, "ask_redis: %s: %s\n", argv[1], context->errstr);
		redisFree(context);
		return 1;
	}
	print(reply);
	if (!is_report(argv + 1))
		putchar('\n');
	freeReplyObject(reply);
	redisFree(context);
	return 0;
}

/* read_word: the next one, up to its NUL; NULL at the end. The caller frees it. */
static char *read_word(void)
{
	char *word = NULL;
	size_t size = 0;

	if (getdelim(&word, &size, '\0', stdin) <= 0) {
		free(word);
		return NULL;
	}
	return word;
}

/* One request: how many words, then these. False at the end of all. */
static bool serve_one(void)
{
	char *count = read_word();
	char *words[WORDS_MAX] = { NULL };
	long argc = count == NULL ? 0 : strtol(count, NULL, 10);
	int status;

	free(count);
	if (argc < 2 || argc > WORDS_MAX)
		return false;
	for (long i = 0; i < argc; i++)
		words[i] = read_word();
	status = ask((int)argc, words);
	printf("%c%d%c", '\0', status, '\0');
	for (long i = 0; i < argc; i++)
		free(words[i]);
	return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 2 && strcmp(argv[1], "--serve") == 0) {
		while (serve_one())
			;
		return 0;
	}
	if (argc < 3) {
		(void)fputs(usage, stderr);
		return 64;
	}
	status = ask(argc - 1, argv + 1);
	return fflush(stdout) == 0 ? status : 1;
}
