/* Read the URLs in the value of an option. */
#ifndef URLS_H
#define URLS_H

#include <stdbool.h>

#include "options/opts.h"

/* Separators of URLs. A newline is among them, since values from files or YAML end with one. */
#define URL_SEPARATORS " \t\r\n"

/* Whether the text is one right URL. */
bool urls_is_right(const char *text);

/*
 * Append the URLs in value, with separators between them, to those of opts. RLOCK_EINVAL with the reason in why, or
 * RLOCK_ENOMEM.
 */
enum rlock_status urls_add(struct opts *opts, const char *value, char why[RLOCK_ERROR_MAX]);

#endif
