/*
 * The merge of all option sources into struct opts. They are read from the highest to the lowest, and what a higher
 * one has decided stays; within one source, nothing may be given twice.
 */
#ifndef MERGE_H
#define MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/option.h"

struct option_merge {
	const struct verb *verb;
	struct opts *opts;
	enum opt_source given[OPT_COUNT]; /* the source whose value is in opts */

	/* The source that is read now, and which options it has given so far. */
	enum opt_source source;
	size_t line; /* of the file */
	bool seen[OPT_COUNT];
	bool seen_url_db; /* one of its URLs names a database */
};

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
