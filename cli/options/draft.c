/*
 * Options as they come in from three places: what goes together, and whose value stands.
 * How a single value is checked is the option table's business.
 */
#include <assert.h>
#include <string.h>

#include "options/draft.h"
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

void draft_begin(struct draft *draft, enum opt_source source)
{
	draft->source = source;
	memset(draft->seen, 0, sizeof(draft->seen));
	draft->seen_url_db = false;
}

/* What the same source may not say together. */
static enum rlock_status refuse_conflict(const struct draft *draft, enum opt_id id,
					 char why[RLOCK_ERROR_MAX])
{
	const char *dashes = draft->source == SOURCE_ARGV ? "--" : "";
	enum opt_id rival = rival_of(id);

	if (draft->seen[id] && (opt_table[id].scope & REPEATABLE) == 0)
		return table_refuse(why, "given twice");
	if (rival != id && draft->seen[rival])
		return table_refuse(why, "can't go together with %s%s", dashes,
				    opt_table[rival].name);
	return RLOCK_OK;
}

/*
 * What a file says of its servers is not for one that -u or RLOCK_URL names: a site's password would go to
 * whoever listens there.
 */
static bool is_of_other_servers(const struct draft *draft, enum opt_id id)
{
	return draft->source == SOURCE_FILE && (opt_table[id].scope & OF_SERVER) != 0 &&
	       draft->given[OPT_URL] > SOURCE_FILE;
}

/* Others' options, and those that a higher source has decided, are checked all the same. */
static bool is_wanted(const struct draft *draft, enum opt_id id)
{
	bool is_more = draft->seen[id] && draft->given[id] == draft->source;

	if (is_more)
		return true;
	if (is_of_other_servers(draft, id))
		return false;
	if (draft->given[id] != SOURCE_DEFAULT || draft->given[rival_of(id)] != SOURCE_DEFAULT)
		return false;
	return draft->source == SOURCE_DEFAULT ||
	       (opt_table[id].verbs & (unsigned)draft->verb->set) != 0;
}

enum rlock_status draft_take(struct draft *draft, enum opt_id id, const char *value,
			     char why[RLOCK_ERROR_MAX])
{
	struct opts spare_opts = { 0 };
	struct draft spare = { .opts = &spare_opts };
	const struct opt *opt = &opt_table[id];
	struct draft *taker = is_wanted(draft, id) ? draft : &spare;
	enum rlock_status status = refuse_conflict(draft, id, why);

	assert(opt->id == id && opt->apply != NULL);
	if (status == RLOCK_OK)
		status = opt->apply(taker, opt, value, why);
	if (status != RLOCK_OK)
		goto out;
	for (size_t i = 0; i < taker->opts->url_count && id == OPT_URL; i++)
		if (rlock_url_has_db(taker->opts->urls[i]))
			draft->seen_url_db = true;
	draft->seen[id] = true;
	if (draft->seen_url_db && draft->seen[OPT_DB]) {
		status = table_refuse(why, "the URL names a database as well");
		goto out;
	}
	if (taker == draft)
		draft->given[id] = draft->source;
	else if (is_of_other_servers(draft, id))
		draft->is_ignored[id] = true;
out:
	opts_free_urls(&spare_opts);
	return status;
}
