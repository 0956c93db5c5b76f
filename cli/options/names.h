/*
 * Lock names and holders as messages show them.
 */
#ifndef NAMES_H
#define NAMES_H

#include "lib/rlock.h"
#include "options/opts.h"

#define NAME_SHOWN_MAX 256
#define NAMES_SHOWN_MAX 1024
#define HOLDER_SHOWN_MAX (RLOCK_NOTE_MAX + RLOCK_OWNER_MAX + 3)

/* The index-th name, safe for a terminal. Returns out. */
char *names_show_one(const struct opts *opts, size_t index, char out[NAME_SHOWN_MAX]);
/* All names, with blanks between them. Returns out. */
char *names_show(const struct rlock_name *names, size_t count, char out[NAMES_SHOWN_MAX]);
/* "NOTE (OWNER)", of texts that are escaped; without a note the owner alone. Returns out. */
char *names_show_holder(const char *note, const char *owner, char out[HOLDER_SHOWN_MAX]);

#endif
