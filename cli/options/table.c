/*
 * The option table: find a row, check and store a value, decide which source's value counts. load.c decides what the
 * options mean together.
 */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/units.h"
#include "lib/base/array.h"
#include "options/notation.h"
#include "options/table.h"
#include "options/urls.h"
#include "sys/signals.h"

/* Shortest lease: with a shorter one, a slow network alone could cause the loss of a lock. */
#define LEASE_MIN_MS 1000

/* Shortest interval of --watch: each repetition is a request to the server. */
#define WATCH_MIN_MS 100

/* A duration of more than this, an hour, needs its unit if the option has WANTS_UNIT. */
#define BARE_MAX_MS 3600000

#define OWNER_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

#define MAP_EXPECTED "pairs like 10.0.0.1:6379=redis.example:16379"
#define FILE_EXPECTED "a file's name, like /etc/rlock/server.pem"

#define FIELD(name) offsetof(struct opts, name)
/* The group, verbs and scope of an option about a server. */
#define SERVER GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER

const char *const opt_group_titles[GROUP_COUNT] = {
	[GROUP_WAITING] = "Waiting", [GROUP_LEASE] = "Lease",
	[GROUP_COMMAND] = "Command", [GROUP_OWNER] = "Name, owner and fencing",
	[GROUP_SERVER] = "Server",   [GROUP_MESSAGES] = "Messages",
};

/* In the order of enum opt_id, which is that of the help within a group. */
const struct opt opt_table[OPT_COUNT] = {
	[OPT_URL] = { "url", "u", "URL", TYPE_URLS, FIELD(urls), GROUP_SERVER, VERBS_ALL,
		      USUAL | FOR_FILE | REPEATABLE | HAS_DEFAULT,
		      .expected = "a URL, like redis://127.0.0.1:6379", .variable = "RLOCK_URL",
		      .help = "the server, or RLOCK_URL in the environment; given several times: a lock on all of these servers; sem takes one only" },
	[OPT_QUORUM] = { "quorum", NULL, "all|majority|N", TYPE_QUORUM, FIELD(quorum_text),
			 GROUP_SERVER, VERBS_ALL & ~(unsigned)VERBS_SEM,
			 FOR_FILE | OF_SERVER | HAS_DEFAULT,
			 .expected = "all, majority or a number of servers, like 2",
			 .help = "how many of several servers must grant the lock, more than half of them" },
	[OPT_REPLICAS] = { "replicas", NULL, "N", TYPE_NUMBER, FIELD(replicas), GROUP_SERVER,
			   VERBS_HOLD | VERBS_CHECK, FOR_FILE | OF_SERVER | HAS_DEFAULT, .max = 99,
			   .expected = "a number of replicas, like 1",
			   .help = "how many replicas of each server must acknowledge a lock, and each renewal" },
	[OPT_NAME] = { "name", NULL, "NAME", TYPE_NAME, 0, GROUP_OWNER, VERBS_ALL, REPEATABLE,
		       .help = "the name of a lock, for a name from a variable; it is never read as an option; may be given several times" },
	[OPT_PERMITS] = { "permits", NULL, "N", TYPE_NUMBER, FIELD(permits), GROUP_OWNER, VERBS_SEM,
			  USUAL, .min = 1, .max = RLOCK_PERMITS_MAX,
			  .expected = "a number from 1 to 1000000, like 3",
			  .help = "how many permits the semaphore has in all; it must be given" },
	[OPT_TAKE] = { "take", NULL, "K", TYPE_NUMBER, FIELD(take), GROUP_OWNER, VERBS_SEM,
		       HAS_DEFAULT, .min = 1, .max = RLOCK_TAKE_MAX,
		       .expected = "a number from 1 to 1000, like 2",
		       .help = "acquire K permits together, all or none" },
	[OPT_RESIZE] = { "resize", NULL, NULL, TYPE_FLAG, FIELD(resize), GROUP_OWNER, VERBS_SEM,
			 WITHOUT_COMMAND,
			 .help = "acquire nothing: set the total of the semaphore to --permits" },
	[OPT_NO_WAIT] = { "no-wait", "n", NULL, TYPE_FLAG, FIELD(no_wait), GROUP_WAITING,
			  VERBS_ACQUIRE, USUAL | FOR_FILE, .rival = OPT_WAIT,
			  .help = "do not wait while another owner holds the lock; print nothing, and exit with 75" },
	[OPT_WAIT] = { "wait", "w", "DUR", TYPE_DURATION, FIELD(wait_ms), GROUP_WAITING,
		       VERBS_ACQUIRE | VERBS_STOP, USUAL | FOR_FILE | MAY_BE_INF,
		       .rival = OPT_NO_WAIT,
		       .help = "wait for DUR at most; also for a server that is down; 0 is --no-wait, inf no limit (default: inf; a server that is down at the start is an error)",
		       .help_holder =
			       "wait for DUR at most; the request stays in effect after that (default: inf, no limit)" },
	[OPT_COMPLAIN_AFTER] = { "complain-after", NULL, "DUR", TYPE_DURATION,
				 FIELD(complain_after_ms), GROUP_WAITING, VERBS_ACQUIRE, FOR_FILE,
				 .help = "with -n: say which holder has held the lock for DUR or longer, and exit with 75" },
	[OPT_CONFLICT_EXIT_CODE] = { "conflict-exit-code", "E", "N", TYPE_NUMBER,
				     FIELD(conflict_exit_code), GROUP_WAITING, VERBS_ACQUIRE,
				     USUAL | FOR_FILE | HAS_DEFAULT, .max = 255,
				     .expected = "a number from 0 to 255, like 75",
				     .help = "exit code when not acquired in time; 0 to 255" },
	[OPT_TTL] = { "ttl", "t", "DUR", TYPE_DURATION, FIELD(lease_ms), GROUP_LEASE,
		      VERBS_ACQUIRE | VERBS_FLOCK | VERBS_CHECK,
		      USUAL | FOR_FILE | HAS_DEFAULT | WANTS_UNIT, .rival = OPT_LEASE,
		      .min = LEASE_MIN_MS,
		      .help = "the lease, renewed while held; the lock of a dead machine is free after it, and a live COMMAND may run for longer; 1s or more",
		      .help_holder =
			      "the lease that the server must be fast enough for; 1s or more" },
	[OPT_LEASE] = { "lease", "l", "DUR", TYPE_DURATION, FIELD(lease_ms), GROUP_LEASE,
			VERBS_ACQUIRE | VERBS_RENEW, USUAL | FOR_FILE | WANTS_UNIT,
			.rival = OPT_TTL, .min = LEASE_MIN_MS,
			.help = "a fixed lease, which no renewer renews; a COMMAND that still runs is terminated before DUR is over, with exit code 124; without one, see rlock renew; 1s or more",
			.help_holder = "the new lease of a lock of --owner; 1s or more" },
	[OPT_AT_LEAST] = { "at-least", NULL, "DUR", TYPE_DURATION, FIELD(at_least_ms), GROUP_LEASE,
			   VERBS_ACQUIRE, USUAL | FOR_FILE | WITH_COMMAND,
			   .help = "keep the lock until DUR after it was acquired; also when COMMAND, and rlock with it, ends sooner" },
	[OPT_UNLESS_FAILED] = { "unless-failed", NULL, NULL, TYPE_FLAG, FIELD(unless_failed),
				GROUP_LEASE, VERBS_ACQUIRE, FOR_FILE | WITH_COMMAND,
				.help = "with --at-least: release the lock immediately if COMMAND fails, or is terminated" },
	[OPT_MAX_RUN] = { "max-run", NULL, "DUR", TYPE_DURATION, FIELD(max_run_ms), GROUP_COMMAND,
			  VERBS_ACQUIRE, USUAL | FOR_FILE | WITH_COMMAND,
			  .help = "terminate a COMMAND that still runs after DUR; exit code 124; 0: never" },
	[OPT_WAIT_ALL] = { "wait-all", NULL, NULL, TYPE_FLAG, FIELD(wait_all), GROUP_COMMAND,
			   VERBS_ACQUIRE, FOR_FILE | WITH_COMMAND,
			   .help = "keep the lock until every process that COMMAND started has ended, not only COMMAND" },
	[OPT_SIGNAL] = { "signal", NULL, "SIG", TYPE_SIGNAL, FIELD(signal), GROUP_COMMAND,
			 VERBS_ACQUIRE | VERBS_FLOCK, FOR_FILE | HAS_DEFAULT,
			 .expected = "a signal that a process can end by, like INT or 10",
			 .help = "what is sent first to terminate COMMAND" },
	[OPT_GRACE] = { "grace", NULL, "DUR", TYPE_DURATION, FIELD(grace_ms), GROUP_COMMAND,
			VERBS_ACQUIRE | VERBS_FLOCK, FOR_FILE | HAS_DEFAULT,
			.help = "the time between that signal and SIGKILL" },
	[OPT_ON_LOST] = { "on-lost", NULL, "kill|term|ignore", TYPE_CHOICE, FIELD(on_lost),
			  GROUP_COMMAND, VERBS_ACQUIRE | VERBS_FLOCK, FOR_FILE, .min = ON_LOST_KILL,
			  .expected = "kill, term or ignore",
			  .help = "what is sent when the lock is lost: the signal that terminates and then SIGKILL, the first alone, or nothing (default: kill for a COMMAND, term without one)" },
	[OPT_KILL_CHILD] = { "kill-child", NULL, NULL, TYPE_FLAG, FIELD(kill_child), GROUP_COMMAND,
			     VERBS_ACQUIRE, FOR_FILE | WITH_COMMAND,
			     .help = "send SIGKILL to all processes of COMMAND when rlock or its renewer is killed; else they run on, with the lock renewed" },
	[OPT_FENCE] = { "fence", NULL, NULL, TYPE_FLAG, FIELD(fence), GROUP_OWNER, VERBS_LOCK,
			USUAL | FOR_FILE,
			.help = "issue a fencing token, greater each time; in RLOCK_TOKEN for COMMAND, on standard output without one; not for read and write locks" },
	[OPT_OWNER] = { "owner", NULL, "ID", TYPE_TEXT, FIELD(owner), GROUP_OWNER, VERBS_HOLD,
			USUAL, .max = 128, .bytes = OWNER_BYTES,
			.expected =
				"1 to 128 letters, digits, '.', '_' or '-', the first one no '-', like ci-1234",
			.help = "the lock belongs to ID, not to a process; without a COMMAND this needs --lease; a COMMAND runs under the lock of ID, re-entered or acquired; letters, digits, '.', '_' and '-'",
			.help_holder = "the ID that the lock was acquired for" },
	[OPT_PID] = { "pid", NULL, "PID", TYPE_NUMBER, FIELD(pid), GROUP_OWNER, VERBS_HOLD,
		      USUAL | WITHOUT_COMMAND, .min = 1, .expected = "a process id, like 1234",
		      .help = "the process that a lock without COMMAND belongs to; the lock is released when that ends",
		      .help_holder =
			      "the process that holds the lock; its ancestors count as well (default: the caller)" },
	[OPT_MODE] = { "mode", NULL, "plain|fair|read|write|sem", TYPE_CHOICE, FIELD(mode),
		       GROUP_OWNER, VERBS_UNLOCK | VERBS_RENEW, 0,
		       .expected = "plain, fair, read, write or sem",
		       .help = "the hold of that kind, where the owner has several; plain and fair are one (default: the latest)" },
	[OPT_NOTE] = { "note", NULL, "TEXT", TYPE_LINE, FIELD(note), GROUP_OWNER,
		       VERBS_ACQUIRE | VERBS_FLOCK, FOR_FILE, .max = RLOCK_NOTE_MAX - 1,
		       .expected = "a line of 1 to 255 bytes, like 'nightly backup'",
		       .help = "what waiters and status show of the holder (default: host, user, process and program)" },
	[OPT_REMEMBER] = { "remember", NULL, "DUR", TYPE_DURATION, FIELD(remember_ms), GROUP_OWNER,
			   VERBS_ACQUIRE | VERBS_UNLOCK, FOR_FILE,
			   .help = "have status say for DUR after the release which holder it was, until when, and how COMMAND ended" },
	[OPT_FORCE] = { "force", NULL, NULL, TYPE_FLAG, FIELD(force), GROUP_OWNER, VERBS_UNLOCK,
			USUAL,
			.help = "break the lock of any holder; terminate the holder first: it may run on, and finds out only when it renews or releases the lock; see --holder" },
	[OPT_HOLDER] = { "holder", NULL, "OWNER", TYPE_TEXT, FIELD(holder), GROUP_OWNER,
			 VERBS_UNLOCK | VERBS_STOP, USUAL, .max = RLOCK_OWNER_MAX - 1,
			 .expected = "an owner of 1 to 255 bytes, like ci-1234:0",
			 .help = "only if OWNER holds the lock; copy OWNER from status; unlock needs --force as well" },
	[OPT_JSON] = { "json", NULL, NULL, TYPE_FLAG, FIELD(json), GROUP_MESSAGES, VERBS_REPORT,
		       USUAL, .rival = OPT_METRICS,
		       .help = "print one JSON document; rlock-output(5) has its members" },
	[OPT_HELD_FOR] = { "held-for", NULL, "DUR", TYPE_DURATION, FIELD(held_for_ms),
			   GROUP_MESSAGES, VERBS_LIST, USUAL,
			   .help = "only locks that are held for DUR or longer; exit code 1 if there is one" },
	[OPT_METRICS] = { "metrics", NULL, NULL, TYPE_FLAG, FIELD(metrics), GROUP_MESSAGES,
			  VERBS_LIST, USUAL, .rival = OPT_JSON,
			  .help = "print text for Prometheus" },
	[OPT_WATCH] = { "watch", NULL, "DUR", TYPE_DURATION, FIELD(watch_ms), GROUP_MESSAGES,
			VERBS_STATUS | VERBS_LIST, USUAL | OPTIONAL_VALUE, .without = "2s",
			.min = WATCH_MIN_MS,
			.help = "print it again every DUR, in place, until Ctrl-C (without DUR: every 2s)" },
	[OPT_PASSWORD_FILE] = { "password-file", NULL, "FILE", TYPE_TEXT, FIELD(password_file),
				SERVER, .rival = OPT_PASSWORD_COMMAND,
				.expected = "a file's name, like /etc/rlock/password-file",
				.help = "the password is FILE's first line; a password in the URL takes precedence, and REDISCLI_AUTH in the environment comes last" },
	[OPT_PASSWORD_COMMAND] = { "password-command", NULL, "CMD", TYPE_TEXT,
				   FIELD(password_command), GROUP_SERVER, VERBS_ALL,
				   FOR_FILE | OF_SERVER | SECRET, .rival = OPT_PASSWORD_FILE,
				   .expected = "a command of sh, like /usr/local/bin/redis-token",
				   .help = "the password is the first line that sh -c CMD prints; it is run whenever a connection is opened: for tokens that expire" },
	[OPT_DB] = { "db", NULL, "N", TYPE_NUMBER, FIELD(db), GROUP_SERVER, VERBS_ALL,
		     FOR_FILE | OF_SERVER | HAS_DEFAULT,
		     .expected = "a database's number, like 0 or 3",
		     .help = "the number of the database" },
	[OPT_CONNECT_TIMEOUT] = { "connect-timeout", NULL, "DUR", TYPE_DURATION,
				  FIELD(connect_timeout_ms), GROUP_SERVER, VERBS_ALL,
				  FOR_FILE | HAS_DEFAULT, .min = 1,
				  .help = "how long connecting and each reply may take" },
	[OPT_CACERT] = { "cacert", NULL, "FILE", TYPE_TEXT, FIELD(tls[RLOCK_TLS_CACERT]), SERVER,
			 .expected = FILE_EXPECTED,
			 .help = "TLS: trust the certificate authorities (CAs) in FILE, not those of the system" },
	[OPT_CACERTDIR] = { "cacertdir", NULL, "DIR", TYPE_TEXT, FIELD(tls[RLOCK_TLS_CACERTDIR]),
			    SERVER, .expected = "a directory's name, like /etc/rlock/authorities",
			    .help = "TLS: trust the CAs in the files of DIR, with the names that openssl rehash gives them" },
	[OPT_CERT] = { "cert", NULL, "FILE", TYPE_TEXT, FIELD(tls[RLOCK_TLS_CERT]), SERVER,
		       .expected = FILE_EXPECTED,
		       .help = "TLS: the client certificate, for a server that requires one" },
	[OPT_KEY] = { "key", NULL, "FILE", TYPE_TEXT, FIELD(tls[RLOCK_TLS_KEY]), SERVER,
		      .expected = FILE_EXPECTED,
		      .help = "TLS: the private key of --cert, without a passphrase (default: in that file)" },
	[OPT_SNI] = { "sni", NULL, "NAME", TYPE_TEXT, FIELD(tls[RLOCK_TLS_SNI]), SERVER, .max = 255,
		      .expected = "a host's name, like redis.example.com",
		      .help = "TLS: the name that the server's certificate has to be for (default: the URL's host)" },
	[OPT_INSECURE] = { "insecure", NULL, NULL, TYPE_FLAG, FIELD(is_insecure), SERVER,
			   .help = "TLS: accept any certificate; a machine between here and the server can then read the password and change all replies" },
	[OPT_SENTINEL_USER] = { "sentinel-user", NULL, "USER", TYPE_TEXT, FIELD(sentinel_user),
				SERVER, .max = 255, .expected = "a user's name, like locks",
				.help = "the user at the sentinels; the user in the URL is the master's" },
	[OPT_SENTINEL_PASSWORD_FILE] = { "sentinel-password-file", NULL, "FILE", TYPE_TEXT,
					 FIELD(sentinel_password_file), SERVER,
					 .expected =
						 "a file's name, like /etc/rlock/sentinel-password",
					 .help = "the password at the sentinels is FILE's first line" },
	[OPT_SENTINEL_MAP] = { "sentinel-map", NULL, "H:P=H:P,...", TYPE_TEXT, FIELD(sentinel_map),
			       SERVER, .expected = MAP_EXPECTED, .variable = "RLOCK_SENTINEL_MAP",
			       .help = "for a NAT or containers: where the sentinels name the first host and port, connect to the second" },
	[OPT_CLUSTER_MAP] = { "cluster-map", NULL, "H:P=H:P,...", TYPE_TEXT, FIELD(cluster_map),
			      SERVER, .expected = MAP_EXPECTED, .variable = "RLOCK_CLUSTER_MAP",
			      .help = "the same, where the nodes of a cluster name the first host and port" },
	[OPT_CONFIG] = { "config", NULL, "FILE", TYPE_TEXT, FIELD(config), GROUP_SERVER, VERBS_ALL,
			 0, .expected = "a file's name, like /etc/rlock/config",
			 .variable = "RLOCK_CONFIG",
			 .help = "read options from FILE (default: RLOCK_CONFIG, else rlock.conf in XDG_CONFIG_HOME or ~/.config, else /etc/rlock.conf)" },
	[OPT_LOG] = { "log", NULL, "syslog|stderr|FILE", TYPE_LOG, FIELD(log), GROUP_MESSAGES,
		      VERBS_ACQUIRE | VERBS_FLOCK | VERBS_UNLOCK | VERBS_STOP | VERBS_CHECK,
		      FOR_FILE,
		      .expected = "syslog, stderr or a file's name, like /var/log/rlock.log",
		      .help = "log a line for each lock that is acquired, released, lost, broken, asked to stop, or was waited for (default: no log)" },
	[OPT_LOG_FORMAT] = { "log-format", NULL, "text|json", TYPE_CHOICE, FIELD(log_format),
			     GROUP_MESSAGES,
			     VERBS_ACQUIRE | VERBS_FLOCK | VERBS_UNLOCK | VERBS_STOP,
			     FOR_FILE | HAS_DEFAULT, .expected = "text or json",
			     .help = "a line of the log is key=value, or a JSON object; rlock-output(5) has the fields" },
	[OPT_QUIET] = { "quiet", "q", NULL, TYPE_FLAG, FIELD(quiet), GROUP_MESSAGES, VERBS_ALL,
			USUAL | FOR_FILE, .rival = OPT_VERBOSE,
			.help = "print errors only; nothing while waiting, or when the lock was not acquired in time" },
	[OPT_VERBOSE] = { "verbose", "v", NULL, TYPE_FLAG, FIELD(verbose), GROUP_MESSAGES,
			  VERBS_ALL, USUAL | FOR_FILE | REPEATABLE, .rival = OPT_QUIET,
			  .help = "print every step" },
	[OPT_HELP] = { "help", "h", NULL, TYPE_HELP, 0, GROUP_MESSAGES, VERBS_ALL, USUAL,
		       .help = "-h: the options used most, --help: all of them" },
};

/* ---- values ---- */

enum rlock_status value_reject(char why[RLOCK_ERROR_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

/*
 * Parse a number of digits alone: no sign, no blanks, no 0x. False: another text, or out of bounds.
 */
static bool digits_read(const char *value, int64_t min, int64_t max, int64_t *out)
{
	int64_t number;

	if (!isdigit((unsigned char)*value) || !number_parse(value, &number) || number < min ||
	    number > max)
		return false;
	*out = number;
	return true;
}

/* The length of the ID in "ID:NUMBER", which status prints as the owner. 0: another text. */
static size_t owner_len(const char *value)
{
	size_t len = strspn(value, OWNER_BYTES);

	return len > 0 && value[len] == ':' && value[len + 1] != '\0' &&
			       value[len + 1 + strspn(value + len + 1, "0123456789")] == '\0'
		       ? len
		       : 0;
}

static bool is_text(const struct opt *opt, const char *value)
{
	size_t len = strlen(value);

	if (len == 0 || (opt->max > 0 && len > (size_t)opt->max) ||
	    (opt->bytes != NULL && (*value == '-' || value[strspn(value, opt->bytes)] != '\0')) ||
	    (opt->type == TYPE_LOG && strcmp(value, "-") == 0))
		return false;
	/* Refuse control characters, since other calls print the text. */
	for (; opt->type == TYPE_LINE && *value != '\0'; value++)
		if ((unsigned char)*value < ' ' || *value == 0x7f)
			return false;
	return true;
}

/* Values that other programs take for their log, and a hint on each. Refuse them: rlock would write a file of that name. */
static const struct {
	const char *words, *hint;
} other_logs[] = {
	{ "json|text", "; the format is log-format" },
	{ "journald|journal|systemd", "; journald has the lines of syslog" },
	{ "stdout", "; standard output is COMMAND's" },
	{ "false|no|off|none", "; there is no log without this option" },
	{ "debug|info|warn|warning|error|true|yes|on", "" },
};

/* The hint for a value that other programs take for their log; NULL: it is the name of a file. */
static const char *find_log_hint(const char *value)
{
	for (size_t i = 0; i < sizeof(other_logs) / sizeof(other_logs[0]); i++)
		if (choice_find(other_logs[i].words, value) >= 0)
			return other_logs[i].hint;
	return NULL;
}

/* Words of other programs for a wait without a limit. */
#define ENDLESS "-1|INF|Inf|infinite|infinity|forever|never|none|unlimited"

/* Whether the value is like "03:00", "3am" or "2026-11-29". */
static bool is_time_of_day(const char *value)
{
	size_t digits = strspn(value, "0123456789"), len = strlen(value);

	return digits > 0 && (value[digits] == ':' || (value[digits] == '-' && digits == 4) ||
			      (len > 2 && (strcmp(value + len - 2, "am") == 0 ||
					   strcmp(value + len - 2, "pm") == 0)));
}

static enum rlock_status store_duration(const struct opt *opt, const char *value, int64_t *field,
					char why[RLOCK_ERROR_MAX])
{
	char shortest[DURATION_TEXT_MAX], ours[DURATION_TEXT_MAX];
	/* A negative number is rather a mistake. */
	bool is_endless =
		strcmp(value, "inf") == 0 || (choice_find(ENDLESS, value) >= 0 && *value != '-');
	int64_t number;

	if ((opt->scope & MAY_BE_INF) != 0 && strcmp(value, "inf") == 0) {
		*field = -1;
		return RLOCK_OK;
	}
	if ((opt->scope & MAY_BE_INF) != 0 && choice_find(ENDLESS, value) >= 0)
		return value_reject(why, "not a duration; try: inf");
	if (opt == &opt_table[OPT_MAX_RUN] && is_endless)
		return value_reject(why, "not a duration; try: 0");
	if ((opt == &opt_table[OPT_TTL] || opt == &opt_table[OPT_LEASE]) && is_endless)
		return value_reject(
			why,
			"not a duration; a lease ends, but that of --ttl is renewed while the lock is held");
	if (is_time_of_day(value) && !notation_translate(value, ours))
		return value_reject(
			why, "perhaps a time of day, and not a duration, like 30s, 1500ms or 2m");
	if (!duration_parse(value, &number) && notation_translate(value, ours))
		return value_reject(why, "not a duration; try: %s", ours);
	if (!duration_parse(value, &number))
		return value_reject(why, duration_is_too_long(value)
						 ? "longer than 10000d, try 30s or 2m"
					 : (opt->scope & MAY_BE_INF) != 0
						 ? "not a duration, like 30s, 1500ms or 2m, nor inf"
						 : "not a duration, like 30s, 1500ms or 2m");
	if (number < opt->min)
		return value_reject(why, "less than %s, try 30s or 2m",
				    duration_print(opt->min, shortest));
	/*
	 * Refuse "30000", which was probably meant in ms. As seconds it would keep the lock of a dead machine for
	 * hours.
	 */
	if ((opt->scope & WANTS_UNIT) != 0 && number > BARE_MAX_MS &&
	    value[strspn(value, "0123456789.")] == '\0')
		return value_reject(why, "seconds, or milliseconds? Say %ss or %sms", value, value);
	*field = number;
	return RLOCK_OK;
}

enum rlock_status table_store(struct opts *opts, const struct opt *opt, const char *value,
			      char why[RLOCK_ERROR_MAX])
{
	void *field = (char *)opts + opt->field;
	const char *hint;
	int64_t number = 0;
	bool is_right = true;

	switch (opt->type) {
	case TYPE_FLAG:
		is_right = strcmp(value, "yes") == 0;
		*(bool *)field = is_right;
		break;
	case TYPE_DURATION:
		return store_duration(opt, value, field, why);
	case TYPE_NUMBER:
		is_right = digits_read(value, opt->min, opt->max > 0 ? opt->max : INT_MAX, &number);
		if (is_right)
			*(int *)field = (int)number;
		break;
	case TYPE_CHOICE:
		number = choice_find(opt->value, value);
		is_right = number >= 0;
		if (is_right)
			*(int *)field = (int)(opt->min + number);
		break;
	case TYPE_SIGNAL:
		is_right = signals_parse(value, field);
		break;
	case TYPE_LOG:
		hint = find_log_hint(value);
		if (hint != NULL)
			return value_reject(why, "not %s: ./%s is a file of that name%s",
					    opt->expected, value, hint);
		/* fall through */
	case TYPE_TEXT:
	case TYPE_LINE:
	case TYPE_QUORUM:
		is_right = opt->type == TYPE_QUORUM
				   ? strcmp(value, "all") == 0 || strcmp(value, "majority") == 0 ||
					     digits_read(value, 1, INT_MAX, &number)
				   : is_text(opt, value);
		if (is_right)
			*(const char **)field = value;
		break;
	case TYPE_URLS:
		is_right = value[strspn(value, URL_SEPARATORS)] != '\0';
		if (is_right)
			return urls_add(opts, value, why);
		break;
	case TYPE_NAME:
	case TYPE_HELP:
		break;
	}
	if (!is_right && opt == &opt_table[OPT_OWNER] && owner_len(value) > 0)
		return value_reject(why, "what is after the ID is not a part of it; try: %.*s",
				    (int)owner_len(value), value);
	/*
	 * Refuse an owner that ends so: "job-$UNSET" would be one owner for all jobs, so no job would exclude another.
	 */
	if (opt == &opt_table[OPT_OWNER] && table_lacks_end(value))
		return value_reject(why, "ends in '%c': does a variable in it have no value?",
				    value[strlen(value) - 1]);
	return is_right ? RLOCK_OK
			: value_reject(why, "not %s%s",
				       opt->expected != NULL ? opt->expected : "yes or no",
				       *value == '\0' ? "; was a variable empty?" : "");
}

bool table_lacks_end(const char *value)
{
	return *value != '\0' && strchr("-_.:/", value[strlen(value) - 1]) != NULL;
}

const char *table_default(const struct opt *opt, char out[DEFAULT_TEXT_MAX])
{
	const void *field = (const char *)&opts_initial + opt->field;

	if ((opt->scope & HAS_DEFAULT) == 0)
		return NULL;
	switch (opt->type) {
	case TYPE_DURATION:
		return duration_print(*(const int64_t *)field, out);
	case TYPE_CHOICE:
		(void)snprintf(out, DEFAULT_TEXT_MAX, "%.*s", (int)strcspn(opt->value, "|"),
			       opt->value);
		return out;
	case TYPE_URLS:
		return DEFAULT_URL;
	case TYPE_SIGNAL:
		return signals_name(*(const int *)field, out);
	case TYPE_QUORUM:
		return *(const char *const *)field;
	default:
		(void)snprintf(out, DEFAULT_TEXT_MAX, "%d", *(const int *)field);
		return out;
	}
}

/* ---- values that the sources have given ---- */

const struct given *table_given(const struct opts *opts, enum opt_id id)
{
	for (size_t i = 0; i < opts->given_count; i++)
		if (opts->given[i].id == id && opts->given[i].use == GIVEN_COUNTS)
			return &opts->given[i];
	return NULL;
}

enum opt_source table_source(const struct opts *opts, enum opt_id id)
{
	const struct given *given = table_given(opts, id);

	return given != NULL ? given->source : SOURCE_DEFAULT;
}

const struct given *table_decided(const struct opts *opts, enum opt_id id)
{
	const struct given *given = table_given(opts, id);
	enum opt_id rival = opt_table[id].rival;

	return given != NULL || rival == 0 ? given : table_given(opts, rival);
}

static bool is_switched_off(const struct given *given)
{
	return opt_table[given->id].type == TYPE_FLAG && strcmp(given->value, "no") == 0;
}

/*
 * Whether a new value counts, or why not. If -u or RLOCK_URL names the servers, options of the file about servers do
 * not count. A site's password must not be sent to other servers than its own.
 */
static enum given_use use_of(const struct opts *opts, const struct given *given)
{
	const struct opt *opt = &opt_table[given->id];
	const struct given *decided = table_decided(opts, given->id);

	if (given->source == SOURCE_FILE && (opt->scope & OF_SERVER) != 0 &&
	    table_source(opts, OPT_URL) > SOURCE_FILE)
		return GIVEN_TO_OTHER_SERVERS;
	if (decided != NULL && decided->source > given->source)
		return GIVEN_TOO_LATE;
	if ((opt->verbs & (unsigned)opts->verb->set) == 0)
		return GIVEN_TO_OTHER_VERBS;
	return is_switched_off(given) ? GIVEN_AS_NO : GIVEN_COUNTS;
}

/*
 * Refuse an option that conflicts with an earlier one from the same source, for example the same option again, or its
 * rival.
 */
static enum rlock_status reject_conflict(const struct opts *opts, const struct given *given,
					 char why[RLOCK_ERROR_MAX])
{
	const struct opt *opt = &opt_table[given->id];

	for (size_t i = 0; i < opts->given_count; i++) {
		const struct given *other = &opts->given[i];

		if (other->source != given->source)
			continue;
		if (other->id == given->id && (opt->scope & REPEATABLE) == 0)
			return value_reject(why, "given twice");
		if (opt->rival != 0 && other->id == opt->rival && !is_switched_off(other) &&
		    !is_switched_off(given))
			return value_reject(why, "can't go together with %s%s",
					    given->source == SOURCE_ARGV ? "--" : "",
					    opt_table[other->id].name);
		if ((given->has_db && other->id == OPT_DB) ||
		    (other->has_db && given->id == OPT_DB))
			return value_reject(why, "the URL names a database as well");
	}
	return RLOCK_OK;
}

enum rlock_status table_give(struct opts *opts, struct given given, char why[RLOCK_ERROR_MAX])
{
	struct given *larger = array_room(opts->given, opts->given_count, sizeof(*larger));
	struct opts unwanted = { 0 };
	struct opts *into = opts;
	size_t url = opts->url_count;
	enum rlock_status status = RLOCK_OK;

	if (larger == NULL)
		return RLOCK_ENOMEM;
	opts->given = larger;
	given.use = use_of(opts, &given);
	if (given.use != GIVEN_COUNTS) {
		/* store the value nowhere, but check it */
		into = &unwanted;
		url = 0;
	}
	/* Do not check a value that does not count if it is from a variable, since variables are set for all calls. */
	if (!is_switched_off(&given) &&
	    (given.source != SOURCE_ENVIRONMENT || given.use == GIVEN_COUNTS))
		status = table_store(into, &opt_table[given.id], given.value, why);
	for (; url < into->url_count; url++)
		given.has_db = given.has_db || rlock_url_has_db(into->urls[url]);
	if (status == RLOCK_OK)
		status = reject_conflict(opts, &given, why);
	if (status == RLOCK_OK)
		opts->given[opts->given_count++] = given;
	opts_free_urls(&unwanted);
	return status;
}

/* ---- rows ---- */

bool table_takes(const struct verb *verb, const struct opt *opt)
{
	return (opt->verbs & (unsigned)verb->set) != 0 &&
	       ((opt->scope & WITHOUT_COMMAND) == 0 || verb->command != COMMAND_NEEDED);
}

const char *table_help(const struct verb *verb, const struct opt *opt)
{
	return (verb->set & VERBS_ACQUIRE) != 0 || opt->help_holder == NULL ? opt->help
									    : opt->help_holder;
}

size_t table_brief_len(const char *help)
{
	const char *bracket = strstr(help, " (");
	size_t len = strcspn(help, ";");

	return bracket != NULL && (size_t)(bracket - help) < len ? (size_t)(bracket - help) : len;
}

const struct opt *table_by_name(unsigned verbs, const char *name, size_t len)
{
	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & verbs) != 0 && strlen(opt_table[id].name) == len &&
		    memcmp(opt_table[id].name, name, len) == 0)
			return &opt_table[id];
	return NULL;
}
