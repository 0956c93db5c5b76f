/*
 * Query a server for `rlock check`: its settings and state, and the rights to locks that a user lacks. Each right is tried by
 * a command, in the way in which the scripts try the rights for their kind of lock. The commands change nothing, except for
 * RPUSH and INCR, whose key is removed again. The caller judges the results.
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

/* Add the reply to INFO SECTION or CONFIG GET NAME to facts, unless the server denies the command. */
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

/* Query all sentinels, and wait for the reply of each. (A lock waits only until a majority agrees.) */
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

/* Number of keys to try. With this many, a proxy before two servers almost certainly sends some keys to each server. */
#define SHARD_KEYS 16

/*
 * The run_id of the server to which a proxy sends the index-th key. Empty: the command was denied. The keys fit the pattern
 * ~rlock_*, to which users usually have the right.
 */
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

/*
 * Find out whether a proxy distributes keys over several servers. A script then misses the values of keys on other servers,
 * because it runs on the server of its first key.
 */
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
		/* An empty run_id proves nothing, because a node of a cluster denies the keys of other nodes. */
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
		/* A denial of TIME, or an error of a proxy that does not know the command, shows the latency as well. */
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

/* The kinds of locks that need the rights of each list in lua/inc/rights.lua. */
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
	/* The first failure. After a failure no command is sent, and each right counts as allowed. */
	enum rlock_status status;
	/* random digits, which replace the '*' of the pattern */
	char digits[RLOCK_HOLD_ID_MAX];
	/*
	 * A name that no client uses: the pattern with digits instead of its '*'. If the pattern is itself a name, only
	 * commands are tried on this name, and keys and channels are those of the pattern.
	 */
	char probe[RLOCK_NAME_MAX + 1];
	struct rlock__keys keys; /* keys and channels of the given name, or of the probe */
	bool is_any;             /* The pattern matches all names. */
	rlock_lack_fn report;
	void *ctx;
	enum answer eval;
	bool lacks_publish;
	unsigned lacks_removal; /* number of DEL and PEXPIRE that the user may not run */
};

/* What the reply to a command says about the right. The texts differ between versions of Redis. */
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

/* The kinds that need the command, by all lists that contain it. 0: an earlier row has the same command, and has been tried. */
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

/*
 * Try RPUSH and INCR, which create a key. If the user may not remove that key again (neither by DEL nor by PEXPIRE), do not
 * try the two commands, but report them as missing.
 */
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
	/* The key is a list now, so INCR fails. But the server checks the right before that. */
	(void)try_command(trial, MUTEX, true, 2, incr);
	if (run_trial(trial, 2, del) == COMMAND_DENIED)
		(void)run_trial(trial, 3, expire);
}

/* Try all commands except PUBLISH and SUBSCRIBE, on a key that does not exist. */
static void try_commands(struct trial *trial, const char *key)
{
	const char *eval[] = { "EVAL", "return 1", "0" }, *info[] = { "INFO", "server" };
	const char *evalsha[] = { "EVALSHA", "0000000000000000000000000000000000000000", "0" };
	const char *time[] = { "TIME" }, *scan[] = { "SCAN", "0", "COUNT", "1" };
	const char *slots[] = { "CLUSTER", "SLOTS" }, *nodes[] = { "CLUSTER", "NODES" };
	const char *numsub[] = { "PUBSUB", "NUMSUB" };

	trial->eval = try_command(trial, ALL, false, 3, eval);
	(void)try_command(trial, ALL, false, 3, evalsha);
	(void)try_command(trial, ALL, false, 1, time);
	(void)try_command(trial, FAIR, true, 2, info);
	try_lists(trial, key);
	/* Only `rlock list` needs SCAN, CLUSTER SLOTS and CLUSTER NODES. */
	(void)try_command(trial, 0, true, 4, scan);
	if (rlock__connection_has_cluster(trial->connection)) {
		if (run_trial(trial, 2, slots) != ALLOWED)
			report(trial, "+cluster|slots", 0, true);
		if (run_trial(trial, 2, nodes) != ALLOWED)
			report(trial, "+cluster|nodes", 0, true);
	}
	if (run_trial(trial, 2, numsub) != ALLOWED)
		report(trial, "+pubsub|numsub", ALL, true);
	try_making(trial, key);
}

/* ---- rights: keys and channels ---- */

/* Size of the longest key, channel or pattern: a name, and short parts around it. */
#define OBJECT_MAX (RLOCK_NAME_MAX + 128)

/*
 * Report a missing right to a key or channel (sort is '~' or '&') as a pattern that matches all names of the request. The
 * pattern ends with end. Replace bytes that redis-cli or ACL SETUSER would misread, for example a blank, by '?'.
 */
static void report_pattern(struct trial *trial, char sort, const struct key_right *row,
			   const char *end)
{
	const char *text = trial->keys.of[row->key].text;
	size_t len = trial->keys.of[row->key].len, digits_len = strlen(trial->digits);
	const char *digits = memmem(text, len, trial->digits, digits_len);
	char right[OBJECT_MAX], *to = right;

	*to++ = sort;
	for (const char *at = text; at < text + len; at++) {
		if (at == digits) {
			*to++ = '*';
			at += digits_len - 1;
		} else {
			*to++ = isgraph((unsigned char)*at) && strchr("\"'\\", *at) == NULL ? *at
											    : '?';
		}
	}
	(void)snprintf(to, sizeof(right) - (size_t)(to - right), "%s", end);
	report(trial, right, row->kinds, row->is_optional);
}

/* Try to read the key, for a user that may not run EVAL: by the first of these commands that the user may run. */
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
	bool is_start = row->key == RLOCK__KEY_TIMEOUTS; /* a beginning of keys: try one such key */
	char key[OBJECT_MAX];
	/* The script does not use its key, so the server checks only the right to the key. */
	const char *argv[] = { "EVAL", "return 1", "1", key };
	enum answer answer;

	(void)snprintf(key, sizeof(key), "%s%s", trial->keys.of[row->key].text,
		       is_start ? ":1:rwlock_timeout:1" : "");
	answer = trial->eval == ALLOWED ? run_trial(trial, 4, argv) : read_key(trial, key);
	if (answer != ALLOWED)
		report_pattern(trial, '~', row, is_start ? ":*:rwlock_timeout:*" : "");
}

/* Try to publish to the channel whose name ends with end: "" for a lock's channel, else the end of a waiter's own channel. */
static enum answer publish(struct trial *trial, const struct key_right *row, const char *end)
{
	char channel[OBJECT_MAX];
	/* No lock publishes -1, and Redisson ignores this message. */
	const char *argv[] = { "PUBLISH", channel, "-1" };

	(void)snprintf(channel, sizeof(channel), "%s%s", trial->keys.of[row->key].text, end);
	return run_trial(trial, 3, argv);
}

/* Try to subscribe over another connection, because a connection with a subscription serves no other command. */
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
		answer = twin->error.is_about_channel ? OBJECT_DENIED : COMMAND_DENIED;
	/* Other failures are no missing right. With RLOCK_EUNSUPPORTED and RLOCK_ENET waiters poll, and trial.c reports that. */
	if (trial->status == RLOCK_EACL || trial->status == RLOCK_EUNSUPPORTED ||
	    trial->status == RLOCK_ENET)
		trial->status = RLOCK_OK;
	if (trial->status != RLOCK_OK && twin != NULL)
		(void)rlock__fail(&trial->conn->error, trial->status, "%s", twin->error.text);
	rlock__connection_free(twin);
	return answer;
}

/*
 * Try the right to a channel by SUBSCRIBE, for a user that may not run PUBLISH. If the user may not run SUBSCRIBE either,
 * nothing shows which channels it has the right to. It may have the right to all channels, and then ACL SETUSER accepts no
 * pattern of channels. So report "resetchannels" first.
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

/* Try to publish to the lock's channel and to a waiter's own channel. One pattern gives the right to both. */
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
		/* If the pattern matches all names, report only "~*", because ACL SETUSER accepts no other pattern after it. */
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
	/*
	 * If more special bytes follow the first one, ignore the rest of the pattern: the rights that are reported then match
	 * more names.
	 */
	size_t used = after[strcspn(after, "*?[\\")] == '\0' ? strlen(after) : 0;
	const struct rlock_name probe = { trial->probe, at + strlen(trial->digits) + used };
	const struct rlock_name *name = at == pattern->len ? pattern : &probe;
	enum rlock_status status;

	trial->is_any = at == 0 && used == 0;
	if (probe.len > RLOCK_NAME_MAX)
		return rlock__fail(&trial->conn->error, RLOCK_EINVAL,
				   "the name is too long for a check");
	(void)snprintf(trial->probe, sizeof(trial->probe), "%.*s%s%.*s", (int)at, pattern->text,
		       trial->digits, (int)used, after);
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
	enum rlock_status status = rlock_hold_id_new(trial.digits);

	/* Clear the error text, which may be about another server. */
	conn->error.text[0] = '\0';
	if (status != RLOCK_OK)
		return rlock__fail(&conn->error, status, "cannot get random bytes");
	status = make_names(&trial, pattern);
	if (status != RLOCK_OK)
		return status;
	/* Try the commands on the key of a lock, which has the lock's name. */
	try_commands(&trial, trial.probe);
	try_objects(&trial);
	free(trial.keys.memory);
	if (trial.status != RLOCK_OK && conn->error.text[0] == '\0')
		rlock__conn_copy_error(conn, index);
	return trial.status;
}
