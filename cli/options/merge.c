/*
 * Merges the option sources: which options exclude each other, and which source's value counts.
 * How a single value is checked is value.c's business.
 */
#include <assert.h>
#include <string.h>

#include "options/merge.h"
#include "options/table.h"
#include "options/value.h"

/* The option that decides the same as this one; itself when there is none. */
static enum opt_id rival_of(enum opt_id id)
{
	switch (id) {
	case OPT_NO_WAIT:
		return OPT_WAIT;
	case OPT_WAIT:
		return OPT_NO_WAIT;
	case OPT_TTL:
		return OPT_LEASE;
	case OPT_LEASE:
		return OPT_TTL;
	case OPT_PASSWORD_FILE:
		return OPT_PASSWORD_COMMAND;
	case OPT_PASSWORD_COMMAND:
		return OPT_PASSWORD_FILE;
	default:
		return id;
	}
}

void merge_begin(struct option_merge *merge, enum opt_source source)
{
	merge->source = source;
	memset(merge->seen, 0, sizeof(merge->seen));
	merge->seen_url_db = false;
}

/* What one source may not give together. */
static enum rlock_status reject_conflict(const struct option_merge *merge, enum opt_id id,
					 char why[RLOCK_ERROR_MAX])
{
	const char *dashes = merge->source == SOURCE_ARGV ? "--" : "";
	enum opt_id rival = rival_of(id);

	if (merge->seen[id] && (opt_table[id].scope & REPEATABLE) == 0)
		return value_reject(why, "given twice");
	if (rival != id && merge->seen[rival])
		return value_reject(why, "can't go together with %s%s", dashes,
				    opt_table[rival].name);
	return RLOCK_OK;
}

/*
 * What a file says of its servers is not for one that -u or RLOCK_URL names: any process that listens there would get
 * a site's password.
 */
static bool is_of_other_servers(const struct option_merge *merge, enum opt_id id)
{
	return merge->source == SOURCE_FILE && (opt_table[id].scope & OF_SERVER) != 0 &&
	       merge->given[OPT_URL] > SOURCE_FILE;
}

/* An option that is not wanted, since another verb takes it or a higher source has decided, is checked all the same. */
static bool is_wanted(const struct option_merge *merge, enum opt_id id)
{
	bool is_repeated = merge->seen[id] && merge->given[id] == merge->source;

	if (is_repeated)
		return true;
	if (is_of_other_servers(merge, id))
		return false;
	if (merge->given[id] != SOURCE_DEFAULT || merge->given[rival_of(id)] != SOURCE_DEFAULT)
		return false;
	return merge->source == SOURCE_DEFAULT ||
	       (opt_table[id].verbs & (unsigned)merge->verb->set) != 0;
}

enum rlock_status merge_add(struct option_merge *merge, enum opt_id id, const char *value,
			    char why[RLOCK_ERROR_MAX])
{
	const struct opt *opt = &opt_table[id];
	struct opts unwanted = { 0 };
	struct opts *opts = is_wanted(merge, id) ? merge->opts : &unwanted;
	enum rlock_status status = reject_conflict(merge, id, why);

	assert(opt->id == id && opt->apply != NULL);
	if (status != RLOCK_OK)
		return status;
	status = opt->apply(opts, opt, value, why);
	if (status != RLOCK_OK)
		goto out;
	for (size_t i = 0; i < opts->url_count && id == OPT_URL; i++)
		if (rlock_url_has_db(opts->urls[i]))
			merge->seen_url_db = true;
	merge->seen[id] = true;
	if (merge->seen_url_db && merge->seen[OPT_DB]) {
		status = value_reject(why, "the URL names a database as well");
		goto out;
	}
	if (opts == merge->opts)
		merge->given[id] = merge->source;
	else if (is_of_other_servers(merge, id))
		merge->is_ignored[id] = true;
out:
	opts_free_urls(&unwanted);
	return status;
}
