/*
 * Finds the configuration file, and reads its lines, "option = value", through the option table.
 * Strict: with half of its options, rlock might lock something else, or somewhere else.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/config.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/file_read.h"
#include "sys/transient_errno.h"

#define CONFIG_SIZE_MAX (1 << 18)
#define CONFIG_LINE_MAX 4096

#define BLANKS " \t\r"

/* ---- files ---- */

/* Where a configuration file is looked for. */
struct place {
	char path[PATH_MAX + 1]; /* of a longer one so much that the kernel refuses it */
	const char *origin;      /* who named it, for messages */
	bool is_named;           /* not one of the usual ones: it must be there */
	bool is_foreign;         /* below another user's home directory */
};

static int say_unreadable(const struct place *place, int err)
{
	char shown[USAGE_SHOWN_MAX];

	if (err == ENOMEM) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	message_error("cannot read '%s'%s: %s", usage_show(place->path, shown), place->origin,
		      strerror(err));
	return is_transient_errno(err) ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* The owner of the file decides which server the locks are on, and which password it gets. */
static int check_owner(const struct place *place, const struct stat *stat)
{
	char shown[USAGE_SHOWN_MAX];

	if (stat->st_uid == 0 || stat->st_uid == geteuid())
		return 0;
	message_error(
		"configuration file '%s'%s: belongs to user %lu, not to root or to the caller: "
		"check what is in it, then chown it",
		usage_show(place->path, shown), place->origin, (unsigned long)stat->st_uid);
	return EXIT_CONFIG;
}

/* After su or sudo HOME may be that of the user before. */
static bool is_anothers(const char *dir)
{
	struct stat st;

	return stat(dir, &st) != 0 || st.st_uid != geteuid();
}

/*
 * Whether it goes on without that file. One that says where the server is can't be done without where nobody
 * else does: locks would be on the default server, and exclude nobody.
 */
static bool can_be_skipped(const struct option_merge *merge, const struct place *place, int err)
{
	if (place->is_named)
		return false;
	if (err == ENOENT || err == ENOTDIR)
		return true;
	if (is_transient_errno(err))
		return false;
	return merge->given[OPT_URL] != SOURCE_DEFAULT || (place->is_foreign && err == EACCES);
}

/* Whether it is the file to use: *text_out then, or an exit code in *code_out. */
static bool try_place(struct option_merge *merge, const struct place *place, char **text_out,
		      size_t *len_out, int *code_out)
{
	struct stat stat;
	int err;

	*text_out = file_read_all(AT_FDCWD, place->path, O_NOCTTY, CONFIG_SIZE_MAX, &stat, len_out);
	if (*text_out != NULL) {
		(void)usage_show(place->path, merge->config_shown);
		*code_out = check_owner(place, &stat);
		return true;
	}
	err = errno;
	if (!can_be_skipped(merge, place, err)) {
		*code_out = say_unreadable(place, err);
		return true;
	}
	if (err != ENOENT && err != ENOTDIR)
		(void)usage_show(place->path, merge->config_skipped);
	return false;
}

static bool named_place(const struct option_merge *merge, struct place *out)
{
	const char *named = merge->config;

	*out = (struct place){ .origin = " (--config)", .is_named = true };
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
static bool user_place(struct place *out)
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
	*out = (struct place){ .origin = "", .is_foreign = is_anothers(dir) };
	return snprintf(out->path, sizeof(out->path), "%s%s/rlock.conf", dir, below) < PATH_MAX;
}

/* The first file's text; NULL text and 0 when there is none. */
static int find(struct option_merge *merge, char **text_out, size_t *len_out)
{
	struct place place;
	int code = 0;

	if (named_place(merge, &place)) {
		(void)try_place(merge, &place, text_out, len_out, &code);
		return code;
	}
	if (user_place(&place) && try_place(merge, &place, text_out, len_out, &code))
		return code;
	place = (struct place){ .path = "/etc/rlock.conf", .origin = "" };
	(void)try_place(merge, &place, text_out, len_out, &code);
	return code;
}

/* ---- lines ---- */

struct reader {
	struct option_merge *merge;
	size_t line;
	bool has_said_no[OPT_COUNT]; /* merge_add is not told those */
};

static int say_bad_line(const struct reader *reader, const char *name, const char *value,
			const char *why)
{
	char where[USAGE_SHOWN_MAX + 64];

	(void)snprintf(where, sizeof(where), "%s:%zu%s%s", reader->merge->config_shown,
		       reader->line, name != NULL ? ": " : "", name != NULL ? name : "");
	usage_bad_value(where, value, why);
	return EXIT_CONFIG;
}

/* Without the blanks around it; text ends there. */
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
	char why[RLOCK_ERROR_MAX];

	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return say_bad_line(reader, opt->name, value, "not yes or no");
	if (reader->has_said_no[opt->id])
		return say_bad_line(reader, opt->name, value, "given twice");
	if (strcmp(value, "no") != 0)
		return merge_add(reader->merge, opt->id, NULL, why) == RLOCK_OK
			       ? 0
			       : say_bad_line(reader, opt->name, value, why);
	if (reader->merge->seen[opt->id])
		return say_bad_line(reader, opt->name, value, "given twice");
	reader->has_said_no[opt->id] = true;
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
		return say_bad_line(reader, NULL, NULL, "not a line like 'option = value'");
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);
	opt = table_by_name((unsigned)VERBS_ALL, name, strlen(name), &matches);
	/* No abbreviations in a file: what they stand for would change with a new option. */
	if (opt == NULL || strcmp(opt->name, name) != 0)
		return say_bad_line(reader, "option", name, "there is no such option");
	if ((opt->scope & FOR_FILE) == 0)
		return say_bad_line(reader, "option", name, "only for the command line");
	if (opt->value == NULL)
		return add_switch(reader, opt, value);
	status = merge_add(reader->merge, opt->id, value, why);
	if (status == RLOCK_OK)
		return 0;
	(void)say_bad_line(reader, opt->name, value, why);
	return status == RLOCK_ENOMEM ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* Blanks alone, or a comment, which may be long. */
static bool says_nothing(const char *line)
{
	line += strspn(line, BLANKS);
	return *line == '\0' || *line == '#';
}

static int add_lines(struct reader *reader, char *text, size_t len)
{
	char *end = text + len;
	int code = 0;

	while (text < end && code == 0) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line_len = (size_t)((newline != NULL ? newline : end) - text);

		reader->line++;
		text[line_len] = '\0';
		if (strlen(text) != line_len)
			code = say_bad_line(reader, NULL, NULL, "a NUL byte");
		else if (!says_nothing(text) && line_len > CONFIG_LINE_MAX)
			code = say_bad_line(reader, NULL, NULL, "too long a line");
		else if (!says_nothing(text))
			code = add_line(reader, text);
		text += line_len + 1;
	}
	return code;
}

int config_read(struct option_merge *merge, char **text_out, size_t *len_out)
{
	struct reader reader = { .merge = merge };
	int code;

	*text_out = NULL;
	*len_out = 0;
	code = find(merge, text_out, len_out);
	if (code != 0 || *text_out == NULL)
		return code;
	merge_begin(merge, SOURCE_FILE);
	return add_lines(&reader, *text_out, *len_out);
}
