/*
 * What a connection has to say: the text of its last failure, and its steps as they happen.
 */
#ifndef RLOCK_BASE_ERROR_H
#define RLOCK_BASE_ERROR_H

#include <stddef.h>

#include "rlock.h"

struct rlock__error {
	const char *server;   /* whom the steps are about; stays its owner's */
	rlock_trace_fn trace; /* NULL: the steps are not asked for */
	void *trace_ctx;
	size_t name_index; /* of the names of the request, the one that the text is about */
	char text[RLOCK_ERROR_MAX];
};

/* Sets the text, about the first name, and returns status, so that a failure is one line. The text is a step, too. */
__attribute__((format(printf, 3, 4))) enum rlock_status
rlock__fail(struct rlock__error *error, enum rlock_status status, const char *format, ...);
enum rlock_status rlock__fail_memory(struct rlock__error *error);
__attribute__((format(printf, 2, 3))) void rlock__trace(const struct rlock__error *error,
							const char *format, ...);

#endif
