/*
 * Checks the value of an option, and stores it in struct opts.
 * Whether a value counts is merge.c's business; what the options mean together is load.c's.
 */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "options/value.h"

enum rlock_status value_reject(char why[RLOCK_ERROR_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

static enum rlock_status reject_unexpected(const struct opt *opt, char why[RLOCK_ERROR_MAX])
{
	return value_reject(why, "not %s", opt->expected);
}

static void *field_of(struct opts *opts, const struct opt *opt)
{
	return (char *)opts + opt->field;
}

/* Digits and nothing else: no sign, no blanks, no 0x. */
static bool digits_read(const char *value, int64_t least, int64_t most, int64_t *out)
{
	int64_t number;

	if (!isdigit((unsigned char)*value) || !number_parse(value, &number) || number < least ||
	    number > most)
		return false;
	*out = number;
	return true;
}

/* ---- types of options ---- */

enum rlock_status value_flag(struct opts *opts, const struct opt *opt, const char *value,
			     char why[RLOCK_ERROR_MAX])
{
	(void)value;
	(void)why;
	*(bool *)field_of(opts, opt) = true;
	return RLOCK_OK;
}

enum rlock_status value_duration(struct opts *opts, const struct opt *opt, const char *value,
				 char why[RLOCK_ERROR_MAX])
{
	char least[DURATION_TEXT_MAX];
	int64_t ms;

	if (!duration_parse(value, &ms))
		return value_reject(why, "not a duration, like 30s, 1500ms or 2m");
	if (ms < opt->least)
		return value_reject(why, "less than %s, try 30s or 2m",
				    duration_print(opt->least, least));
	*(int64_t *)field_of(opts, opt) = ms;
	return RLOCK_OK;
}

enum rlock_status value_number(struct opts *opts, const struct opt *opt, const char *value,
			       char why[RLOCK_ERROR_MAX])
{
	int64_t number;

	if (!digits_read(value, opt->least, opt->most, &number))
		return reject_unexpected(opt, why);
	*(int *)field_of(opts, opt) = (int)number;
	return RLOCK_OK;
}

enum rlock_status value_text(struct opts *opts, const struct opt *opt, const char *value,
			     char why[RLOCK_ERROR_MAX])
{
	size_t len = strlen(value);

	if (len == 0 || len > (size_t)opt->most ||
	    (opt->bytes != NULL && value[strspn(value, opt->bytes)] != '\0'))
		return reject_unexpected(opt, why);
	*(const char **)field_of(opts, opt) = value;
	return RLOCK_OK;
}

/* ---- options unlike the others ---- */

static enum rlock_status add_url(struct opts *opts, const char *text, char why[RLOCK_ERROR_MAX])
{
	struct rlock_url **larger =
		array_grow(opts->urls, opts->url_count, sizeof(struct rlock_url *));
	enum rlock_status status;

	if (larger == NULL)
		return RLOCK_ENOMEM;
	opts->urls = larger;
	status = rlock_url_parse(text, &opts->urls[opts->url_count], why);
	if (status != RLOCK_OK)
		return status;
	opts->url_count++;
	return RLOCK_OK;
}

/* One, or several with blanks between them, since a URL contains none. */
enum rlock_status value_url(struct opts *opts, const struct opt *opt, const char *value,
			    char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = RLOCK_OK;
	char *list, *rest, *text;

	if (value[strspn(value, " ")] == '\0')
		return reject_unexpected(opt, why);
	list = strdup(value);
	if (list == NULL)
		return RLOCK_ENOMEM;
	rest = list;
	while (status == RLOCK_OK && (text = strsep(&rest, " ")) != NULL)
		if (*text != '\0')
			status = add_url(opts, text, why);
	explicit_bzero(list, strlen(value));
	free(list);
	return status;
}

/* Which number it stands for is known when all servers are. */
enum rlock_status value_quorum(struct opts *opts, const struct opt *opt, const char *value,
			       char why[RLOCK_ERROR_MAX])
{
	int64_t number;

	if (strcmp(value, "all") != 0 && strcmp(value, "majority") != 0 &&
	    !digits_read(value, 1, INT_MAX, &number))
		return reject_unexpected(opt, why);
	opts->quorum_text = value;
	return RLOCK_OK;
}

enum rlock_status value_no_wait(struct opts *opts, const struct opt *opt, const char *value,
				char why[RLOCK_ERROR_MAX])
{
	opts->wait_ms = 0;
	return value_flag(opts, opt, value, why);
}

enum rlock_status value_wait(struct opts *opts, const struct opt *opt, const char *value,
			     char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = value_duration(opts, opt, value, why);

	if (status == RLOCK_OK)
		opts->no_wait = opts->wait_ms == 0;
	return status;
}

enum rlock_status value_watch(struct opts *opts, const struct opt *opt, const char *value,
			      char why[RLOCK_ERROR_MAX])
{
	return value_duration(opts, opt, value[0] != '\0' ? value : "2s", why);
}

enum rlock_status value_lease(struct opts *opts, const struct opt *opt, const char *value,
			      char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = value_duration(opts, opt, value, why);

	if (status == RLOCK_OK)
		opts->is_fixed_lease = true;
	return status;
}

enum rlock_status value_on_lost(struct opts *opts, const struct opt *opt, const char *value,
				char why[RLOCK_ERROR_MAX])
{
	if (strcmp(value, "kill") == 0)
		opts->on_lost = ON_LOST_KILL;
	else if (strcmp(value, "term") == 0)
		opts->on_lost = ON_LOST_TERM;
	else if (strcmp(value, "ignore") == 0)
		opts->on_lost = ON_LOST_IGNORE;
	else
		return reject_unexpected(opt, why);
	return RLOCK_OK;
}

enum rlock_status value_mode(struct opts *opts, const struct opt *opt, const char *value,
			     char why[RLOCK_ERROR_MAX])
{
	if (!rlock_kind_parse(value, strlen(value), &opts->mode))
		return reject_unexpected(opt, why);
	return RLOCK_OK;
}

/* No control characters: others print it. */
enum rlock_status value_note(struct opts *opts, const struct opt *opt, const char *value,
			     char why[RLOCK_ERROR_MAX])
{
	for (const char *byte = value; *byte != '\0'; byte++)
		if ((unsigned char)*byte < ' ' || *byte == 0x7f)
			return reject_unexpected(opt, why);
	return value_text(opts, opt, value, why);
}

/*
 * "-" is standard output in other programs; it is COMMAND's here. Whether a file can be opened is found out when it is
 * used.
 */
enum rlock_status value_log(struct opts *opts, const struct opt *opt, const char *value,
			    char why[RLOCK_ERROR_MAX])
{
	if (value[0] == '\0' || strcmp(value, "-") == 0)
		return reject_unexpected(opt, why);
	opts->log = value;
	return RLOCK_OK;
}

enum rlock_status value_log_format(struct opts *opts, const struct opt *opt, const char *value,
				   char why[RLOCK_ERROR_MAX])
{
	if (strcmp(value, "text") != 0 && strcmp(value, "json") != 0)
		return reject_unexpected(opt, why);
	opts->is_log_json = strcmp(value, "json") == 0;
	return RLOCK_OK;
}
