/*
 * What rlock check asks a server: what it tells of itself, and which rights a user lacks for locks. Each right is tried, in the
 * form that changes nothing, by which scripts try those that their kind of lock needs. What the answers are worth is for the caller.
 */
#include <ctype.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/subscription.h"
#include "rlock.h"
#include "script.h"

/* ---- what a server tells ---- */

size_t rlock_conn_server_count(const struct rlock_conn *conn)
{
	return conn->server_count;
}

const char *rlock_conn_server(const struct rlock_conn *conn, size_t index)
{
	return rlock_url_server(rlock__connection_url(conn->connections[index]));
}

/* RLOCK_OK: *out is the reply, an error reply too, which the caller frees. Else the error is that of conn. */
static enum rlock_status run_command(struct rlock_conn *conn, size_t index, int argc,
				     const char **argv, redisReply **out)
{
	enum rlock_status status = rlock__command_run(conn->connections[index], argc, argv, out);

	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	return status;
}

/* ---- INFO ---- */

/* Of "NAME:VALUE" on a line of its own: the value, cut at out_size. Empty: there is none. */
static void read_text(const char *info, const char *name, char *out, size_t out_size)
{
	size_t name_len = strlen(name), len;
	const char *line = info;

	out[0] = '\0';
	while (line != NULL) {
		if (strncmp(line, name, name_len) == 0 && line[name_len] == ':') {
			line += name_len + 1;
			len = strcspn(line, "\r\n");
			(void)rlock_escape(line, len, out, out_size);
			return;
		}
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
}

/* -1: there is none. */
static int64_t read_number(const char *info, const char *name)
{
	char text[RLOCK_FACT_MAX];
	int64_t number = -1;

	read_text(info, name, text, sizeof(text));
	return rlock__decimal_parse(text, strlen(text), &number) && number >= 0 ? number : -1;
}

static void read_info(const char *info, struct rlock_server_info *out)
{
	char mode[RLOCK_FACT_MAX];

	read_text(info, "valkey_version", out->version, sizeof(out->version));
	out->is_valkey = out->version[0] != '\0';
	if (!out->is_valkey)
		read_text(info, "redis_version", out->version, sizeof(out->version));
	read_text(info, "role", out->role, sizeof(out->role));
	read_text(info, "redis_mode", mode, sizeof(mode));
	out->is_cluster = strcmp(mode, "cluster") == 0 || read_number(info, "cluster_enabled") == 1;
	out->uptime_s = read_number(info, "uptime_in_seconds");
	out->replicas = read_number(info, "connected_slaves");
	read_text(info, "maxmemory_policy", out->eviction_policy, sizeof(out->eviction_policy));
	out->memory_max = read_number(info, "maxmemory");
	out->has_append_file = read_number(info, "aof_enabled");
}

/* "CONFIG GET save": "" without snapshots. 1, 0, or -1 where the user or the service does not allow to ask. */
static enum rlock_status ask_snapshots(struct rlock_conn *conn, size_t index, int64_t *out)
{
	const char *argv[] = { "CONFIG", "GET", "save" };
	redisReply *reply = NULL;
	enum rlock_status status = run_command(conn, index, 3, argv, &reply);

	*out = -1;
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    reply->element[1]->type == REDIS_REPLY_STRING)
		*out = reply->element[1]->len > 0 ? 1 : 0;
	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

enum rlock_status rlock_conn_server_info(struct rlock_conn *conn, size_t index,
					 struct rlock_server_info *out)
{
	const char *argv[] = { "INFO" };
	redisReply *reply = NULL;
	enum rlock_status status = run_command(conn, index, 1, argv, &reply);

	if (status != RLOCK_OK)
		return status;
	memset(out, 0, sizeof(*out));
	read_info(reply->type == REDIS_REPLY_STRING ? reply->str : "", out);
	freeReplyObject(reply);
	return ask_snapshots(conn, index, &out->has_snapshots);
}

/* ---- time ---- */

enum rlock_status rlock_conn_round_trip(struct rlock_conn *conn, size_t index, int64_t *us_out)
{
	int64_t begin_us = rlock__now_us();
	enum rlock_status status = rlock__command_ping(conn->connections[index]);

	*us_out = rlock__now_us() - begin_us;
	/* A denied PING took as long. */
	if (status == RLOCK_EACL)
		return RLOCK_OK;
	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	return status;
}

static bool is_number(const redisReply *reply, int64_t *out)
{
	return reply->type == REDIS_REPLY_STRING &&
	       rlock__decimal_parse(reply->str, reply->len, out) && *out >= 0;
}

enum rlock_status rlock_conn_look_at_clock(struct rlock_conn *conn, size_t index,
					   struct rlock_clock_look *out)
{
	const char *argv[] = { "TIME" };
	int64_t begin_us = rlock__now_us(), seconds, us;
	redisReply *reply = NULL;
	enum rlock_status status = run_command(conn, index, 1, argv, &reply);

	if (status != RLOCK_OK)
		return status;
	*out = (struct rlock_clock_look){ -1, begin_us, rlock__now_us() };
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    is_number(reply->element[0], &seconds) && is_number(reply->element[1], &us) &&
	    seconds < INT64_MAX / 1000000 - 1 && us < 1000000)
		out->server_us = seconds * 1000000 + us;
	freeReplyObject(reply);
	return RLOCK_OK;
}

/* ---- rights ---- */

#define MUTEX (1U << RLOCK_PLAIN | 1U << RLOCK_FAIR)
#define READ (1U << RLOCK_READ)
#define READWRITE (READ | 1U << RLOCK_WRITE)
#define FAIR (1U << RLOCK_FAIR)
#define SEMAPHORE (1U << RLOCK_SEMAPHORE)
#define LOCKS (MUTEX | READWRITE)
#define ALL (LOCKS | SEMAPHORE)

#define WORDS_MAX 5

/* Which kinds need the lists of lua/inc/rights.lua. */
static const struct {
	const char *name;
	unsigned kinds;
} lists[] = {
	{ "HASH_RIGHTS", LOCKS },          { "QUEUE_RIGHTS", FAIR },       { "JOIN_RIGHTS", FAIR },
	{ "READWRITE_RIGHTS", READWRITE }, { "PERMIT_RIGHTS", SEMAPHORE },
};

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

enum answer { ALLOWED, COMMAND_DENIED, OBJECT_DENIED };

struct trial {
	struct rlock_conn *conn;
	struct rlock__connection *connection;
	const struct rlock_name *prefix;
	struct rlock_name name; /* the prefix, and what chance made of the rest */
	char name_text[RLOCK_NAME_MAX + RLOCK_HOLD_ID_MAX];
	struct rlock__keys keys; /* of the name */
	rlock_lack_fn report;
	void *ctx;
	enum answer eval;
	bool lacks_publish;
	unsigned lacks_removal; /* bits: DEL, PEXPIRE */
};

/* Redis says which it is, in words that differ between versions. */
static enum answer answer_of(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOPERM", 6) != 0)
		return ALLOWED;
	return strstr(reply->str, " key") != NULL || strstr(reply->str, " channel") != NULL
		       ? OBJECT_DENIED
		       : COMMAND_DENIED;
}

static enum rlock_status run_trial(struct trial *trial, int argc, const char **argv,
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

/* ---- rights: commands ---- */

static enum rlock_status try_command(struct trial *trial, unsigned kinds, bool is_optional,
				     int argc, const char **argv, enum answer *out)
{
	char right[RLOCK_RIGHT_MAX] = "+";
	enum rlock_status status = run_trial(trial, argc, argv, out);

	for (size_t i = 0; argv[0][i] != '\0' && i + 2 < sizeof(right); i++)
		right[i + 1] = (char)tolower((unsigned char)argv[0][i]);
	if (status == RLOCK_OK && *out == COMMAND_DENIED)
		report(trial, right, kinds, is_optional);
	return status;
}

/* Which kinds need the command, by the lists that it is in. 0: an earlier row has told so. */
static unsigned kinds_of(const struct rlock__right *right)
{
	unsigned kinds = 0;

	for (const struct rlock__right *row = rlock__rights; row->list != NULL; row++) {
		if (strcmp(row->command, right->command) != 0)
			continue;
		if (row < right)
			return 0;
		for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
			if (strcmp(row->list, lists[i].name) == 0)
				kinds |= lists[i].kinds;
	}
	return kinds;
}

static enum rlock_status try_lists(struct trial *trial, const char *key)
{
	enum rlock_status status = RLOCK_OK;

	for (const struct rlock__right *row = rlock__rights;
	     status == RLOCK_OK && row->list != NULL; row++) {
		const char *argv[WORDS_MAX] = { row->command, key, "", "", "" };
		unsigned kinds = kinds_of(row);
		enum answer answer = ALLOWED;

		if (kinds != 0 && strcmp(row->command, "RPUSH") != 0)
			status =
				try_command(trial, kinds, false, 2 + row->arguments, argv, &answer);
		if (answer == COMMAND_DENIED)
			trial->lacks_removal |= strcmp(row->command, "DEL") == 0       ? 1
						: strcmp(row->command, "PEXPIRE") == 0 ? 2
										       : 0;
	}
	return status;
}

/* Nothing keeps these from making a key. One that is not sure to be removed again is not made: they are reported. */
static enum rlock_status try_making(struct trial *trial, const char *key)
{
	const char *rpush[] = { "RPUSH", key, "" }, *incr[] = { "INCR", key };
	const char *del[] = { "DEL", key }, *expire[] = { "PEXPIRE", key, "1" };
	enum answer answer;
	enum rlock_status status;

	if (trial->lacks_removal == 3) {
		report(trial, "+rpush", FAIR, false);
		report(trial, "+incr", MUTEX, true);
		return RLOCK_OK;
	}
	status = try_command(trial, FAIR, false, 3, rpush, &answer);
	/* A list is no number, but the right is looked at before. */
	if (status == RLOCK_OK)
		status = try_command(trial, MUTEX, true, 2, incr, &answer);
	if (status == RLOCK_OK)
		status = run_trial(trial, 2, del, &answer);
	if (status == RLOCK_OK && answer == COMMAND_DENIED)
		status = run_trial(trial, 3, expire, &answer);
	return status;
}

/* The key is not there. */
static enum rlock_status try_commands(struct trial *trial, const char *key)
{
	const char *eval[] = { "EVAL", "return 1", "0" }, *info[] = { "INFO", "server" };
	const char *evalsha[] = { "EVALSHA", "0000000000000000000000000000000000000000", "0" };
	const char *time[] = { "TIME" };
	enum rlock_status status = try_command(trial, ALL, false, 3, eval, &trial->eval);
	enum answer answer;

	if (status == RLOCK_OK)
		status = try_command(trial, ALL, false, 3, evalsha, &answer);
	if (status == RLOCK_OK)
		status = try_command(trial, ALL, false, 1, time, &answer);
	if (status == RLOCK_OK)
		status = try_command(trial, FAIR, true, 2, info, &answer);
	if (status == RLOCK_OK)
		status = try_lists(trial, key);
	return status == RLOCK_OK ? try_making(trial, key) : status;
}

/* ---- rights: keys and channels ---- */

/* As a pattern for all names with that prefix. */
static void report_pattern(struct trial *trial, char sort, const struct key_right *row,
			   const char *end)
{
	const char *chance = trial->name.text + trial->prefix->len;
	const char *text = trial->keys.of[row->key].text;
	const char *cut = memmem(text, trial->keys.of[row->key].len, chance, strlen(chance));
	char shown[RLOCK_NAME_MAX + RLOCK_RIGHT_MAX];
	char *right = NULL;

	if (cut == NULL)
		return;
	(void)rlock_escape(text, (size_t)(cut - text), shown, sizeof(shown));
	if (asprintf(&right, "%c%s*%s", sort, shown, end) < 0)
		return;
	report(trial, right, row->kinds, row->is_optional);
	free(right);
}

static enum rlock_status try_key(struct trial *trial, const struct key_right *row)
{
	const char *key = trial->keys.of[row->key].text;
	bool is_start = row->key == RLOCK__KEY_TIMEOUTS; /* of keys, of which one is tried */
	const char *end = is_start                         ? "}:*:rwlock_timeout:*"
			  : row->key == RLOCK__KEY_PERMITS ? "}:timeout"
							   : "";
	enum rlock_status status;
	enum answer answer;
	char *text = NULL;

	if (asprintf(&text, "%s%s", key, is_start ? ":1:rwlock_timeout:1" : "") < 0)
		return rlock__fail_memory(&trial->conn->error);
	{
		/* A script does not touch the key that it is given. */
		const char *argv[] = { "EVAL", "return 1", "1", text };

		status = run_trial(trial, 4, argv, &answer);
	}
	if (status == RLOCK_OK && answer == OBJECT_DENIED)
		report_pattern(trial, '~', row, end);
	free(text);
	return status;
}

static enum rlock_status try_publish(struct trial *trial, const struct key_right *row,
				     const char *end)
{
	const struct key_right own = { row->key, row->kinds, true };
	enum rlock_status status;
	enum answer answer;
	char *text = NULL;

	if (asprintf(&text, "%s%s", trial->keys.of[row->key].text, end) < 0)
		return rlock__fail_memory(&trial->conn->error);
	{
		const char *argv[] = { "PUBLISH", text, "0" };

		status = run_trial(trial, 3, argv, &answer);
	}
	if (status == RLOCK_OK && answer == OBJECT_DENIED)
		report_pattern(trial, '&', end[0] != '\0' ? &own : row, "");
	else if (status == RLOCK_OK && answer == COMMAND_DENIED && !trial->lacks_publish) {
		trial->lacks_publish = true;
		report(trial, "+publish", ALL, false);
	}
	free(text);
	return status;
}

/* Over a connection of its own: one that has subscribed serves nothing else. */
static enum rlock_status try_subscribe(struct trial *trial)
{
	struct rlock__text channel = { strdup(trial->keys.of[RLOCK__KEY_CHANNEL].text),
				       trial->keys.of[RLOCK__KEY_CHANNEL].len };
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

	for (size_t i = 0; trial->eval == ALLOWED && i < sizeof(keys) / sizeof(keys[0]); i++) {
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
	status = run_trial(trial, 2, numsub, &answer);
	if (status != RLOCK_OK)
		return status;
	if (answer != ALLOWED)
		report(trial, "+pubsub|numsub", ALL, true);
	return try_subscribe(trial);
}

/* ---- all rights ---- */

enum rlock_status rlock_conn_try_rights(struct rlock_conn *conn, size_t index,
					const struct rlock_name *prefix, rlock_lack_fn report_lack,
					void *ctx)
{
	struct trial trial = { .conn = conn,
			       .connection = conn->connections[index],
			       .prefix = prefix,
			       .report = report_lack,
			       .ctx = ctx };
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
	if (!rlock__keys_make(&trial.keys, &trial.name))
		return rlock__fail_memory(&conn->error);
	status = try_commands(&trial, trial.keys.of[RLOCK__KEY_LOCK].text);
	if (status == RLOCK_OK)
		status = try_objects(&trial);
	free(trial.keys.memory);
	if (status != RLOCK_OK && conn->error.text[0] == '\0')
		rlock__conn_copy_error(conn, index);
	return status;
}
