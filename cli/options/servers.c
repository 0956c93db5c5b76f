/*
 * Apply the options about servers to the URLs: database, TLS, maps of addresses, quorum. passwords.c sets passwords;
 * load.c reads all other options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/units.h"
#include "options/config.h"
#include "options/opts.h"
#include "options/passwords.h"
#include "options/servers.h"
#include "options/table.h"
#include "options/usage.h"

/* ---- where the servers and their passwords are from, for a call that fails ---- */

/* What named the servers, for messages. NULL: the default URL, which has no password. */
static const char *source_of_urls(const struct opts *opts)
{
	switch (table_source(opts, OPT_URL)) {
	case SOURCE_ARGV:
		return "--url";
	case SOURCE_ENVIRONMENT:
		return "RLOCK_URL";
	case SOURCE_FILE:
		return opts->config_file;
	case SOURCE_DEFAULT:
		break;
	}
	return NULL;
}

/* If the URL is on the command line, print nothing, since the user has just typed it. */
char *servers_origin(const struct opts *opts, char out[ORIGIN_MAX])
{
	enum opt_source source = table_source(opts, OPT_URL);

	out[0] = '\0';
	if (source == SOURCE_DEFAULT)
		(void)snprintf(
			out, ORIGIN_MAX,
			"no server was named, and this is the default; set RLOCK_URL, --url, "
			"or url in %s",
			opts->config_file[0] != '\0' ? opts->config_file : CONFIG_OF_MACHINE);
	else if (source != SOURCE_ARGV)
		(void)snprintf(out, ORIGIN_MAX, "the server is from %s", source_of_urls(opts));
	return out;
}

/* Print from where URLs without a password get one. Empty: from nowhere. */
static void print_shared_origin(const struct opts *opts, char out[ORIGIN_MAX])
{
	const struct given *file = table_given(opts, OPT_PASSWORD_FILE);
	const struct given *given = file != NULL ? file : table_given(opts, OPT_PASSWORD_COMMAND);
	const char *password = getenv("REDISCLI_AUTH");
	char shown[USAGE_SHOWN_MAX] = "";

	out[0] = '\0';
	if (file != NULL)
		(void)usage_show(file->value, shown);
	if (given != NULL && given->source == SOURCE_FILE)
		(void)snprintf(out, ORIGIN_MAX, "%s%sthe %s in %s", shown, file != NULL ? ", " : "",
			       opt_table[given->id].name, opts->config_file);
	else if (given != NULL)
		(void)snprintf(out, ORIGIN_MAX, "--%s%s%s", opt_table[given->id].name,
			       file != NULL ? " " : "", shown);
	else if (password != NULL && *password != '\0')
		(void)snprintf(out, ORIGIN_MAX, "REDISCLI_AUTH");
}

/*
 * Print that one of the options from first to last, given in the file, does not count, because a higher source names
 * the servers. Empty: there is no such option.
 */
static char *print_ignored(const struct opts *opts, enum opt_id first, enum opt_id last,
			   char out[ORIGIN_MAX])
{
	size_t i = 0;

	while (i < opts->given_count && (opts->given[i].id < first || opts->given[i].id > last ||
					 opts->given[i].use != GIVEN_TO_OTHER_SERVERS))
		i++;
	out[0] = '\0';
	if (i < opts->given_count)
		(void)snprintf(out, ORIGIN_MAX,
			       "the %s in %s is for the url there, not for the one from %s",
			       opt_table[opts->given[i].id].name, opts->config_file,
			       source_of_urls(opts));
	return out;
}

char *servers_password_origin(const struct opts *opts, char out[ORIGIN_MAX])
{
	const char *source = source_of_urls(opts);
	char shared[ORIGIN_MAX];

	print_shared_origin(opts, shared);
	out[0] = '\0';
	if (opts->urls_with_password == opts->url_count)
		(void)snprintf(out, ORIGIN_MAX, "the password is in the URL from %s", source);
	else if (opts->urls_with_password > 0 && shared[0] != '\0')
		(void)snprintf(out, ORIGIN_MAX,
			       "the password is in the URL from %s, or else from %.*s", source,
			       ORIGIN_MAX / 2, shared);
	else if (shared[0] != '\0')
		(void)snprintf(out, ORIGIN_MAX, "the password is from %.*s", ORIGIN_MAX - 32,
			       shared);
	else
		(void)print_ignored(opts, OPT_PASSWORD_FILE, OPT_PASSWORD_COMMAND, out);
	/* Explain redis://WORD@HOST, which has a user and no password: WORD may have been meant as the password. */
	if (out[0] == '\0' && source != NULL && rlock_url_user(opts->urls[0]) != NULL)
		(void)snprintf(out, ORIGIN_MAX,
			       "the URL from %s has a user and no password, a password alone is "
			       "redis://:PASSWORD@HOST",
			       source);
	return out;
}

char *servers_tls_origin(const struct opts *opts, char out[ORIGIN_MAX])
{
	out[0] = '\0';
	return rlock_url_has_tls(opts->urls[0]) ? print_ignored(opts, OPT_CACERT, OPT_INSECURE, out)
						: out;
}

/* ---- the other options about servers ---- */

/* The exit code for a wrong value: EXIT_CONFIG for the configuration file, else EXIT_USAGE. */
static int code_of_source(const struct opts *opts, enum opt_id id)
{
	return table_source(opts, id) == SOURCE_FILE ? EXIT_CONFIG : EXIT_USAGE;
}

/*
 * Set the database that an option names. If the URL names a database as well, that of the higher option source counts.
 */
static int set_database(const struct opts *opts, struct rlock_url *url)
{
	enum opt_source source = table_source(opts, OPT_DB);
	char where[USAGE_WHERE_MAX];
	enum rlock_status status;

	if (source == SOURCE_DEFAULT ||
	    (rlock_url_has_db(url) && table_source(opts, OPT_URL) > source))
		return 0;
	status = rlock_url_set_db(url, opts->db);
	if (status == RLOCK_ENOMEM)
		return message_out_of_memory();
	if (status == RLOCK_OK)
		return 0;
	message_error("%s: %s has no database %d", usage_where(opts, OPT_DB, where),
		      rlock_url_server(url), opts->db);
	return code_of_source(opts, OPT_DB);
}

static bool has_sentinels(const struct rlock_url *url)
{
	return rlock_url_scheme(url) == RLOCK_SCHEME_SENTINEL;
}

static bool has_nodes(const struct rlock_url *url)
{
	return rlock_url_scheme(url) == RLOCK_SCHEME_CLUSTER;
}

/* The option for each parameter of TLS. partner: the parameter with which it forms a pair, or the parameter itself. */
static const struct tls_option {
	enum opt_id id;
	enum rlock_tls_param partner;
} tls_options[RLOCK_TLS_PARAMS] = {
	[RLOCK_TLS_CACERT] = { OPT_CACERT, RLOCK_TLS_CACERTDIR },
	[RLOCK_TLS_CACERTDIR] = { OPT_CACERTDIR, RLOCK_TLS_CACERT },
	[RLOCK_TLS_CERT] = { OPT_CERT, RLOCK_TLS_KEY },
	[RLOCK_TLS_KEY] = { OPT_KEY, RLOCK_TLS_CERT },
	[RLOCK_TLS_SNI] = { OPT_SNI, RLOCK_TLS_SNI },
};

/* Set TLS from the options. If the URL contains one parameter of a pair, take neither of them from the options. */
static int set_tls(struct opts *opts, struct rlock_url *url)
{
	bool is_said[RLOCK_TLS_PARAMS];

	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		is_said[param] = rlock_url_tls(url, param) != NULL ||
				 rlock_url_tls(url, tls_options[param].partner) != NULL;
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++) {
		if (is_said[param])
			continue;
		opts->tls_used |= 1U << param;
		if (opts->tls[param] != NULL &&
		    rlock_url_set_tls(url, param, opts->tls[param]) != RLOCK_OK)
			return message_out_of_memory();
	}
	if (opts->is_insecure)
		(void)rlock_url_set_insecure(url);
	return 0;
}

/* Set the map by which the library translates the addresses that sentinels name, or nodes of a cluster. */
static int set_map(const struct opts *opts, struct rlock_url *url)
{
	char where[USAGE_WHERE_MAX];
	struct rlock_url_error error;
	enum opt_id id = has_sentinels(url) ? OPT_SENTINEL_MAP : OPT_CLUSTER_MAP;
	const char *map = id == OPT_SENTINEL_MAP ? opts->sentinel_map
			  : has_nodes(url)       ? opts->cluster_map
						 : NULL;
	enum rlock_status status = map != NULL ? rlock_url_set_map(url, map, &error) : RLOCK_OK;

	if (status == RLOCK_OK)
		return 0;
	if (status == RLOCK_ENOMEM)
		return message_out_of_memory();
	message_error("%s: %s", usage_where(opts, id, where), error.why);
	return code_of_source(opts, id);
}

/*
 * Options for one sort of server. If no URL is of that sort, refuse the option: the user has the wrong idea of the
 * server.
 */
static const struct group {
	enum opt_id first, last;
	bool (*is_for)(const struct rlock_url *url);
	const char *for_what, *example;
	const char *missing; /* why the option has no effect if no URL is of that sort */
} groups[] = {
	{ OPT_CACERT, OPT_INSECURE, rlock_url_has_tls, "TLS", "rediss://HOST:6379",
	  "no URL has TLS" },
	{ OPT_SENTINEL_USER, OPT_SENTINEL_MAP, has_sentinels, "sentinels",
	  "redis+sentinel://HOST:26379/SERVICE", "no URL names sentinels" },
	{ OPT_CLUSTER_MAP, OPT_CLUSTER_MAP, has_nodes, "nodes of a cluster",
	  "redis+cluster://HOST:6379", "no URL names a cluster" },
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static bool has_any(const struct opts *opts, const struct group *group)
{
	for (size_t i = 0; i < opts->url_count; i++)
		if (group->is_for(opts->urls[i]))
			return true;
	return false;
}

static int check_groups(const struct opts *opts)
{
	for (size_t i = 0; i < GROUPS; i++) {
		const struct group *group = &groups[i];
		const char *server = rlock_url_server(opts->urls[0]);
		enum opt_id id = group->first;
		char where[USAGE_WHERE_MAX];

		/*
		 * Skip options from variables of the environment. Variables are set for all calls, also for those to
		 * servers of another sort.
		 */
		while (id <= group->last && (table_source(opts, id) == SOURCE_DEFAULT ||
					     table_source(opts, id) == SOURCE_ENVIRONMENT))
			id++;
		if (id > group->last || has_any(opts, group))
			continue;
		message_error("%s is for %s, and %s has none; %s%s", usage_where(opts, id, where),
			      group->for_what, server,
			      table_source(opts, id) == SOURCE_FILE
				      ? "add url = "
				      : "name the server by a URL like ",
			      group->example);
		return code_of_source(opts, id);
	}
	return 0;
}

static int check_servers(const struct opts *opts)
{
	char where[USAGE_WHERE_MAX];

	(void)usage_where(opts, OPT_URL, where);
	if (opts->url_count > RLOCK_SERVERS_MAX) {
		message_error("%s: %zu servers are too many: a lock can be on %d at most", where,
			      opts->url_count, RLOCK_SERVERS_MAX);
		return code_of_source(opts, OPT_URL);
	}
	for (size_t i = 0; i < opts->url_count; i++) {
		const char *server = rlock_url_server(opts->urls[i]);

		if (opts->url_count > 1 && rlock_url_scheme(opts->urls[i]) == RLOCK_SCHEME_LOCAL) {
			message_error("%s: local: can't be one of several servers", where);
			return code_of_source(opts, OPT_URL);
		}
		for (size_t other = 0; other < i; other++) {
			if (strcmp(rlock_url_server(opts->urls[other]), server) != 0)
				continue;
			message_error("%s: %s is given twice: each server has one vote", where,
				      server);
			return code_of_source(opts, OPT_URL);
		}
	}
	return 0;
}

/*
 * Set the quorum. It must be a majority: otherwise two owners could hold the lock at the same time.
 */
static int set_quorum(struct opts *opts)
{
	size_t majority = opts->url_count / 2 + 1;
	int64_t number = (int64_t)opts->url_count; /* the default, "all" */
	char where[USAGE_WHERE_MAX];

	if (strcmp(opts->quorum_text, "majority") == 0)
		number = (int64_t)majority;
	else
		/* cannot fail, since table_store has checked the text */
		(void)number_parse(opts->quorum_text, &number);
	opts->quorum = (size_t)number;
	if (opts->quorum >= majority && opts->quorum <= opts->url_count)
		return 0;
	if (opts->url_count == 1)
		message_error("%s %s: there is one server; give -u for each",
			      usage_where(opts, OPT_QUORUM, where), opts->quorum_text);
	else
		message_error("%s %s: of %zu servers it takes %zu to %zu: with fewer, two owners "
			      "could hold the lock at one time",
			      usage_where(opts, OPT_QUORUM, where), opts->quorum_text,
			      opts->url_count, majority, opts->url_count);
	return code_of_source(opts, OPT_QUORUM);
}

int servers_set(struct opts *opts)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < opts->url_count; i++)
		code = set_database(opts, opts->urls[i]);
	if (code == 0)
		code = check_groups(opts);
	for (size_t i = 0; code == 0 && i < opts->url_count; i++) {
		if (rlock_url_has_tls(opts->urls[i]))
			code = set_tls(opts, opts->urls[i]);
		if (code == 0)
			code = set_map(opts, opts->urls[i]);
	}
	if (code == 0)
		code = check_servers(opts);
	if (code == 0)
		code = passwords_set(opts);
	if (code == 0)
		code = set_quorum(opts);
	return code != 0 ? code : opts_set_server(opts);
}

/* ---- options and variables without an effect ---- */

static bool has_local(const struct opts *opts)
{
	return rlock_url_scheme(opts->urls[0]) == RLOCK_SCHEME_LOCAL;
}

/* Why no URL needs the password of an option or a variable; empty: at least one URL needs it. */
static const char *password_reason(const struct opts *opts)
{
	if (has_local(opts))
		return "local: takes no password";
	return opts->urls_with_password == opts->url_count ? "the password is in the URL" : "";
}

const char *servers_reason(const struct opts *opts, enum opt_id id)
{
	size_t with_db = 0;

	if (id == OPT_PASSWORD_FILE || id == OPT_PASSWORD_COMMAND)
		return password_reason(opts);
	for (size_t i = 0; i < opts->url_count; i++)
		with_db += rlock_url_has_db(opts->urls[i]) ? 1 : 0;
	if (id == OPT_DB && table_given(opts, OPT_DB) == NULL && with_db == opts->url_count)
		return "the URL names the database";
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		if (tls_options[param].id == id && (opts->tls_used & 1U << param) == 0)
			return "the URL says it";
	for (size_t i = 0; i < GROUPS; i++)
		if (groups[i].first <= id && id <= groups[i].last && !has_any(opts, &groups[i]))
			return groups[i].missing;
	return "";
}

const char *servers_variable_reason(const struct opts *opts, const char *variable)
{
	if (strcmp(variable, "REDISCLI_AUTH") == 0) {
		if (opts->password_command != NULL && *password_reason(opts) == '\0')
			return "password-command takes precedence";
		return opts->password_file != NULL && *password_reason(opts) == '\0'
			       ? "password-file takes precedence"
			       : password_reason(opts);
	}
	for (size_t i = 0; i < opts->url_count; i++)
		if (rlock_url_has_tls(opts->urls[i]) &&
		    rlock_url_tls(opts->urls[i], RLOCK_TLS_CACERT) == NULL &&
		    rlock_url_tls(opts->urls[i], RLOCK_TLS_CACERTDIR) == NULL)
			return "";
	return strncmp(variable, "SSL_", 4) == 0 ? "no server is verified by it" : "";
}
