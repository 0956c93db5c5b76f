/*
 * Sets the passwords of the servers whose URLs have none: from --password-file, from REDISCLI_AUTH, or by
 * --password-command; and the login at the sentinels.
 * origin.c says in messages which of these it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/first_line.h"
#include "options/password_command.h"
#include "options/passwords.h"
#include "options/usage.h"
#include "options/usage_line.h"
#include "sys/file_read.h"

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

/* A user with write access to the file chooses what is sent; one with read access has the password. */
static int check_mode(const char *path, const struct stat *stat)
{
	/* A terminal is writable for others, so that they can send messages there. */
	unsigned mode = S_ISCHR(stat->st_mode) ? 0 : (unsigned)stat->st_mode & 0777;
	struct usage_line chmod;
	char shown[USAGE_SHOWN_MAX];

	(void)usage_show(path, shown);
	usage_line_begin_command(&chmod, "chmod 600");
	usage_line_add(&chmod, (char *const *)&path, 1);
	if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
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

typedef int (*set_fn)(const struct opts *opts, const char *password);

static int set_from_text(const struct opts *opts, set_fn set, const char *path,
			 const struct stat *stat, char *text, size_t len)
{
	const char *wrong = first_line_cut(text, len);
	char shown[USAGE_SHOWN_MAX];
	int code;

	if (wrong != NULL) {
		message_error("password file '%s': %s", usage_show(path, shown), wrong);
		return EXIT_CONFIG;
	}
	code = check_mode(path, stat);
	return code != 0 ? code : set(opts, text);
}

static int set_from_file(const struct opts *opts, set_fn set, const char *path)
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

int passwords_set(struct opts *opts)
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
		return set_from_file(opts, set_password, opts->password_file);
	return password != NULL && *password != '\0' ? set_password(opts, password) : 0;
}

static int set_sentinel_login(const struct opts *opts, const char *password)
{
	for (size_t i = 0; i < opts->url_count; i++)
		if (rlock_url_scheme(opts->urls[i]) == RLOCK_SCHEME_SENTINEL &&
		    rlock_url_set_sentinel_login(opts->urls[i], opts->sentinel_user, password) !=
			    RLOCK_OK)
			return message_out_of_memory();
	return 0;
}

int sentinel_passwords_set(const struct opts *opts)
{
	if (opts->sentinel_password_file != NULL)
		return set_from_file(opts, set_sentinel_login, opts->sentinel_password_file);
	return set_sentinel_login(opts, NULL);
}
