/*
 * Puts into phrases where the servers and their passwords are from: when a server denies the password, or cannot be
 * reached, the user looks there first. caller.c adds the phrase to the message.
 */
#include <stdio.h>
#include <stdlib.h>

#include "options/merge.h"
#include "options/origin.h"

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

void origin_set(const struct option_merge *merge)
{
	set_server_origin(merge, merge->opts->server_origin);
	set_password_origin(merge, merge->opts->password_origin);
}
