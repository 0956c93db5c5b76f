/*
 * Interpret error replies of the server: a status, and a message with a remedy. Some other files only react to one word of an error,
 * such as NOSCRIPT (lib/request.c), MOVED and ASK (topology.c), CLUSTERDOWN (connection.c), or "unknown command" (session.c).
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "net/server_error.h"
#include "rlock.h"

#define SHOWN_MAX 256

#define DENIED "denied by the server: "
#define IS_CLUSTER DENIED "this is a node of a cluster; its URL is redis+cluster://HOST:PORT: *"
#define NO_SCRIPTS                                                                                 \
	DENIED "it runs no scripts; if it is a sentinel, its URL is redis+sentinel://HOST:PORT/SERVICE: *"
#define NO_DATABASES DENIED "it has one database only; leave the number out: *"
#define NO_WAIT DENIED "it can't tell which replicas have a lock; leave --replicas out: *"
#define NEEDS_PASSWORD                                                                                \
	"server requires a password; give one in the URL, by --password-file, --password-command or " \
	"REDISCLI_AUTH"
#define IS_REPLICA "@ is a replica: it can grant no lock; name its master, or its sentinels: *"

struct meaning {
	const char *prefix; /* of the error; the first matching row counts */
	enum rlock_status status;
	const char *text;  /* '*' is replaced by the error, '@' by the server */
	bool heals_itself; /* The cluster mends the cause by itself. */
};

/*
 * A row has RLOCK_ENET, as for an unreachable server, if the cause can pass: the server loads, is busy, or has lost its master.
 * The request is then retried within the wait.
 */
static const struct meaning meanings[] = {
	/* The lock's slot is moving, and the keys of the request are split between the two nodes. */
	{ "TRYAGAIN", RLOCK_ENET,
	  DENIED "the lock's slot is on its way to another node of the cluster: *", true },
	/*
	 * Only a replica sends these three errors: to a write, to any command while it is not connected to its master,
	 * and to WAIT. At the next attempt this or another server may be the master.
	 */
	{ "READONLY", RLOCK_ENET, IS_REPLICA, false },
	{ "MASTERDOWN", RLOCK_ENET, IS_REPLICA, false },
	{ "ERR WAIT cannot be used with replica", RLOCK_ENET, IS_REPLICA, false },
	/*
	 * The client has not logged in. The second error comes if the command is too long for a client without a login.
	 */
	{ "NOAUTH", RLOCK_EAUTH, NEEDS_PASSWORD ": *", false },
	{ "ERR Protocol error: unauthenticated", RLOCK_EAUTH, NEEDS_PASSWORD, false },
	{ "WRONGPASS", RLOCK_EAUTH, "denied by the server; check user and password: *", false },
	{ "ERR invalid password", RLOCK_EAUTH, "denied by the server; check the password: *",
	  false },
	{ "ERR AUTH <password> called without any", RLOCK_EAUTH,
	  DENIED "it has no password; give none: *", false },
	/* A managed service has its own texts, for example for an expired token. */
	{ "ERR AUTH", RLOCK_EAUTH, "denied by the server; check user and password: *", false },
	{ "ERR Client sent AUTH", RLOCK_EAUTH, DENIED "it has no password; give none: *", false },
	{ "WRONGTYPE", RLOCK_EKIND, DENIED "the key is not a lock: *", false },
	{ "LOADING", RLOCK_ENET, DENIED "it was just started: *", false },
	{ "BUSY", RLOCK_ENET, DENIED "a script keeps it busy; see its SLOWLOG: *", false },
	{ "CLUSTERDOWN", RLOCK_ENET,
	  DENIED "masters of the cluster are missing; see its CLUSTER INFO: *", true },
	{ "UNBLOCKED", RLOCK_ENET, DENIED "*", false },
	{ "NOREPLICAS", RLOCK_ENET,
	  DENIED "too few of its replicas are connected; start them, or lower its "
		 "min-replicas-to-write: *",
	  false },
	{ "MISCONF", RLOCK_ENET, DENIED "it cannot write to its disk; see its log: *", false },
	{ "OOM", RLOCK_ENET, DENIED "its memory is full; raise its maxmemory: *", false },
	{ "ERR max number of clients", RLOCK_ENET,
	  DENIED
	  "too many clients are connected; raise its maxclients, a waiter takes two, a holder one: *",
	  false },
	{ "MOVED", RLOCK_EUNSUPPORTED, IS_CLUSTER, false },
	{ "ASK", RLOCK_EUNSUPPORTED, IS_CLUSTER, false },
	{ "CROSSSLOT", RLOCK_EUNSUPPORTED, IS_CLUSTER, false },
	{ "ERR SELECT is not allowed", RLOCK_EUNSUPPORTED,
	  DENIED "a cluster has no databases; its URL is redis+cluster://HOST:PORT: *", false },
	{ "ERR DB index", RLOCK_EUNSUPPORTED, DENIED "it has no such database: *", false },
	{ "ERR invalid DB index", RLOCK_EUNSUPPORTED, DENIED "it has no such database: *", false },
	{ "ERR unknown command 'EVALSHA'", RLOCK_EUNSUPPORTED, NO_SCRIPTS, false },
	{ "ERR unknown command `EVALSHA`", RLOCK_EUNSUPPORTED, NO_SCRIPTS, false },
	{ "ERR unknown command 'EVAL'", RLOCK_EUNSUPPORTED, NO_SCRIPTS, false },
	{ "ERR unknown command `EVAL`", RLOCK_EUNSUPPORTED, NO_SCRIPTS, false },
	{ "ERR unknown command 'SELECT'", RLOCK_EUNSUPPORTED, NO_DATABASES, false },
	{ "ERR unknown command `SELECT`", RLOCK_EUNSUPPORTED, NO_DATABASES, false },
	{ "ERR unknown command 'WAIT'", RLOCK_EUNSUPPORTED, NO_WAIT, false },
	{ "ERR unknown command `WAIT`", RLOCK_EUNSUPPORTED, NO_WAIT, false },
	{ "ERR unknown command", RLOCK_EUNSUPPORTED,
	  DENIED "it needs the commands of Redis 6.2, none of them renamed: *", false },
	{ "DENIED", RLOCK_EAUTH,
	  DENIED "it is in protected mode; set a password on it, and give that here: *", false },
	{ "", RLOCK_ESERVER, "server error: *", false },
};

/*
 * The meaning of an unknown error that mentions a limit. A managed service that limits requests by the second, day or
 * month serves requests again after that time.
 */
static const struct meaning limit_meaning = {
	"", RLOCK_ENET, DENIED "a limit of its requests is reached; raise it: *", false
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether a command in a script failed because the slot is moving. A plain command gets TRYAGAIN then. */
static bool is_slot_moving(const char *words)
{
	/* Redis 6.2, Redis 7 and Valkey 9.1 begin this text differently. */
	return strstr(words, "ttempted to access a non local key") != NULL ||
	       /* Redis 7.4 and Valkey 8, and later, at the new node. */
	       strstr(words, "undeclared keys were accessed during rehashing of the slot") != NULL;
}

/* Whether a script called an unknown command. The error does not name it. */
static bool is_unknown_in_script(const char *words)
{
	if (starts_with(words, "ERR "))
		words += 4;
	return starts_with(words, "Unknown Redis command called") ||
	       starts_with(words, "Unknown command called"); /* Valkey */
}

/* Whether a limit of requests is reached: each managed service has its own text. */
static bool is_about_limit(const char *words)
{
	static const char *const marks[] = {
		"limit exceeded",    "request limit", "requests limit", "rate limit",
		"too many requests", "quota",         "throttl"
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strcasestr(words, marks[i]) != NULL)
			return true;
	return false;
}

static const struct meaning *meaning_of(const char *words)
{
	const struct meaning *meaning = meanings;

	if (is_slot_moving(words))
		words = "TRYAGAIN";
	if (is_unknown_in_script(words))
		words = "ERR unknown command";
	while (!starts_with(words, meaning->prefix))
		meaning++;
	return meaning->prefix[0] == '\0' && is_about_limit(words) ? &limit_meaning : meaning;
}

/*
 * Return the error of a command inside the error of its script, and cut text after it. Redis 6.2 puts "ERR Error running script (call
 * to f_...): @user_script:3: @user_script: 3: -" before the command's error, or "@user_script: 3: -" if the script returns the error.
 * Redis 7 puts " script: SHA1, on @user_script:3." after it, or nothing.
 */
static const char *without_script(char *text)
{
	static const char marker[] = "@user_script:", tail[] = " script: ";
	const char *words = text, *found;
	char *past = NULL;

	/* Cut at the last " script: ": an error of Valkey 9 begins with "ACL failure in script: ". */
	for (char *next = text; (next = strstr(next, tail)) != NULL; next += sizeof(tail) - 1)
		past = next;
	if (past != NULL && strstr(past, marker) != NULL)
		*past = '\0';
	if (!starts_with(words, marker) && !starts_with(words, "ERR Error running script") &&
	    !starts_with(words, "ERR Error compiling script"))
		return words;
	while ((found = strstr(words, marker)) != NULL) {
		found = strstr(found, ": ");
		if (found == NULL)
			break;
		words = found + 2;
	}
	/* After the last marker: a blank, the line number again, and a minus. */
	if (isdigit((unsigned char)words[0])) {
		found = strstr(words, ": ");
		words = found != NULL ? found + 2 : words;
	}
	return words[0] == '-' ? words + 1 : words;
}

/*
 * Find the denied command in the server's "NOPERM ... no permissions to run the 'hset' command", or in "NOPERM +hset" of our scripts
 * (inc/denied.lua). False: none.
 */
static bool command_in_error(const char *error, char *out, size_t out_size)
{
	static const char ours[] = "NOPERM +", theirs[] = "run the '";
	const char *start = strstr(error, theirs), *end;

	if (start != NULL)
		start += sizeof(theirs) - 1;
	else if (starts_with(error, ours))
		start = error + sizeof(ours) - 1;
	end = start != NULL ? strchrnul(start, '\'') : NULL;
	if (end == NULL || (size_t)(end - start) >= out_size)
		return false;
	(void)snprintf(out, out_size, "%.*s", (int)(end - start), start);
	return true;
}

/* Find the command that a line of a script calls, "... redis.call('HSET', ...)", in lower case. False: none. */
static bool command_called(const char *line, size_t len, char *out, size_t out_size)
{
	static const char call[] = "call('";
	const char *start = memmem(line, len, call, sizeof(call) - 1);
	size_t at = 0;

	if (start == NULL)
		return false;
	for (start += sizeof(call) - 1; isalpha((unsigned char)*start) && at + 1 < out_size;
	     start++)
		out[at++] = (char)tolower((unsigned char)*start);
	out[at] = '\0';
	return at > 0;
}

/* Find the command by the line number in an error, "@user_script:12": some versions of Redis do not name the command. */
static bool command_in_script(const char *error, const char *script, char *out, size_t out_size)
{
	static const char marker[] = "@user_script:";
	const char *found = strstr(error, marker), *line;
	long number;

	if (found == NULL || script == NULL)
		return false;
	number = strtol(found + sizeof(marker) - 1, NULL, 10);
	for (line = script; number > 1 && (line = strchr(line, '\n')) != NULL; number--)
		line++;
	return number == 1 && line != NULL &&
	       command_called(line, strcspn(line, "\n"), out, out_size);
}

static enum rlock_status missing_right(struct rlock__error *error, const char *words,
				       const char *script)
{
	char command[64], shown[SHOWN_MAX];
	bool is_about_keys = strstr(words, "key") != NULL;
	bool is_about_channel = strstr(words, "channel") != NULL;

	if (command_in_error(words, command, sizeof(command)) ||
	    (!is_about_keys && !is_about_channel &&
	     command_in_script(words, script, command, sizeof(command))))
		return rlock__fail(error, RLOCK_EACL,
				   "denied by the server: the user may not run '%s'; "
				   "it needs the ACL rule +%s",
				   rlock_escape(command, strlen(command), shown, sizeof(shown)),
				   shown);
	if (is_about_channel) {
		(void)rlock__fail(error, RLOCK_EACL,
				  "denied by the server: the user may not use the lock's "
				  "channel; it needs the ACL rule &redisson_*");
		error->is_about_channel = true;
		return RLOCK_EACL;
	}
	/*
	 * If the error mentions the script, the denied key is a timeout key, whose name the script makes. A script gets all other
	 * keys as arguments: their error is the next one.
	 */
	if (is_about_keys && strstr(words, "script") != NULL)
		return rlock__fail(error, RLOCK_EACL,
				   "denied by the server: the user may not use the keys of a "
				   "read lock; it needs the ACL rule ~{NAME}:*:rwlock_timeout:*");
	if (is_about_keys)
		return rlock__fail(error, RLOCK_EACL,
				   "denied by the server: the user may not use the lock's "
				   "keys; it needs the ACL rules ~NAME ~rlock_* ~redisson_*, and "
				   "~{NAME}:*:rwlock_timeout:* for read and write locks, "
				   "~{NAME}:timeout for semaphores");
	(void)rlock__fail(error, RLOCK_EACL, "denied by the server: %s",
			  rlock_escape(words, strlen(words), shown, sizeof(shown)));
	rlock__error_set_reply(error, shown);
	return RLOCK_EACL;
}

/*
 * Whether words, returned by without_script, are about the user's rights. Only the start is compared: an error can repeat arguments,
 * and a lock's name could look like such a text.
 */
static bool is_missing_right(const char *words)
{
	if (starts_with(words, "ERR "))
		words += 4;
	return starts_with(words, "NOPERM") ||
	       /* for a command in a script: the first text by Redis 6.2 and 7.0, the second by Redis 7.2 and Valkey */
	       starts_with(words, "The user executing the script can't ") ||
	       starts_with(words, "ACL failure in script");
}

/* Whether a retry within a usual wait may succeed: the server is starting or busy, or the cluster mends the error by itself. */
static bool is_transient_error(const struct meaning *meaning)
{
	return meaning->heals_itself || strcmp(meaning->prefix, "LOADING") == 0 ||
	       strcmp(meaning->prefix, "BUSY") == 0;
}

/* Whether only a master sends this error, and remains the master. */
static bool is_error_of_master(const struct meaning *meaning)
{
	return strcmp(meaning->prefix, "OOM") == 0 || strcmp(meaning->prefix, "MISCONF") == 0;
}

enum rlock_status rlock__server_error(struct rlock__error *error, const char *reply, size_t len,
				      const char *script)
{
	char text[RLOCK_ERROR_MAX], whole[RLOCK_ERROR_MAX], told[RLOCK_ERROR_MAX], shown[SHOWN_MAX];
	char command[64];
	const struct meaning *meaning;
	const char *words;

	(void)snprintf(text, sizeof(text), "%.*s",
		       len < sizeof(text) ? (int)len : (int)sizeof(text) - 1, reply);
	memcpy(whole, text, strlen(text) + 1);
	words = without_script(text);
	if (is_missing_right(words))
		return missing_right(error, whole, script);
	if (is_unknown_in_script(words) &&
	    command_in_script(whole, script, command, sizeof(command))) {
		(void)snprintf(text, sizeof(text), "ERR unknown command %s", command);
		words = text;
	}
	(void)rlock_escape(words, strlen(words), shown, sizeof(shown));
	meaning = meaning_of(words);
	rlock__text_fill(told, sizeof(told), meaning->text, error->server, shown);
	(void)rlock__fail(error, meaning->status, "%s", told);
	error->heals_itself = meaning->heals_itself;
	error->is_of_master = is_error_of_master(meaning);
	error->failure.is_transient = is_transient_error(meaning);
	rlock__error_set_reply(error, shown);
	return meaning->status;
}
