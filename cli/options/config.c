/*
 * Reads the lines of the configuration file, "option = value", by the option table. Which value counts is
 * table.c's business. Any mistake is an error: with half of the options rlock might lock
 * something else, or elsewhere.
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
#include "options/meant.h"
#include "options/opts.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/file_read.h"

/* ---- which files ---- */

#define CONFIG_SIZE_MAX (1 << 18)

struct candidate {
	char path[PATH_MAX + 1]; /* a longer one is cut where the kernel still calls it too long */
	const char *origin;      /* what named it, for messages */
	bool is_named;           /* and so must exist, unlike the default files */
	const char *below;       /* the variable that names its directory; NULL: none */
	bool is_foreign;         /* that directory is another user's */
	uid_t dir_owner;
};

/*
 * One that --config or RLOCK_CONFIG names may be the pipe of a shell's <(...). The owner of the file decides which server
 * the locks are on, which password it gets, and what is run for that; a user with write access is as good as an owner.
 * False after one line by message_error.
 */
static bool check_file(const struct candidate *candidate, const struct stat *stat)
{
	unsigned mode = (unsigned)stat->st_mode & 0777;
	char shown[USAGE_SHOWN_MAX], what[96], command[64] = "chmod go-w";
	char *const path = (char *)candidate->path;
	struct usage_line line;
	/*
	 * Whether the group is the owner's own, with no other member. Many systems give each user a group of the same
	 * number, and a umask of 002 then. A look at the system's list of users may need a network.
	 */
	bool has_own_group =
		stat->st_gid == stat->st_uid && (stat->st_uid == 0 || stat->st_gid == getegid());

	/* All users may write it, but it is named to set no option. */
	if (candidate->is_named && S_ISCHR(stat->st_mode) && strcmp(path, "/dev/null") == 0)
		return true;
	(void)usage_show(path, shown);
	if (!S_ISREG(stat->st_mode) && !(candidate->is_named && S_ISFIFO(stat->st_mode))) {
		message_error(
			"configuration file '%s'%s: %s, not a regular file: to set no option, let "
			"an empty file stand there",
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
	message_error("configuration file '%s'%s: %s: check what is in it, then: %s", shown,
		      candidate->origin, what, line.text);
	return false;
}

/*
 * Open it without waiting for the writer of a named pipe, and look at what was opened: a link may lead elsewhere. Its
 * text is in opts. 0; the errno of a file that can't be read; or -1 after one line by message_error.
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
	/* The writer of a pipe may not have written all of it yet. */
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
 * A file that exists may name the server. Where no other source does, rlock can't go on without the file: locks would
 * be on the default server, and exclude nothing.
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

/* True if no other file counts: then opts has its text, or the exit code is in *code_out. */
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

/* The user's own file; false when there can't be one. */
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
	 * After su -p or sudo -E the home directory is still that of the user before, whose server and commands root must
	 * not take for its own. A container's user may have that of root, "/".
	 */
	if (stat(dir, &st) == 0) {
		out->dir_owner = st.st_uid;
		out->is_foreign = st.st_uid != geteuid() && st.st_uid != 0;
	}
	return snprintf(out->path, sizeof(out->path), "%s%s/rlock.conf", dir,
			is_config ? "" : "/.config") < PATH_MAX;
}

/*
 * Read the first file that exists. opts has the options that may name it. *user is the user's own file, is_foreign only if
 * there is one. 0, or the exit code after one line by message_error.
 */
static int find(struct opts *opts, struct candidate *user)
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

/* ---- its lines ---- */

#define CONFIG_LINE_MAX 4096

#define BLANKS " \t\r"
/* What some editors write before a text. */
#define BOM "\xef\xbb\xbf"

/* About the option of that name, or about the line. */
static int report_bad_line(const struct opts *opts, size_t line, const char *name, const char *why)
{
	char shown[USAGE_SHOWN_MAX], where[USAGE_WHERE_MAX], option[USAGE_SHOWN_MAX + 16];

	if (name != NULL)
		(void)snprintf(option, sizeof(option), "option '%s'", usage_show(name, shown));
	message_error("%s: %s",
		      usage_where_in_file(opts, line, name != NULL ? option : NULL, where), why);
	return EXIT_CONFIG;
}

/* The text without the blanks around it; writes a NUL after it. */
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

/* What other programs' files have, and this one takes for a part of the value. NULL: it is as it should be. */
static const char *check_value(const struct opt *opt, const char *value)
{
	size_t len = strlen(value);

	/* Any text can be meant. */
	if (opt->type == TYPE_LINE || (opt->scope & SECRET) != 0)
		return NULL;
	if (strstr(value, " #") != NULL || strstr(value, "\t#") != NULL)
		return "a comment stands on a line of its own";
	return len > 1 && (*value == '"' || *value == '\'') && value[len - 1] == *value
		       ? "the value stands without quotes"
		       : NULL;
}

static int add_line(struct opts *opts, char *text, size_t line)
{
	char *equals = strchr(text, '=');
	const struct opt *opt;
	const char *name, *value, *meant, *wrong;
	char why[RLOCK_ERROR_MAX];

	if (equals == NULL)
		return report_bad_line(opts, line, NULL, "not a line like 'option = value'");
	*equals = '\0';
	name = trim(text);
	opt = table_by_name(VERBS_ALL, name, strlen(name));
	if (opt == NULL) {
		meant = meant_option(VERBS_ALL, name);
		(void)value_reject(why, "there is no such option%s%s",
				   meant != NULL ? ": try: " : "", meant != NULL ? meant : "");
		return report_bad_line(opts, line, name, why);
	}
	if ((opt->scope & FOR_FILE) == 0)
		return report_bad_line(opts, line, name, "only for the command line");
	value = trim(equals + 1);
	wrong = check_value(opt, value);
	if (wrong != NULL)
		return report_bad_line(opts, line, name, wrong);
	return usage_give(opts, (struct given){ (enum opt_id)(opt - opt_table), SOURCE_FILE, line,
						.value = value });
}

int config_read(struct opts *opts)
{
	struct candidate user = { .is_foreign = false };
	int code = find(opts, &user);
	char *text = opts->config_text, *end = text != NULL ? text + opts->config_len : NULL;
	size_t line = 0;

	if (code == 0 && text != NULL && opts->config_len >= 3 && memcmp(text, BOM, 3) == 0)
		code = report_bad_line(
			opts, 1, NULL,
			"a byte order mark is before the first option: save the file without it");
	while (code == 0 && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *first = text + strspn(text, BLANKS);
		size_t len = (size_t)((newline != NULL ? newline : end) - text);

		text[len] = '\0';
		line++;
		if (strlen(text) != len)
			code = report_bad_line(opts, line, NULL, "a NUL byte");
		/* A comment may be long. */
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
		"caller, and no other place names the server: give --url, or set %s",
		opts->config_skipped, user.below, (unsigned long)user.dir_owner, user.below);
	return EXIT_CONFIG;
}
