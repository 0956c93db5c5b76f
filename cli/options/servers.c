/*
 * Makes the servers of a call complete: what options say of them, where their URLs do not. passwords.c has their
 * passwords, and load.c all that is no server's.
 */
#include <string.h>

#include "base/exits.h"
#include "base/message.h"
#include "base/number.h"
#include "options/opts.h"
#include "options/origin.h"
#include "options/passwords.h"
#include "options/servers.h"
#include "options/table.h"

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
static int set_tls(const struct opts *opts, struct rlock_url *url)
{
	bool is_said[RLOCK_TLS_PARAMS];

	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		is_said[param] = rlock_url_tls(url, param) != NULL ||
				 rlock_url_tls(url, partner_of(param)) != NULL;
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		if (opts->tls[param] != NULL && !is_said[param] &&
		    rlock_url_set_tls(url, param, opts->tls[param]) != RLOCK_OK)
			return message_out_of_memory();
	if (opts->is_insecure)
		(void)rlock_url_set_insecure(url);
	return 0;
}

/* A caller that gives one of these takes the connection for one with TLS. */
static int tls_set(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	bool has_tls = false;

	for (size_t i = 0; i < opts->url_count; i++) {
		int code = rlock_url_has_tls(opts->urls[i]) ? set_tls(opts, opts->urls[i]) : 0;

		if (code != 0)
			return code;
		has_tls = has_tls || rlock_url_has_tls(opts->urls[i]);
	}
	for (enum opt_id id = OPT_CACERT; !has_tls && id <= OPT_INSECURE; id++) {
		if (merge->given[id] == SOURCE_DEFAULT)
			continue;
		if (merge->given[id] == SOURCE_FILE)
			message_error("%s: %s is for TLS, and %s has none: add url = "
				      "rediss://HOST:6379",
				      merge->config_shown, opt_table[id].name,
				      rlock_url_server(opts->urls[0]));
		else
			message_error("--%s is for TLS, and %s has none: name the server by a URL "
				      "like rediss://HOST:6379",
				      opt_table[id].name, rlock_url_server(opts->urls[0]));
		return code_of_source(merge->given[id]);
	}
	return 0;
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
	message_error("--quorum %s: of %zu servers it takes %zu to %zu", opts->quorum_text,
		      opts->url_count, majority, opts->url_count);
	return code_of_source(merge->given[OPT_QUORUM]);
}

int servers_set(const struct option_merge *merge)
{
	struct opts *opts = merge->opts;
	int code;

	for (size_t i = 0; i < opts->url_count; i++) {
		code = database_set(merge, opts->urls[i]);
		if (code != 0)
			return code;
	}
	code = tls_set(merge);
	if (code != 0)
		return code;
	origin_set(merge);
	code = passwords_set(opts);
	if (code != 0)
		return code;
	code = check_servers(merge);
	if (code != 0)
		return code;
	code = quorum_set(merge);
	return code != 0 ? code : opts_set_server(opts);
}
