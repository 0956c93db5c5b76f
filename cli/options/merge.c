/*
 * Options as they come in from three places: what goes together, and whose value stands.
 * How a single value is checked is the option table's business.
 */
#include <assert.h>
#include <string.h>

#include "options/merge.h"
#include "options/table.h"

/* The option that decides the same thing; itself when there is none. */
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

/* What the same source may not say together. */
static enum rlock_status refuse_conflict(const struct option_merge *merge, enum opt_id id,
					 char why[RLOCK_ERROR_MAX])
{
	const char *dashes = merge->source == SOURCE_ARGV ? "--" : "";
	enum opt_id rival = rival_of(id);

	if (merge->seen[id] && (opt_table[id].scope & REPEATABLE) == 0)
		return table_refuse(why, "given twice");
	if (rival != id && merge->seen[rival])
		return table_refuse(why, "can't go together with %s%s", dashes,
				    opt_table[rival].name);
	return RLOCK_OK;
}

/*
 * What a file says of its servers is not for one that -u or RLOCK_URL names: a site's password would go to
 * whoever listens there.
 */
static bool is_of_other_servers(const struct option_merge *merge, enum opt_id id)
{
	return merge->source == SOURCE_FILE && (opt_table[id].scope & OF_SERVER) != 0 &&
	       merge->given[OPT_URL] > SOURCE_FILE;
}

/* Others' options, and those that a higher source has decided, are checked all the same. */
static bool is_wanted(const struct option_merge *merge, enum opt_id id)
{
	bool is_more = merge->seen[id] && merge->given[id] == merge->source;

	if (is_more)
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
	struct opts spare_opts = { 0 };
	struct option_merge spare = { .opts = &spare_opts };
	const struct opt *opt = &opt_table[id];
	struct option_merge *target = is_wanted(merge, id) ? merge : &spare;
	enum rlock_status status = refuse_conflict(merge, id, why);

	assert(opt->id == id && opt->apply != NULL);
	if (status == RLOCK_OK)
		status = opt->apply(target, opt, value, why);
	if (status != RLOCK_OK)
		goto out;
	for (size_t i = 0; i < target->opts->url_count && id == OPT_URL; i++)
		if (rlock_url_has_db(target->opts->urls[i]))
			merge->seen_url_db = true;
	merge->seen[id] = true;
	if (merge->seen_url_db && merge->seen[OPT_DB]) {
		status = table_refuse(why, "the URL names a database as well");
		goto out;
	}
	if (target == merge)
		merge->given[id] = merge->source;
	else if (is_of_other_servers(merge, id))
		merge->is_ignored[id] = true;
out:
	opts_free_urls(&spare_opts);
	return status;
}
