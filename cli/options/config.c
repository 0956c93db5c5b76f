/*
 * Find and read the configuration file, whose lines are "option = value". table.c decides which value counts. Any mistake
 * is an error: with only half of its options, rlock might lock on another server.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "options/config.h"
#include "options/opts.h"
#include "options/similar.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/file_read.h"

/* ---- find a file, and check it ---- */

#define CONFIG_SIZE_MAX (1 << 18)

struct candidate {
	/*
	 * Room for one byte more than the kernel accepts. So a longer path, which is cut to this size, is still refused
	 * as too long.
	 */
	char path[PATH_MAX + 1];
	/* " (--config)" and the like, for messages */
	const char *origin;
	/* named by --config or RLOCK_CONFIG, so it must exist */
	bool is_named;
	/* variable of the environment, XDG_CONFIG_HOME or HOME, whose directory the file is below */
	const char *below;
	bool is_foreign; /* the directory of that variable belongs to another user */
	uid_t dir_owner;
};

/*
 * Accept only a file that root or the caller owns, and that nobody else can write. It names the server, the password
 * and the command that prints the password, so other users must not choose them. A file that --config or RLOCK_CONFIG
 * names may also be a pipe, as of a shell's <(...). False after one line by message_error.
 */
static bool check_file(const struct candidate *candidate, const struct stat *stat)
{
	unsigned mode = (unsigned)stat->st_mode & 0777;
	char shown[USAGE_SHOWN_MAX], what[96], command[64] = "chmod go-w";
	char *const path = (char *)candidate->path;
	struct usage_line line;
	/*
	 * Whether the group is probably the owner's own. Many systems give each user a group of the same number, and a
	 * umask of 002, so the group can write the user's files. Do not look up the members of the group, since that
	 * could need a network.
	 */
	bool has_own_group =
		stat->st_gid == stat->st_uid && (stat->st_uid == 0 || stat->st_gid == getegid());

	/* Accept /dev/null if the user names it, to set no option. All users may write it, but it stays empty. */
	if (candidate->is_named && S_ISCHR(stat->st_mode) && strcmp(path, "/dev/null") == 0)
		return true;
	(void)usage_show(path, shown);
	if (!S_ISREG(stat->st_mode) && !(candidate->is_named && S_ISFIFO(stat->st_mode))) {
		message_error(
			"configuration file '%s'%s: %s, not a regular file; to set no option, put "
			"an empty file there",
			shown, candidate->origin,
			S_ISDIR(stat->st_mode)    ? "a directory"
			: S_ISFIFO(stat->st_mode) ? "a named pipe"
						  : "a device");
		return false;
	}
	if (stat->st_uid == 0 || stat->st_uid == geteuid()) {
		if ((mode & S_IWOTH) == 0 && ((mode & S_IWGRP) == 0 || has_own_group))
			return true;
		(void)snprintf(what, sizeof(what), "other users can write it, its mode is %04o",
			       mode);
	} else {
		(void)snprintf(what, sizeof(what),
			       "belongs to user %lu, not to root or to the caller",
			       (unsigned long)stat->st_uid);
		(void)snprintf(command, sizeof(command), "%schown %lu",
			       geteuid() == 0 ? "" : "sudo ", (unsigned long)geteuid());
	}
	usage_line(&line, { command, &path, 1 });
	message_error("configuration file '%s'%s: %s; check what is in it, then: %s", shown,
		      candidate->origin, what, line.text);
	return false;
}

/*
 * Read the file into opts->config_text. Open it without waiting for the writer of a pipe. Check the opened file, and not
 * its name: a link can lead to another file at any time. Returns 0, the errno of a file that cannot be read, or -1 after
 * one line by message_error.
 */
static int read_candidate(struct opts *opts, const struct candidate *candidate)
{
	int fd = open(candidate->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;
	char shown[USAGE_SHOWN_MAX];
	struct stat stat;

	if (fd < 0)
		return errno;
	err = fstat(fd, &stat) == 0 ? 0 : errno;
	if (err != 0 || !check_file(candidate, &stat)) {
		(void)close(fd);
		return err != 0 ? err : -1;
	}
	/* Wait for the writer of a pipe, without a limit. */
	opts->config_text = file_read_all(fd, CONFIG_SIZE_MAX, INT64_MAX, &stat, &opts->config_len);
	if (opts->config_text == NULL)
		return errno;
	if (!S_ISFIFO(stat.st_mode) || opts->config_len != 0)
		return 0;
	message_error("configuration file '%s'%s: the pipe is empty, and has no writer",
		      usage_show(candidate->path, shown), candidate->origin);
	return -1;
}

/*
 * Whether to continue without this file, which could not be read. If the user named it, or the error is transient: no.
 * If it does not exist: yes. If it exists, another source must name the server: else the file may name it, and locks on
 * the default server would exclude nobody.
 */
static bool can_be_skipped(const struct opts *opts, const struct candidate *candidate, int err)
{
	if (candidate->is_named)
		return false;
	if (err == ENOENT || err == ENOTDIR)
		return true;
	return !is_transient_errno(err) && table_given(opts, OPT_URL) != NULL;
}

static void record_skipped(struct opts *opts, const struct candidate *candidate, const char *why)
{
	(void)usage_show(candidate->path, opts->config_skipped);
	opts->config_skipped_why = why;
}

/*
 * Try to read the file of a candidate. True: the search is complete, since opts has the text of the file, or *code_out
 * is the exit code.
 */
static bool try_candidate(struct opts *opts, const struct candidate *candidate, int *code_out)
{
	int err = read_candidate(opts, candidate);
	char shown[USAGE_SHOWN_MAX];

	(void)usage_show(candidate->path, shown);
	if (err == 0) {
		(void)snprintf(opts->config_file, sizeof(opts->config_file), "%s", shown);
		return true;
	}
	if (err > 0 && can_be_skipped(opts, candidate, err)) {
		if (err != ENOENT && err != ENOTDIR)
			record_skipped(opts, candidate, "it can't be read");
		return false;
	}
	*code_out = is_transient_errno(err) ? EXIT_SYSTEM : EXIT_CONFIG;
	if (err == ENOMEM)
		(void)message_out_of_memory();
	else if (err > 0)
		message_error("cannot read '%s'%s: %s", shown, candidate->origin, strerror(err));
	return true;
}

/* Find the path of the user's own file. False: no directory for it is known. */
static bool user_candidate(struct candidate *out)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	bool is_config = config != NULL && *config == '/';
	const char *dir = is_config ? config : home;
	struct stat st;

	if (dir == NULL || *dir != '/')
		return false;
	*out = (struct candidate){ .origin = "", .below = is_config ? "XDG_CONFIG_HOME" : "HOME" };
	/*
	 * Do not use the directory of another user. After su -p or sudo -E, HOME is still that of the first user, whose
	 * server and commands root must not use. Accept a directory of root: a container's user may have root's home, "/".
	 */
	if (stat(dir, &st) == 0) {
		out->dir_owner = st.st_uid;
		out->is_foreign = st.st_uid != geteuid() && st.st_uid != 0;
	}
	return snprintf(out->path, sizeof(out->path), "%s%s/rlock.conf", dir,
			is_config ? "" : "/.config") < PATH_MAX;
}

/*
 * Read the file of --config or RLOCK_CONFIG if one is named, else the first of the user's own and the machine's file
 * that exists. user->is_foreign becomes true if the user's own file exists, but is not read since its directory belongs
 * to another user. Returns 0, or the exit code after one line by message_error.
 */
static int find_file(struct opts *opts, struct candidate *user)
{
	struct candidate other = { .path = CONFIG_OF_MACHINE, .origin = "" };
	struct stat st;
	int code = 0;

	if (opts->config != NULL) {
		other.is_named = true;
		other.origin = table_source(opts, OPT_CONFIG) == SOURCE_ARGV ? " (--config)"
									     : " (RLOCK_CONFIG)";
		(void)snprintf(other.path, sizeof(other.path), "%s", opts->config);
	} else if (user_candidate(user) && !user->is_foreign) {
		if (try_candidate(opts, user, &code))
			return code;
	} else if (user->is_foreign) {
		user->is_foreign =
			lstat(user->path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
		if (user->is_foreign)
			record_skipped(opts, user, "it is in another user's directory");
	}
	(void)try_candidate(opts, &other, &code);
	return code;
}

/* ---- read the lines of a file ---- */

#define CONFIG_LINE_MAX 4096

#define BLANKS " \t\r"
/* UTF-8 byte order mark, which some editors write before a text. */
#define BOM "\xef\xbb\xbf"

/* Report a mistake in an option, or in a whole line (name is NULL). Returns EXIT_CONFIG. */
static int report_bad_line(const struct opts *opts, size_t line, const char *name, const char *why)
{
	char shown[USAGE_SHOWN_MAX], where[USAGE_WHERE_MAX], option[USAGE_SHOWN_MAX + 16];

	if (name != NULL)
		(void)snprintf(option, sizeof(option), "option '%s'", usage_show(name, shown));
	message_error("%s: %s",
		      usage_where_in_file(opts, line, name != NULL ? option : NULL, where), why);
	return EXIT_CONFIG;
}

/* Returns the text without the blanks around it. Overwrites the first blank at its end with a NUL. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL)
		len--;
	text[len] = '\0';
	return text;
}

/*
 * Why a value looks like a line of another program's file, with quotes or a comment. NULL: it does not.
 */
static const char *check_value(const struct opt *opt, const char *value)
{
	size_t len = strlen(value);

	/* Do not check a note or a command, which can be any text. */
	if (opt->type == TYPE_LINE || (opt->scope & SECRET) != 0)
		return NULL;
	if (strstr(value, " #") != NULL || strstr(value, "\t#") != NULL)
		return "a comment needs a line of its own";
	return len > 1 && (*value == '"' || *value == '\'') && value[len - 1] == *value
		       ? "write the value without quotes"
		       : NULL;
}

/*
 * Report an option that does not exist. Suggest the right one, also for a line of a shell, "export RLOCK_URL=...". Show
 * the value if it is right for that option, else an example.
 */
static int report_unknown(const struct opts *opts, size_t line, const char *name, const char *value)
{
	static const char export[] = "export ", prefix[] = "RLOCK_";
	const char *word = name, *suggested, *example = NULL;
	char why[RLOCK_ERROR_MAX], shown[USAGE_SHOWN_MAX];
	struct opts unwanted = { 0 };
	const struct opt *opt;
	bool is_right, is_of_password;

	if (strncmp(word, export, strlen(export)) == 0)
		word += strlen(export);
	if (strncmp(word, prefix, strlen(prefix)) == 0)
		word += strlen(prefix);
	suggested = similar_option_find(VERBS_ALL, word);
	if (suggested == NULL)
		return report_bad_line(opts, line, name, "there is no such option");
	opt = table_by_name(VERBS_ALL, suggested, strlen(suggested));
	is_of_password = opt == &opt_table[OPT_PASSWORD_FILE] ||
			 opt == &opt_table[OPT_SENTINEL_PASSWORD_FILE];
	if (is_of_password && usage_is_secret(word)) {
		(void)value_reject(
			why,
			"there is no such option; write the password to the first line of a file of mode 600, and name that file: %s = /etc/rlock.password",
			suggested);
		return report_bad_line(opts, line, name, why);
	}
	/* Do not show the value of "Password_File" either: it may be the password, instead of a file. */
	is_right = !is_of_password && !usage_is_secret(word) && (opt->scope & SECRET) == 0 &&
		   table_store(&unwanted, opt, value, why) == RLOCK_OK;
	opts_free_urls(&unwanted);
	if (opt == &opt_table[OPT_URL] && !is_right)
		return report_bad_line(
			opts, line, name,
			"there is no such option; host, port and user are in one line: url = redis://USER@HOST:PORT");
	example = opt->expected != NULL ? strstr(opt->expected, ", like ") : NULL;
	if (example != NULL)
		example += strlen(", like ");
	if (is_right)
		example = usage_show_value(table_id(opt), value, shown);
	(void)value_reject(why, "there is no such option; try: %s%s%s", suggested,
			   example != NULL ? " = " : "", example != NULL ? example : "");
	return report_bad_line(opts, line, name, why);
}

/* Report a line without '='. Show the right line for "url: URL" and "url URL". */
static int report_no_equals(const struct opts *opts, size_t line, char *text)
{
	char why[RLOCK_ERROR_MAX], shown[USAGE_SHOWN_MAX];
	const struct opt *opt;
	size_t len;

	text = trim(text);
	len = strcspn(text, ": \t");
	opt = table_by_name(VERBS_ALL, text, len);
	if (*text == '[')
		(void)value_reject(why, "the file has no sections; leave this line out");
	else if (opt != NULL && text[len] != '\0' && (opt->scope & SECRET) == 0)
		(void)value_reject(why, "not a line like 'option = value'; try: %s = %s", opt->name,
				   usage_show_value(table_id(opt),
						    text + len + strspn(text + len, ": \t"),
						    shown));
	else
		(void)value_reject(why, "not a line like 'option = value'");
	return report_bad_line(opts, line, NULL, why);
}

static int add_line(struct opts *opts, char *text, size_t line)
{
	char *equals = strchr(text, '=');
	const struct opt *opt;
	const char *name, *value, *wrong;

	if (equals == NULL)
		return report_no_equals(opts, line, text);
	*equals = '\0';
	name = trim(text);
	value = trim(equals + 1);
	opt = table_by_name(VERBS_ALL, name, strlen(name));
	if (opt == NULL)
		return report_unknown(opts, line, name, value);
	if ((opt->scope & FOR_FILE) == 0)
		return report_bad_line(opts, line, name, "only for the command line");
	wrong = check_value(opt, value);
	if (wrong != NULL)
		return report_bad_line(opts, line, name, wrong);
	return usage_give(opts, (struct given){ table_id(opt), SOURCE_FILE, line, .value = value });
}

int config_read(struct opts *opts)
{
	struct candidate user = { .is_foreign = false };
	int code = find_file(opts, &user);
	char *text = opts->config_text, *end = text != NULL ? text + opts->config_len : NULL;
	size_t line = 0;

	if (code == 0 && text != NULL && opts->config_len >= 3 && memcmp(text, BOM, 3) == 0)
		code = report_bad_line(
			opts, 1, NULL,
			"a byte order mark is before the first option; save the file without it");
	while (code == 0 && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *first = text + strspn(text, BLANKS);
		size_t len = (size_t)((newline != NULL ? newline : end) - text);

		text[len] = '\0';
		line++;
		if (strlen(text) != len)
			code = report_bad_line(opts, line, NULL, "a NUL byte");
		/* Check only the length of other lines than comments: a comment may be long. */
		else if (first < text + len && *first != '#')
			code = len > CONFIG_LINE_MAX
				       ? report_bad_line(opts, line, NULL, "the line is too long")
				       : add_line(opts, text, line);
		text += len + 1;
	}
	if (code != 0 || !user.is_foreign || table_given(opts, OPT_URL) != NULL)
		return code;
	message_error(
		"configuration file '%s' is not read: %s belongs to user %lu, not to root or to the "
		"caller, and no other place names the server; give --url, or set %s",
		opts->config_skipped, user.below, (unsigned long)user.dir_owner, user.below);
	return EXIT_CONFIG;
}
