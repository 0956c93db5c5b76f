/*
 * What rlock check asks a server: what it tells of itself, and which rights a user lacks for locks. Each right is tried, in the
 * form that changes nothing, by which scripts try those that their kind of lock needs. What the answers are worth is for the caller.
 */
#include <ctype.h>
#include <hiredis/hiredis.h>
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
#include "net/sentinels.h"
#include "net/server_error.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/url.h"

/* ---- facts ---- */

bool rlock_server_fact(const char *facts, const char *name, char out[RLOCK_FACT_MAX])
{
	size_t name_len = strlen(name);

	out[0] = '\0';
	for (const char *line = facts; *line != '\0'; line += strspn(line, "\r\n")) {
		size_t len = strcspn(line, "\r\n");

		if (len > name_len && strncmp(line, name, name_len) == 0 && line[name_len] == ':') {
			(void)rlock_escape(line + name_len + 1, len - name_len - 1, out,
					   RLOCK_FACT_MAX);
			return true;
		}
		line += len;
	}
	return false;
}

static const char *const questions[][3] = {
	{ "INFO", "default", NULL },
	{ "INFO", "commandstats", NULL },
	{ "CONFIG", "GET", "save" },
	{ "CONFIG", "GET", "appendfsync" },
};

/* Add what the server has for INFO SECTION, or for the setting of CONFIG GET NAME, unless it denies it. */
static enum rlock_status ask(struct rlock__connection *connection, const char *const words[3],
			     char **facts)
{
	const char *argv[] = { words[0], words[1], words[2] };
	bool is_setting = words[2] != NULL;
	char *longer = NULL;
	redisReply *reply = NULL, *text;
	enum rlock_status status = rlock__command_run(connection, is_setting ? 3 : 2, argv, &reply);

	if (status != RLOCK_OK)
		return status;
	text = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? reply->element[1] : reply;
	if (text->type == REDIS_REPLY_STRING &&
	    asprintf(&longer, "%s%s%s%s\n", *facts, is_setting ? words[2] : "",
		     is_setting ? ":" : "", text->str) < 0) {
		status = rlock__fail_memory(&connection->error);
	} else if (longer != NULL) {
		free(*facts);
		*facts = longer;
	}
	freeReplyObject(reply);
	return status;
}

/* ---- TLS ---- */

static void tell_tls(const struct rlock__connection *connection, struct rlock_server_info *out)
{
	const struct rlock__tls *tls = connection->session.stream.tls;

	if (tls == NULL)
		return;
	(void)snprintf(out->tls, sizeof(out->tls), "%s", rlock__tls_version(tls));
	out->certificate_s = rlock__tls_certificate_s(tls);
}

/* ---- sentinels ---- */

/* All are waited for, also those that no lock waits for. */
static void count_sentinels(struct rlock__connection *connection, struct rlock_server_info *out,
			    char text[RLOCK_ERROR_MAX])
{
	struct rlock__sentinels_found found;

	if (!rlock__connection_has_sentinels(connection))
		return;
	rlock__request_survey(connection, &found);
	out->sentinels = found.count;
	out->sentinels_answered = found.answered;
	out->sentinels_named = found.named;
	if (found.is_agreed || !found.is_disputed)
		return;
	(void)snprintf(text, RLOCK_ERROR_MAX, "%s", connection->error.text);
	out->disagreement = text;
}

/* ---- sharding ---- */

/* Under so many keys a proxy before two servers leads to both of them. */
#define SHARD_KEYS 16

/* run_id of the server to which the index-th key leads; empty: it is denied. The user's rights have ~rlock_*. */
static enum rlock_status run_of_key(struct rlock__connection *connection, int index,
				    char out[RLOCK_FACT_MAX])
{
	char key[32];
	const char *argv[] = { "EVAL", "return redis.call('INFO', 'server')", "1", key };
	redisReply *reply = NULL;
	enum rlock_status status;

	out[0] = '\0';
	(void)snprintf(key, sizeof(key), "rlock_check:%d", index);
	status = rlock__command_run(connection, 4, argv, &reply);
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_STRING)
		(void)rlock_server_fact(reply->str, "run_id", out);
	freeReplyObject(reply);
	return status;
}

/* A script runs on the server of its first key, and finds none of what its other keys have on theirs. */
static enum rlock_status look_for_shards(struct rlock__connection *connection,
					 struct rlock_server_info *out)
{
	char first[RLOCK_FACT_MAX], run[RLOCK_FACT_MAX];
	enum rlock_status status;

	if (rlock__connection_has_cluster(connection))
		return RLOCK_OK;
	status = run_of_key(connection, 0, first);
	for (int i = 1; status == RLOCK_OK && first[0] != '\0' && i < SHARD_KEYS; i++) {
		status = run_of_key(connection, i, run);
		/* A node of a cluster denies the keys of other nodes. */
		out->is_sharded |= run[0] != '\0' && strcmp(run, first) != 0;
		if (out->is_sharded)
			break;
	}
	return status;
}

/* ---- all of it ---- */

struct telling {
	rlock_server_fn on_server;
	void *ctx;
};

static enum rlock_status on_node(void *ctx, struct rlock__connection *connection)
{
	const struct telling *telling = ctx;
	struct rlock_server_info info = { .certificate_s = -1 };
	char disagreement[RLOCK_ERROR_MAX];
	char *facts = strdup("");
	enum rlock_status status =
		facts != NULL ? RLOCK_OK : rlock__fail_memory(&connection->error);

	for (size_t i = 0; status == RLOCK_OK && i < sizeof(questions) / sizeof(questions[0]); i++)
		status = ask(connection, questions[i], &facts);
	if (status == RLOCK_OK) {
		tell_tls(connection, &info);
		count_sentinels(connection, &info, disagreement);
		status = look_for_shards(connection, &info);
	}
	if (status == RLOCK_OK) {
		info.server = rlock_url_server(rlock__connection_server(connection));
		info.facts = facts;
		telling->on_server(telling->ctx, &info);
	}
	free(facts);
	return status;
}

enum rlock_status rlock_conn_server_info(struct rlock_conn *conn, size_t index,
					 rlock_server_fn on_server, void *ctx)
{
	struct telling telling = { on_server, ctx };

	return rlock__conn_each_node(conn, index, on_node, &telling);
}

/* ---- time ---- */

static bool is_number(const redisReply *reply, int64_t *out)
{
	return reply->type == REDIS_REPLY_STRING &&
	       rlock__decimal_parse(reply->str, reply->len, out) && *out >= 0;
}

enum rlock_status rlock_conn_read_clock(struct rlock_conn *conn, size_t index,
					struct rlock_clock_reading *out)
{
	struct rlock__connection *connection = conn->connections[index];
	const char *argv[] = { "TIME" };
	int64_t begin_us = rlock__now_us(), seconds, us;
	redisReply *reply = NULL;
	enum rlock_status status = rlock__command_run(connection, 1, argv, &reply);

	*out = (struct rlock_clock_reading){ -1, begin_us, rlock__now_us() };
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR) {
		status = rlock__server_error(&connection->error, reply->str, reply->len, NULL);
		/* A TIME that is denied, or that a proxy does not know, took as long. */
		if (status == RLOCK_EACL || status == RLOCK_ESERVER || status == RLOCK_EUNSUPPORTED)
			status = RLOCK_OK;
	} else if (status == RLOCK_OK && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
		   is_number(reply->element[0], &seconds) && is_number(reply->element[1], &us) &&
		   seconds < INT64_MAX / 1000000 - 1 && us < 1000000) {
		out->server_us = seconds * 1000000 + us;
	}
	freeReplyObject(reply);
	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	return status;
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
	{ RLOCK__KEY_LAST, ALL, true },
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
	enum rlock_status
		status; /* the first failure stays: nothing more is tried then, and all counts as allowed */
	char chance[RLOCK_HOLD_ID_MAX]; /* in place of the '*' */
	char probe[RLOCK_NAME_MAX +
		   1]; /* a name that no client uses: it fits the pattern, unless that is a name */
	struct rlock__keys keys; /* and channels: of the name that was given, or of the probe */
	bool is_any;             /* the pattern of all names */
	rlock_lack_fn report;
	void *ctx;
	enum answer eval;
	bool lacks_publish;
	unsigned lacks_removal; /* how many of DEL and PEXPIRE */
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

static enum answer run_trial(struct trial *trial, int argc, const char **argv)
{
	enum answer answer = ALLOWED;
	redisReply *reply = NULL;

	if (trial->status == RLOCK_OK)
		trial->status = rlock__command_run(trial->connection, argc, argv, &reply);
	if (reply != NULL)
		answer = answer_of(reply);
	freeReplyObject(reply);
	return answer;
}

static void report(struct trial *trial, const char *right, unsigned kinds, bool is_optional)
{
	const struct rlock_lack lack = { right, kinds, is_optional };

	trial->report(trial->ctx, &lack);
}

/* ---- rights: commands ---- */

static enum answer try_command(struct trial *trial, unsigned kinds, bool is_optional, int argc,
			       const char **argv)
{
	char right[RLOCK_RIGHT_MAX] = "+";
	enum answer answer = run_trial(trial, argc, argv);

	for (size_t i = 0; argv[0][i] != '\0' && i + 2 < sizeof(right); i++)
		right[i + 1] = (char)tolower((unsigned char)argv[0][i]);
	if (answer == COMMAND_DENIED)
		report(trial, right, kinds, is_optional);
	return answer;
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

static void try_lists(struct trial *trial, const char *key)
{
	for (const struct rlock__right *row = rlock__rights; row->list != NULL; row++) {
		const char *argv[WORDS_MAX] = { row->command, key, "", "", "" };
		unsigned kinds = kinds_of(row);

		if (kinds != 0 && strcmp(row->command, "RPUSH") != 0 &&
		    try_command(trial, kinds, false, 2 + row->arguments, argv) == COMMAND_DENIED)
			trial->lacks_removal += strcmp(row->command, "DEL") == 0 ||
						strcmp(row->command, "PEXPIRE") == 0;
	}
}

/* Nothing keeps these from making a key. One that is not sure to be removed again is not made: they are reported. */
static void try_making(struct trial *trial, const char *key)
{
	const char *rpush[] = { "RPUSH", key, "" }, *incr[] = { "INCR", key };
	const char *del[] = { "DEL", key }, *expire[] = { "PEXPIRE", key, "1" };

	if (trial->lacks_removal == 2) {
		report(trial, "+rpush", FAIR, false);
		report(trial, "+incr", MUTEX, true);
		return;
	}
	(void)try_command(trial, FAIR, false, 3, rpush);
	/* A list is no number, but the right is looked at before. */
	(void)try_command(trial, MUTEX, true, 2, incr);
	if (run_trial(trial, 2, del) == COMMAND_DENIED)
		(void)run_trial(trial, 3, expire);
}

/* The key is not there. */
static void try_commands(struct trial *trial, const char *key)
{
	const char *eval[] = { "EVAL", "return 1", "0" }, *info[] = { "INFO", "server" };
	const char *evalsha[] = { "EVALSHA", "0000000000000000000000000000000000000000", "0" };
	const char *time[] = { "TIME" }, *scan[] = { "SCAN", "0", "COUNT", "1" };
	const char *slots[] = { "CLUSTER", "SLOTS" }, *numsub[] = { "PUBSUB", "NUMSUB" };

	trial->eval = try_command(trial, ALL, false, 3, eval);
	(void)try_command(trial, ALL, false, 3, evalsha);
	(void)try_command(trial, ALL, false, 1, time);
	(void)try_command(trial, FAIR, true, 2, info);
	try_lists(trial, key);
	/* Only `rlock list` needs these two. */
	(void)try_command(trial, ALL, true, 4, scan);
	if (rlock__connection_has_cluster(trial->connection) &&
	    run_trial(trial, 2, slots) != ALLOWED)
		report(trial, "+cluster|slots", ALL, true);
	if (run_trial(trial, 2, numsub) != ALLOWED)
		report(trial, "+pubsub|numsub", ALL, true);
	try_making(trial, key);
}

/* ---- rights: keys and channels ---- */

/* A key, a channel or a pattern of them: what stands around the name is short. */
#define OBJECT_MAX (RLOCK_NAME_MAX + 128)

/*
 * As a pattern for all names that were asked for; end is what follows. What redis-cli or ACL SETUSER would not take as it
 * is, as a blank, is any byte.
 */
static void report_pattern(struct trial *trial, char sort, const struct key_right *row,
			   const char *end)
{
	const char *text = trial->keys.of[row->key].text;
	size_t len = trial->keys.of[row->key].len, chance_len = strlen(trial->chance);
	const char *chance = memmem(text, len, trial->chance, chance_len);
	char right[OBJECT_MAX], *to = right;

	*to++ = sort;
	for (const char *at = text; at < text + len; at++) {
		if (at == chance) {
			*to++ = '*';
			at += chance_len - 1;
		} else {
			*to++ = isgraph((unsigned char)*at) && strchr("\"'\\", *at) == NULL ? *at
											    : '?';
		}
	}
	(void)snprintf(to, sizeof(right) - (size_t)(to - right), "%s", end);
	report(trial, right, row->kinds, row->is_optional);
}

/* Without EVAL, by the first of these commands that the user may run. */
static enum answer read_key(struct trial *trial, const char *key)
{
	static const char *const commands[] = { "TYPE", "EXISTS", "PTTL", "HLEN" };
	enum answer answer = COMMAND_DENIED;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && answer == COMMAND_DENIED;
	     i++) {
		const char *argv[] = { commands[i], key };

		answer = run_trial(trial, 2, argv);
	}
	return answer;
}

static void try_key(struct trial *trial, const struct key_right *row)
{
	bool is_start = row->key == RLOCK__KEY_TIMEOUTS; /* of keys, of which one is tried */
	char key[OBJECT_MAX];
	/* A script does not touch the key that it is given. */
	const char *argv[] = { "EVAL", "return 1", "1", key };
	enum answer answer;

	(void)snprintf(key, sizeof(key), "%s%s", trial->keys.of[row->key].text,
		       is_start ? ":1:rwlock_timeout:1" : "");
	answer = trial->eval == ALLOWED ? run_trial(trial, 4, argv) : read_key(trial, key);
	if (answer != ALLOWED)
		report_pattern(trial, '~', row, is_start ? ":*:rwlock_timeout:*" : "");
}

/* end is that of a waiter's own channel, or nothing. */
static enum answer publish(struct trial *trial, const struct key_right *row, const char *end)
{
	char channel[OBJECT_MAX];
	/* No message of a lock: Redisson passes over it. */
	const char *argv[] = { "PUBLISH", channel, "-1" };

	(void)snprintf(channel, sizeof(channel), "%s%s", trial->keys.of[row->key].text, end);
	return run_trial(trial, 3, argv);
}

/* Over a connection of its own: one that has subscribed serves nothing else. */
static enum answer subscribe(struct trial *trial, enum rlock__key key)
{
	char *const channel = (char *)trial->keys.of[key].text;
	struct rlock__connection *twin = NULL;
	enum answer answer = ALLOWED;

	if (trial->status != RLOCK_OK)
		return ALLOWED;
	trial->status = rlock__connection_twin(trial->connection, &twin);
	if (trial->status == RLOCK_OK)
		trial->status = rlock__subscription_open(twin, &channel, 1, INT64_MAX);
	if (trial->status == RLOCK_EACL)
		answer = strstr(twin->error.text, "channel") == NULL ? COMMAND_DENIED
								     : OBJECT_DENIED;
	/* Where messages can't come waiters go without: trial.c reports it. */
	if (trial->status == RLOCK_EACL || trial->status == RLOCK_EUNSUPPORTED ||
	    trial->status == RLOCK_ENET)
		trial->status = RLOCK_OK;
	if (trial->status != RLOCK_OK && twin != NULL)
		(void)rlock__fail(&trial->conn->error, trial->status, "%s", twin->error.text);
	rlock__connection_free(twin);
	return answer;
}

/*
 * A user that may not publish is asked to subscribe, as it may have all channels, which no pattern may follow. When it may
 * do neither it has no use for the channels that it has.
 */
static enum answer try_channel_without_publish(struct trial *trial, const struct key_right *row)
{
	enum answer answer = subscribe(trial, row->key);

	if (!trial->lacks_publish)
		report(trial, "+publish", ALL, false);
	if (!trial->lacks_publish && answer == COMMAND_DENIED)
		report(trial, "resetchannels", ALL, false);
	trial->lacks_publish = true;
	return answer;
}

/* One pattern is for the channel, and for those of waiters. */
static void try_channel(struct trial *trial, const struct key_right *row)
{
	const struct key_right own = { row->key, row->kinds, true };
	enum answer answer = publish(trial, row, "");

	if (answer == ALLOWED && publish(trial, row, ":1") != ALLOWED)
		report_pattern(trial, '&', &own, "*");
	if (answer == COMMAND_DENIED)
		answer = try_channel_without_publish(trial, row);
	if (answer != ALLOWED)
		report_pattern(trial, '&', row, "*");
}

static void try_objects(struct trial *trial)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		/* No pattern may follow "~*", which has them all. */
		if (!trial->is_any || keys[i].key == RLOCK__KEY_LOCK)
			try_key(trial, &keys[i]);
	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++)
		try_channel(trial, &channels[i]);
	if (subscribe(trial, RLOCK__KEY_CHANNEL) == COMMAND_DENIED)
		report(trial, "+subscribe", ALL, false);
}

/* ---- all rights ---- */

static enum rlock_status make_names(struct trial *trial, const struct rlock_name *pattern)
{
	size_t at = strcspn(pattern->text, "*?[\\");
	const char *after = pattern->text[at] == '*' ? pattern->text + at + 1 : "";
	/* What else is special in a pattern ends it: the rights are then those for more names. */
	size_t used = after[strcspn(after, "*?[\\")] == '\0' ? strlen(after) : 0;
	const struct rlock_name probe = { trial->probe, at + strlen(trial->chance) + used };
	const struct rlock_name *name = at == pattern->len ? pattern : &probe;
	enum rlock_status status;

	trial->is_any = at == 0 && used == 0;
	if (probe.len > RLOCK_NAME_MAX)
		return rlock__fail(&trial->conn->error, RLOCK_EINVAL,
				   "the name is too long for a check");
	(void)snprintf(trial->probe, sizeof(trial->probe), "%.*s%s%.*s", (int)at, pattern->text,
		       trial->chance, (int)used, after);
	status = rlock__conn_check_name(trial->conn, name, 0);
	if (status == RLOCK_OK && !rlock__keys_make(&trial->keys, name))
		status = rlock__fail_memory(&trial->conn->error);
	return status;
}

enum rlock_status rlock_conn_try_rights(struct rlock_conn *conn, size_t index,
					const struct rlock_name *pattern, rlock_lack_fn report_lack,
					void *ctx)
{
	struct trial trial = { .conn = conn,
			       .connection = conn->connections[index],
			       .report = report_lack,
			       .ctx = ctx };
	enum rlock_status status = rlock_hold_id_new(trial.chance);

	/* That of another server may stand there. */
	conn->error.text[0] = '\0';
	if (status != RLOCK_OK)
		return rlock__fail(&conn->error, status, "cannot get random bytes");
	status = make_names(&trial, pattern);
	if (status != RLOCK_OK)
		return status;
	/* The lock's key is its name. */
	try_commands(&trial, trial.probe);
	try_objects(&trial);
	free(trial.keys.memory);
	if (trial.status != RLOCK_OK && conn->error.text[0] == '\0')
		rlock__conn_copy_error(conn, index);
	return trial.status;
}
