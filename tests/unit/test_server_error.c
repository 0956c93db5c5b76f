/*
 * server_error.c: what is made of an error, in the words that Redis 6.2 and later versions have for it.
 */
#include "base/error.h"
#include "net/server_error.h"
#include "rlock.h"

#include "unit.h"

/* The lines that errors name. */
static const char script[] = "local lock = KEYS[1]\n"
			     "redis.call('HSET', lock, 'a', 1)\n"
			     "redis.pcall('PUBLISH', 'channel', '0')\n";

static const struct {
	const char *reply;
	enum rlock_status status;
	const char *text; /* a part of it */
	const char *name;
} errors[] = {
	{ "OOM command not allowed when used memory > 'maxmemory'. script: 5e9f, on "
	  "@user_script:2.",
	  RLOCK_ENET,
	  "denied by the server: its memory is full: raise its maxmemory: OOM command not allowed",
	  "a full server that says so after the error" },
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: -OOM "
	  "command not allowed when used memory > 'maxmemory'.",
	  RLOCK_ENET,
	  "denied by the server: its memory is full: raise its maxmemory: OOM command not allowed",
	  "a full server that says so behind the script's line" },
	{ "@user_script: 2: -OOM command not allowed when used memory > 'maxmemory'.", RLOCK_ENET,
	  "denied by the server: its memory is full: raise its maxmemory: OOM command not allowed",
	  "a full server's error that the script has caught" },
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: The user "
	  "executing the script can't run this command or subcommand",
	  RLOCK_EACL, "it needs the ACL rule +hset", "a command that only its line tells" },
	{ "NOPERM this user has no permissions to run the 'hset' command script: 5e9f, on "
	  "@user_script:2.",
	  RLOCK_EACL, "it needs the ACL rule +hset", "a command that the error names" },
	{ "@user_script: 3: The user executing the script can't publish to the channel mentioned "
	  "in the command",
	  RLOCK_EACL, "it needs the ACL rule &redisson_*",
	  "a channel, where the line tells the command" },
	{ "ACL failure in script: No permissions to access a channel", RLOCK_EACL,
	  "it needs the ACL rule &redisson_*", "a channel" },
	{ "@user_script: 2: The user executing the script can't access at least one of the keys "
	  "mentioned in the command arguments",
	  RLOCK_EACL, "it needs the ACL rule ~{NAME}:*:rwlock_timeout:*",
	  "a key that a script has made" },
	{ "NOPERM No permissions to access a key", RLOCK_EACL,
	  "it needs the ACL rules ~NAME ~rlock_* ~redisson_*, and",
	  "a key that a script was told" },
	{ "ERR Error running script (call to f_5e9f): @user_script:2: @user_script: 2: Lua script "
	  "attempted to access a non local key in a cluster node",
	  RLOCK_ENET, "denied by the server: Lua script attempted",
	  "a slot that moves, in Redis 6.2" },
	{ "ERR Script attempted to access a non local key in a cluster node script: 5e9f, on "
	  "@user_script:2.",
	  RLOCK_ENET, "denied by the server: ERR Script attempted",
	  "a slot that moves, in Redis 7" },
	{ "ERR Attempted to access a non local key in a cluster node script: 5e9f, on "
	  "@user_script:2.",
	  RLOCK_ENET, "denied by the server: ERR Attempted", "a slot that moves, in Valkey 9.1" },
	{ "ERR Unable to execute command 'exists' in script because undeclared keys were accessed "
	  "during rehashing of the slot script: 5e9f, on @user_script:2.",
	  RLOCK_ENET, "denied by the server: ERR Unable to execute",
	  "a slot that moves, in Redis 7.4" },
	{ "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
	  "disk. Commands that may modify the data set are disabled, because this instance is "
	  "configured to report errors during writes if RDB snapshotting fails "
	  "(stop-writes-on-bgsave-error option). Please check the Redis logs for details about the "
	  "RDB error.",
	  RLOCK_ENET,
	  "denied by the server: it cannot write to its disk: see its log: MISCONF Redis is "
	  "configured",
	  "a full disk, whose advice comes before the words that have no end" },
	{ "ERR Protocol error: unauthenticated multibulk length", RLOCK_EAUTH,
	  "server requires a password: give one in the URL, by --password-file, --password-command "
	  "or REDISCLI_AUTH",
	  "a command that is too long for a client without a password" },
	{ "CLUSTERDOWN The cluster is down", RLOCK_ENET,
	  "denied by the server: masters of the cluster are missing: see its CLUSTER INFO, and give "
	  "--wait: CLUSTERDOWN The cluster is down",
	  "a cluster that is down" },
	{ "NOREPLICAS Not enough good replicas to write.", RLOCK_ENET,
	  "denied by the server: too few of its replicas are connected: start them, or lower its "
	  "min-replicas-to-write: NOREPLICAS",
	  "a master that has lost its replicas" },
	{ "LOADING Redis is loading the dataset in memory", RLOCK_ENET,
	  "denied by the server: it was just started: give --wait: LOADING",
	  "a server that loads" },
	{ "@user_script: 2: -WRONGTYPE Operation against a key", RLOCK_EKIND,
	  "the key is not a lock: WRONGTYPE", "a key of another type" },
};

static void test_reply(const char *reply, const char *words)
{
	struct rlock__error error = { .server = "host:1" };

	(void)rlock__server_error(&error, reply, strlen(reply), script);
	CHECK_STRING(rlock__error_reply(&error), words, "the server's words in: %s", error.text);
}

void test_server_error(void)
{
	test_reply("ERR Protocol error: unauthenticated multibulk length", "");
	test_reply("WRONGPASS invalid password", "WRONGPASS invalid password");
	test_reply("READONLY no write script: 5e9f, on @user_script:2.", "READONLY no write");
	test_reply("ERR other", "ERR other");
	test_reply("NOPERM this user has no permissions to run the 'hset' command", "");
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		struct rlock__error error = { .server = "host:1" };
		enum rlock_status status = rlock__server_error(&error, errors[i].reply,
							       strlen(errors[i].reply), script);

		CHECK_NUMBER(status, errors[i].status, "the status for %s", errors[i].name);
		CHECK(strstr(error.text, errors[i].text) != NULL, "the text for %s: %s",
		      errors[i].name, error.text);
	}
}
