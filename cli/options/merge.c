/*
 * Merges the option sources: which options exclude each other, and which source's value counts.
 * How a single value is checked is value.c's business.
 */
#include <assert.h>
#include <stdio.h>
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

/* How the user knows what has given this option. */
static const char *given_by(const struct option_merge *merge, enum opt_id id, char out[64])
{
	bool is_variable = merge->given[id] == SOURCE_ENVIRONMENT;

	(void)snprintf(out, 64, "%s%s", merge->given[id] == SOURCE_ARGV ? "--" : "",
		       is_variable ? "RLOCK_URL" : opt_table[id].name);
	return out;
}

/*
 * Whether a value counts, as setting then says. An option that is not wanted, since another verb takes it or a higher
 * source has decided, is checked all the same.
 */
static bool is_wanted(const struct option_merge *merge, enum opt_id id, struct setting *setting)
{
	bool is_repeated = merge->seen[id] && merge->given[id] == merge->source;
	enum opt_id rival = rival_of(id);
	char by[64];

	if (is_repeated)
		return true;
	setting->is_of_other_servers = is_of_other_servers(merge, id);
	if (setting->is_of_other_servers) {
		(void)snprintf(setting->ignored, sizeof(setting->ignored),
			       "it is for the url in that file, and %s names the server",
			       given_by(merge, OPT_URL, by));
		return false;
	}
	if (merge->given[id] != SOURCE_DEFAULT || merge->given[rival] != SOURCE_DEFAULT) {
		(void)snprintf(
			setting->ignored, sizeof(setting->ignored), "%s takes precedence",
			given_by(merge, merge->given[id] != SOURCE_DEFAULT ? id : rival, by));
		return false;
	}
	setting->is_of_other_verbs = (opt_table[id].verbs & (unsigned)merge->verb->set) == 0;
	return merge->source == SOURCE_DEFAULT || !setting->is_of_other_verbs;
}

/* A default that does not count is not worth a word. */
static enum rlock_status record(const struct option_merge *merge, const struct setting *setting)
{
	if (merge->source == SOURCE_DEFAULT &&
	    (setting->ignored[0] != '\0' || setting->is_of_other_verbs))
		return RLOCK_OK;
	return settings_add(&merge->opts->settings, setting) ? RLOCK_OK : RLOCK_ENOMEM;
}

/* value: as it is to be shown, where it is no secret. */
static struct setting setting_of(const struct option_merge *merge, enum opt_id id,
				 const char *value)
{
	return (struct setting){
		.option = opt_table[id].name,
		.variable = merge->source == SOURCE_ENVIRONMENT ? "RLOCK_URL" : NULL,
		.source = merge->source,
		.line = merge->source == SOURCE_FILE ? merge->line : 0,
		.value = (opt_table[id].scope & SECRET) != 0 ? NULL : value,
	};
}

enum rlock_status merge_add(struct option_merge *merge, enum opt_id id, const char *value,
			    char why[RLOCK_ERROR_MAX])
{
	const struct opt *opt = &opt_table[id];
	struct setting setting = setting_of(merge, id, value != NULL ? value : "yes");
	struct opts unwanted = { 0 };
	struct opts *opts = is_wanted(merge, id, &setting) ? merge->opts : &unwanted;
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
	status = record(merge, &setting);
out:
	opts_free_urls(&unwanted);
	return status;
}

enum rlock_status merge_add_no(struct option_merge *merge, enum opt_id id)
{
	struct setting setting = setting_of(merge, id, "no");

	(void)is_wanted(merge, id, &setting);
	return record(merge, &setting);
}
