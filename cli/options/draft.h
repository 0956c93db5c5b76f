/*
 * Options on their way into struct opts. The sources are read from the highest to the lowest, and
 * what has been decided stays; within one source, nothing may be said twice.
 */
#ifndef DRAFT_H
#define DRAFT_H

#include "options/option.h"

/* From here on it is source that draft_take hears. */
void draft_begin(struct draft *draft, enum opt_source source);

/*
 * Check an option's value (NULL for one that takes none) and store it, unless a higher source has
 * decided already or the option is another verb's. The draft keeps a pointer to value. RLOCK_EINVAL
 * with the reason, or RLOCK_ENOMEM.
 */
enum rlock_status draft_take(struct draft *draft, enum opt_id id, const char *value,
			     char why[RLOCK_ERROR_MAX]);

#endif
