/*
 * Options on their way into struct opts. The sources are read from the highest to the lowest, and
 * what has been decided stays; within one source, nothing may be said twice.
 */
#ifndef DRAFT_H
#define DRAFT_H

#include <stdbool.h>

#include "opts.h"
#include "opttable.h"
#include "usage.h"

enum opt_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_ARGV };

struct draft {
	const struct verb *verb;
	struct opts *opts;
	int db; /* what opts.h has no place for */
	const char *config;
	const char *password_file;
	/* The file's path, for messages; and that of one that can't be read and is not needed. Empty: none. */
	char config_shown[USAGE_SHOWN_MAX], config_skipped[USAGE_SHOWN_MAX];

	enum opt_source given[OPT_COUNT]; /* whose value stands */
	enum opt_source source;           /* who speaks now... */
	bool seen[OPT_COUNT];             /* ...what it has said so far... */
	bool seen_url_db;                 /* ...and whether a URL of it names a database */

	bool is_ignored[OPT_COUNT]; /* said by the file of its own servers, and others were named */
};

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
