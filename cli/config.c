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

#include "config.h"
#include "exits.h"
#include "say.h"
#include "shortage.h"
#include "usage.h"

#define CONFIG_SIZE_MAX 65536
#define CONFIG_LINE_MAX 4096

#define BLANKS " \t\r"

/* ---- files ---- */

char *config_read_file(const char *path, size_t max, size_t *len_out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = NULL;
	size_t len = 0;
	int err = 0;

	if (fd < 0)
		return NULL;
	text = malloc(max + 1); /* one byte more than allowed is read, to see that it is there */
	if (text == NULL)
		err = ENOMEM;
	while (err == 0 && len <= max) {
		ssize_t got = read(fd, text + len, max + 1 - len);

		if (got == 0)
			break;
		if (got > 0)
			len += (size_t)got;
		else if (errno != EINTR)
			err = errno;
	}
	if (err == 0 && len > max)
		err = EFBIG;
	(void)close(fd);
	if (err != 0) {
		if (text != NULL)
			explicit_bzero(text, len);
		free(text);
		errno = err;
		return NULL;
	}
	text[len] = '\0';
	*len_out = len;
	return text;
}

/* Whether there is no such file, rather than one that can't be read. */
static bool is_absent(int err)
{
	return err == ENOENT || err == ENOTDIR;
}

static int say_unreadable(const char *path, const char *origin)
{
	char shown[USAGE_SHOWN_MAX];
	int err = errno;

	if (err == ENOMEM) {
		say_error("out of memory");
		return EXIT_SYSTEM;
	}
	say_error("cannot read '%s'%s: %s", usage_show(path, shown), origin, strerror(err));
	return is_shortage(err) ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* The user's own file; false when there can't be one. */
static bool user_path(char out[PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	int len;

	if (config != NULL && *config == '/')
		len = snprintf(out, PATH_MAX, "%s/rlock.conf", config);
	else if (home != NULL && *home == '/')
		len = snprintf(out, PATH_MAX, "%s/.config/rlock.conf", home);
	else
		return false;
	return len < PATH_MAX;
}

/* The first file's text, and its path; NULL text and 0 when there is none. */
static int find(const struct draft *draft, char path[PATH_MAX], char **text_out, size_t *len_out)
{
	const char *named = draft->config;
	const char *origin = " (--config)";

	if (named == NULL) {
		named = getenv("RLOCK_CONFIG");
		origin = " (RLOCK_CONFIG)";
	}
	if (named != NULL) {
		(void)snprintf(path, PATH_MAX, "%s", named);
		*text_out = config_read_file(named, CONFIG_SIZE_MAX, len_out);
		return *text_out != NULL ? 0 : say_unreadable(named, origin);
	}
	if (user_path(path)) {
		*text_out = config_read_file(path, CONFIG_SIZE_MAX, len_out);
		if (*text_out != NULL)
			return 0;
		if (!is_absent(errno))
			return say_unreadable(path, "");
	}
	(void)snprintf(path, PATH_MAX, "/etc/rlock.conf");
	*text_out = config_read_file(path, CONFIG_SIZE_MAX, len_out);
	return *text_out != NULL || is_absent(errno) ? 0 : say_unreadable(path, "");
}

/* ---- lines ---- */

struct reader {
	struct draft *draft;
	size_t line;
	bool has_said_no[OPT_COUNT]; /* draft_take is not told those */
};

static int say_bad_line(const struct reader *reader, const char *name, const char *value,
			const char *why)
{
	char where[USAGE_SHOWN_MAX + 64];

	(void)snprintf(where, sizeof(where), "%s:%zu%s%s", reader->draft->config_shown,
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

static int take_switch(struct reader *reader, const struct opt *opt, const char *value)
{
	char why[RLOCK_ERROR_MAX];

	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return say_bad_line(reader, opt->name, value, "not yes or no");
	if (reader->has_said_no[opt->id])
		return say_bad_line(reader, opt->name, value, "given twice");
	if (strcmp(value, "no") != 0)
		return draft_take(reader->draft, opt->id, NULL, why) == RLOCK_OK
			       ? 0
			       : say_bad_line(reader, opt->name, value, why);
	if (reader->draft->seen[opt->id])
		return say_bad_line(reader, opt->name, value, "given twice");
	reader->has_said_no[opt->id] = true;
	return 0;
}

static int take_line(struct reader *reader, char *line)
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
	opt = opt_by_name((unsigned)VERBS_ALL, name, strlen(name), &matches);
	/* No abbreviations in a file: what they stand for would change with a new option. */
	if (opt == NULL || strcmp(opt->name, name) != 0)
		return say_bad_line(reader, "option", name, "there is no such option");
	if ((opt->place & FOR_FILE) == 0)
		return say_bad_line(reader, "option", name, "only for the command line");
	if (opt->value == NULL)
		return take_switch(reader, opt, value);
	status = draft_take(reader->draft, opt->id, value, why);
	if (status == RLOCK_OK)
		return 0;
	(void)say_bad_line(reader, opt->name, value, why);
	return status == RLOCK_ENOMEM ? EXIT_SYSTEM : EXIT_CONFIG;
}

static int take_lines(struct reader *reader, char *text, size_t len)
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
		else if (line_len > CONFIG_LINE_MAX)
			code = say_bad_line(reader, NULL, NULL, "too long a line");
		else if (*trim(text) != '\0' && *trim(text) != '#')
			code = take_line(reader, text);
		text += line_len + 1;
	}
	return code;
}

int config_read(struct draft *draft, char **text_out, size_t *len_out)
{
	struct reader reader = { .draft = draft };
	char path[PATH_MAX];
	int code;

	*text_out = NULL;
	*len_out = 0;
	code = find(draft, path, text_out, len_out);
	if (code != 0 || *text_out == NULL)
		return code;
	(void)usage_show(path, draft->config_shown);
	draft_begin(draft, SOURCE_FILE);
	return take_lines(&reader, *text_out, *len_out);
}
