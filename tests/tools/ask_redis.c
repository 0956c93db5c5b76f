/*
 * What redis-cli prints for one command, in a fifth of its time: tests look at their servers thousands of times.
 * Whatever needs an option of redis-cli's is for redis-cli. REDISCLI_AUTH counts for both.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <hiredis/hiredis.h>

static const char usage[] =
	"usage: ask_redis SOCKET COMMAND [ARG...]\n"
	"Prints the reply as redis-cli does where it writes to no terminal. 1 without one.\n";

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

int main(int argc, char **argv)
{
	redisContext *context;
	redisReply *reply;

	if (argc < 3) {
		(void)fputs(usage, stderr);
		return 64;
	}
	context = redisConnectUnix(argv[1]);
	if (context == NULL || context->err != 0) {
		(void)fprintf(stderr, "ask_redis: cannot connect to %s: %s\n", argv[1],
			      context == NULL ? "out of memory" : context->errstr);
		redisFree(context);
		return 1;
	}
	log_in(context);
	reply = redisCommandArgv(context, argc - 2, (const char **)argv + 2, NULL);
	if (reply == NULL) {
		(void)fprintf(stderr, "ask_redis: %s: %s\n", argv[2], context->errstr);
		redisFree(context);
		return 1;
	}
	print(reply);
	if (!is_report(argv + 2))
		putchar('\n');
	freeReplyObject(reply);
	redisFree(context);
	return fflush(stdout) == 0 ? 0 : 1;
}
