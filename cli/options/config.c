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
	bool is_foreign;         /* below another user's home directory */
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

/* The owner of the file decides which server the locks are on, and which password it gets. */
static int check_owner(const struct candidate *candidate, const struct stat *stat)
{
	char shown[USAGE_SHOWN_MAX];

	if (stat->st_uid == 0 || stat->st_uid == geteuid())
		return 0;
	message_error(
		"configuration file '%s'%s: belongs to user %lu, not to root or to the caller: "
		"check what is in it, then chown it",
		usage_show(candidate->path, shown), candidate->origin, (unsigned long)stat->st_uid);
	return EXIT_CONFIG;
}

/* After su or sudo, HOME may still be that of the user before. */
static bool is_of_other_user(const char *dir)
{
	struct stat st;

	return stat(dir, &st) != 0 || st.st_uid != geteuid();
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
	if (is_transient_errno(err))
		return false;
	return merge->given[OPT_URL] != SOURCE_DEFAULT || (candidate->is_foreign && err == EACCES);
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

static bool record_skipped(struct settings *settings, const struct candidate *candidate)
{
	struct setting setting = { .option = "config", .value = settings->skipped };

	(void)usage_show(candidate->path, settings->skipped);
	(void)snprintf(setting.ignored, sizeof(setting.ignored),
		       "it can't be read, and is not needed");
	return settings_add(settings, &setting);
}

/* True if no other file counts: then this one's text is in *text_out, or the exit code in *code_out. */
static bool try_candidate(struct option_merge *merge, const struct candidate *candidate,
			  char **text_out, size_t *len_out, int *code_out)
{
	struct settings *settings = &merge->opts->settings;
	struct stat stat;
	int err;

	*text_out =
		file_read_all(AT_FDCWD, candidate->path, O_NOCTTY, CONFIG_SIZE_MAX, &stat, len_out);
	if (*text_out != NULL) {
		*code_out = record(merge, candidate) ? check_owner(candidate, &stat)
						     : message_out_of_memory();
		return true;
	}
	err = errno;
	if (!can_be_skipped(merge, candidate, err)) {
		*code_out = report_unreadable(candidate, err);
		return true;
	}
	if (err == ENOENT || err == ENOTDIR || record_skipped(settings, candidate))
		return false;
	*code_out = message_out_of_memory();
	return true;
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

/* The user's own file; false when there can't be one. */
static bool user_candidate(struct candidate *out)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	const char *dir = NULL, *below = "";

	if (config != NULL && *config == '/') {
		dir = config;
	} else if (home != NULL && *home == '/') {
		dir = home;
		below = "/.config";
	}
	if (dir == NULL)
		return false;
	*out = (struct candidate){ .origin = "", .is_foreign = is_of_other_user(dir) };
	return snprintf(out->path, sizeof(out->path), "%s%s/rlock.conf", dir, below) < PATH_MAX;
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

static int find(struct option_merge *merge, char **text_out, size_t *len_out)
{
	struct candidate candidate;
	int code = 0;

	if (named_candidate(merge, &candidate)) {
		(void)try_candidate(merge, &candidate, text_out, len_out, &code);
		return code;
	}
	if (user_candidate(&candidate) &&
	    try_candidate(merge, &candidate, text_out, len_out, &code))
		return code;
	candidate = (struct candidate){ .path = MACHINE_FILE, .origin = "" };
	(void)try_candidate(merge, &candidate, text_out, len_out, &code);
	return code;
}

/*
 * The text of the first file that exists is in *text_out, which the caller frees; NULL when there is none. merge has
 * the options that may name the file, and gets its path. 0, or the exit code after one line by message_error.
 */
static int config_find(struct option_merge *merge, char **text_out, size_t *len_out)
{
	int code = find(merge, text_out, len_out);

	/* Only `rlock check` prints it. */
	if (code != 0 || *text_out == NULL || merge->verb->set != VERBS_CHECK)
		return code;
	return record_unread(merge);
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
	int code;

	*text_out = NULL;
	*len_out = 0;
	code = config_find(merge, text_out, len_out);
	if (code != 0 || *text_out == NULL)
		return code;
	merge_begin(merge, SOURCE_FILE);
	return read_lines(&reader, *text_out, *len_out);
}
