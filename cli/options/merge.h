/*
 * The merge of all option sources into struct opts. They are read from the highest to the lowest, and what a higher
 * one has decided stays; within one source, nothing may be given twice.
 */
#ifndef MERGE_H
#define MERGE_H

#include "options/option.h"

/* From here on merge_add has the options of that source. */
void merge_begin(struct option_merge *merge, enum opt_source source);

/*
 * Check an option's value (NULL for one that takes none) and store it, unless a higher source has decided already, or
 * the option belongs to another verb. The merge keeps a pointer to value. RLOCK_EINVAL with the reason, or
 * RLOCK_ENOMEM.
 */
enum rlock_status merge_add(struct option_merge *merge, enum opt_id id, const char *value,
			    char why[RLOCK_ERROR_MAX]);

/* The same for an option that a source expressly leaves off. RLOCK_ENOMEM, or RLOCK_OK. */
enum rlock_status merge_add_no(struct option_merge *merge, enum opt_id id);

#endif
