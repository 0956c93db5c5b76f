/*
 * The servers of one option value: one URL, or several.
 */
#ifndef URLS_H
#define URLS_H

#include "options/opts.h"

/* Between URLs; also what a file or a variable of YAML has at its end. */
#define URL_SEPARATORS " \t\r\n"

/*
 * Add the URLs of a value to those of opts: one, or several with blanks or lines between them. RLOCK_EINVAL with the reason,
 * RLOCK_ENOMEM.
 */
enum rlock_status urls_add(struct opts *opts, const char *value, char why[RLOCK_ERROR_MAX]);

#endif
