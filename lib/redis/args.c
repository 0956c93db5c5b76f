/*
 * The arguments of a script, keys first, with their memory.
 * Which ones a script gets is for its request; the head of the command for script.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/args.h"

void rlock__args_init(struct rlock__args *args)
{
	memset(args, 0, sizeof(*args));
	args->count = RLOCK__ARGS_HEAD;
}

void rlock__args_free(struct rlock__args *args)
{
	if (args->owned != NULL)
		for (size_t i = RLOCK__ARGS_HEAD; i < args->count; i++)
			free(args->owned[i]);
	free(args->argv);
	free(args->lengths);
	free(args->owned);
	rlock__args_init(args);
}

static bool grow(struct rlock__args *args)
{
	size_t capacity = args->capacity == 0 ? 16 : args->capacity * 2;
	const char **argv = realloc(args->argv, capacity * sizeof(*argv));
	size_t *lengths;
	char **owned;

	if (argv != NULL)
		args->argv = argv;
	lengths = realloc(args->lengths, capacity * sizeof(*lengths));
	if (lengths != NULL)
		args->lengths = lengths;
	owned = realloc(args->owned, capacity * sizeof(*owned));
	if (owned != NULL)
		args->owned = owned;
	if (argv == NULL || lengths == NULL || owned == NULL)
		return false;
	args->capacity = capacity;
	return true;
}

static void add(struct rlock__args *args, const char *text, size_t len, char *owned)
{
	if (args->count >= args->capacity && !grow(args)) {
		args->is_out_of_memory = true;
		free(owned);
		return;
	}
	args->argv[args->count] = text;
	args->lengths[args->count] = len;
	args->owned[args->count] = owned;
	args->count++;
}

void rlock__args_owned(struct rlock__args *args, struct rlock__text text)
{
	if (text.text == NULL)
		args->is_out_of_memory = true;
	else
		add(args, text.text, text.len, text.text);
}

void rlock__args_key(struct rlock__args *args, struct rlock__text key)
{
	rlock__args_owned(args, key);
	args->key_count++;
}

void rlock__args_text(struct rlock__args *args, const char *text, size_t len)
{
	add(args, text, len, NULL);
}

void rlock__args_number(struct rlock__args *args, int64_t number)
{
	char text[24], *copy;

	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	copy = strdup(text);
	if (copy == NULL) {
		args->is_out_of_memory = true;
		return;
	}
	add(args, copy, strlen(copy), copy);
}
