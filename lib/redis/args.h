/*
 * The arguments of a script.
 */
#ifndef RLOCK_REDIS_ARGS_H
#define RLOCK_REDIS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define RLOCK__ARGS_HEAD 3 /* EVALSHA, the script, the number of keys */

/* The arguments of one EVALSHA, keys first. Filled by rlock__args_*, freed by rlock__args_free. */
struct rlock__args {
	const char **argv;
	size_t *lengths;
	char **owned; /* those of argv that are freed with it; else NULL */
	size_t count, capacity;
	size_t key_count;
	bool is_out_of_memory; /* stays set: checked once, when sent */
	bool needs_login;
	char key_count_text[24];
};

void rlock__args_init(struct rlock__args *args);
void rlock__args_free(struct rlock__args *args);
void rlock__args_key(struct rlock__args *args,
		     struct rlock__text key); /* takes over key.text; NULL: out of memory */
/* A malloc'ed argument that is not in KEYS. Takes over text.text; NULL: out of memory. */
void rlock__args_owned(struct rlock__args *args, struct rlock__text text);
void rlock__args_text(struct rlock__args *args, const char *text, size_t len); /* text must stay */
void rlock__args_number(struct rlock__args *args, int64_t number);

#endif
