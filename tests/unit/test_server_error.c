/*
 * server_error.c: how errors of Redis 6.2 and later, and of Valkey, are classified and worded.
 */
#include "base/error.h"
#include "net/server_error.h"
#include "rlock.h"

#include "unit.h"

/* The script whose lines the errors below name. */
static const char script[] = "local lock = KEYS[1]\n"
			     "redis.call('HSET', lock, 'a', 1)\n"
			     "redis.pcall('PUBLISH', 'channel', '0')\n";

#define MOVING                                                                                     \
	"denied by the server: the lock's slot is on its way to another node of the cluster: "

static const struct {
	const char *reply;
	enum rlock_status status;
	const char *text; /* a part of it */
} errors[] = {
	/* a full server */
	{ "OOM command not allowed when used memory > 'maxmemory'. script: 5e9f, on @user_script:2.",
	  RLOCK_ENET,
	  "denied by the server: its memory is full; raise its maxmemory: OOM command not allowed" },
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: -OOM command not allowed when",
	  RLOCK_ENET,
	  "denied by the server: its memory is full; raise its maxmemory: OOM command not allowed" },
	{ "@user_script: 2: -OOM command not allowed when used memory > 'maxmemory'.", RLOCK_ENET,
	  "denied by the server: its memory is full; raise its maxmemory: OOM command not allowed" },
	/* the error names the command, or only the line in the script */
	{ "NOPERM this user has no permissions to run the 'hset' command script: 5e9f, on @user_script:2.",
	  RLOCK_EACL, "it needs the ACL rule +hset" },
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: The user executing the script can't "
	  "run this command or subcommand",
	  RLOCK_EACL, "it needs the ACL rule +hset" },
	{ "ERR ACL failure in script: User ci has no permissions to run the 'hset' command script: on @user_script:1.",
	  RLOCK_EACL, "it needs the ACL rule +hset" },
	{ "NOPERM +hset", RLOCK_EACL, "it needs the ACL rule +hset" },
	/* a channel */
	{ "@user_script: 3: The user executing the script can't publish to the channel mentioned in the command",
	  RLOCK_EACL, "it needs the ACL rule &redisson_*" },
	{ "ACL failure in script: No permissions to access a channel", RLOCK_EACL,
	  "it needs the ACL rule &redisson_*" },
	/* a key that a script computes, or gets as an argument */
	{ "@user_script: 2: The user executing the script can't access at least one of the keys mentioned in the command "
	  "arguments",
	  RLOCK_EACL, "it needs the ACL rule ~{NAME}:*:rwlock_timeout:*" },
	{ "NOPERM No permissions to access a key", RLOCK_EACL,
	  "it needs the ACL rules ~NAME ~rlock_* ~redisson_*, and" },
	/* a migrating slot, in the words of Redis 6.2, 7, 7.4 and Valkey 9.1 */
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: Lua script attempted to access a "
	  "non local key in a cluster node",
	  RLOCK_ENET, MOVING "Lua script attempted" },
	{ "ERR Script attempted to access a non local key in a cluster node script: 5e9f, on @user_script:2.",
	  RLOCK_ENET, MOVING "ERR Script attempted" },
	{ "ERR Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the "
	  "slot script: 5e9f, on @user_script:2.",
	  RLOCK_ENET, MOVING "ERR Unable to execute" },
	{ "ERR Attempted to access a non local key in a cluster node script: 5e9f, on @user_script:2.",
	  RLOCK_ENET, MOVING "ERR Attempted" },
	/* a full disk: the advice precedes the server's long message */
	{ "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	  RLOCK_ENET,
	  "denied by the server: it cannot write to its disk; see its log: MISCONF Redis is configured" },
	/* a request that is too long before the login */
	{ "ERR Protocol error: unauthenticated multibulk length", RLOCK_EAUTH,
	  "server requires a password; give one in the URL, by --password-file, --password-command or REDISCLI_AUTH" },
	{ "CLUSTERDOWN The cluster is down", RLOCK_ENET,
	  "denied by the server: masters of the cluster are missing; see its CLUSTER INFO: CLUSTERDOWN" },
	/* the same error for a command in a script, by Redis 6.2 */
	{ "@user_script: 2: -NOREPLICAS Not enough good replicas to write.", RLOCK_ENET,
	  "denied by the server: too few of its replicas are connected; start them, or lower its min-replicas-to-write: "
	  "NOREPLICAS" },
	/* a renamed command: as rlock's scripts report it, and in the words of Redis 6.2, 7 and Valkey 9 */
	{ "ERR unknown command HSET", RLOCK_EUNSUPPORTED,
	  "none of them renamed: ERR unknown command HSET" },
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: Unknown Redis command called from "
	  "Lua script",
	  RLOCK_EUNSUPPORTED, "none of them renamed: ERR unknown command hset" },
	{ "ERR Unknown Redis command called from script script: 5e9f, on @user_script:2.",
	  RLOCK_EUNSUPPORTED, "none of them renamed: ERR unknown command hset" },
	{ "ERR Unknown command called from script script: on @user_script:1.", RLOCK_EUNSUPPORTED,
	  "none of them renamed: ERR Unknown command called" },
	/* NOPERM only in an argument that the error repeats */
	{ "ERR unknown command 'EVALSHA', with args beginning with: '5e9f' '1' 'NOPERM' ",
	  RLOCK_EUNSUPPORTED, "it runs no scripts" },
	{ "NOREPLICAS Not enough good replicas to write.", RLOCK_ENET,
	  "denied by the server: too few of its replicas are connected; start them, or lower its min-replicas-to-write: "
	  "NOREPLICAS" },
	{ "LOADING Redis is loading the dataset in memory", RLOCK_ENET,
	  "denied by the server: it was just started: LOADING" },
	/* a rate limit, in the words of a service */
	{ "ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.", RLOCK_ENET,
	  "denied by the server: a limit of its requests is reached; raise it: ERR max daily request limit" },
	{ "ERR max requests limit exceeded. Limit: 500000, Usage: 500000.", RLOCK_ENET,
	  "denied by the server: a limit of its requests is reached" },
	{ "ERR max request size exceeded", RLOCK_ESERVER,
	  "server error: ERR max request size exceeded" },
	/* a denied login: by Redis without a password, and by a service whose token has expired */
	{ "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration "
	  "is correct?",
	  RLOCK_EAUTH, "denied by the server: it has no password; give none: ERR AUTH" },
	{ "ERR AUTH failed: token expired", RLOCK_EAUTH,
	  "denied by the server; check user and password: ERR AUTH failed: token expired" },
	{ "ERR unknown command 'EVAL', with args beginning with: 'x'", RLOCK_EUNSUPPORTED,
	  "denied by the server: it runs no scripts; if it is a sentinel, its URL" },
	{ "@user_script: 2: -WRONGTYPE Operation against a key", RLOCK_EKIND,
	  "the key is not a lock: WRONGTYPE" },
};

/* The part of the server's message that is appended to a message of rlock's. */
static const char *const replies[][2] = {
	{ "ERR Protocol error: unauthenticated multibulk length", "" },
	{ "WRONGPASS invalid password", "WRONGPASS invalid password" },
	{ "READONLY no write script: 5e9f, on @user_script:2.", "READONLY no write" },
	{ "NOPERM this user has no permissions to run the 'hset' command", "" },
};

void test_server_error(void)
{
	for (size_t i = 0; i < COUNT_OF(replies); i++) {
		struct rlock__error error = { .server = "host:1" };

		(void)rlock__server_error(&error, replies[i][0], strlen(replies[i][0]), script);
		CHECK_STRING(rlock__error_reply(&error), replies[i][1], "the appended part of: %s",
			     error.text);
	}
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		struct rlock__error error = { .server = "host:1" };
		enum rlock_status status = rlock__server_error(&error, errors[i].reply,
							       strlen(errors[i].reply), script);

		CHECK(status == errors[i].status && strstr(error.text, errors[i].text) != NULL,
		      "'%s' is reported as: %s", errors[i].reply, error.text);
	}
}
