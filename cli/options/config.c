/*
 * Reads the lines of the configuration file, "option = value", by the option table. Which value counts is
 * merge.c's business. Any mistake is an error: with half of the options rlock might lock
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
#include "options/merge.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/file_read.h"

/* ---- which files ---- */

#define CONFIG_SIZE_MAX (1 << 18)
#define MACHINE_FILE "/etc/rlock.conf"

struct candidate {
	char path[PATH_MAX + 1]; /* a longer one is cut where the kernel still calls it too long */
	const char *origin;      /* what named it, for messages */
	bool is_named;           /* and so must exist, unlike the default files */
	const char *below;       /* the variable that names its directory; NULL: none */
	bool is_foreign;         /* that directory is another user's */
	uid_t dir_owner;
};

static int report_unreadable(const struct candidate *candidate, int err)
{
	char shown[USAGE_SHOWN_MAX];

	if (err == ENOMEM)
		return message_out_of_memory();
	message_error("cannot read '%s'%s: %s", usage_show(candidate->path, shown),
		      candidate->origin, strerror(err));
	return is_transient_errno(err) ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* "configuration file 'PATH': WHAT: check what is in it, then: COMMAND PATH" */
static int report_unsafe(const struct candidate *candidate, const char *what, const char *command)
{
	char *const path = (char *)candidate->path;
	char shown[USAGE_SHOWN_MAX];
	struct usage_line line;

	usage_line_begin_command(&line, command);
	usage_line_add(&line, &path, 1);
	message_error("configuration file '%s'%s: %s: check what is in it, then: %s",
		      usage_show(candidate->path, shown), candidate->origin, what, line.text);
	return EXIT_CONFIG;
}

/* One that --config or RLOCK_CONFIG names may be the pipe of a shell's <(...). */
static int check_type(const struct candidate *candidate, const struct stat *stat)
{
	char shown[USAGE_SHOWN_MAX];

	if (S_ISREG(stat->st_mode) || (candidate->is_named && S_ISFIFO(stat->st_mode)))
		return 0;
	message_error("configuration file '%s'%s: %s, not a regular file: to set no option, let "
		      "an empty file stand there",
		      usage_show(candidate->path, shown), candidate->origin,
		      S_ISDIR(stat->st_mode)    ? "a directory"
		      : S_ISFIFO(stat->st_mode) ? "a named pipe"
						: "a device");
	return EXIT_CONFIG;
}

/* The owner of the file decides which server the locks are on, which password it gets, and what is run for that. */
static int check_owner(const struct candidate *candidate, const struct stat *stat)
{
	char what[96], chown[64];

	if (stat->st_uid == 0 || stat->st_uid == geteuid())
		return 0;
	(void)snprintf(what, sizeof(what), "belongs to user %lu, not to root or to the caller",
		       (unsigned long)stat->st_uid);
	(void)snprintf(chown, sizeof(chown), "%schown %lu", geteuid() == 0 ? "" : "sudo ",
		       (unsigned long)geteuid());
	return report_unsafe(candidate, what, chown);
}

/*
 * Whether the group is the owner's own, with no other member. Many systems give each user a group of the same number,
 * and a umask of 002 then. A look at the system's list of users may need a network.
 */
static bool has_own_group(const struct stat *stat)
{
	return stat->st_gid == stat->st_uid && (stat->st_uid == 0 || stat->st_gid == getegid());
}

/* A user with write access is as good as an owner. */
static int check_mode(const struct candidate *candidate, const struct stat *stat)
{
	unsigned mode = (unsigned)stat->st_mode & 0777;
	char what[64];

	if ((mode & S_IWOTH) == 0 && ((mode & S_IWGRP) == 0 || has_own_group(stat)))
		return 0;
	(void)snprintf(what, sizeof(what), "other users can write it, its mode is %04o", mode);
	return report_unsafe(candidate, what, "chmod go-w");
}

/*
 * Open it without waiting for the writer of a named pipe, and look at what was opened: a link may lead elsewhere. Its
 * text is in *text_out. 0; the errno of a file that can't be read; or -1 after one line by message_error, with the
 * exit code in *code_out.
 */
static int read_candidate(const struct candidate *candidate, char **text_out, size_t *len_out,
			  int *code_out)
{
	int fd = open(candidate->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err = 0;
	char shown[USAGE_SHOWN_MAX];
	struct stat stat;

	*code_out = 0;
	if (fd < 0)
		return errno;
	if (fstat(fd, &stat) != 0) {
		err = errno;
		goto out;
	}
	*code_out = check_type(candidate, &stat);
	if (*code_out == 0)
		*code_out = check_owner(candidate, &stat);
	if (*code_out == 0)
		*code_out = check_mode(candidate, &stat);
	if (*code_out != 0) {
		err = -1;
		goto out;
	}
	/* The writer of a pipe may not have written all of it yet. */
	if (S_ISFIFO(stat.st_mode) && fcntl(fd, F_SETFL, 0) != 0) {
		err = errno;
		goto out;
	}
	*text_out = file_read_rest(fd, CONFIG_SIZE_MAX, len_out);
	if (*text_out == NULL) {
		err = errno;
	} else if (S_ISFIFO(stat.st_mode) && *len_out == 0) {
		message_error("configuration file '%s'%s: the pipe is empty, and has no writer",
			      usage_show(candidate->path, shown), candidate->origin);
		*code_out = EXIT_CONFIG;
		err = -1;
	}
out:
	(void)close(fd);
	return err;
}

/*
 * A file that exists may name the server. Where no other source does, rlock can't go on without the file: locks would
 * be on the default server, and exclude nothing.
 */
static bool can_be_skipped(const struct option_merge *merge, const struct candidate *candidate,
			   int err)
{
	if (candidate->is_named)
		return false;
	if (err == ENOENT || err == ENOTDIR)
		return true;
	return !is_transient_errno(err) && merge->given[OPT_URL] != SOURCE_DEFAULT;
}

/* --config is recorded with the other options. */
static bool record(struct option_merge *merge, const struct candidate *candidate)
{
	struct settings *settings = &merge->opts->settings;
	bool is_by_option = merge->opts->config != NULL;

	(void)usage_show(candidate->path, settings->config);
	if (!settings_add_variable(settings, "RLOCK_CONFIG", "config", false))
		return false;
	if (is_by_option)
		settings_ignore(settings, "RLOCK_CONFIG", "--config takes precedence");
	return candidate->is_named ||
	       settings_add(settings,
			    &(struct setting){ .option = "config", .value = settings->config });
}

/* 0, or the exit code after one line by message_error. */
static int record_skipped(struct settings *settings, const struct candidate *candidate,
			  const char *why)
{
	struct setting setting = { .option = "config", .value = settings->skipped };

	(void)usage_show(candidate->path, settings->skipped);
	settings->skipped_why = why;
	(void)snprintf(setting.ignored, sizeof(setting.ignored), "%s, and is not needed", why);
	return settings_add(settings, &setting) ? 0 : message_out_of_memory();
}

/* True if no other file counts: then this one's text is in *text_out, or the exit code in *code_out. */
static bool try_candidate(struct option_merge *merge, const struct candidate *candidate,
			  char **text_out, size_t *len_out, int *code_out)
{
	int err = read_candidate(candidate, text_out, len_out, code_out);

	if (err == 0 && !record(merge, candidate))
		*code_out = message_out_of_memory();
	if (err <= 0)
		return true;
	if (!can_be_skipped(merge, candidate, err)) {
		*code_out = report_unreadable(candidate, err);
		return true;
	}
	if (err != ENOENT && err != ENOTDIR)
		*code_out = record_skipped(&merge->opts->settings, candidate, "it can't be read");
	return *code_out != 0;
}

static bool named_candidate(const struct option_merge *merge, struct candidate *out)
{
	const char *named = merge->opts->config;

	*out = (struct candidate){ .origin = " (--config)", .is_named = true };
	if (named == NULL) {
		named = getenv("RLOCK_CONFIG");
		out->origin = " (RLOCK_CONFIG)";
	}
	if (named == NULL || *named == '\0')
		return false;
	(void)snprintf(out->path, sizeof(out->path), "%s", named);
	return true;
}

/*
 * After su -p or sudo -E the home directory is still that of the user before, whose server and commands root must not
 * take for its own. A container's user may have that of root, "/".
 */
static bool is_of_other_user(const char *dir, uid_t *owner_out)
{
	struct stat st;

	if (stat(dir, &st) != 0)
		return false;
	*owner_out = st.st_uid;
	return st.st_uid != geteuid() && st.st_uid != 0;
}

/* The user's own file; false when there can't be one. */
static bool user_candidate(struct candidate *out)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	const char *variable = NULL, *dir = NULL, *below = "";

	if (config != NULL && *config == '/') {
		variable = "XDG_CONFIG_HOME";
		dir = config;
	} else if (home != NULL && *home == '/') {
		variable = "HOME";
		dir = home;
		below = "/.config";
	}
	if (dir == NULL)
		return false;
	*out = (struct candidate){ .origin = "", .below = variable };
	out->is_foreign = is_of_other_user(dir, &out->dir_owner);
	return snprintf(out->path, sizeof(out->path), "%s%s/rlock.conf", dir, below) < PATH_MAX;
}

static bool is_absent(const struct candidate *candidate)
{
	struct stat st;

	return lstat(candidate->path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* 0 if a source other than the foreign file has named the server, or the exit code after one line by message_error. */
static int check_is_named(const struct option_merge *merge, const struct candidate *foreign)
{
	if (merge->given[OPT_URL] != SOURCE_DEFAULT)
		return 0;
	message_error(
		"configuration file '%s' is not read: %s belongs to user %lu, not to root or to the "
		"caller, and no other place names the server: give --url, or set %s",
		merge->opts->settings.skipped, foreign->below, (unsigned long)foreign->dir_owner,
		foreign->below);
	return EXIT_CONFIG;
}

/* Record that /etc/rlock.conf is not read since another file comes first: a user may expect its options to count. */
static int record_unread(struct option_merge *merge)
{
	struct setting setting = { .option = "config", .value = MACHINE_FILE };
	struct settings *settings = &merge->opts->settings;

	if (strcmp(settings->config, MACHINE_FILE) == 0 || access(MACHINE_FILE, F_OK) != 0)
		return 0;
	(void)snprintf(setting.ignored, sizeof(setting.ignored),
		       "one file is read, and that is %.99s", settings->config);
	return settings_add(settings, &setting) ? 0 : message_out_of_memory();
}

/*
 * The text of the first file that exists is in *text_out, which the caller frees; NULL when there is none. merge has
 * the options that may name the file, and gets its path; foreign is the file that is another user's, if there is one.
 * 0, or the exit code after one line by message_error.
 */
static int find(struct option_merge *merge, struct candidate *foreign, char **text_out,
		size_t *len_out)
{
	struct candidate candidate;
	int code = 0;

	if (named_candidate(merge, &candidate)) {
		(void)try_candidate(merge, &candidate, text_out, len_out, &code);
		return code;
	}
	if (user_candidate(&candidate)) {
		if (!candidate.is_foreign) {
			if (try_candidate(merge, &candidate, text_out, len_out, &code))
				return code;
		} else if (!is_absent(&candidate)) {
			*foreign = candidate;
			code = record_skipped(&merge->opts->settings, &candidate,
					      "it is in another user's directory");
			if (code != 0)
				return code;
		}
	}
	candidate = (struct candidate){ .path = MACHINE_FILE, .origin = "" };
	(void)try_candidate(merge, &candidate, text_out, len_out, &code);
	return code;
}

/* ---- its lines ---- */

#define CONFIG_LINE_MAX 4096

#define BLANKS " \t\r"

struct reader {
	struct option_merge *merge;
	bool has_said_no[OPT_COUNT]; /* options that merge_add does not get */
};

static int report_bad_line(const struct reader *reader, const char *name, const char *value,
			   const char *why)
{
	char where[USAGE_SHOWN_MAX + 64];

	(void)snprintf(where, sizeof(where), "%s:%zu%s%s", reader->merge->opts->settings.config,
		       reader->merge->line, name != NULL ? ": " : "", name != NULL ? name : "");
	usage_bad_value(where, value, why);
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

static int add_switch(struct reader *reader, const struct opt *opt, const char *value)
{
	bool is_no = strcmp(value, "no") == 0;
	char why[RLOCK_ERROR_MAX];

	if (!is_no && strcmp(value, "yes") != 0)
		return report_bad_line(reader, opt->name, value, "not yes or no");
	if (reader->has_said_no[opt->id] || (is_no && reader->merge->seen[opt->id]))
		return report_bad_line(reader, opt->name, value, "given twice");
	if (!is_no && merge_add(reader->merge, opt->id, NULL, why) != RLOCK_OK)
		return report_bad_line(reader, opt->name, value, why);
	reader->has_said_no[opt->id] = is_no;
	if (is_no && merge_add_no(reader->merge, opt->id) != RLOCK_OK)
		return message_out_of_memory();
	return 0;
}

static int add_line(struct reader *reader, char *line)
{
	char *equals = strchr(line, '=');
	const struct opt *opt;
	const char *name, *value;
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status;
	size_t matches;

	if (equals == NULL)
		return report_bad_line(reader, NULL, NULL, "not a line like 'option = value'");
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);
	opt = table_by_name(VERBS_ALL, name, strlen(name), &matches);
	/* No abbreviations in a file: a new option could change what they stand for. */
	if (opt == NULL || strcmp(opt->name, name) != 0)
		return report_bad_line(reader, "option", name, "there is no such option");
	if ((opt->scope & FOR_FILE) == 0)
		return report_bad_line(reader, "option", name, "only for the command line");
	if (opt->value == NULL)
		return add_switch(reader, opt, value);
	status = merge_add(reader->merge, opt->id, value, why);
	if (status == RLOCK_OK)
		return 0;
	(void)report_bad_line(reader, opt->name, value, why);
	return status == RLOCK_ENOMEM ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* Blanks alone, or a comment, which may be long. */
static bool is_blank_or_comment(const char *line)
{
	line += strspn(line, BLANKS);
	return *line == '\0' || *line == '#';
}

static int read_line(struct reader *reader, char *line, size_t len)
{
	if (strlen(line) != len)
		return report_bad_line(reader, NULL, NULL, "a NUL byte");
	if (is_blank_or_comment(line))
		return 0;
	if (len > CONFIG_LINE_MAX)
		return report_bad_line(reader, NULL, NULL, "the line is too long");
	return add_line(reader, line);
}

static int read_lines(struct reader *reader, char *text, size_t len)
{
	char *end = text + len;

	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line_len = (size_t)((newline != NULL ? newline : end) - text);
		int code;

		reader->merge->line++;
		text[line_len] = '\0';
		code = read_line(reader, text, line_len);
		if (code != 0)
			return code;
		text += line_len + 1;
	}
	return 0;
}

int config_read(struct option_merge *merge, char **text_out, size_t *len_out)
{
	struct reader reader = { .merge = merge };
	struct candidate foreign = { .is_foreign = false };
	int code;

	*text_out = NULL;
	*len_out = 0;
	code = find(merge, &foreign, text_out, len_out);
	/* Only `rlock check` prints it. */
	if (code == 0 && *text_out != NULL && merge->verb->set == VERBS_CHECK)
		code = record_unread(merge);
	if (code == 0 && *text_out != NULL) {
		merge_begin(merge, SOURCE_FILE);
		code = read_lines(&reader, *text_out, *len_out);
	}
	return code == 0 && foreign.is_foreign ? check_is_named(merge, &foreign) : code;
}
