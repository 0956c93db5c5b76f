/*
 * Words of other programs, verbs and options, and what to type instead: tables, with a row for each meaning of a word. foreign.c
 * makes the corrected line.
 */
#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "options/hints.h"
#include "options/notation.h"
#include "options/words.h"
#include "sys/signals.h"

#define READ_WHY "a shared lock is the verb read"
#define EXCLUSIVE_WHY "a lock is exclusive without it, but for the verb read"
#define SEM_WHY "for N holders at a time: sem --permits N NAME -- COMMAND"
#define BACKGROUND_WHY "to have COMMAND in the background, the shell has '&' at the end of the line"
#define OTHER_USER_WHY "another user is set by: -- sudo -u USER COMMAND"

#define TWO_TIMES_WHY WAIT_WHY ", and how long COMMAND may run is --max-run"
#define KILL_WHY "the time from SIGTERM to SIGKILL is --grace"
#define SERVER_WHY "the server is -u redis://USER@HOST:PORT"
#define VARIABLE_WHY "a variable is set by: -- env VAR=VALUE COMMAND"
#define LEAVE_CLOSE "COMMAND inherits no descriptor of rlock"

/* The first row with the word, the verb and the class of the value counts. */
static const struct hint hints[] = {
	{ "-s", VERBS_ACQUIRE, OPT_SIGNAL,
	  .why = "a signal to end COMMAND is --signal, and " READ_WHY, .value = SIGNAL_VALUE,
	  .is_of_timeout = true },
	{ "-s", VERBS_ACQUIRE, OPT_COUNT, .why = "the server is -u unix:///PATH, and " READ_WHY,
	  AS_SERVER, .value = PATH_VALUE },
	{ "-s", VERBS_ACQUIRE, OPT_COUNT,
	  .why = READ_WHY ", and a signal to end COMMAND by --signal", USE_VERB, "read" },
	{ "--shared|--read", VERBS_ACQUIRE, OPT_COUNT, .why = READ_WHY, USE_VERB, "read" },
	{ "--write", VERBS_ACQUIRE, OPT_COUNT, .why = "a write lock is the verb write", USE_VERB,
	  "write" },
	{ "--fair", VERBS_ACQUIRE, OPT_COUNT, .why = "a lock with a queue is the verb fair",
	  USE_VERB, "fair" },
	{ "-e", VERBS_ACQUIRE, OPT_COUNT, .why = VARIABLE_WHY, RUN_BY, "env", VARIABLE_VALUE },
	{ "-e", VERBS_ACQUIRE, OPT_CONFLICT_EXIT_CODE,
	  .why = "the exit code of a busy lock is -E, and " EXCLUSIVE_WHY, .value = NUMBER_VALUE },
	{ "-e", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "the exit code of a busy lock is -E, a variable is set by: -- env VAR=VALUE COMMAND, and " EXCLUSIVE_WHY,
	  LEAVE_OUT, .may_have_value = true },
	{ "-x|--exclusive", VERBS_ACQUIRE, OPT_COUNT, .why = EXCLUSIVE_WHY, LEAVE_OUT },
	{ "-X", VERBS_ACQUIRE, OPT_CONFLICT_EXIT_CODE,
	  .why = "the exit code of a busy lock is 75 without it, or that of --conflict-exit-code",
	  NO_LINE },
	{ "-o|--close", VERBS_ACQUIRE, OPT_COUNT, .why = LEAVE_CLOSE, LEAVE_OUT,
	  .may_have_value = true },
	{ "-F|--no-fork", VERBS_ACQUIRE, OPT_COUNT, .why = "rlock has to stay, to renew the lock",
	  LEAVE_OUT },
	{ "-c", VERBS_ACQUIRE, OPT_COUNT, .why = "a line for a shell is a COMMAND: -- sh -c LINE",
	  AS_COMMAND, "sh -c" },
	{ "-shell|--shell", VERBS_ACQUIRE, OPT_COUNT, .why = "no shell reads COMMAND without it",
	  LEAVE_OUT },
	{ "--command|--cmd|--exec", VERBS_ACQUIRE, OPT_COUNT, .why = "a COMMAND stands after '--'",
	  AS_COMMAND },
	{ "--nb|--nonblock|--nonblocking|--non-blocking|--skip|--skip-if-locked", VERBS_ACQUIRE,
	  OPT_NO_WAIT, .why = "not to wait is --no-wait" },
	{ "--timeout|-timeout", VERBS_ACQUIRE, OPT_WAIT, .why = TWO_TIMES_WHY,
	  .otherwise = OPT_MAX_RUN },
	{ "--timeout", VERBS_STOP, OPT_WAIT, .why = WAIT_WHY },
	{ "-t|--grace", VERBS_STOP, OPT_COUNT,
	  .why = "how long COMMAND has to end is the --grace of the holder, and " WAIT_WHY },
	{ "-try", VERBS_ACQUIRE, OPT_WAIT, .why = WAIT_WHY },
	{ "-W|--lock-timeout|--acquire-timeout|--max-wait", VERBS_ACQUIRE | VERBS_STOP, OPT_WAIT,
	  .why = WAIT_WHY },
	{ "-N", VERBS_ACQUIRE, OPT_COUNT, .why = "not to wait is -n, and the name is a word" },
	{ "--try|--once", VERBS_ACQUIRE, OPT_NO_WAIT,
	  .why = "to try once is --no-wait, and for longer --wait" },
	{ "--retry|--retries|--retry-lock|--tries|--attempts|--delay|--interval|--retry-delay",
	  VERBS_ACQUIRE, OPT_WAIT,
	  .why = "rlock waits, and tries again by itself: how long is --wait", NO_LINE },
	{ "-d|--detach|--background|--daemon", VERBS_ACQUIRE, OPT_COUNT, .why = BACKGROUND_WHY,
	  PUT_LAST, "&" },
	{ "-b", VERBS_ACQUIRE, OPT_COUNT, .why = BACKGROUND_WHY ", and " OTHER_USER_WHY },
	{ "--become", VERBS_ACQUIRE, OPT_COUNT, .why = OTHER_USER_WHY },
	{ "--become-user|--runas|--run-as", VERBS_ACQUIRE, OPT_COUNT, .why = OTHER_USER_WHY, RUN_BY,
	  "sudo -u" },
	{ "-C|--chdir|--cwd|--directory|--workdir|--working-directory", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "another directory is set by: -- env -C DIR COMMAND", RUN_BY, "env -C" },
	{ "--scope|--pty|--pipe|--collect|--fg|--rw|--tty", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "COMMAND is a child of rlock, and has the terminal, without it", LEAVE_OUT },
	{ "-i", VERBS_ACQUIRE, OPT_COUNT, .why = "COMMAND has the terminal without it", LEAVE_OUT,
	  .may_have_value = true },
	{ "--bg", VERBS_ACQUIRE, OPT_COUNT, .why = BACKGROUND_WHY, PUT_LAST, "&" },
	{ "--on-calendar|--on-active|--every|--schedule|--cron|--at", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "rlock starts COMMAND immediately; cron or a timer has the time" },
	{ "--raw|--no-raw|--no-auth-warning", VERBS_ALL, OPT_COUNT, .why = "only redis-cli has it",
	  LEAVE_OUT },
	{ "--rm|-it|-ti|-tty|--interactive", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "without it a lock is removed at the end, and COMMAND has the terminal",
	  LEAVE_OUT },
	{ "-r", VERBS_ACQUIRE, OPT_COUNT,
	  .why = WAIT_WHY ", and the server is -u redis://HOST:PORT" },
	{ "-I|-i{}", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "rlock reads no arguments from the standard input, but xargs does", PUT_FIRST,
	  "xargs -I" },
	{ "--for|--duration|--hold-for", VERBS_ACQUIRE, OPT_LEASE,
	  .why = "a lock for a fixed time has --lease" },
	{ "--prefix|--pattern|--filter|--match|--name-pattern", VERBS_LIST, OPT_COUNT,
	  .why = "a pattern is a word, like 'ci*'" },
	{ "-f|--follow|-w", VERBS_STATUS | VERBS_LIST, OPT_WATCH,
	  .why = "to print it again and again is --watch" },
	{ "-n|--no-wait", VERBS_STOP, OPT_COUNT,
	  .why = "not to wait for the release is --wait 0, and the holder, which would be asked, is shown by: rlock status NAME" },
	{ "--dry-run|--check|--noop", VERBS_HOLD | VERBS_STOP, OPT_COUNT,
	  .why = "whether a lock is free, and who holds it, is shown by: rlock status NAME" },
	{ "-child-exit-code", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "the exit status is COMMAND's without it", LEAVE_OUT },
	{ "-pass-stdin", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "COMMAND has the standard input without it", LEAVE_OUT },
	{ "-monitor-retry", VERBS_ACQUIRE, OPT_COUNT, .why = "rlock repeats a renewal without it" },
	{ "--foreground|--preserve-status", VERBS_ACQUIRE, OPT_COUNT,
	  .why = "COMMAND stays in the foreground, and the exit status is its own, without it",
	  LEAVE_OUT, .is_of_timeout = true },
	{ "-p|--property", VERBS_LOCK, OPT_MAX_RUN, .why = "how long COMMAND may run is --max-run",
	  .value = LIMIT_VALUE },
	{ "-p|--property", VERBS_LOCK, OPT_COUNT,
	  .why = "a property of a unit is set by: -- systemd-run --scope -p NAME=VALUE COMMAND",
	  RUN_BY, "systemd-run --scope -p", VARIABLE_VALUE },
	{ "-p", VERBS_LOCK, OPT_COUNT,
	  .why = "the process is --pid, the time that COMMAND may run is --max-run, and a port is in the URL: -u redis://HOST:PORT",
	  AS_PORT },
	{ "--exit-code", VERBS_ACQUIRE, OPT_CONFLICT_EXIT_CODE,
	  .why = "the exit code of a lock that is busy is --conflict-exit-code" },
	{ "-j|--jobs|-P|--parallel|--max|--limit|--count", VERBS_SEM, OPT_PERMITS,
	  .why = PERMITS_WHY },
	{ "--quantity", VERBS_SEM, OPT_TAKE, .why = "the number of permits is --take" },
	{ "--quantity", VERBS_LOCK, OPT_COUNT,
	  .why = "to take 2 of 5 permits is: sem --permits 5 --take 2 NAME -- COMMAND" },
	{ "-p", VERBS_SEM, OPT_PERMITS,
	  .why = PERMITS_WHY ", and the server is -u redis://USER@HOST:PORT", NO_LINE },
	{ "-j|--jobs|-P|--parallel", VERBS_LOCK, OPT_COUNT, .why = SEM_WHY, AS_PERMITS },
	{ "-f", VERBS_ACQUIRE, OPT_COUNT,
	  .why = SEM_WHY ", and to break a lock is unlock --force" },
	{ "--id|--unit|--label|--resource|--lock|--lock-name|--lockfile|--lock-file|-L|-N",
	  VERBS_NAMES, OPT_NAME, .why = "the name is a word, or --name", AS_NAME },
	{ "-k|--kill-after", VERBS_ACQUIRE, OPT_GRACE, .why = KILL_WHY, .is_of_timeout = true },
	{ "--max-time|--time-limit|--max-runtime", VERBS_ACQUIRE, OPT_MAX_RUN,
	  .why = "how long COMMAND may run is --max-run" },
	{ "--keep|--min|--hold|--cooldown", VERBS_ACQUIRE, OPT_AT_LEAST,
	  .why = "how long the lock is kept at least is --at-least" },
	{ "--env|--setenv", VERBS_ACQUIRE, OPT_COUNT, .why = VARIABLE_WHY, RUN_BY, "env" },
	{ "-m|--message|--comment|--description|--reason|--tag", VERBS_ACQUIRE, OPT_NOTE,
	  .why = "the text that status shows is --note" },
	{ "--log-file|--logfile", VERBS_ACQUIRE | VERBS_UNLOCK | VERBS_STOP, OPT_LOG,
	  .why = "the file is --log FILE" },
	{ "--silent", VERBS_ALL, OPT_QUIET, .why = "to print errors only is --quiet" },
	{ "--debug|--trace", VERBS_ALL, OPT_VERBOSE, .why = "to print each step is --verbose" },
	{ "--expire|--px|--ex", VERBS_ACQUIRE, OPT_TTL,
	  .why = "the lease, which rlock renews, is --ttl", NO_LINE },
	{ "--fencing|--token|-token", VERBS_ACQUIRE, OPT_FENCE,
	  .why = "a fencing token is --fence" },
	{ "-f", VERBS_UNLOCK, OPT_FORCE,
	  .why = "to break a lock is --force, and to have its holder end is the verb stop" },
	{ "-f|--force|-9|-KILL|-s", VERBS_STOP, OPT_COUNT,
	  .why = "stop asks the holder to end, and SIGKILL follows by itself; to break a lock is unlock --force" },
	{ "--signal", VERBS_STOP, OPT_COUNT, .why = "the signal is the --signal of the holder" },
	{ "-t|--ttl|--for", VERBS_RENEW, OPT_LEASE, .why = LEASE_WHY, NO_LINE },
	{ "--older|--older-than|--longer-than|--age", VERBS_LIST, OPT_HELD_FOR,
	  .why = "only locks that are held for a time are listed by --held-for" },
	{ "-a|-A|--all|--all-namespaces", VERBS_LIST, OPT_COUNT,
	  .why = "list has all locks without it", LEAVE_OUT },
	{ "--all", VERBS_STATUS, OPT_COUNT, .why = "all locks are the verb list" },
	{ "-a|--all|--remove-all", VERBS_UNLOCK | VERBS_STOP, OPT_COUNT,
	  .why = "each lock is given by its name: 'rlock list' shows them; one of another holder is broken by unlock --force" },
	{ "-s|--short", VERBS_STATUS | VERBS_LIST, OPT_COUNT,
	  .why = "one line for each lock is: list, and the server is -u unix:///PATH" },
	{ "--prometheus|--prom", VERBS_LIST, OPT_METRICS,
	  .why = "to print metrics for Prometheus is --metrics" },
	{ "-l|--long", VERBS_LIST, OPT_COUNT, .why = "list has all columns without it", LEAVE_OUT },
	{ "-o|--output|--format", VERBS_REPORT, OPT_JSON,
	  .why = "a JSON document is --json, and a text is printed without it", NO_LINE,
	  .value = FORMAT_VALUE },
	{ "-o|--output|--format|-j", VERBS_REPORT, OPT_JSON, .why = "a JSON document is --json" },
	{ "--fix", VERBS_CHECK, OPT_COUNT, .why = "check changes nothing, and says what to do" },
	{ "--cafile|--ca", VERBS_ALL, OPT_CACERT, .why = "the file of authorities is --cacert" },
	{ "--tls-skip-verify", VERBS_ALL, OPT_INSECURE,
	  .why = "not to check the certificate is --insecure" },
	{ "--database", VERBS_ALL, OPT_DB, .why = "the number of the database is --db" },
	{ "--host|--redis|--redis-url|--redis-host|--server|--addr|--endpoints|-http-addr",
	  VERBS_ALL, OPT_URL, .why = SERVER_WHY, AS_SERVER },
	{ "-p|--port", VERBS_ALL, OPT_URL, .why = SERVER_WHY, AS_PORT },
	{ "--user|--username", VERBS_ALL, OPT_URL, .why = SERVER_WHY, NO_LINE },
	{ "-s", VERBS_ALL, OPT_COUNT, .why = "the server is -u unix:///PATH", AS_SERVER },
	{ "--tls|--ssl", VERBS_ALL, OPT_URL, .why = "TLS is -u rediss://HOST:PORT", NO_LINE },
	{ "-a", VERBS_ALL, OPT_PASSWORD_FILE, .why = PASSWORD_WHY, NO_LINE },
};
#define HINT_COUNT (sizeof(hints) / sizeof(hints[0]))

#define SEE_LIST "to see locks: list"
#define SEE_STATUS "to see the holder of a lock: status NAME"

#define SEE_CHECK "to see whether locks can be relied on here: check"
#define FOR_A_TIME "to hold a lock for a time: lock --owner ID --lease 30s NAME"

/* Verbs of other programs, and a hint on the verb that does the same here. */
static const struct {
	const char *words, *hint;
	const char *
		verb; /* the verb with which the rest of the line is right; NULL: none is certain */
} verb_hints[] = {
	{ "ls|ps|locks|all|keys|scan", .hint = SEE_LIST, "list" },
	{ "top", .hint = SEE_LIST " --watch" },
	{ "metrics|prometheus|exporter|export",
	  .hint = "to print metrics for Prometheus: list --metrics" },
	{ "show|get|describe|inspect", .hint = SEE_LIST ", or status NAME", "status" },
	{ "info|look|st|stat|state|who|holder|holders|owner|ttl", .hint = SEE_STATUS, "status" },
	{ "test|exists|locked|is-locked|is-held|is-free|is-active",
	  .hint = "to see whether a lock is held: status NAME (1: not held)", "status" },
	{ "log|logs|history|events|journal|audit|last",
	  .hint = "to see the last holder: status NAME, if its line had --remember 1d; to see all events: journalctl -t rlock, if the lines had --log syslog" },
	{ "watch|monitor", .hint = SEE_STATUS ", again and again: status --watch NAME" },
	{ "wait",
	  .hint = "each verb waits by itself, at most for --wait DUR: run NAME -- COMMAND; to wait until a lock is free: run NAME -- true" },
	{ "doctor|ping|health", .hint = SEE_CHECK, "check" },
	{ "config|configure|init|setup",
	  .hint = "the server is -u URL, RLOCK_URL, or a line of rlock.conf: url = redis://HOST:PORT; " SEE_CHECK },
	{ "acquire|take|hold|reserve|claim|grab|request|obtain|set|setnx|put|new|create",
	  .hint = "to hold a lock: run NAME -- COMMAND, or in a script lock --pid $$ NAME; " FOR_A_TIME,
	  "run" },
	{ "with|exec|execute|job|start|do|mutex|elect|campaign|lckdo|setlock|solo|lockrun|withlock|with-lock|cron|wrap|guard|once",
	  .hint = "to hold a lock while a command runs: run NAME -- COMMAND", "run" },
	{ "try|trylock", .hint = "to hold a lock only if it is free: run -n NAME -- COMMAND" },
	{ "queue|fairlock|fair-lock",
	  .hint = "to hold a lock first come, first served: fair NAME -- COMMAND", "fair" },
	{ "shared|readlock|read-lock",
	  .hint = "to hold a lock that readers share: read NAME -- COMMAND", "read" },
	{ "exclusive|writelock|write-lock|wrlock",
	  .hint = "to hold a lock that excludes readers: write NAME -- COMMAND", "write" },
	{ "semaphore", .hint = "to hold one of N permits: sem --permits N NAME -- COMMAND", "sem" },
	{ "release|free|del|delete|rm|remove",
	  .hint = "to release a lock of the caller: unlock NAME; to have another holder release one: stop NAME; one that cannot be asked: unlock --force NAME" },
	{ "break|steal|force-unlock|kill|terminate",
	  .hint = "to have the holder end: stop NAME; one that cannot be asked: unlock --force --holder OWNER NAME" },
	{ "restart|reload",
	  .hint = "nothing starts COMMAND again; to have the holder end: stop NAME" },
	{ "sudo|doas|nice|ionice|nohup|timeout|time|env|setsid|ssh|xargs|parallel|sh|bash",
	  .hint = "a program that runs another one stands after '--', as in: run NAME -- nice COMMAND" },
	{ "fence|token", .hint = "to issue a fencing token: run --fence NAME -- COMMAND" },
	{ "disable|pause|suspend|block|freeze|maintenance",
	  .hint = "to keep jobs from running for a time: lock --owner ID --lease 2h NAME, and then unlock --owner ID NAME" },
	{ "completion|completions|autocomplete",
	  .hint = "the packages and 'make install' bring the completions of bash, zsh and fish" },
	{ "man|manual|usage", .hint = "to read how it is used: help, or man rlock" },
	{ "lease|grant",
	  .hint = FOR_A_TIME ", which is extended by: renew --owner ID --lease 30s NAME" },
	{ "extend|refresh|relock|touch|keepalive|keep-alive|expire|pexpire",
	  .hint = "run and lock renew a lock by themselves; one of --owner: renew --owner ID --lease DUR NAME",
	  "renew" },
};

const char *hints_find_verb(const char *typed, const char **verb_out)
{
	char ours[DURATION_TEXT_MAX];

	*verb_out = NULL;
	/* Commands of Redis are often written in capitals. */
	for (size_t i = 0; i < sizeof(verb_hints) / sizeof(verb_hints[0]); i++)
		if (choice_find_any_case(verb_hints[i].words, typed) >= 0) {
			*verb_out = verb_hints[i].verb;
			return verb_hints[i].hint;
		}
	if (!word_is_number(typed) && notation_find(typed, ours) != NULL)
		return WAIT_WHY
			", how long COMMAND may run --max-run: run --wait DUR NAME -- COMMAND";
	return NULL;
}

#define FORMATS "yaml|yml|wide|text|table|csv|tsv|xml|name|plain|pretty"

static bool is_of_class(const char *value, enum value_class wanted)
{
	int signal;

	switch (wanted) {
	case ANY_VALUE:
		return true;
	case VARIABLE_VALUE:
		return word_is_assignment(value);
	case LIMIT_VALUE:
		return strncmp(value, RUN_LIMIT, strlen(RUN_LIMIT)) == 0;
	case NUMBER_VALUE:
		return word_is_number(value);
	case SIGNAL_VALUE:
		return signals_parse(value, &signal);
	case FORMAT_VALUE:
		return choice_find(FORMATS, value) >= 0;
	case PATH_VALUE:
		return *value == '/';
	}
	return false;
}

const struct hint *hints_find(unsigned verbs, const char *word, const char *value)
{
	size_t len = strcspn(word, "=");
	char option[OPTION_MAX];

	(void)snprintf(option, sizeof(option), "%.*s", (int)len, word);
	if (word[len] == '=')
		value = word + len + 1;
	for (size_t i = 0; i < HINT_COUNT; i++)
		if ((hints[i].verbs & verbs) != 0 && choice_find(hints[i].words, option) >= 0 &&
		    is_of_class(value != NULL ? value : "", hints[i].value))
			return &hints[i];
	return NULL;
}
