/*
 * The rows of the option table, and how to find one. Which values are right is value.c's business.
 */
#include <limits.h>
#include <string.h>

#include "options/table.h"
#include "options/value.h"

/* Below, a slow network alone would lose a lock. */
#define LEASE_LEAST_MS 1000

/* Each repetition is a request to the server: ten a second are enough. */
#define WATCH_LEAST_MS 100

#define OWNER_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

#define FILE_EXPECTED "a file's name, like /etc/rlock/server.pem"

#define FIELD(name) offsetof(struct opts, name)

const char *const opt_group_titles[GROUP_COUNT] = {
	[GROUP_WAITING] = "Waiting", [GROUP_LEASE] = "Lease",
	[GROUP_COMMAND] = "Command", [GROUP_OWNER] = "Name, owner and fencing",
	[GROUP_SERVER] = "Server",   [GROUP_MESSAGES] = "Messages",
};

/* In the order of enum opt_id, which is that of the help within a group. */
const struct opt opt_table[OPT_COUNT] = {
	{ OPT_URL, "url", "u", "URL", GROUP_SERVER, VERBS_ALL, USUAL | FOR_FILE | REPEATABLE,
	  value_url, .expected = "a URL, like redis://127.0.0.1:6379",
	  .initial = "redis://127.0.0.1:6379",
	  .help = "the server, or RLOCK_URL in the environment; given several times: a lock on "
		  "all of these servers",
	  .help_sem = "the server, one alone; or RLOCK_URL in the environment" },
	{ OPT_QUORUM, "quorum", NULL, "all|majority|N", GROUP_SERVER,
	  VERBS_ALL & ~(unsigned)VERBS_SEM, FOR_FILE | OF_SERVER, value_quorum,
	  .expected = "all, majority or a number of servers, like 2", .initial = "all",
	  .help = "how many of several servers must grant the lock, more than half of them" },
	{ OPT_REPLICAS, "replicas", NULL, "N", GROUP_SERVER, VERBS_HOLD | VERBS_CHECK,
	  FOR_FILE | OF_SERVER, value_number, FIELD(replicas), .most = 99,
	  .expected = "a number of replicas, like 1", .initial = "0",
	  .help = "how many replicas of each server must acknowledge a lock, and each renewal" },
	{ OPT_NAME, "name", NULL, "NAME", GROUP_OWNER, VERBS_ALL, REPEATABLE,
	  .help = "the name of a lock, for a name from a variable; it is never read as an "
		  "option; may be given several times" },
	{ OPT_PERMITS, "permits", NULL, "N", GROUP_OWNER, VERBS_SEM, USUAL, value_number,
	  FIELD(permits), .least = 1, .most = RLOCK_PERMITS_MAX,
	  .expected = "a number from 1 to 1000000, like 3",
	  .help = "how many permits the semaphore has in all; it must be given" },
	{ OPT_TAKE, "take", NULL, "K", GROUP_OWNER, VERBS_SEM, 0, value_number, FIELD(take),
	  .least = 1, .most = RLOCK_TAKE_MAX, .expected = "a number from 1 to 1000, like 2",
	  .initial = "1", .help = "acquire so many permits at once, all or none" },
	{ OPT_RESIZE, "resize", NULL, NULL, GROUP_OWNER, VERBS_SEM, 0, value_flag, FIELD(resize),
	  .help = "acquire nothing: set the total of the semaphore to --permits" },
	{ OPT_NO_WAIT, "no-wait", "n", NULL, GROUP_WAITING, VERBS_ACQUIRE, USUAL | FOR_FILE,
	  value_no_wait, FIELD(no_wait),
	  .help = "do not wait while another owner holds the lock; print nothing, and exit with "
		  "75" },
	{ OPT_WAIT, "wait", "w", "DUR", GROUP_WAITING, VERBS_ACQUIRE, USUAL | FOR_FILE, value_wait,
	  FIELD(wait_ms),
	  .help = "wait for DUR at most; also for a server that is down; 0 is --no-wait (default: "
		  "no limit; a server that is down at the start is an error)" },
	{ OPT_CONFLICT_EXIT_CODE, "conflict-exit-code", "E", "N", GROUP_WAITING, VERBS_ACQUIRE,
	  USUAL | FOR_FILE, value_number, FIELD(conflict_exit_code), .most = 255,
	  .expected = "a number from 0 to 255, like 75", .initial = "75",
	  .help = "exit code when not acquired in time; 0 to 255" },
	{ OPT_TTL, "ttl", "t", "DUR", GROUP_LEASE, VERBS_ACQUIRE | VERBS_CHECK, USUAL | FOR_FILE,
	  value_duration, FIELD(lease_ms), .least = LEASE_LEAST_MS, .initial = "30s",
	  .help = "the lease, renewed while held; the lock of a dead machine is free after it, "
		  "and a live COMMAND may run for longer; 1s or more",
	  .help_holder = "the lease that the server must be fast enough for; 1s or more" },
	{ OPT_LEASE, "lease", "l", "DUR", GROUP_LEASE, VERBS_ACQUIRE | VERBS_RENEW,
	  USUAL | FOR_FILE, value_lease, FIELD(lease_ms), .least = LEASE_LEAST_MS,
	  .help = "a fixed lease, which no renewer renews; a COMMAND that still runs is terminated "
		  "before DUR is over, with exit code 124; without one, see rlock renew; 1s or more",
	  .help_holder = "the new lease of a lock of --owner; 1s or more" },
	{ OPT_AT_LEAST, "at-least", NULL, "DUR", GROUP_LEASE, VERBS_ACQUIRE,
	  USUAL | FOR_FILE | WITH_COMMAND, value_duration, FIELD(at_least_ms),
	  .help = "keep the lock until DUR after it was acquired; also when COMMAND, and rlock "
		  "with it, ends sooner" },
	{ OPT_MAX_RUN, "max-run", NULL, "DUR", GROUP_COMMAND, VERBS_ACQUIRE,
	  USUAL | FOR_FILE | WITH_COMMAND, value_duration, FIELD(max_run_ms),
	  .help = "terminate a COMMAND that still runs after DUR; exit code 124" },
	{ OPT_WAIT_ALL, "wait-all", NULL, NULL, GROUP_COMMAND, VERBS_ACQUIRE,
	  FOR_FILE | WITH_COMMAND, value_flag, FIELD(wait_all),
	  .help = "keep the lock until every process that COMMAND started has ended, not only "
		  "COMMAND" },
	{ OPT_GRACE, "grace", NULL, "DUR", GROUP_COMMAND, VERBS_ACQUIRE, FOR_FILE, value_duration,
	  FIELD(grace_ms), .initial = "5s", .help = "the time between SIGTERM and SIGKILL" },
	{ OPT_ON_LOST, "on-lost", NULL, "kill|term|ignore", GROUP_COMMAND, VERBS_ACQUIRE, FOR_FILE,
	  value_on_lost, .expected = "kill, term or ignore",
	  .help = "what is sent when the lock is lost: SIGTERM and then SIGKILL, SIGTERM only, "
		  "or nothing "
		  "(default: kill for a COMMAND, term without one)" },
	{ OPT_KILL_CHILD, "kill-child", NULL, NULL, GROUP_COMMAND, VERBS_ACQUIRE,
	  FOR_FILE | WITH_COMMAND, value_flag, FIELD(kill_child),
	  .help = "send SIGKILL to all processes of COMMAND when rlock or its renewer is killed; "
		  "else they run on, with the lock renewed" },
	{ OPT_FENCE, "fence", NULL, NULL, GROUP_OWNER, VERBS_LOCK, USUAL | FOR_FILE, value_flag,
	  FIELD(fence),
	  .help = "issue a fencing token, greater each time; in RLOCK_TOKEN for COMMAND, on "
		  "standard output without one; not for read and write locks" },
	{ OPT_OWNER, "owner", NULL, "ID", GROUP_OWNER, VERBS_HOLD, USUAL | WITHOUT_COMMAND,
	  value_text, FIELD(owner), .most = 128, .bytes = OWNER_BYTES,
	  .expected = "1 to 128 letters, digits, '.', '_' or '-', like ci-1234",
	  .help = "the lock belongs to ID, not to a process; needs --lease; letters, digits, "
		  "'.', '_' and '-'",
	  .help_holder = "the ID that the lock was acquired for" },
	{ OPT_PID, "pid", NULL, "PID", GROUP_OWNER, VERBS_HOLD, USUAL | WITHOUT_COMMAND,
	  value_number, FIELD(pid), .least = 1, .most = INT_MAX,
	  .expected = "a process id, like 1234",
	  .help = "the process that a lock without COMMAND belongs to; the lock is released when "
		  "that ends",
	  .help_holder = "the process that holds the lock; its ancestors count as well (default: "
			 "the caller)" },
	{ OPT_MODE, "mode", NULL, "plain|fair|read|write|sem", GROUP_OWNER,
	  VERBS_UNLOCK | VERBS_RENEW, .apply = value_mode,
	  .expected = "plain, fair, read, write or sem",
	  .help = "the hold of that kind, where the owner has several; plain and fair are one "
		  "(default: "
		  "the latest)" },
	{ OPT_NOTE, "note", NULL, "TEXT", GROUP_OWNER, VERBS_ACQUIRE, FOR_FILE, value_note,
	  FIELD(note), .most = RLOCK_NOTE_MAX - 1,
	  .expected = "a line of 1 to 255 bytes, like 'nightly backup'",
	  .help = "what waiters and status show of the holder (default: host, user, process "
		  "and program)" },
	{ OPT_FORCE, "force", NULL, NULL, GROUP_OWNER, VERBS_UNLOCK, USUAL, value_flag,
	  FIELD(force),
	  .help = "break the lock of any holder; terminate the holder first: it may run on, and "
		  "finds out only when it renews or releases the lock; see --holder" },
	{ OPT_HOLDER, "holder", NULL, "OWNER", GROUP_OWNER, VERBS_UNLOCK, USUAL, value_text,
	  FIELD(holder), .most = RLOCK_OWNER_MAX - 1,
	  .expected = "an owner of 1 to 255 bytes, like ci-1234:0",
	  .help = "with --force: only if OWNER holds the lock; all of that column of status" },
	{ OPT_JSON, "json", NULL, NULL, GROUP_MESSAGES, VERBS_STATUS | VERBS_LIST | VERBS_CHECK,
	  USUAL, value_flag, FIELD(json), .help = "print one JSON document" },
	{ OPT_WATCH, "watch", NULL, "DUR", GROUP_MESSAGES, VERBS_STATUS | VERBS_LIST,
	  USUAL | OPTIONAL_VALUE, value_watch, FIELD(watch_ms), .least = WATCH_LEAST_MS,
	  .help = "print it again every DUR, in place, until Ctrl-C (without DUR: every 2s)" },
	{ OPT_PASSWORD_FILE, "password-file", NULL, "FILE", GROUP_SERVER, VERBS_ALL,
	  FOR_FILE | OF_SERVER, value_text, FIELD(password_file), .most = INT_MAX,
	  .expected = "a file's name, like /etc/rlock/password-file",
	  .help = "the password is FILE's first line; a password in the URL takes precedence, "
		  "and REDISCLI_AUTH in the environment comes last" },
	{ OPT_PASSWORD_COMMAND, "password-command", NULL, "CMD", GROUP_SERVER, VERBS_ALL,
	  FOR_FILE | OF_SERVER | SECRET, value_text, FIELD(password_command), .most = INT_MAX,
	  .expected = "a command of sh, like /usr/local/bin/redis-token",
	  .help = "the password is the first line that sh -c CMD prints; it is run whenever a "
		  "connection is opened: for tokens that expire" },
	{ OPT_DB, "db", NULL, "N", GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER, value_number,
	  FIELD(db), .most = INT_MAX, .expected = "a database's number, like 0 or 3",
	  .initial = "0", .help = "the number of the database" },
	{ OPT_CONNECT_TIMEOUT, "connect-timeout", NULL, "DUR", GROUP_SERVER, VERBS_ALL, FOR_FILE,
	  value_duration, FIELD(connect_timeout_ms), .least = 1, .initial = "5s",
	  .help = "how long connecting and each reply may take" },
	{ OPT_CACERT, "cacert", NULL, "FILE", GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER,
	  value_text, FIELD(tls[RLOCK_TLS_CACERT]), .most = INT_MAX, .expected = FILE_EXPECTED,
	  .help = "TLS: trust the certificate authorities (CAs) in FILE, not those of the system" },
	{ OPT_CACERTDIR, "cacertdir", NULL, "DIR", GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER,
	  value_text, FIELD(tls[RLOCK_TLS_CACERTDIR]), .most = INT_MAX,
	  .expected = "a directory's name, like /etc/rlock/authorities",
	  .help = "TLS: trust the CAs in the files of DIR, with the names that openssl rehash "
		  "gives them" },
	{ OPT_CERT, "cert", NULL, "FILE", GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER, value_text,
	  FIELD(tls[RLOCK_TLS_CERT]), .most = INT_MAX, .expected = FILE_EXPECTED,
	  .help = "TLS: the client certificate, for a server that requires one" },
	{ OPT_KEY, "key", NULL, "FILE", GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER, value_text,
	  FIELD(tls[RLOCK_TLS_KEY]), .most = INT_MAX, .expected = FILE_EXPECTED,
	  .help = "TLS: the private key of --cert, without a passphrase (default: in that file)" },
	{ OPT_SNI, "sni", NULL, "NAME", GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER, value_text,
	  FIELD(tls[RLOCK_TLS_SNI]), .most = 255,
	  .expected = "a host's name, like redis.example.com",
	  .help = "TLS: the name that the server's certificate has to be for (default: the "
		  "URL's host)" },
	{ OPT_INSECURE, "insecure", NULL, NULL, GROUP_SERVER, VERBS_ALL, FOR_FILE | OF_SERVER,
	  value_flag, FIELD(is_insecure),
	  .help = "TLS: accept any certificate; a machine between here and the server can then "
		  "read the password and change all replies" },
	{ OPT_SENTINEL_USER, "sentinel-user", NULL, "USER", GROUP_SERVER, VERBS_ALL,
	  FOR_FILE | OF_SERVER, value_text, FIELD(sentinel_user), .most = 255,
	  .expected = "a user's name, like locks",
	  .help = "the user at the sentinels; the user in the URL is the master's" },
	{ OPT_SENTINEL_PASSWORD_FILE, "sentinel-password-file", NULL, "FILE", GROUP_SERVER,
	  VERBS_ALL, FOR_FILE | OF_SERVER, value_text, FIELD(sentinel_password_file),
	  .most = INT_MAX, .expected = "a file's name, like /etc/rlock/sentinel-password",
	  .help = "the password at the sentinels is FILE's first line" },
	{ OPT_SENTINEL_MAP, "sentinel-map", NULL, "H:P=H:P,...", GROUP_SERVER, VERBS_ALL,
	  FOR_FILE | OF_SERVER, value_text, FIELD(sentinel_map), .most = INT_MAX,
	  .expected = "pairs like 10.0.0.1:6379=redis.example:16379",
	  .help = "for a NAT: where the sentinels name the first host and port, connect to the "
		  "second" },
	{ OPT_CONFIG, "config", NULL, "FILE", GROUP_SERVER, VERBS_ALL, 0, value_text, FIELD(config),
	  .most = INT_MAX, .expected = "a file's name, like /etc/rlock/config",
	  .help = "read options from FILE (default: RLOCK_CONFIG, else rlock.conf in "
		  "XDG_CONFIG_HOME "
		  "or ~/.config, else /etc/rlock.conf)" },
	{ OPT_LOG, "log", NULL, "syslog|stderr|FILE", GROUP_MESSAGES, VERBS_ACQUIRE | VERBS_UNLOCK,
	  FOR_FILE, value_log,
	  .expected = "syslog, stderr or a file's name, like /var/log/rlock.log",
	  .help = "log a line for each lock that is acquired, released, lost, broken, or was "
		  "waited for (default: no log)" },
	{ OPT_LOG_FORMAT, "log-format", NULL, "text|json", GROUP_MESSAGES,
	  VERBS_ACQUIRE | VERBS_UNLOCK, FOR_FILE, value_log_format, .expected = "text or json",
	  .initial = "text", .help = "a line of the log is key=value, or a JSON object" },
	{ OPT_QUIET, "quiet", "q", NULL, GROUP_MESSAGES, VERBS_ALL, USUAL | FOR_FILE, value_flag,
	  FIELD(quiet),
	  .help = "print errors only; nothing while waiting, or when the lock was not acquired "
		  "in time" },
	{ OPT_VERBOSE, "verbose", "v", NULL, GROUP_MESSAGES, VERBS_ALL, USUAL | FOR_FILE,
	  value_flag, FIELD(verbose), .help = "print every step" },
	{ OPT_HELP, "help", "h", NULL, GROUP_MESSAGES, VERBS_ALL, USUAL,
	  .help = "-h: the options used most, --help: all of them" },
};

bool table_takes(const struct verb *verb, const struct opt *opt)
{
	return (opt->verbs & (unsigned)verb->set) != 0 &&
	       ((opt->scope & WITHOUT_COMMAND) == 0 || verb->command != COMMAND_NEEDED);
}

const char *table_help(const struct verb *verb, const struct opt *opt)
{
	if (verb->set == VERBS_SEM && opt->help_sem != NULL)
		return opt->help_sem;
	return (verb->set & VERBS_ACQUIRE) != 0 || opt->help_holder == NULL ? opt->help
									    : opt->help_holder;
}

size_t table_brief_len(const char *help)
{
	const char *bracket = strstr(help, " (");
	size_t len = strcspn(help, ";");

	return bracket != NULL && (size_t)(bracket - help) < len ? (size_t)(bracket - help) : len;
}

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
		return opt->value != NULL && (opt->scope & OPTIONAL_VALUE) == 0 &&
				       strchr(word, '=') == NULL
			       ? 2
			       : 1;
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
