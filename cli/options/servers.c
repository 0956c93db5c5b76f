/*
 * Completes the servers of a call with what options say of them and their URLs do not. Passwords are from files,
 * variables and commands; load.c reads all options that are not about servers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/units.h"
#include "options/merge.h"
#include "options/opts.h"
#include "options/password_command.h"
#include "options/servers.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/file_read.h"

/* ---- passwords ---- */

#define PASSWORD_FILE_MAX 65536

/* The private server gets none: no other user reaches it, and the password is another server's. */
static bool wants_password(const struct rlock_url *url)
{
	return !rlock_url_has_password(url) && rlock_url_scheme(url) != RLOCK_SCHEME_LOCAL;
}

/* Sets the password of each server that has none. */
static int set_password(const struct opts *opts, const char *password)
{
	for (size_t i = 0; i < opts->url_count; i++)
		if (wants_password(opts->urls[i]) &&
		    rlock_url_set_password(opts->urls[i], password) != RLOCK_OK)
			return message_out_of_memory();
	return 0;
}

/* A user with read access has the password. */
static int check_mode(const char *path, const struct stat *stat)
{
	/* A terminal is writable for others, so that they can send messages there. */
	unsigned mode = S_ISCHR(stat->st_mode) ? 0 : (unsigned)stat->st_mode & 0777;
	struct usage_line chmod;
	char shown[USAGE_SHOWN_MAX];

	(void)usage_show(path, shown);
	usage_line_begin_command(&chmod, "chmod 600");
	usage_line_add(&chmod, (char *const *)&path, 1);
	if ((mode & PASSWORD_FILE_UNSAFE) != 0) {
		message_error(
			"password file '%s': other users can write it, its mode is %04o: check what "
			"is in it, then: %s",
			shown, mode, chmod.text);
		return EXIT_CONFIG;
	}
	if ((mode & S_IROTH) != 0)
		message_warning(
			"password file '%s': any user can read it, its mode is %04o: try: %s",
			shown, mode, chmod.text);
	return 0;
}

typedef int (*set_fn)(struct opts *opts, const char *path, const struct stat *stat,
		      const char *password);

/* Sets the password of each server that has none. What is no regular file, such as a pipe, is read once. */
static int set_file(struct opts *opts, const char *path, const struct stat *stat,
		    const char *password)
{
	int code = 0;

	if (!S_ISREG(stat->st_mode))
		return set_password(opts, password);
	for (size_t i = 0; code == 0 && i < opts->url_count; i++)
		if (wants_password(opts->urls[i]))
			code = password_file_set(opts, opts->urls[i], path, password);
	return code;
}

static int set_from_text(struct opts *opts, set_fn set, const char *path, const struct stat *stat,
			 char *text, size_t len)
{
	const char *wrong = first_line_cut(text, len);
	char shown[USAGE_SHOWN_MAX];
	int code;

	if (wrong != NULL) {
		message_error("password file '%s': %s", usage_show(path, shown), wrong);
		return EXIT_CONFIG;
	}
	code = check_mode(path, stat);
	return code != 0 ? code : set(opts, path, stat, text);
}

static int set_from_file(struct opts *opts, set_fn set, const char *path)
{
	struct stat stat;
	size_t len = 0;
	char *text = file_read_all(AT_FDCWD, path, O_NOCTTY, PASSWORD_FILE_MAX, &stat, &len);
	char shown[USAGE_SHOWN_MAX];
	int error = errno, code;

	if (text == NULL && error == ENOMEM)
		return message_out_of_memory();
	if (text == NULL) {
		message_error("password file '%s': %s", usage_show(path, shown), strerror(error));
		return is_transient_errno(error) ? EXIT_SYSTEM : EXIT_CONFIG;
	}
	code = set_from_text(opts, set, path, &stat, text, len);
	explicit_bzero(text, len);
	free(text);
	return code;
}

static int set_command(struct opts *opts)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < opts->url_count; i++)
		if (wants_password(opts->urls[i]))
			code = password_command_set(opts, opts->urls[i]);
	return code;
}

static void ignore_passwords(struct opts *opts)
{
	const char *reason = rlock_url_scheme(opts->urls[0]) == RLOCK_SCHEME_LOCAL
				     ? "local: takes no password"
				     : "the password is in the URL";

	settings_ignore(&opts->settings, "password-file", reason);
	settings_ignore(&opts->settings, "password-command", reason);
	settings_ignore(&opts->settings, "REDISCLI_AUTH", reason);
}

/* Set the password of each URL that has none. 0, or the exit code after one line by message_error. */
static int passwords_set(struct opts *opts)
{
	const char *password = getenv("REDISCLI_AUTH");
	bool is_wanted = false;

	for (size_t i = 0; i < opts->url_count; i++)
		is_wanted = is_wanted || wants_password(opts->urls[i]);
	if (!is_wanted) {
		ignore_passwords(opts);
		return 0;
	}
	if (opts->password_command != NULL || opts->password_file != NULL)
		settings_ignore(&opts->settings, "REDISCLI_AUTH",
				opts->password_command != NULL ? "password-command takes precedence"
							       : "password-file takes precedence");
	if (opts->password_command != NULL)
		return set_command(opts);
	if (opts->password_file != NULL)
		return set_from_file(opts, set_file, opts->password_file);
	return password != NULL && *password != '\0' ? set_password(opts, password) : 0;
}

static int set_sentinel_login(struct opts *opts, const char *path, const struct stat *stat,
			      const char *password)
{
	(void)path;
	(void)stat;
	for (size_t i = 0; i < opts->url_count; i++)
		if (rlock_url_scheme(opts->urls[i]) == RLOCK_SCHEME_SENTINEL &&
		    rlock_url_set_sentinel_login(opts->urls[i], opts->sentinel_user, password) !=
			    RLOCK_OK)
			return message_out_of_memory();
	return 0;
}

/* The same for the login of each URL that has sentinels. */
static int sentinel_passwords_set(struct opts *opts)
{
	if (opts->sentinel_password_file != NULL)
		return set_from_file(opts, set_sentinel_login, opts->sentinel_password_file);
	return set_sentinel_login(opts, NULL, NULL, NULL);
}

/* ---- origin ---- */

/* The option source of the URLs. NULL for the default URL, which has no password. */
static const char *source_of_urls(const struct option_merge *merge)
{
	switch (merge->given[OPT_URL]) {
	case SOURCE_ARGV:
		return "--url";
	case SOURCE_ENVIRONMENT:
		return "RLOCK_URL";
	case SOURCE_FILE:
		return merge->opts->settings.config;
	case SOURCE_DEFAULT:
		break;
	}
	return NULL;
}

/* The command line needs no phrase: the user has just typed it. */
static void set_server_origin(const struct option_merge *merge, char out[ORIGIN_MAX])
{
	const char *source = source_of_urls(merge);

	out[0] = '\0';
	if (source == NULL)
		(void)snprintf(
			out, ORIGIN_MAX,
			"no server was named, and this is the default: set RLOCK_URL, --url, "
			"or url in %s",
			merge->opts->settings.config[0] != '\0' ? merge->opts->settings.config
								: "/etc/rlock.conf");
	else if (merge->given[OPT_URL] != SOURCE_ARGV)
		(void)snprintf(out, ORIGIN_MAX, "the server is from %s", source);
}

/* Where the password for the URLs without one is from. Empty: there is none. */
static void set_shared_origin(const struct option_merge *merge, char out[ORIGIN_MAX])
{
	const char *password = getenv("REDISCLI_AUTH");
	char shown[USAGE_SHOWN_MAX];

	out[0] = '\0';
	if (merge->opts->password_file != NULL && merge->given[OPT_PASSWORD_FILE] == SOURCE_FILE)
		(void)snprintf(out, ORIGIN_MAX, "%s, the password-file in %s",
			       usage_show(merge->opts->password_file, shown),
			       merge->opts->settings.config);
	else if (merge->opts->password_file != NULL)
		(void)snprintf(out, ORIGIN_MAX, "--password-file %s",
			       usage_show(merge->opts->password_file, shown));
	else if (merge->opts->password_command != NULL &&
		 merge->given[OPT_PASSWORD_COMMAND] == SOURCE_FILE)
		(void)snprintf(out, ORIGIN_MAX, "the password-command in %s",
			       merge->opts->settings.config);
	else if (merge->opts->password_command != NULL)
		(void)snprintf(out, ORIGIN_MAX, "--password-command");
	else if (password != NULL && *password != '\0')
		(void)snprintf(out, ORIGIN_MAX, "REDISCLI_AUTH");
}

/* The option of a file's servers that would have given a password to these; NULL: there is none. */
static const char *ignored_option(const struct option_merge *merge)
{
	const struct settings *settings = &merge->opts->settings;

	if (settings_is_of_other_servers(settings, "password-file"))
		return "password-file";
	return settings_is_of_other_servers(settings, "password-command") ? "password-command"
									  : NULL;
}

static void set_password_origin(const struct option_merge *merge, char out[ORIGIN_MAX])
{
	const struct opts *opts = merge->opts;
	char shared[ORIGIN_MAX];
	size_t in_urls = 0;

	for (size_t i = 0; i < opts->url_count; i++)
		in_urls += rlock_url_has_password(opts->urls[i]) ? 1 : 0;
	set_shared_origin(merge, shared);
	out[0] = '\0';
	if (in_urls == opts->url_count)
		(void)snprintf(out, ORIGIN_MAX, "the password is in the URL from %s",
			       source_of_urls(merge));
	else if (in_urls > 0 && shared[0] != '\0')
		(void)snprintf(out, ORIGIN_MAX,
			       "the password is in the URL from %s, or else from %.*s",
			       source_of_urls(merge), ORIGIN_MAX / 2, shared);
	else if (shared[0] == '\0' && ignored_option(merge) != NULL)
		(void)snprintf(out, ORIGIN_MAX,
			       "the %s in %s is for the url there, not for the one from %s",
			       ignored_option(merge), merge->opts->settings.config,
			       source_of_urls(merge));
	else if (shared[0] != '\0')
		(void)snprintf(out, ORIGIN_MAX, "the password is from %.*s", ORIGIN_MAX - 32,
			       shared);
}

/* Set both origins in the merge's opts. To be called before other passwords than the URLs' own are set in the URLs. */
static void origin_set(const struct option_merge *merge)
{
	set_server_origin(merge, merge->opts->server_origin);
	set_password_origin(merge, merge->opts->password_origin);
}

/* A wrong file is a fault of the configuration; the command line and the environment are the caller's. */
static int code_of_source(enum opt_source source)
{
	return source == SOURCE_FILE ? EXIT_CONFIG : EXIT_USAGE;
}

/* A database from a higher option source than the URL's replaces the one inside the URL. */
static int database_set(const struct option_merge *merge, struct rlock_url *url)
{
	int db = merge->opts->db;
	enum opt_source source = merge->given[OPT_DB];
	enum rlock_status status;

	if (source == SOURCE_DEFAULT || (rlock_url_has_db(url) && merge->given[OPT_URL] > source))
		return 0;
	status = rlock_url_set_db(url, db);
	if (status == RLOCK_ENOMEM)
		return message_out_of_memory();
	if (status == RLOCK_OK)
		return 0;
	message_error("%s has no database %d", rlock_url_server(url), db);
	return code_of_source(source);
}

static void ignore_database(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	size_t named = 0;

	for (size_t i = 0; i < opts->url_count; i++)
		named += rlock_url_has_db(opts->urls[i]);
	if (merge->given[OPT_DB] == SOURCE_DEFAULT && named == opts->url_count)
		settings_ignore(&opts->settings, "db", "the URL names the database");
}

/* The parameter that goes together with this one; itself when there is none. */
static enum rlock_tls_param partner_of(enum rlock_tls_param param)
{
	switch (param) {
	case RLOCK_TLS_CACERT:
		return RLOCK_TLS_CACERTDIR;
	case RLOCK_TLS_CACERTDIR:
		return RLOCK_TLS_CACERT;
	case RLOCK_TLS_CERT:
		return RLOCK_TLS_KEY;
	case RLOCK_TLS_KEY:
		return RLOCK_TLS_CERT;
	default:
		return param;
	}
}

/* What the URL itself says is not mixed with what options say of the same. */
static int set_tls(const struct opts *opts, struct rlock_url *url, bool is_used[RLOCK_TLS_PARAMS])
{
	bool is_said[RLOCK_TLS_PARAMS];

	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		is_said[param] = rlock_url_tls(url, param) != NULL ||
				 rlock_url_tls(url, partner_of(param)) != NULL;
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++) {
		is_used[param] = is_used[param] || !is_said[param];
		if (opts->tls[param] != NULL && !is_said[param] &&
		    rlock_url_set_tls(url, param, opts->tls[param]) != RLOCK_OK)
			return message_out_of_memory();
	}
	if (opts->is_insecure)
		(void)rlock_url_set_insecure(url);
	return 0;
}

/* For a NAT: translates the addresses that the sentinels name into addresses that can be reached from here. */
static int set_map(const struct option_merge *merge, struct rlock_url *url)
{
	const char *map = merge->opts->sentinel_map;
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status = rlock_url_set_sentinel_map(url, map, why);

	if (status == RLOCK_OK)
		return 0;
	if (status == RLOCK_ENOMEM)
		return message_out_of_memory();
	if (merge->given[OPT_SENTINEL_MAP] == SOURCE_FILE)
		message_error("%s: sentinel-map: %s", merge->opts->settings.config, why);
	else
		message_error("--sentinel-map: %s", why);
	return code_of_source(merge->given[OPT_SENTINEL_MAP]);
}

static bool has_sentinels(const struct rlock_url *url)
{
	return rlock_url_scheme(url) == RLOCK_SCHEME_SENTINEL;
}

/* Options that are for servers of one sort: a caller that gives one takes the server for one of these. */
static const struct group {
	enum opt_id first, last;
	bool (*is_for)(const struct rlock_url *url);
	const char *for_what, *example;
} groups[] = {
	{ OPT_CACERT, OPT_INSECURE, rlock_url_has_tls, "TLS", "rediss://HOST:6379" },
	{ OPT_SENTINEL_USER, OPT_SENTINEL_MAP, has_sentinels, "sentinels",
	  "redis+sentinel://HOST:26379/SERVICE" },
};

static int report_wrong_group(const struct option_merge *merge, const struct group *group,
			      enum opt_id id)
{
	const char *server = rlock_url_server(merge->opts->urls[0]);

	if (merge->given[id] == SOURCE_FILE)
		message_error("%s: %s is for %s, and %s has none: add url = %s",
			      merge->opts->settings.config, opt_table[id].name, group->for_what,
			      server, group->example);
	else
		message_error("--%s is for %s, and %s has none: name the server by a URL like %s",
			      opt_table[id].name, group->for_what, server, group->example);
	return code_of_source(merge->given[id]);
}

static int check_groups(const struct option_merge *merge)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const struct group *group = &groups[i];
		bool is_any = false;

		for (size_t at = 0; at < merge->opts->url_count; at++)
			is_any = is_any || group->is_for(merge->opts->urls[at]);
		for (enum opt_id id = group->first; !is_any && id <= group->last; id++)
			if (merge->given[id] != SOURCE_DEFAULT)
				return report_wrong_group(merge, group, id);
	}
	return 0;
}

/* What each URL says of itself; and the CAs of the system, where no server needs them. */
static void ignore_said(struct opts *opts, const bool is_used[RLOCK_TLS_PARAMS])
{
	static const enum opt_id ids[RLOCK_TLS_PARAMS] = {
		[RLOCK_TLS_CACERT] = OPT_CACERT, [RLOCK_TLS_CACERTDIR] = OPT_CACERTDIR,
		[RLOCK_TLS_CERT] = OPT_CERT,     [RLOCK_TLS_KEY] = OPT_KEY,
		[RLOCK_TLS_SNI] = OPT_SNI,
	};
	bool has_default = false;

	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		if (!is_used[param])
			settings_ignore(&opts->settings, opt_table[ids[param]].name,
					"the URL says it");
	for (size_t i = 0; i < opts->url_count; i++)
		has_default |= rlock_url_has_tls(opts->urls[i]) &&
			       rlock_url_tls(opts->urls[i], RLOCK_TLS_CACERT) == NULL &&
			       rlock_url_tls(opts->urls[i], RLOCK_TLS_CACERTDIR) == NULL;
	if (has_default)
		return;
	settings_ignore(&opts->settings, "SSL_CERT_FILE", "no server is verified by it");
	settings_ignore(&opts->settings, "SSL_CERT_DIR", "no server is verified by it");
}

static int groups_set(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	bool is_used[RLOCK_TLS_PARAMS] = { false };
	int code = check_groups(merge);

	for (size_t i = 0; code == 0 && i < opts->url_count; i++) {
		if (rlock_url_has_tls(opts->urls[i]))
			code = set_tls(opts, opts->urls[i], is_used);
		if (code == 0 && opts->sentinel_map != NULL && has_sentinels(opts->urls[i]))
			code = set_map(merge, opts->urls[i]);
	}
	ignore_said(opts, is_used);
	return code;
}

static int check_servers(const struct option_merge *merge)
{
	const struct opts *opts = merge->opts;
	int code = code_of_source(merge->given[OPT_URL]);

	if (opts->url_count > RLOCK_SERVERS_MAX) {
		message_error("%zu servers are too many: a lock can be on %d at most",
			      opts->url_count, RLOCK_SERVERS_MAX);
		return code;
	}
	for (size_t i = 0; i < opts->url_count; i++) {
		const char *server = rlock_url_server(opts->urls[i]);

		if (opts->url_count > 1 && rlock_url_scheme(opts->urls[i]) == RLOCK_SCHEME_LOCAL) {
			message_error("local: can't be one of several servers");
			return code;
		}
		for (size_t other = 0; other < i; other++) {
			if (strcmp(rlock_url_server(opts->urls[other]), server) != 0)
				continue;
			message_error("%s is given twice: each server has one vote", server);
			return code;
		}
	}
	return 0;
}

/* With half of the servers each, two owners could hold the lock at one time. */
static int quorum_set(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	size_t majority = opts->url_count / 2 + 1;
	int64_t number;

	if (strcmp(opts->quorum_text, "all") == 0)
		opts->quorum = opts->url_count;
	else if (strcmp(opts->quorum_text, "majority") == 0)
		opts->quorum = majority;
	else if (number_parse(opts->quorum_text, &number)) /* value_quorum has checked it */
		opts->quorum = (size_t)number;
	if (opts->quorum >= majority && opts->quorum <= opts->url_count)
		return 0;
	message_error("--quorum %s: of %zu servers it takes %zu to %zu: with fewer, two owners "
		      "could hold the lock at one time",
		      opts->quorum_text, opts->url_count, majority, opts->url_count);
	return code_of_source(merge->given[OPT_QUORUM]);
}

int servers_set(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	int code;

	ignore_database(merge);
	for (size_t i = 0; i < opts->url_count; i++) {
		code = database_set(merge, opts->urls[i]);
		if (code != 0)
			return code;
	}
	code = groups_set(merge);
	if (code != 0)
		return code;
	origin_set(merge);
	code = passwords_set(opts);
	if (code == 0)
		code = sentinel_passwords_set(opts);
	if (code != 0)
		return code;
	code = check_servers(merge);
	if (code != 0)
		return code;
	code = quorum_set(merge);
	return code != 0 ? code : opts_set_server(opts);
}
