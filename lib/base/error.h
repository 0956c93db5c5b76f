/*
 * What a call has to say, in words: the steps that it traces, the last of which is its failure.
 */
#ifndef RLOCK_BASE_ERROR_H
#define RLOCK_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__error {
	enum rlock_status status; /* of the last failure */
	const char *server;       /* that text and steps are about; belongs to its connection */
	rlock_trace_fn trace;     /* NULL: none */
	void *trace_ctx;
	size_t name_index; /* of the request's name that the text is about */
	bool heals_itself; /* the text says what a cluster mends by itself: a slot that moves, a dead node */
	struct rlock_failure failure;
	char text[RLOCK_ERROR_MAX];
};

/* Set the text, about the first name, and trace it. Returns status, so that a failure is one line. */
__attribute__((format(printf, 3, 4))) enum rlock_status
rlock__fail(struct rlock__error *error, enum rlock_status status, const char *format, ...);
enum rlock_status rlock__fail_memory(struct rlock__error *error);
/* The text ends with these words of the server's, unless it had no room for them. */
void rlock__error_set_reply(struct rlock__error *error, const char *reply);
/* Those words; an empty string: the text has none. */
const char *rlock__error_reply(const struct rlock__error *error);
__attribute__((format(printf, 2, 3))) void rlock__trace(const struct rlock__error *error,
							const char *format, ...);

#endif
