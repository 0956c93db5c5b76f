/*
 * Makes one struct opts, checked and complete, of the command line, the environment and the configuration file.
 * argv.c and config.c read these; here is what the options mean together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "options/argv.h"
#include "options/command_line.h"
#include "options/config.h"
#include "options/help.h"
#include "options/load.h"
#include "options/merge.h"
#include "options/opts.h"
#include "options/password_command.h"
#include "options/servers.h"
#include "options/table.h"
#include "options/usage.h"

/* The memory that the strings in struct opts point into. */
struct memory {
	struct command_line line;
	char *config;
	size_t config_len;
};

/* ---- what goes together on the command line ---- */

/* Options about a hold, which --resize does not make. The first that was given; NULL: none was. */
static const struct opt *find_of_hold(const struct option_merge *merge)
{
	for (size_t id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if (merge->given[id] == SOURCE_ARGV && (opt->verbs & VERBS_SEM) != 0 &&
		    (opt->verbs & VERBS_LIST) == 0 && id != OPT_PERMITS && id != OPT_RESIZE)
			return opt;
	}
	return NULL;
}

/* Before the others, whose advice would be for a call that acquires. */
static int check_resize(const struct option_merge *merge)
{
	const struct opt *of_hold = merge->opts->resize ? find_of_hold(merge) : NULL;

	if (of_hold != NULL)
		message_error("--%s can't go together with --resize, which acquires nothing: leave "
			      "one of them out",
			      of_hold->name);
	else if (merge->opts->resize && merge->opts->command != NULL)
		message_error("--resize can't go together with a COMMAND, since it acquires "
			      "nothing: leave one of them out");
	else
		return 0;
	return EXIT_USAGE;
}

/* Options that would do nothing with a COMMAND, or without one. */
static int check_scope(const struct option_merge *merge)
{
	bool has_command = merge->opts->command != NULL;
	size_t id;

	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if (merge->given[id] != SOURCE_ARGV)
			continue;
		if ((opt->scope & WITH_COMMAND) != 0 && !has_command) {
			message_error(
				"--%s is for a COMMAND, and there is none: put one after '--'",
				opt->name);
			return EXIT_USAGE;
		}
		if ((opt->scope & WITHOUT_COMMAND) != 0 && has_command) {
			message_error("--%s is for a lock without a COMMAND: leave one of them out",
				      opt->name);
			return EXIT_USAGE;
		}
	}
	return 0;
}

/* Called before the file is read, since that may be meant for other calls. */
static int check_owner(const struct option_merge *merge)
{
	const struct opts *opts = merge->opts;
	const char *wrong = NULL;

	if (opts->owner != NULL && opts->pid != 0)
		wrong = "--owner can't go together with --pid: a lock has one owner";
	else if (opts->holder != NULL && !opts->force)
		wrong = "--holder needs --force: it says which owner's lock to break";
	else if (opts->force && (opts->owner != NULL || opts->pid != 0))
		wrong = "--force breaks the lock of any holder: say --holder OWNER, not --owner or --pid";
	else if (merge->verb->set == VERBS_RENEW && opts->is_fixed_lease && opts->owner == NULL)
		wrong = "--lease needs --owner: a process's lock keeps the lease that it was acquired with";
	if (wrong == NULL)
		return 0;
	message_error("%s", wrong);
	return EXIT_USAGE;
}

/* Whose a lock without a COMMAND is has to be said: the caller may be a wrapper or a subshell that ends with the call. */
static int check_holder(const struct option_merge *merge, const struct command_line *line)
{
	const struct opts *opts = merge->opts;

	if ((merge->verb->set & VERBS_ACQUIRE) == 0 || opts->command != NULL || opts->resize ||
	    opts->pid != 0 || opts->owner != NULL)
		return 0;
	return command_line_report_no_holder(merge->verb, line);
}

/* ---- the environment ---- */

static int environment_read(struct option_merge *merge)
{
	const char *url = getenv("RLOCK_URL");
	struct settings *settings = &merge->opts->settings;
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status;

	if (!settings_add_variable(settings, "REDISCLI_AUTH", NULL, true) ||
	    !settings_add_variable(settings, "RLOCK_RUNTIME_DIR", NULL, false) ||
	    !settings_add_variable(settings, "SSL_CERT_FILE", NULL, false) ||
	    !settings_add_variable(settings, "SSL_CERT_DIR", NULL, false))
		return message_out_of_memory();
	if (url == NULL)
		return 0;
	if (merge->given[OPT_URL] != SOURCE_DEFAULT) {
		if (!settings_add_variable(settings, "RLOCK_URL", "url", false))
			return message_out_of_memory();
		settings_ignore(settings, "RLOCK_URL", "--url takes precedence");
		return 0;
	}
	merge_begin(merge, SOURCE_ENVIRONMENT);
	status = merge_add(merge, OPT_URL, url, why);
	if (status != RLOCK_OK)
		usage_bad_value("RLOCK_URL", url, why);
	return exit_code_of(status);
}

/* ---- the defaults ---- */

static int defaults_read(struct option_merge *merge)
{
	char why[RLOCK_ERROR_MAX];
	size_t id;

	merge_begin(merge, SOURCE_DEFAULT);
	for (id = 0; id < OPT_COUNT; id++) {
		const char *initial = opt_table[id].initial;
		enum rlock_status status;

		if (initial == NULL)
			continue;
		status = merge_add(merge, (enum opt_id)id, initial, why);
		if (status != RLOCK_OK) {
			usage_bad_value(opt_table[id].name, initial, why);
			return status == RLOCK_ENOMEM ? EXIT_SYSTEM : EXIT_FAULT;
		}
	}
	return 0;
}

/* ---- what it all means ---- */

static bool is_exclusive_kind(const struct verb *verb)
{
	return verb->kind == RLOCK_PLAIN || verb->kind == RLOCK_FAIR;
}

/* Where a token has no meaning --fence is an error, but not in a file, where it is meant for other calls. */
static int fence_set(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;

	if (!opts->fence || (is_exclusive_kind(merge->verb) && opts->url_count == 1))
		return 0;
	if (merge->given[OPT_FENCE] != SOURCE_ARGV) {
		opts->fence = false;
		return 0;
	}
	if (opts->url_count > 1)
		message_error("--fence needs one server: each issues tokens of its own");
	else
		message_error("--fence is for plain and fair locks: a %s lock has no token",
			      rlock_kind_name(merge->verb->kind));
	return EXIT_USAGE;
}

/* The file that is not read, and not needed; and options of the file's servers, where other servers were named. */
static void report_ignored(const struct option_merge *merge)
{
	char names[256] = "";
	size_t len = 0;

	if (merge->opts->settings.skipped[0] != '\0')
		message_debug("%s: ignored, since %s", merge->opts->settings.skipped,
			      merge->opts->settings.skipped_why);
	for (size_t id = 0; id < OPT_COUNT; id++)
		if (settings_is_of_other_servers(&merge->opts->settings, opt_table[id].name) &&
		    merge->given[id] == SOURCE_DEFAULT)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						len > 0 ? ", " : "", opt_table[id].name);
	if (len > 0)
		message_debug("%s: ignored, since %s names the server: %s",
			      merge->opts->settings.config,
			      merge->given[OPT_URL] == SOURCE_ARGV ? "--url" : "RLOCK_URL", names);
}

static int report_no_permits(const struct option_merge *merge)
{
	const struct opts *opts = merge->opts;
	struct usage_line line;
	size_t given = 0;

	usage_line_begin(&line, merge->verb->name);
	usage_line_add_plain(&line, "--permits 3");
	usage_line_add(&line, opts->words, opts->word_count);
	if (opts->command != NULL) {
		while (opts->command[given] != NULL)
			given++;
		usage_line_add_plain(&line, "--");
		usage_line_add(&line, opts->command, given);
	}
	message_error("%s needs --permits, how many there are in all: try: %s", merge->verb->name,
		      line.text);
	return EXIT_USAGE;
}

static int check_permits(const struct option_merge *merge)
{
	const struct opts *opts = merge->opts;

	if (merge->verb->set != VERBS_SEM)
		return 0;
	if (opts->permits == 0)
		return report_no_permits(merge);
	if (opts->take > opts->permits)
		message_error("--take %d can never be acquired: there are %d permits in all",
			      opts->take, opts->permits);
	else if (opts->url_count > 1)
		message_error("sem needs one server: each has permits of its own");
	else
		return 0;
	return EXIT_USAGE;
}

static int complete(struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	int code;

	report_ignored(merge);
	if ((merge->verb->set & VERBS_ACQUIRE) != 0 && opts->owner != NULL &&
	    !opts->is_fixed_lease) {
		message_error("--owner needs --lease, since no process stays to renew the lock: "
			      "add --lease 10m, or as long as the job may take");
		return EXIT_USAGE;
	}
	if (merge->given[OPT_LOG_FORMAT] == SOURCE_ARGV && opts->log == NULL) {
		message_error("--log-format needs --log: it says what its lines look like");
		return EXIT_USAGE;
	}
	code = check_permits(merge);
	if (code != 0)
		return code;
	code = servers_set(merge);
	return code != 0 ? code : fence_set(merge);
}

/* The option sources from the highest to the lowest. 0, or the exit code after one line by message_error. */
static int read_sources(struct option_merge *merge, struct memory *memory, enum help_extent *help)
{
	int code = argv_read(merge, &memory->line, help);

	if (code != 0 || *help != HELP_NONE)
		return code;
	code = check_resize(merge);
	if (code != 0)
		return code;
	code = check_scope(merge);
	if (code != 0)
		return code;
	code = check_owner(merge);
	if (code != 0)
		return code;
	code = check_holder(merge, &memory->line);
	if (code != 0)
		return code;
	code = environment_read(merge);
	if (code != 0)
		return code;
	code = config_read(merge, &memory->config, &memory->config_len);
	return code != 0 ? code : defaults_read(merge);
}

int load_opts(const struct verb *verb, int argc, char **argv, struct opts *opts, bool *is_done)
{
	struct option_merge merge = { .verb = verb, .opts = opts };
	struct command_line line;
	bool has_line = command_line_cut(argc, argv, &line); /* first of all: it hides passwords */
	struct memory *memory = calloc(1, sizeof(*memory));
	enum help_extent help = HELP_NONE;
	int code;

	*opts = (struct opts){ .wait_ms = -1, .mode = RLOCK_ANY, .memory = memory };
	*is_done = false;
	if (!has_line || memory == NULL) {
		command_line_free(&line);
		free(memory);
		opts->memory = NULL;
		return message_out_of_memory();
	}
	memory->line = line;
	opts->command = line.is_cut ? line.command : NULL;
	opts->words = line.words;
	opts->word_count = line.count;
	code = read_sources(&merge, memory, &help);
	*is_done = help != HELP_NONE;
	if (code == 0 && !*is_done) {
		message_setup(opts->quiet, opts->verbose);
		code = complete(&merge);
	}
	/* list and check have a pattern. */
	if (code == 0 && (verb->set & (VERBS_HOLD | VERBS_STATUS)) != 0) {
		char shown[NAMES_SHOWN_MAX];

		message_set_names(names_show(opts->names, opts->name_count, shown));
	}
	if (*is_done)
		help_print(verb, help);
	if (code != 0 || *is_done)
		load_free(opts);
	return code;
}

void load_free(struct opts *opts)
{
	struct memory *memory = opts->memory;

	free(opts->names);
	opts_free_urls(opts);
	password_source_free(opts->password_source);
	free(opts->server);
	settings_free(&opts->settings);
	if (memory != NULL) {
		command_line_free(&memory->line);
		/* There may be a password in it. */
		if (memory->config != NULL)
			explicit_bzero(memory->config, memory->config_len);
		free(memory->config);
		free(memory);
	}
	*opts = (struct opts){ 0 };
}
