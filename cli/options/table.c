/*
 * The rows of the option table, and how each value is checked.
 * Where a value comes from is others' business; what it means to a command is the command's.
 */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "options/table.h"

/* Below, a slow network alone would lose a lock. */
#define LEASE_MIN_MS 1000

#define OWNER_LEN_MAX 128
#define OWNER_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

enum rlock_status table_refuse(char why[RLOCK_ERROR_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

/* Digits and nothing else: no sign, no blanks, no 0x. */
static bool digits_read(const char *value, int64_t max, int64_t *out)
{
	int64_t number;

	if (!isdigit((unsigned char)*value) || !number_parse(value, &number) || number > max)
		return false;
	*out = number;
	return true;
}

/* ---- kinds of options ---- */

static enum rlock_status apply_flag(struct option_merge *merge, const struct opt *opt,
				    const char *value, char why[RLOCK_ERROR_MAX])
{
	(void)value;
	(void)why;
	*(bool *)((char *)merge->opts + opt->field) = true;
	return RLOCK_OK;
}

static enum rlock_status apply_duration(struct option_merge *merge, const struct opt *opt,
					const char *value, char why[RLOCK_ERROR_MAX])
{
	char least[DURATION_TEXT_MAX];
	int64_t ms;

	if (!duration_parse(value, &ms))
		return table_refuse(why, "not a duration, like 30s, 1500ms or 2m");
	if (ms < opt->least_ms)
		return table_refuse(why, "less than %s, try 30s or 2m",
				    duration_print(opt->least_ms, least));
	*(int64_t *)((char *)merge->opts + opt->field) = ms;
	return RLOCK_OK;
}

static enum rlock_status apply_file_name(struct option_merge *merge, const struct opt *opt,
					 const char *value, char why[RLOCK_ERROR_MAX])
{
	if (*value == '\0')
		return table_refuse(why, "not a file's name, like /etc/rlock/%s", opt->name);
	*(const char **)((char *)merge + opt->field) = value;
	return RLOCK_OK;
}

/* ---- options unlike the others ---- */

static enum rlock_status add_url(struct opts *opts, const char *text, char why[RLOCK_ERROR_MAX])
{
	struct rlock_url **larger =
		realloc(opts->urls, (opts->url_count + 1) * sizeof(struct rlock_url *));
	enum rlock_status status;

	if (larger == NULL)
		return RLOCK_ENOMEM;
	opts->urls = larger;
	status = rlock_url_parse(text, &opts->urls[opts->url_count], why);
	if (status == RLOCK_OK)
		opts->url_count++;
	return status;
}

/* One, or several with blanks between them: a URL has none. */
static enum rlock_status apply_url(struct option_merge *merge, const struct opt *opt,
				   const char *value, char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = RLOCK_OK;
	char *list, *rest, *text;

	if (value[strspn(value, " ")] == '\0')
		return table_refuse(why, "not a URL, like %s", opt->initial);
	list = strdup(value);
	if (list == NULL)
		return RLOCK_ENOMEM;
	rest = list;
	while (status == RLOCK_OK && (text = strsep(&rest, " ")) != NULL)
		if (*text != '\0')
			status = add_url(merge->opts, text, why);
	explicit_bzero(list, strlen(value));
	free(list);
	return status;
}

/* What it comes to is known when all servers are. */
static enum rlock_status apply_quorum(struct option_merge *merge, const struct opt *opt,
				      const char *value, char why[RLOCK_ERROR_MAX])
{
	int64_t number;

	(void)opt;
	if (strcmp(value, "all") != 0 && strcmp(value, "majority") != 0 &&
	    (!digits_read(value, INT_MAX, &number) || number == 0))
		return table_refuse(why, "not all, majority or a number of servers, like 2");
	merge->opts->quorum_text = value;
	return RLOCK_OK;
}

static enum rlock_status apply_no_wait(struct option_merge *merge, const struct opt *opt,
				       const char *value, char why[RLOCK_ERROR_MAX])
{
	merge->opts->wait_ms = 0;
	return apply_flag(merge, opt, value, why);
}

static enum rlock_status apply_wait(struct option_merge *merge, const struct opt *opt,
				    const char *value, char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = apply_duration(merge, opt, value, why);

	if (status == RLOCK_OK)
		merge->opts->no_wait = merge->opts->wait_ms == 0;
	return status;
}

static enum rlock_status apply_conflict_exit_code(struct option_merge *merge, const struct opt *opt,
						  const char *value, char why[RLOCK_ERROR_MAX])
{
	int64_t code;

	if (!digits_read(value, 255, &code))
		return table_refuse(why, "not a number from 0 to 255, like %s", opt->initial);
	merge->opts->conflict_exit_code = (int)code;
	return RLOCK_OK;
}

static enum rlock_status apply_lease(struct option_merge *merge, const struct opt *opt,
				     const char *value, char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = apply_duration(merge, opt, value, why);

	if (status == RLOCK_OK)
		merge->opts->is_fixed_lease = true;
	return status;
}

static enum rlock_status apply_on_lost(struct option_merge *merge, const struct opt *opt,
				       const char *value, char why[RLOCK_ERROR_MAX])
{
	(void)opt;
	if (strcmp(value, "kill") == 0)
		merge->opts->on_lost = ON_LOST_KILL;
	else if (strcmp(value, "term") == 0)
		merge->opts->on_lost = ON_LOST_TERM;
	else if (strcmp(value, "ignore") == 0)
		merge->opts->on_lost = ON_LOST_IGNORE;
	else
		return table_refuse(why, "not kill, term or ignore");
	return RLOCK_OK;
}

static enum rlock_status apply_owner(struct option_merge *merge, const struct opt *opt,
				     const char *value, char why[RLOCK_ERROR_MAX])
{
	size_t len = strlen(value);

	(void)opt;
	if (len == 0 || len > OWNER_LEN_MAX || strspn(value, OWNER_BYTES) != len)
		return table_refuse(why,
				    "not 1 to %d letters, digits, '.', '_' or '-', like ci-1234",
				    OWNER_LEN_MAX);
	merge->opts->owner = value;
	return RLOCK_OK;
}

static enum rlock_status apply_pid(struct option_merge *merge, const struct opt *opt,
				   const char *value, char why[RLOCK_ERROR_MAX])
{
	int64_t pid;

	(void)opt;
	if (!digits_read(value, INT_MAX, &pid) || pid == 0)
		return table_refuse(why, "not a process id, like 1234");
	merge->opts->pid = (long)pid;
	return RLOCK_OK;
}

static enum rlock_status apply_mode(struct option_merge *merge, const struct opt *opt,
				    const char *value, char why[RLOCK_ERROR_MAX])
{
	(void)opt;
	if (!rlock_kind_parse(value, strlen(value), &merge->opts->mode))
		return table_refuse(why, "not plain, fair, read or write");
	return RLOCK_OK;
}

static enum rlock_status apply_note(struct option_merge *merge, const struct opt *opt,
				    const char *value, char why[RLOCK_ERROR_MAX])
{
	size_t len = 0;

	(void)opt;
	while ((unsigned char)value[len] >= ' ' && value[len] != 0x7f)
		len++;
	if (len == 0 || len >= RLOCK_NOTE_MAX || value[len] != '\0')
		return table_refuse(why, "not a line of 1 to %d bytes, like 'nightly backup'",
				    RLOCK_NOTE_MAX - 1);
	merge->opts->note = value;
	return RLOCK_OK;
}

static enum rlock_status apply_holder(struct option_merge *merge, const struct opt *opt,
				      const char *value, char why[RLOCK_ERROR_MAX])
{
	size_t len = strlen(value);

	(void)opt;
	if (len == 0 || len >= RLOCK_OWNER_MAX)
		return table_refuse(why, "not an owner of 1 to %d bytes, like ci-1234",
				    RLOCK_OWNER_MAX - 1);
	merge->opts->holder = value;
	return RLOCK_OK;
}

static enum rlock_status apply_db(struct option_merge *merge, const struct opt *opt,
				  const char *value, char why[RLOCK_ERROR_MAX])
{
	int64_t db;

	(void)opt;
	if (!digits_read(value, INT_MAX, &db))
		return table_refuse(why, "not a database's number, like 0 or 3");
	merge->db = (int)db;
	return RLOCK_OK;
}

/* ---- the table ---- */

#define FIELD(name) offsetof(struct opts, name)
#define MERGE_FIELD(name) offsetof(struct option_merge, name)

/* In the order of enum opt_id, which is that of the help. */
const struct opt opt_table[OPT_COUNT] = {
	{ OPT_URL, "url", "u", "URL", VERBS_ALL, FOR_FILE | REPEATABLE, apply_url, 0, 0,
	  "redis://127.0.0.1:6379",
	  "the server; given several times: a lock on all of these servers; RLOCK_URL in the "
	  "environment says the same",
	  NULL },
	{ OPT_QUORUM, "quorum", NULL, "all|majority|N", VERBS_ALL, FOR_FILE | OF_SERVER,
	  apply_quorum, 0, 0, "all",
	  "how many of several servers must agree, more than half of them", NULL },
	{ OPT_NAME, "name", NULL, "NAME", VERBS_ALL, REPEATABLE, NULL, 0, 0, NULL,
	  "the name of a lock, for one from a variable: it is never taken for an option; may be "
	  "given several times",
	  NULL },
	{ OPT_NO_WAIT, "no-wait", "n", NULL, VERBS_TAKE, FOR_FILE, apply_no_wait, FIELD(no_wait), 0,
	  NULL, "give up at once, without a word, when the lock is taken", NULL },
	{ OPT_WAIT, "wait", "w", "DUR", VERBS_TAKE, FOR_FILE, apply_wait, FIELD(wait_ms), 0, NULL,
	  "give up after DUR; 0 is --no-wait (default: wait for ever)", NULL },
	{ OPT_CONFLICT_EXIT_CODE, "conflict-exit-code", "E", "N", VERBS_TAKE, FOR_FILE,
	  apply_conflict_exit_code, 0, 0, "75", "exit status after giving up, 0 to 255", NULL },
	{ OPT_TTL, "ttl", "t", "DUR", VERBS_TAKE, FOR_FILE, apply_duration, FIELD(lease_ms),
	  LEASE_MIN_MS, "30s",
	  "how long the lock outlives a holder that vanished; while it is held it is renewed, "
	  "so this is no limit; 1s or more",
	  NULL },
	{ OPT_LEASE, "lease", "l", "DUR", VERBS_TAKE | VERBS_RENEW, FOR_FILE, apply_lease,
	  FIELD(lease_ms), LEASE_MIN_MS, NULL,
	  "hold the lock for DUR and no longer: nothing renews it, and a COMMAND that still "
	  "runs is stopped in time; 1s or more",
	  "the new lease of a lock taken with --owner; 1s or more" },
	{ OPT_AT_LEAST, "at-least", NULL, "DUR", VERBS_TAKE, FOR_FILE | WITH_COMMAND,
	  apply_duration, FIELD(at_least_ms), 0, NULL,
	  "keep the lock taken for DUR from when it was had, even when COMMAND ends sooner; "
	  "rlock does not stay for that",
	  NULL },
	{ OPT_MAX_RUN, "max-run", NULL, "DUR", VERBS_TAKE, FOR_FILE | WITH_COMMAND, apply_duration,
	  FIELD(max_run_ms), 0, NULL, "stop a COMMAND that still runs after DUR; exit status 124",
	  NULL },
	{ OPT_WAIT_ALL, "wait-all", NULL, NULL, VERBS_TAKE, FOR_FILE | WITH_COMMAND, apply_flag,
	  FIELD(wait_all), 0, NULL,
	  "keep the lock until every process that COMMAND started has ended, not only COMMAND",
	  NULL },
	{ OPT_GRACE, "grace", NULL, "DUR", VERBS_TAKE, FOR_FILE, apply_duration, FIELD(grace_ms), 0,
	  "5s", "the time between TERM and KILL when something is stopped", NULL },
	{ OPT_ON_LOST, "on-lost", NULL, "kill|term|ignore", VERBS_TAKE, FOR_FILE, apply_on_lost, 0,
	  0, NULL,
	  "what follows when the lock is lost: TERM and then KILL, TERM only, or nothing "
	  "(default: kill for a COMMAND, term without one)",
	  NULL },
	{ OPT_KILL_CHILD, "kill-child", NULL, NULL, VERBS_TAKE, FOR_FILE | WITH_COMMAND, apply_flag,
	  FIELD(kill_child), 0, NULL,
	  "let COMMAND die with an rlock that is killed, instead of keeping the lock until it ends",
	  NULL },
	{ OPT_FENCE, "fence", NULL, NULL, VERBS_TAKE, FOR_FILE, apply_flag, FIELD(fence), 0, NULL,
	  "draw a fencing token, a number that grows with each time the lock is had: RLOCK_TOKEN "
	  "for COMMAND, on standard output without one; not for read and write locks",
	  NULL },
	{ OPT_OWNER, "owner", NULL, "ID", VERBS_ALL, WITHOUT_COMMAND, apply_owner, 0, 0, NULL,
	  "the lock belongs to this name, whichever process uses it, and needs a --lease; "
	  "letters, digits, '.', '_' and '-'",
	  "the name that the lock was taken for" },
	{ OPT_PID, "pid", NULL, "PID", VERBS_ALL, WITHOUT_COMMAND, apply_pid, 0, 0, NULL,
	  "the lock belongs to this process, and is given back when that ends (default: the "
	  "parent)",
	  "the process whose lock it is; those above it count as well (default: the caller)" },
	{ OPT_MODE, "mode", NULL, "plain|fair|read|write", VERBS_UNLOCK | VERBS_RENEW, 0,
	  apply_mode, 0, 0, NULL,
	  "the hold of that kind, where the owner has several; plain and fair are one (default: "
	  "the latest)",
	  NULL },
	{ OPT_NOTE, "note", NULL, "TEXT", VERBS_TAKE, FOR_FILE, apply_note, 0, 0, NULL,
	  "what others are told who find the lock taken (default: host, user, process and program)",
	  NULL },
	{ OPT_FORCE, "force", NULL, NULL, VERBS_UNLOCK, 0, apply_flag, FIELD(force), 0, NULL,
	  "break the lock, whoever holds it: stop the holder first, for it finds out when it renews "
	  "the lock, and one with a --lease never does; see --holder",
	  NULL },
	{ OPT_HOLDER, "holder", NULL, "OWNER", VERBS_UNLOCK, 0, apply_holder, 0, 0, NULL,
	  "with --force: only if OWNER is the one who holds it", NULL },
	{ OPT_PASSWORD_FILE, "password-file", NULL, "FILE", VERBS_ALL, FOR_FILE | OF_SERVER,
	  apply_file_name, MERGE_FIELD(password_file), 0, NULL,
	  "the password is FILE's first line; one in the URL goes before it, REDISCLI_AUTH in "
	  "the environment behind it",
	  NULL },
	{ OPT_DB, "db", NULL, "N", VERBS_ALL, FOR_FILE | OF_SERVER, apply_db, 0, 0, "0",
	  "the database", NULL },
	{ OPT_CONNECT_TIMEOUT, "connect-timeout", NULL, "DUR", VERBS_ALL, FOR_FILE, apply_duration,
	  FIELD(connect_timeout_ms), 1, "5s", "how long the server may take to answer", NULL },
	{ OPT_CONFIG, "config", NULL, "FILE", VERBS_ALL, 0, apply_file_name, MERGE_FIELD(config), 0,
	  NULL,
	  "read options from FILE (default: RLOCK_CONFIG, else rlock.conf in XDG_CONFIG_HOME "
	  "or ~/.config, else /etc/rlock.conf)",
	  NULL },
	{ OPT_QUIET, "quiet", "q", NULL, VERBS_ALL, FOR_FILE, apply_flag, FIELD(quiet), 0, NULL,
	  "say nothing while waiting, or when the lock is taken; errors are told all the same",
	  NULL },
	{ OPT_VERBOSE, "verbose", "v", NULL, VERBS_ALL, FOR_FILE, apply_flag, FIELD(verbose), 0,
	  NULL, "tell every step", NULL },
	{ OPT_HELP, "help", "h", NULL, VERBS_ALL, 0, NULL, 0, 0, NULL, "show this text", NULL },
};

const struct opt *table_by_letter(unsigned verbs, char letter)
{
	size_t id;

	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if ((opt->verbs & verbs) != 0 && opt->letter != NULL && opt->letter[0] == letter)
			return opt;
	}
	return NULL;
}

const struct opt *table_by_name(unsigned verbs, const char *name, size_t len, size_t *matches_out)
{
	const struct opt *found = NULL;
	size_t id;

	*matches_out = 0;
	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if ((opt->verbs & verbs) == 0 || strncmp(opt->name, name, len) != 0)
			continue;
		found = opt;
		*matches_out += 1;
		if (opt->name[len] == '\0') {
			*matches_out = 1;
			break;
		}
	}
	return *matches_out == 1 ? found : NULL;
}

size_t table_span(unsigned verbs, const char *word)
{
	const struct opt *opt;
	const char *letter;
	size_t matches;

	if (word[0] != '-' || word[1] == '\0')
		return 0;
	if (word[1] == '-') {
		opt = table_by_name(verbs, word + 2, strcspn(word + 2, "="), &matches);
		if (opt == NULL)
			return 0;
		return opt->value != NULL && strchr(word, '=') == NULL ? 2 : 1;
	}
	for (letter = word + 1; *letter != '\0'; letter++) {
		opt = table_by_letter(verbs, *letter);
		if (opt == NULL)
			return 0;
		if (opt->value != NULL)
			return letter[1] == '\0' ? 2 : 1;
	}
	return 1;
}
