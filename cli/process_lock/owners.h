/*
 * Owners, each once: a malloc'ed array of malloc'ed strings.
 */
#ifndef OWNERS_H
#define OWNERS_H

#include <stddef.h>

/* Append a copy of owner, unless owners contains it already. Out of memory, it is left out. */
void owners_add(char ***owners, size_t *count, const char *owner, size_t len);
void owners_free(char **owners, size_t count);

#endif
