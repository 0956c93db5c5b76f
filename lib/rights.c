/*
 * Which rights a user lacks for locks: each is tried, in a form that changes nothing, or on keys of its own that are
 * removed again. Scripts try only what they need; here all are, so that a user learns them at once.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/subscription.h"
#include "owner.h"
#include "redis/keys.h"
#include "rlock.h"

#define MUTEX (1U << RLOCK_PLAIN | 1U << RLOCK_FAIR)
#define READ (1U << RLOCK_READ)
#define READWRITE (READ | 1U << RLOCK_WRITE)
#define FAIR (1U << RLOCK_FAIR)
#define SEMAPHORE (1U << RLOCK_SEMAPHORE)
#define LOCKS (MUTEX | READWRITE)
#define ALL (LOCKS | SEMAPHORE)

#define WORDS_MAX 7
#define KEY "KEY" /* in the place of the key that is tried */

struct command_right {
	const char *right;
	unsigned kinds; /* that need it */
	bool is_optional;
	const char *argv[WORDS_MAX];
};

/*
 * Plain and fair locks work without +set, and without +get unless a fencing token is issued; the others need both. The
 * first command makes a key that expires by itself. Commands for other types are denied because of its type, after the
 * right was looked at, and change nothing.
 */
static const struct command_right commands[] = {
	{ "+set", READWRITE | SEMAPHORE, false, { "SET", KEY, "1", "PX", "5000" } },
	{ "+pexpire", ALL, false, { "PEXPIRE", KEY, "5000" } },
	{ "+eval", ALL, false, { "EVAL", "return 1", "0" } },
	{ "+evalsha", ALL, false, { "EVALSHA", "0000000000000000000000000000000000000000", "0" } },
	{ "+pttl", ALL, false, { "PTTL", KEY } },
	{ "+exists", ALL, false, { "EXISTS", KEY } },
	{ "+type", ALL, false, { "TYPE", KEY } },
	{ "+get", READWRITE | SEMAPHORE, false, { "GET", KEY } },
	{ "+hlen", LOCKS, false, { "HLEN", KEY } },
	{ "+hexists", LOCKS, false, { "HEXISTS", KEY, "f" } },
	{ "+hkeys", LOCKS, false, { "HKEYS", KEY } },
	{ "+hvals", LOCKS, false, { "HVALS", KEY } },
	{ "+hget", ALL, false, { "HGET", KEY, "f" } },
	{ "+hgetall", ALL, false, { "HGETALL", KEY } },
	{ "+hdel", ALL, false, { "HDEL", KEY, "f" } },
	{ "+time", ALL, false, { "TIME" } },
	{ "+zrem", READWRITE | FAIR | SEMAPHORE, false, { "ZREM", KEY, "m" } },
	{ "+zrange", READWRITE | SEMAPHORE, false, { "ZRANGE", KEY, "0", "0" } },
	{ "+zcard", READWRITE | SEMAPHORE, false, { "ZCARD", KEY } },
	{ "+zscore", FAIR | SEMAPHORE, false, { "ZSCORE", KEY, "m" } },
	{ "+linsert", FAIR, false, { "LINSERT", KEY, "BEFORE", "m", "n" } },
	{ "+lindex", FAIR, false, { "LINDEX", KEY, "0" } },
	{ "+lpos", FAIR, false, { "LPOS", KEY, "m" } },
	{ "+lrange", FAIR, false, { "LRANGE", KEY, "0", "0" } },
	{ "+lrem", FAIR, false, { "LREM", KEY, "0", "m" } },
	{ "+info", FAIR, true, { "INFO", "server" } },
};

/* Where the user may not make the key above, these make one. */
static const struct command_right writes[] = {
	{ "+incr", MUTEX, true, { "INCR", KEY } },
	{ "+hset", ALL, false, { "HSET", KEY, "f", "1" } },
	{ "+hincrby", LOCKS, false, { "HINCRBY", KEY, "f", "1" } },
	{ "+zadd", READWRITE | FAIR | SEMAPHORE, false, { "ZADD", KEY, "1", "m" } },
	{ "+incrby", SEMAPHORE, false, { "INCRBY", KEY, "1" } },
	{ "+rpush", FAIR, false, { "RPUSH", KEY, "m" } },
};

static const struct command_right removal = { "+del", ALL, false, { "DEL", KEY } };

struct key_right {
	enum rlock__key key;
	unsigned kinds;
	bool is_optional;
};

static const struct key_right keys[] = {
	{ RLOCK__KEY_LOCK, ALL, false },
	{ RLOCK__KEY_HOLDS, ALL, false },
	{ RLOCK__KEY_COUNTER, MUTEX, false },
	{ RLOCK__KEY_QUEUE, MUTEX, false },
	{ RLOCK__KEY_DEADLINES, MUTEX, false },
	{ RLOCK__KEY_WAITERS, MUTEX, false },
	{ RLOCK__KEY_WRITER, READWRITE, false },
	{ RLOCK__KEY_ENDS, READWRITE | SEMAPHORE, false },
	{ RLOCK__KEY_PERMITS, SEMAPHORE, false },
	{ RLOCK__KEY_TOTAL, SEMAPHORE, false },
	{ RLOCK__KEY_TIMEOUTS, READWRITE, false },
	{ RLOCK__KEY_WAKE_QUEUE, ALL, true },
	{ RLOCK__KEY_TURN, ALL, true },
};

static const struct key_right channels[] = {
	{ RLOCK__KEY_CHANNEL, MUTEX, false },
	{ RLOCK__KEY_READWRITE_CHANNEL, READWRITE, false },
	{ RLOCK__KEY_SEMAPHORE_CHANNEL, SEMAPHORE, false },
};

struct trial {
	struct rlock_conn *conn;
	struct rlock__connection *connection;
	const struct rlock_name *prefix;
	struct rlock_name name; /* the prefix, and what chance made of the rest */
	char name_text[RLOCK_NAME_MAX + RLOCK_HOLD_ID_MAX];
	rlock_lack_fn report;
	void *ctx;
	bool lacks_eval, lacks_publish;
};

enum answer { ALLOWED, COMMAND_DENIED, OBJECT_DENIED };

/* Redis says which it is, in words that differ between versions. */
static enum answer answer_of(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOPERM", 6) != 0)
		return ALLOWED;
	return strstr(reply->str, " key") != NULL || strstr(reply->str, " channel") != NULL
		       ? OBJECT_DENIED
		       : COMMAND_DENIED;
}

static enum rlock_status run_command(struct trial *trial, int argc, const char **argv,
				     enum answer *out)
{
	redisReply *reply = NULL;
	enum rlock_status status = rlock__command_run(trial->connection, argc, argv, &reply);

	if (status != RLOCK_OK)
		return status;
	*out = answer_of(reply);
	freeReplyObject(reply);
	return RLOCK_OK;
}

static void report(struct trial *trial, const char *right, unsigned kinds, bool is_optional)
{
	const struct rlock_lack lack = { right, kinds, is_optional };

	trial->report(trial->ctx, &lack);
}

/* ---- commands ---- */

static enum rlock_status try_command(struct trial *trial, const struct command_right *row,
				     const char *key, enum answer *out)
{
	const char *argv[WORDS_MAX];
	enum rlock_status status;
	int argc = 0;

	while (argc < WORDS_MAX && row->argv[argc] != NULL) {
		argv[argc] = strcmp(row->argv[argc], KEY) == 0 ? key : row->argv[argc];
		argc++;
	}
	status = run_command(trial, argc, argv, out);
	if (status == RLOCK_OK && *out == COMMAND_DENIED)
		report(trial, row->right, row->kinds, row->is_optional);
	return status;
}

/* What a write has made. false: nothing removes it. */
static enum rlock_status remove_key(struct trial *trial, const char *key, bool *is_removed_out)
{
	const char *del[] = { "DEL", key }, *expire[] = { "PEXPIRE", key, "1" };
	enum answer answer = COMMAND_DENIED;
	enum rlock_status status = run_command(trial, 2, del, &answer);

	if (status == RLOCK_OK && answer == COMMAND_DENIED)
		status = run_command(trial, 3, expire, &answer);
	*is_removed_out = answer != COMMAND_DENIED;
	return status;
}

/* What is not sure to be removed again is not made: all these rights are reported, one too many at most. */
static void report_writes(struct trial *trial)
{
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
		report(trial, writes[i].right, writes[i].kinds, writes[i].is_optional);
}

static enum rlock_status try_writes(struct trial *trial, const char *key, bool has_key)
{
	bool is_removed = has_key;
	enum rlock_status status = has_key ? RLOCK_OK : remove_key(trial, key, &is_removed);

	if (status != RLOCK_OK)
		return status;
	if (!is_removed)
		report_writes(trial);
	for (size_t i = 0; is_removed && i < sizeof(writes) / sizeof(writes[0]); i++) {
		enum answer answer;

		status = try_command(trial, &writes[i], key, &answer);
		if (status == RLOCK_OK && !has_key)
			status = remove_key(trial, key, &is_removed);
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

static enum rlock_status try_commands(struct trial *trial, const char *key)
{
	bool has_key = false, is_removed;
	enum rlock_status status;
	enum answer answer;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		status = try_command(trial, &commands[i], key, &answer);
		if (status != RLOCK_OK)
			return status;
		if (i == 0)
			has_key = answer == ALLOWED;
		if (strcmp(commands[i].right, "+eval") == 0)
			trial->lacks_eval = answer == COMMAND_DENIED;
	}
	status = try_writes(trial, key, has_key);
	if (status != RLOCK_OK)
		return status;
	status = try_command(trial, &removal, key, &answer);
	if (status != RLOCK_OK)
		return status;
	return remove_key(trial, key, &is_removed);
}

/* ---- keys and channels ---- */

/* As a pattern for all names with that prefix. */
static void report_pattern(struct trial *trial, char sort, const struct rlock__text *text,
			   const struct key_right *row, const char *end)
{
	const char *chance = trial->name.text + trial->prefix->len;
	const char *cut = memmem(text->text, text->len, chance, strlen(chance));
	char shown[RLOCK_NAME_MAX + RLOCK_RIGHT_MAX];
	char *right = NULL;

	if (cut == NULL)
		return;
	(void)rlock_escape(text->text, (size_t)(cut - text->text), shown, sizeof(shown));
	if (asprintf(&right, "%c%s*%s", sort, shown, end) < 0)
		return;
	report(trial, right, row->kinds, row->is_optional);
	free(right);
}

static enum rlock_status try_key(struct trial *trial, const struct key_right *row)
{
	struct rlock__text key = rlock__key(row->key, &trial->name);
	bool is_start = row->key == RLOCK__KEY_TIMEOUTS; /* of keys, of which one is tried */
	const char *end = is_start                         ? "}:*:rwlock_timeout:*"
			  : row->key == RLOCK__KEY_PERMITS ? "}:timeout"
							   : "";
	enum rlock_status status;
	enum answer answer;
	char *text = NULL;

	if (key.text == NULL ||
	    asprintf(&text, "%s%s", key.text, is_start ? ":1:rwlock_timeout:1" : "") < 0) {
		free(key.text);
		return rlock__fail_memory(&trial->conn->error);
	}
	{
		/* A script does not touch the key that it is given. */
		const char *argv[] = { "EVAL", "return 1", "1", text };

		status = run_command(trial, 4, argv, &answer);
	}
	if (status == RLOCK_OK && answer == OBJECT_DENIED)
		report_pattern(trial, '~', &key, row, end);
	free(text);
	free(key.text);
	return status;
}

static enum rlock_status try_publish(struct trial *trial, const struct key_right *row,
				     const char *end)
{
	const struct key_right own = { row->key, row->kinds, true };
	struct rlock__text channel = rlock__key(row->key, &trial->name);
	enum rlock_status status;
	enum answer answer;
	char *text = NULL;

	if (channel.text == NULL || asprintf(&text, "%s%s", channel.text, end) < 0) {
		free(channel.text);
		return rlock__fail_memory(&trial->conn->error);
	}
	{
		const char *argv[] = { "PUBLISH", text, "0" };

		status = run_command(trial, 3, argv, &answer);
	}
	if (status == RLOCK_OK && answer == OBJECT_DENIED)
		report_pattern(trial, '&', &channel, end[0] != '\0' ? &own : row, "");
	else if (status == RLOCK_OK && answer == COMMAND_DENIED && !trial->lacks_publish) {
		trial->lacks_publish = true;
		report(trial, "+publish", ALL, false);
	}
	free(text);
	free(channel.text);
	return status;
}

/* Over a connection of its own: one that has subscribed serves nothing else. */
static enum rlock_status try_subscribe(struct trial *trial)
{
	struct rlock__text channel = rlock__key(RLOCK__KEY_CHANNEL, &trial->name);
	struct rlock__connection *twin = NULL;
	enum rlock_status status;

	if (channel.text == NULL)
		return rlock__fail_memory(&trial->conn->error);
	status = rlock__connection_twin(trial->connection, &twin);
	if (status == RLOCK_OK)
		status = rlock__subscription_open(twin, &channel, 1, INT64_MAX);
	if (status == RLOCK_EACL && strstr(rlock__connection_error(twin)->text, "channel") == NULL)
		report(trial, "+subscribe", ALL, false);
	if (status == RLOCK_EACL)
		status = RLOCK_OK;
	if (status != RLOCK_OK && twin != NULL)
		(void)rlock__fail(&trial->conn->error, status, "%s",
				  rlock__connection_error(twin)->text);
	rlock__connection_free(twin);
	free(channel.text);
	return status;
}

static enum rlock_status try_objects(struct trial *trial)
{
	const char *numsub[] = { "PUBSUB", "NUMSUB" };
	enum rlock_status status;
	enum answer answer;

	for (size_t i = 0; !trial->lacks_eval && i < sizeof(keys) / sizeof(keys[0]); i++) {
		status = try_key(trial, &keys[i]);
		if (status != RLOCK_OK)
			return status;
	}
	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
		status = try_publish(trial, &channels[i], "");
		if (status == RLOCK_OK)
			status = try_publish(trial, &channels[i], ":1");
		if (status != RLOCK_OK)
			return status;
	}
	status = run_command(trial, 2, numsub, &answer);
	if (status != RLOCK_OK)
		return status;
	if (answer != ALLOWED)
		report(trial, "+pubsub|numsub", ALL, true);
	return try_subscribe(trial);
}

/* ---- all of it ---- */

enum rlock_status rlock_conn_try_rights(struct rlock_conn *conn, size_t index,
					const struct rlock_name *prefix, rlock_lack_fn report_lack,
					void *ctx)
{
	struct trial trial = { .conn = conn,
			       .connection = conn->connections[index],
			       .prefix = prefix,
			       .report = report_lack,
			       .ctx = ctx };
	struct rlock__text key;
	char id[RLOCK_HOLD_ID_MAX];
	enum rlock_status status = rlock_hold_id_new(id);

	if (status != RLOCK_OK)
		return rlock__fail(&conn->error, status, "cannot get random bytes");
	if (prefix->len + strlen(id) > RLOCK_NAME_MAX)
		return rlock__fail(&conn->error, RLOCK_EINVAL, "the name is too long for a check");
	memcpy(trial.name_text, prefix->text, prefix->len);
	memcpy(trial.name_text + prefix->len, id, strlen(id) + 1);
	trial.name = (struct rlock_name){ trial.name_text, prefix->len + strlen(id) };
	status = rlock__conn_check_names(conn, &trial.name, 1);
	if (status != RLOCK_OK)
		return status;
	key = rlock__key(RLOCK__KEY_LOCK, &trial.name);
	if (key.text == NULL)
		return rlock__fail_memory(&conn->error);
	status = try_commands(&trial, key.text);
	if (status == RLOCK_OK)
		status = try_objects(&trial);
	free(key.text);
	if (status != RLOCK_OK && conn->error.text[0] == '\0')
		rlock__conn_copy_error(conn, index);
	return status;
}
