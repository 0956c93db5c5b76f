/*
 * A URL while it is parsed.
 */
#ifndef RLOCK_URL_PARSING_H
#define RLOCK_URL_PARSING_H

#include <stdbool.h>

#include "rlock.h"
#include "url/part.h"

struct rlock_url;

struct rlock__parsing {
	const char *text;
	char *shown; /* text with its password hidden: the only one that is quoted */
	char *why;   /* of RLOCK_ERROR_MAX bytes */
	struct rlock_url *url;
};

#define RLOCK__URL_EXAMPLE "redis://127.0.0.1:6379"

#define RLOCK__QUOTE_MAX 100 /* of a text that a reason quotes, with the NUL */

/* RLOCK_EINVAL, with the reason in why. */
__attribute__((format(printf, 2, 3))) enum rlock_status
rlock__parsing_fail(const struct rlock__parsing *parsing, const char *format, ...);
enum rlock_status rlock__parsing_fail_memory(const struct rlock__parsing *parsing);
/* A part for use in a reason: escaped, and with a password in it hidden. */
char *rlock__parsing_quote(const struct rlock__parsing *parsing, struct rlock__part part,
			   char out[RLOCK__QUOTE_MAX]);
/* The decoded part, which the caller frees. */
enum rlock_status rlock__parsing_decode(const struct rlock__parsing *parsing,
					struct rlock__part part, const char *what, char **out);

#endif
