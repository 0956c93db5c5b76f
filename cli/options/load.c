/*
 * Make one struct opts, checked and complete, from the command line, the environment and the configuration file; check
 * options that need or exclude each other; list all settings for rlock check. argv.c and config.c read the sources,
 * table.c decides which value counts, servers.c completes the URLs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "log/event_log.h"
#include "options/argv.h"
#include "options/config.h"
#include "options/load.h"
#include "options/notation.h"
#include "options/passwords.h"
#include "options/servers.h"
#include "options/similar.h"
#include "options/table.h"
#include "options/usage.h"

/* ---- the settings, for rlock check ---- */

/* Print the option or variable that gave the value, as the user wrote it: "--url", "RLOCK_URL", or "url" in a file. */
static const char *given_by(const struct given *given, char out[64])
{
	const struct opt *opt = &opt_table[given->id];

	(void)snprintf(out, 64, "%s%s", given->source == SOURCE_ARGV ? "--" : "",
		       given->source == SOURCE_ENVIRONMENT ? opt->variable : opt->name);
	return out;
}

static void setting_of_given(const struct opts *opts, const struct given *given,
			     struct setting *out)
{
	const struct opt *opt = &opt_table[given->id];
	char by[64];

	*out = (struct setting){ .option = opt->name,
				 .variable =
					 given->source == SOURCE_ENVIRONMENT ? opt->variable : NULL,
				 .source = given->source,
				 .line = given->line,
				 .value = (opt->scope & SECRET) != 0 ? NULL : given->value,
				 .is_of_other_verbs = given->use == GIVEN_TO_OTHER_VERBS };
	if (given->use == GIVEN_TO_OTHER_SERVERS)
		(void)snprintf(out->ignored, sizeof(out->ignored),
			       "it is for the url in that file, and %s names the server",
			       given_by(table_given(opts, OPT_URL), by));
	else if (given->use == GIVEN_TOO_LATE)
		(void)snprintf(out->ignored, sizeof(out->ignored), "%s takes precedence",
			       given_by(table_decided(opts, given->id), by));
	else if (given->use == GIVEN_COUNTS)
		(void)snprintf(out->ignored, sizeof(out->ignored), "%s",
			       servers_reason(opts, given->id));
}

/* Describe a default value. False: there is none, or another value counts. */
static bool setting_of_default(const struct opts *opts, enum opt_id id, struct setting *out)
{
	*out = (struct setting){ .option = opt_table[id].name };
	out->value = table_default(&opt_table[id], out->text);
	if (id == OPT_DB)
		(void)snprintf(out->ignored, sizeof(out->ignored), "%s",
			       servers_reason(opts, OPT_DB));
	return out->value != NULL && (opt_table[id].verbs & (unsigned)opts->verb->set) != 0 &&
	       table_decided(opts, id) == NULL;
}

/* Describe a variable of the environment that replaces no option. False: it is not set, or not worth showing. */
static bool setting_of_variable(const struct opts *opts, const char *variable, struct setting *out)
{
	const char *value = getenv(variable);

	*out = (struct setting){ .variable = variable, .source = SOURCE_ENVIRONMENT };
	if (strcmp(variable, "REDISCLI_AUTH") != 0)
		out->value = value;
	(void)snprintf(out->ignored, sizeof(out->ignored), "%s",
		       servers_variable_reason(opts, variable));
	/*
	 * Many systems set SSL_CERT_FILE for all programs: show it only if a server is verified by it.
	 */
	return value != NULL && *value != '\0' &&
	       (out->ignored[0] == '\0' || strncmp(variable, "SSL_", 4) != 0);
}

#define PREFIX "RLOCK_"
/* a variable of other programs */
#define REDIS_URL "REDIS_URL"

/* Whether rlock reads the variable, or sets it for a COMMAND. */
static bool is_own_variable(const char *name)
{
	static const char *const others[] = { "RLOCK_RUNTIME_DIR", "RLOCK_HELD", "RLOCK_NAME",
					      "RLOCK_OWNER",       "RLOCK_MODE", "RLOCK_TOKEN",
					      "RLOCK_SLOT" };

	for (size_t id = 0; id < OPT_COUNT; id++)
		if (opt_table[id].variable != NULL && strcmp(opt_table[id].variable, name) == 0)
			return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i], name) == 0)
			return true;
	return false;
}

/* Whether an entry of the environment is a variable that is named like ours, and that rlock does not read. Print its name. */
static bool is_unread(const char *entry, char name_out[USAGE_SHOWN_MAX])
{
	if (strncmp(entry, PREFIX, strlen(PREFIX)) != 0)
		return false;
	(void)snprintf(name_out, USAGE_SHOWN_MAX, "%.*s", (int)strcspn(entry, "="), entry);
	return !is_own_variable(name_out);
}

/*
 * Show variables that rlock does not read, but that a user may expect it to read. Do not show their values, which may
 * be secrets.
 */
static void see_other_variables(const struct opts *opts,
				void (*see)(void *ctx, const struct setting *setting), void *ctx)
{
	struct setting setting = { .source = SOURCE_ENVIRONMENT };
	char name[USAGE_SHOWN_MAX];

	for (char **entry = environ; *entry != NULL; entry++) {
		bool is_ours = is_unread(*entry, name);

		if (is_ours)
			(void)snprintf(setting.ignored, sizeof(setting.ignored),
				       "rlock reads no such variable; give the option, or a line "
				       "in the configuration file");
		else if (strncmp(*entry, REDIS_URL "=", strlen(REDIS_URL "=")) == 0 &&
			 table_source(opts, OPT_URL) == SOURCE_DEFAULT)
			(void)snprintf(setting.ignored, sizeof(setting.ignored),
				       "rlock reads RLOCK_URL");
		else
			continue;
		setting.variable = is_ours ? name : REDIS_URL;
		see(ctx, &setting);
	}
}

/*
 * Print " VALUE" for a message, if it is right for the option, or is right in the notation of rlock. Else, and for a value that may
 * be a secret, out is empty.
 */
static void print_right_value(const struct opt *opt, const char *value, char out[USAGE_SHOWN_MAX])
{
	char ours[DURATION_TEXT_MAX], why[RLOCK_ERROR_MAX];
	struct opts unwanted = { 0 };

	out[0] = '\0';
	if (opt->type == TYPE_DURATION && notation_translate(value, ours))
		value = ours;
	if ((opt->type == TYPE_DURATION || opt->type == TYPE_NUMBER || opt->type == TYPE_CHOICE ||
	     opt->type == TYPE_SIGNAL) &&
	    table_store(&unwanted, opt, value, why) == RLOCK_OK)
		(void)snprintf(out, USAGE_SHOWN_MAX, " %s", value);
}

/*
 * Warn of a variable that a user expects to replace an option, if that option is not given: without RLOCK_TIMEOUT the wait
 * would have no limit.
 */
static void warn_of_variables(const struct opts *opts)
{
	char name[USAGE_SHOWN_MAX], value[USAGE_SHOWN_MAX];

	for (char **entry = environ; *entry != NULL; entry++) {
		const struct opt *opt;
		const char *option;

		if (!is_unread(*entry, name))
			continue;
		option = similar_option_same((unsigned)opts->verb->set, name + strlen(PREFIX));
		if (option == NULL)
			option = similar_option_near((unsigned)opts->verb->set,
						     name + strlen(PREFIX));
		opt = option != NULL ? table_by_name(VERBS_ALL, option, strlen(option)) : NULL;
		if (opt == NULL || table_decided(opts, table_id(opt)) != NULL)
			continue;
		print_right_value(opt, *entry + strcspn(*entry, "=") + 1, value);
		if (opt->variable != NULL)
			message_warning("%s is set, but rlock reads %s", name, opt->variable);
		else
			message_warning(
				"%s is set, but rlock reads no such variable; give --%s%s, or a "
				"line in the configuration file",
				name, option, value);
	}
}

/*
 * Show the default files that were read, skipped or not needed. load_settings shows a file of --config or RLOCK_CONFIG
 * as a given option.
 */
static void see_default_files(const struct opts *opts,
			      void (*see)(void *ctx, const struct setting *setting), void *ctx)
{
	struct setting setting = { .option = "config", .value = opts->config_file };

	if (opts->config_file[0] != '\0' && opts->config == NULL)
		see(ctx, &setting);
	if (opts->config_skipped[0] != '\0') {
		setting.value = opts->config_skipped;
		(void)snprintf(setting.ignored, sizeof(setting.ignored), "%s, and is not needed",
			       opts->config_skipped_why);
		see(ctx, &setting);
	}
	/* Show the machine's file also if another file was read instead. */
	if (opts->config_file[0] != '\0' && strcmp(opts->config_file, CONFIG_OF_MACHINE) != 0 &&
	    access(CONFIG_OF_MACHINE, F_OK) == 0) {
		setting.value = CONFIG_OF_MACHINE;
		(void)snprintf(setting.ignored, sizeof(setting.ignored),
			       "one file is read, and that is %.99s", opts->config_file);
		see(ctx, &setting);
	}
}

void load_settings(const struct opts *opts, void (*see)(void *ctx, const struct setting *setting),
		   void *ctx)
{
	static const char *const variables[] = { "REDISCLI_AUTH", "RLOCK_RUNTIME_DIR",
						 "SSL_CERT_FILE", "SSL_CERT_DIR" };
	struct setting setting;

	for (size_t i = 0; i < opts->given_count; i++) {
		setting_of_given(opts, &opts->given[i], &setting);
		see(ctx, &setting);
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (setting_of_variable(opts, variables[i], &setting))
			see(ctx, &setting);
	see_other_variables(opts, see, ctx);
	see_default_files(opts, see, ctx);
	for (size_t id = 0; id < OPT_COUNT; id++)
		if (setting_of_default(opts, (enum opt_id)id, &setting))
			see(ctx, &setting);
}

/* ---- options that need or exclude each other ---- */

/*
 * With these verbs, an option on the command line needs another option, or excludes it. The other option may be from
 * any source.
 */
static const struct rule {
	unsigned verbs;
	enum opt_id id;
	bool needs;
	enum opt_id other;
	enum { EACH_CALL, CALL_WITHOUT_COMMAND } calls;
	const char *wrong;
} rules[] = {
	{ VERBS_ALL, OPT_OWNER, false, OPT_PID, EACH_CALL,
	  "--owner can't go together with --pid: a lock has one owner" },
	{ VERBS_UNLOCK, OPT_HOLDER, true, OPT_FORCE, EACH_CALL,
	  "--holder needs --force: it says which owner's lock to break" },
	{ VERBS_ALL, OPT_OWNER, false, OPT_FORCE, EACH_CALL,
	  "--force breaks the lock of any holder; say --holder OWNER, not --owner or --pid" },
	{ VERBS_ALL, OPT_PID, false, OPT_FORCE, EACH_CALL,
	  "--force breaks the lock of any holder; say --holder OWNER, not --owner or --pid" },
	{ VERBS_RENEW, OPT_LEASE, true, OPT_OWNER, EACH_CALL,
	  "--lease needs --owner: a process's lock keeps the lease that it was acquired with" },
	{ VERBS_ACQUIRE, OPT_OWNER, true, OPT_LEASE, CALL_WITHOUT_COMMAND,
	  "--owner needs --lease, since no process stays to renew the lock; add --lease 10m, or "
	  "as long as the job may take" },
	{ VERBS_ALL, OPT_METRICS, false, OPT_WATCH, EACH_CALL,
	  "--metrics can't go together with --watch; write it to a file, again and again" },
	{ VERBS_ACQUIRE, OPT_REMEMBER, false, OPT_OWNER, CALL_WITHOUT_COMMAND,
	  "--remember can't go together with --owner; give it to rlock unlock, which releases the lock" },
	{ VERBS_ACQUIRE, OPT_UNLESS_FAILED, true, OPT_AT_LEAST, EACH_CALL,
	  "--unless-failed needs --at-least; add --at-least 10m, or for how long the lock is kept after a success" },
	{ VERBS_ALL, OPT_LOG_FORMAT, true, OPT_LOG, EACH_CALL,
	  "--log-format needs --log: it says what its lines look like" },
};

static int check_rules(const struct opts *opts)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *rule = &rules[i];

		if ((rule->verbs & (unsigned)opts->verb->set) == 0 ||
		    (rule->calls == CALL_WITHOUT_COMMAND && opts->command != NULL) ||
		    table_source(opts, rule->id) != SOURCE_ARGV ||
		    (table_given(opts, rule->other) != NULL) == rule->needs)
			continue;
		message_error("%s", rule->wrong);
		return EXIT_USAGE;
	}
	/*
	 * complain-after is for calls with --no-wait. A call that waits refuses it on the command line, but ignores it
	 * in the configuration file, which is for all calls.
	 */
	if (opts->no_wait || table_source(opts, OPT_COMPLAIN_AFTER) != SOURCE_ARGV)
		return 0;
	message_error("--complain-after needs --no-wait: a wait ends with a message anyway");
	return EXIT_USAGE;
}

/*
 * Refuse options of the command line that have no effect in this call: with a COMMAND, without one, or with --resize,
 * which acquires nothing. Call this before check_rules, because the advice of the rules is for a call that acquires.
 */
static int check_scope(const struct opts *opts)
{
	bool has_command = opts->command != NULL;

	for (size_t i = 0; i < opts->given_count; i++) {
		enum opt_id id = opts->given[i].id;
		const struct opt *opt = &opt_table[id];

		if (opts->resize && id != OPT_PERMITS && id != OPT_RESIZE &&
		    (opt->verbs & VERBS_LIST) == 0)
			message_error(
				"--%s can't go together with --resize, which acquires nothing; "
				"leave one of them out",
				opt->name);
		else if (has_command && (opt->scope & WITHOUT_COMMAND) != 0)
			message_error(
				"--%s can't go together with a COMMAND; leave one of them out",
				opt->name);
		else if (!has_command && (opt->scope & WITH_COMMAND) != 0)
			message_error(
				"--%s is for a COMMAND, and there is none; put one after '--'",
				opt->name);
		else
			continue;
		return EXIT_USAGE;
	}
	return 0;
}

static int check_permits(const struct opts *opts)
{
	if (opts->verb->set != VERBS_SEM)
		return 0;
	if (opts->take > opts->permits)
		message_error("--take %d can never be acquired: there are %d permits in all",
			      opts->take, opts->permits);
	else if (opts->url_count > 1)
		message_error("sem needs one server: each has permits of its own");
	else
		return 0;
	return EXIT_USAGE;
}

/* Refuse --fence on the command line if the lock has no token. Ignore it in a file, where it is for other calls. */
static int set_fence(struct opts *opts)
{
	bool is_exclusive = opts->verb->kind == RLOCK_PLAIN || opts->verb->kind == RLOCK_FAIR;

	if (!opts->fence || (is_exclusive && opts->url_count == 1))
		return 0;
	if (table_source(opts, OPT_FENCE) != SOURCE_ARGV) {
		opts->fence = false;
		return 0;
	}
	if (opts->url_count > 1)
		message_error("--fence needs one server: each issues tokens of its own");
	else
		message_error("--fence is for plain and fair locks: a %s lock has no token",
			      rlock_kind_name(opts->verb->kind));
	return EXIT_USAGE;
}

/* ---- the sources ---- */

/*
 * Read the variables of options, and ignore empty ones. But refuse an empty RLOCK_URL: with the default URL, each
 * machine would lock on a server of its own.
 */
static int environment_read(struct opts *opts)
{
	int code = 0;

	for (size_t id = 0; code == 0 && id < OPT_COUNT; id++) {
		const char *variable = opt_table[id].variable;
		const char *value = variable != NULL ? getenv(variable) : NULL;

		if (value != NULL && (*value != '\0' || id == OPT_URL))
			code = usage_give(opts, (struct given){ (enum opt_id)id, SOURCE_ENVIRONMENT,
								.value = value });
	}
	return code;
}

/* Combine the values of all sources, and check them together. */
static int complete(struct opts *opts)
{
	char why[RLOCK_ERROR_MAX];
	int code;

	opts->is_fixed_lease = table_given(opts, OPT_LEASE) != NULL;
	if (opts->no_wait)
		opts->wait_ms = 0;
	opts->no_wait = opts->wait_ms == 0;
	message_setup(opts->quiet, opts->verbose);
	if (opts->url_count == 0 &&
	    table_store(opts, &opt_table[OPT_URL], DEFAULT_URL, why) != RLOCK_OK)
		return message_out_of_memory();
	code = check_rules(opts);
	if (code == 0)
		code = check_permits(opts);
	if (code == 0)
		code = servers_set(opts);
	return code != 0 ? code : set_fence(opts);
}

/*
 * Read the option sources from the highest to the lowest. Returns 0, or the exit code after one line by message_error.
 */
static int read_sources(struct opts *opts, bool *is_done)
{
	int code = argv_read(opts, is_done);

	if (code != 0 || *is_done)
		return code;
	code = check_scope(opts);
	if (code == 0)
		code = environment_read(opts);
	if (code == 0)
		code = config_read(opts);
	return code != 0 ? code : complete(opts);
}

int load_opts(const struct verb *verb, int argc, char **argv, struct opts *opts, bool *is_done)
{
	char where[USAGE_WHERE_MAX];
	int code;

	*is_done = false;
	*opts = opts_initial;
	opts->verb = verb;
	/* Cut argv before anything else, because argv_cut also hides the passwords in argv. */
	code = argv_cut(argc, argv, opts) ? read_sources(opts, is_done) : message_out_of_memory();
	/* Put the names of the locks into messages. list and check have no names, but a pattern. */
	if (code == 0 && !*is_done && (verb->set & VERBS_NAMES) != 0) {
		char shown[NAMES_SHOWN_MAX];

		message_set_names(names_show(opts->names, opts->name_count, shown));
	}
	/* check shows them as settings, and logs nothing. */
	if (code == 0 && !*is_done && verb->set != VERBS_CHECK)
		warn_of_variables(opts);
	if (code == 0 && !*is_done && verb->set != VERBS_CHECK && opts->log != NULL)
		code = event_log_setup(usage_where(opts, OPT_LOG, where), opts->log,
				       opts->log_format == LOG_JSON);
	if (code != 0 || *is_done)
		load_free(opts);
	return code;
}

void load_free(struct opts *opts)
{
	free(opts->names);
	opts_free_urls(opts);
	password_source_free(opts->password_source);
	password_source_free(opts->sentinel_password_source);
	free(opts->server);
	free(opts->given);
	argv_free(opts);
	/* Overwrite the file's text: it may contain a password. */
	if (opts->config_text != NULL)
		explicit_bzero(opts->config_text, opts->config_len);
	free(opts->config_text);
	*opts = (struct opts){ 0 };
}
