/*
 * A lock of each kind while things go wrong around it: rights are taken away for a while, the server has no memory
 * left, and requests come a second time, at once or much later. What a request makes of the lock is not foretold here; but
 * after each step there are no two holders that exclude each other, each hold that a client relies on is there, the
 * counts in the lock are those of the records, and each key has a TTL. At the end nothing is left.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define OWNERS 4
#define HOLDS 12 /* at a time */
#define TOTAL 5  /* permits of the semaphore */
#define WRITE ":write"
#define KEPT ":lingering:" /* on the wire */
#define MOMENT_MS 20

/* What is done to a request. */
enum disturbance { NONE, DENIED, DENIED_TO_USER, FULL };

struct relied {
	struct rlock_hold *handle; /* NULL: there is none */
	char id[RLOCK_HOLD_ID_MAX];
};

static struct {
	enum rlock_kind kind; /* RLOCK_WRITE: of both sorts */
	struct rlock_conn *conn, *user;
	char owners[OWNERS][RLOCK_OWNER_MAX];
	struct relied holds[HOLDS];
	/* Something was done by halves: records and lock may differ until all is broken by force. */
	bool is_dirty;
	/* In a queue may be a waiter that no client knows: that is dead in seconds. */
	bool has_dead_waiter;
	const char *right; /* that was taken away last */
} d;

static const struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };

/* ---- rights, and memory ---- */

static const char *const rights[] = {
	"-hset",   "-hdel",    "-hincrby", "-hget",      "-hvals",   "-hexists", "-hgetall",
	"-hkeys",  "-hlen",    "-del",     "-pexpire",   "-pttl",    "-exists",  "-type",
	"-zadd",   "-zrem",    "-zrange",  "-zcard",     "-zscore",  "-lrem",    "-lindex",
	"-rpush",  "-linsert", "-lpos",    "-lrange",    "-publish", "-get",     "-set",
	"-incrby", "-info",    "-time",    "-subscribe", "-pubsub",  "-hscan",
};

/* Of LOCK. */
static const char *const keys[] = {
	"~job",
	"~{job}:*",
	"~rlock_holds:*",
	"~rlock_ends:*",
	"~rlock_queue:*",
	"~rlock_turn:*",
	"~rlock_writer:*",
	"~rlock_waiters:*",
	"~rlock_total:*",
	"~rlock_last:*",
	"~redisson_lock_token:*",
	"~redisson_lock_queue:*",
	"~redisson_lock_timeout:*",
};

/* All keys but one. */
static void deny_key(const char *user, size_t denied)
{
	server_do("ACL SETUSER %s resetkeys", user);
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (i != denied)
			server_do("ACL SETUSER %s %s", user, keys[i]);
	d.right = keys[denied];
}

static void take_right(const char *user)
{
	size_t which = chance(COUNT_OF(rights) + COUNT_OF(keys) + 1);

	/* Without it a key may last for ever, in each of many places. */
	if (one_in(4)) {
		d.right = "-pexpire";
		server_do("ACL SETUSER %s %s", user, d.right);
	} else if (which < COUNT_OF(rights)) {
		d.right = rights[which];
		server_do("ACL SETUSER %s %s", user, d.right);
	} else if (which < COUNT_OF(rights) + COUNT_OF(keys)) {
		deny_key(user, which - COUNT_OF(rights));
	} else {
		d.right = "resetchannels";
		server_do("ACL SETUSER %s %s", user, d.right);
	}
}

static void give_rights(const char *user)
{
	server_do("ACL SETUSER %s allkeys allchannels +@all", user);
}

static enum disturbance any_disturbance(void)
{
	if (!one_in(3))
		return NONE;
	return one_in(2) ? FULL : one_in(2) && d.user != NULL ? DENIED_TO_USER : DENIED;
}

/* The connection by which the request goes. */
static struct rlock_conn *disturb(enum disturbance disturbance)
{
	d.right = "";
	if (disturbance == FULL)
		server_do("CONFIG SET maxmemory 1");
	else if (disturbance == DENIED)
		take_right("default");
	else if (disturbance == DENIED_TO_USER)
		take_right("limited");
	return disturbance == DENIED_TO_USER ? d.user : d.conn;
}

static void undisturb(enum disturbance disturbance)
{
	if (disturbance == FULL)
		server_do("CONFIG SET maxmemory 0");
	else if (disturbance == DENIED)
		give_rights("default");
	else if (disturbance == DENIED_TO_USER)
		give_rights("limited");
}

static const char *words_of(enum disturbance disturbance)
{
	static const char *const words[] = { [NONE] = "",
					     [DENIED] = "denied ",
					     [DENIED_TO_USER] = "denied to a user ",
					     [FULL] = "on a full server " };

	return words[disturbance];
}

/* ---- what is there ---- */

struct record {
	char id[RLOCK_HOLD_ID_MAX];
	char field[FIELD_MAX]; /* its owner's in the lock hash */
	int64_t end_ms, take;
};

static struct {
	struct redisReply *reply;
	const struct redisReply *lock, *holds; /* in it; no lock of a semaphore */
	int64_t now_ms;
	/* Permits: how many are free, how many are not, and how many of these have not ended. -1: there is no counter. */
	long long free, taken, lasting;
	struct record records[256];
	size_t record_count;
} now;

static bool is_semaphore(void)
{
	return d.kind == RLOCK_SEMAPHORE;
}

static void read_records(void)
{
	now.record_count = 0;
	for (size_t i = 0; i < now.holds->elements; i += 2) {
		const char *id = now.holds->element[i]->str, *text = now.holds->element[i + 1]->str;
		struct record *record = &now.records[now.record_count];
		size_t len = strcspn(text, " ");
		char *cursor;

		/* The ids of a reader's holds are no record, nor are the slots in use. */
		if (text[len] == '\0' || text[0] == ' ')
			continue;
		(void)snprintf(record->field, sizeof(record->field), "%.*s", (int)len, text);
		/* "OWNER SINCE_MS END_MS TOKEN ..." */
		(void)strtoll(text + len, &cursor, 10);
		record->end_ms = strtoll(cursor, &cursor, 10);
		record->take = strtoll(cursor, NULL, 10);
		if (record->end_ms <= 0)
			differs("a record is '%s'", text);
		(void)snprintf(record->id, sizeof(record->id), "%s", id);
		if (++now.record_count == COUNT_OF(now.records))
			differs("there are very many records");
	}
}

/* All of one moment: what is kept may end within milliseconds. */
static void look(void)
{
	freeReplyObject(now.reply);
	now.reply = server_reply(
		"EVAL %s 4 " LOCK " rlock_holds:{" LOCK "} {" LOCK "}:timeout rlock_ends:{" LOCK
		"} %d",
		"local t, kind = redis.call('TIME'), redis.call('TYPE', KEYS[1]).ok "
		"local now_ms = t[1] * 1000 + math.floor(t[2] / 1000) "
		"local is_counter = kind == 'string' "
		"return { kind == 'hash' and redis.call('HGETALL', KEYS[1]) or {}, "
		"redis.call('HGETALL', KEYS[2]), now_ms, "
		"is_counter and tonumber(redis.call('GET', KEYS[1])) or -1, "
		"is_counter and redis.call('ZCARD', KEYS[3]) or -1, "
		"is_counter and redis.call('ZCOUNT', KEYS[4], '(' .. now_ms + ARGV[1], '+inf') or -1 }",
		MOMENT_MS);
	now.lock = now.reply->element[0];
	now.holds = now.reply->element[1];
	now.now_ms = now.reply->element[2]->integer;
	now.free = now.reply->element[3]->integer;
	now.taken = now.reply->element[4]->integer;
	now.lasting = now.reply->element[5]->integer;
	read_records();
}

static const struct record *record_of(const char *id)
{
	for (size_t i = 0; i < now.record_count; i++)
		if (strcmp(now.records[i].id, id) == 0)
			return &now.records[i];
	return NULL;
}

static const struct relied *relied_of(const char *id)
{
	for (size_t i = 0; i < HOLDS; i++)
		if (d.holds[i].handle != NULL && strcmp(d.holds[i].id, id) == 0)
			return &d.holds[i];
	return NULL;
}

/* Not one that ends in this moment: its keys may end a bit earlier than the record says. */
static bool is_live(const struct record *record)
{
	return record->end_ms > now.now_ms + MOMENT_MS;
}

static bool is_writer(const struct record *record)
{
	return strstr(record->field, WRITE) != NULL;
}

static bool have_one_owner(const struct record *a, const struct record *b)
{
	/* No two owners have the same UUID, and a ':' follows it. */
	return strncmp(a->field, b->field, strcspn(a->field, ":") + 1) == 0;
}

/* ---- what has to be true ---- */

static void check_exclusion(void)
{
	for (size_t i = 0; i < now.record_count; i++) {
		const struct record *a = &now.records[i];

		for (size_t j = 0; j < i && !is_semaphore(); j++) {
			const struct record *b = &now.records[j];

			if (is_live(a) && is_live(b) && !have_one_owner(a, b) &&
			    (d.kind != RLOCK_WRITE || is_writer(a) || is_writer(b)))
				differs("two hold it: '%s' and '%s'", a->field, b->field);
		}
	}
	if (now.lasting > TOTAL)
		differs("%lld permits are held", now.lasting);
	if (is_semaphore())
		semaphore_check_slots("rlock_holds:{" LOCK "}", "{" LOCK "}:timeout");
}

static void check_relied(void)
{
	for (size_t i = 0; i < HOLDS; i++) {
		const struct record *record;

		if (d.holds[i].handle == NULL)
			continue;
		record = record_of(d.holds[i].id);
		if (record == NULL)
			differs("hold %.8s is lost", d.holds[i].id);
		if (!is_semaphore() && shot_value(now.lock, record->field) == NULL)
			differs("hold %.8s of '%s' has no field", record->id, record->field);
		for (int64_t n = 1; is_semaphore() && n <= record->take; n++)
			if (server_number(
				    "EVAL %s 1 {" LOCK "}:timeout %s:%" PRId64,
				    "return redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0",
				    record->id, n) != 1)
				differs("hold %.8s lacks a permit", record->id);
	}
}

static long records_of(const char *field)
{
	long count = 0;

	for (size_t i = 0; i < now.record_count; i++)
		count += strcmp(now.records[i].field, field) == 0 ? 1 : 0;
	return count;
}

static void check_permits(void)
{
	long long held = 0;

	for (size_t i = 0; i < now.record_count; i++)
		held += is_live(&now.records[i]) ? now.records[i].take : 0;
	if (now.lasting != held && now.lasting >= 0)
		differs("%lld permits are held, and records have %lld", now.lasting, held);
	if (now.free >= 0 && now.free + now.taken != TOTAL)
		differs("%lld permits are free, and %lld are not, of %d", now.free, now.taken,
			TOTAL);
}

/* A lock that is kept for a hold may end a bit later than its record, where a busy machine stopped a script for a moment. */
static bool is_kept_for_a_moment(const char *field)
{
	const char *kept = strstr(field, KEPT);

	return kept != NULL && strtoll(kept + strlen(KEPT), NULL, 10) <= now.now_ms + MOMENT_MS;
}

static void check_counts(void)
{
	for (size_t i = 0; i < now.record_count; i++)
		if (is_live(&now.records[i]) && shot_value(now.lock, now.records[i].field) == NULL)
			differs("the record of '%s' has no field", now.records[i].field);
	for (size_t i = 0; i < now.lock->elements; i += 2) {
		const char *field = now.lock->element[i]->str,
			   *count = now.lock->element[i + 1]->str;

		if (strcmp(field, "mode") != 0 && !is_kept_for_a_moment(field) &&
		    strtol(count, NULL, 10) != records_of(field))
			differs("'%s' has %s holds, and %ld records", field, count,
				records_of(field));
	}
}

static void check_ttls(void)
{
	struct redisReply *reply = server_reply(
		"EVAL %s 0",
		"local found = {} for _, key in ipairs(redis.call('KEYS', '*')) do "
		"if redis.call('PTTL', key) == -1 then found[#found + 1] = key end end "
		"return found");

	for (size_t i = 0; i < reply->elements; i++) {
		const char *key = reply->element[i]->str;

		if (!is_semaphore() ||
		    (strcmp(key, LOCK) != 0 && strcmp(key, "{" LOCK "}:timeout") != 0))
			differs("'%s' has no TTL, after '%s' was taken away", key, d.right);
	}
	freeReplyObject(reply);
}

static void compare(void)
{
	look();
	check_ttls();
	check_exclusion();
	check_relied();
	if (!d.is_dirty && is_semaphore())
		check_permits();
	else if (!d.is_dirty)
		check_counts();
}

/* ---- requests ---- */

static struct relied *any(bool is_there)
{
	size_t first = chance(HOLDS);

	for (size_t i = 0; i < HOLDS; i++) {
		struct relied *relied = &d.holds[(first + i) % HOLDS];

		if ((relied->handle != NULL) == is_there)
			return relied;
	}
	return NULL;
}

static void forget(struct relied *relied)
{
	rlock_hold_free(relied->handle);
	*relied = (struct relied){ 0 };
}

static enum rlock_kind any_kind(void)
{
	if (d.kind == RLOCK_WRITE)
		return one_in(3) ? RLOCK_WRITE : RLOCK_READ;
	return d.kind == RLOCK_FAIR && one_in(6) ? RLOCK_PLAIN : d.kind;
}

/* A free lock without a waiter is acquired, unless the request is disturbed. */
static bool is_untouched(void)
{
	return !is_semaphore() && server_number("DBSIZE") == 0;
}

static void reconnect(void)
{
	rlock_conn_free(d.user);
	d.user = conn_new_for("limited:secret");
}

static bool step_acquire(void)
{
	struct relied *relied = any(false);
	struct rlock_request request = RLOCK_REQUEST_INIT;
	enum disturbance disturbance = any_disturbance();
	bool must_succeed = disturbance == NONE && is_untouched();
	/* A connection tries its rights before it acquires the first lock. */
	bool is_first = disturbance == DENIED_TO_USER && one_in(2);
	enum rlock_status status;
	struct rlock_conn *conn;
	char id[RLOCK_HOLD_ID_MAX];

	if (relied == NULL || rlock_hold_id_new(id) != RLOCK_OK)
		return false;
	request.kind = any_kind();
	request.names = &name;
	request.name_count = 1;
	request.owner = d.owners[chance(OWNERS)];
	request.hold_id = id;
	request.lease_ms = chance_lease_ms();
	request.wait_ms = one_in(6) ? (int64_t)chance(3) : 0;
	request.permits = is_semaphore() ? TOTAL : 0;
	request.take = is_semaphore() ? 1 + (int64_t)chance(3) : 0;
	if (is_first)
		reconnect();
	conn = disturb(disturbance);
	story("acquire %s%s %.8s of %s, %s", words_of(disturbance), rlock_kind_name(request.kind),
	      id, brief(request.owner), d.right);
	status = rlock_acquire(conn, &request, &relied->handle);
	undisturb(disturbance);
	story("it is '%s'", rlock_status_name(status));
	if (must_succeed && status != RLOCK_OK)
		check_status("acquire", status, RLOCK_OK, conn);
	if (status == RLOCK_OK) {
		(void)snprintf(relied->id, sizeof(relied->id), "%s", id);
		tally("times it was acquired");
		return true;
	}
	look();
	if (record_of(id) != NULL && (is_first || disturbance == NONE || disturbance == FULL))
		differs("'%s' (%s), and the hold is there", rlock_status_name(status),
			rlock_conn_error(conn));
	if (status == RLOCK_EACL && !is_first)
		d.is_dirty = true;
	/* To leave the queue may have been denied as well. */
	if (request.wait_ms > 0 && (disturbance == DENIED || disturbance == DENIED_TO_USER))
		d.has_dead_waiter = true;
	tally(status == RLOCK_BUSY ? "times it was busy" : "times an acquisition failed");
	return true;
}

/* A full server takes no hold away, and is no reason to keep one. */
static bool is_allowed(enum disturbance disturbance, enum rlock_status status)
{
	if (status == RLOCK_OK || status == RLOCK_NOT_NOTIFIED)
		return true;
	return disturbance == DENIED || disturbance == DENIED_TO_USER;
}

/* What was denied is denied again. */
static int64_t deadline_of(enum disturbance disturbance)
{
	return disturbance == NONE || disturbance == FULL ? patience() : rlock_now_ms() + 100;
}

static bool step_release(void)
{
	struct relied *relied = any(true);
	enum disturbance disturbance = any_disturbance();
	enum rlock_status status;
	struct rlock_conn *conn;

	if (relied == NULL)
		return false;
	conn = disturb(disturbance);
	story("release %s%.8s, %s", words_of(disturbance), relied->id, d.right);
	status = rlock_release(conn, relied->handle, deadline_of(disturbance));
	undisturb(disturbance);
	story("it is '%s'", rlock_status_name(status));
	if (!is_allowed(disturbance, status))
		check_status("release", status, RLOCK_OK, conn);
	if (status != RLOCK_OK)
		d.is_dirty = true;
	look();
	/* That of a semaphore means nothing without its permits. */
	if (disturbance == DENIED || disturbance == DENIED_TO_USER)
		d.is_dirty = d.is_dirty || is_semaphore();
	else if (record_of(relied->id) != NULL)
		differs("hold %.8s is released, and there", relied->id);
	tally(status == RLOCK_OK ? "times it was released" : "times a release failed");
	forget(relied);
	return true;
}

static bool step_renew(void)
{
	struct relied *relied = any(true);
	enum disturbance disturbance = any_disturbance();
	enum rlock_status status;
	struct rlock_conn *conn;

	if (relied == NULL)
		return false;
	conn = disturb(disturbance);
	story("renew %s%.8s, %s", words_of(disturbance), relied->id, d.right);
	status = rlock_renew(conn, relied->handle, chance_lease_ms(), deadline_of(disturbance));
	undisturb(disturbance);
	if (!is_allowed(disturbance, status) || status == RLOCK_NOT_HELD)
		check_status("renew", status, RLOCK_OK, conn);
	tally(status == RLOCK_OK ? "times it was renewed" : "times a renewal failed");
	return true;
}

static bool step_keep_until(void)
{
	struct relied *relied = any(true);
	enum disturbance disturbance = any_disturbance();
	enum rlock_status status;
	struct rlock_conn *conn;

	if (relied == NULL)
		return false;
	conn = disturb(disturbance);
	story("keep %s%.8s, %s", words_of(disturbance), relied->id, d.right);
	status = rlock_keep_until(conn, relied->handle,
				  one_in(2) ? 1 + (int64_t)chance(3) : chance_lease_ms(),
				  deadline_of(disturbance));
	undisturb(disturbance);
	if (!is_allowed(disturbance, status))
		check_status("keep until", status, RLOCK_OK, conn);
	if (status != RLOCK_OK)
		d.is_dirty = true;
	tally(status == RLOCK_OK ? "times it was kept" : "times it could not be kept");
	forget(relied);
	return true;
}

/* ---- requests that come again ---- */

/* The last requests of the library, as the server got them. */
static struct words requests[64];
static size_t request_count;

static void collect(void)
{
	struct words words;

	while (server_next_request(&words)) {
		struct words *place = &requests[request_count++ % COUNT_OF(requests)];

		words_free(place);
		*place = words;
	}
}

/* The id of the hold that a request is about, if a client relies on it. */
static const struct relied *relied_in(const struct words *words)
{
	for (size_t i = 0; i < words->count; i++) {
		const struct relied *relied = relied_of(words->texts[i]);

		if (relied != NULL)
			return relied;
	}
	return NULL;
}

/* Whether it is a try to acquire that may wait: see lua/inc/request.lua. */
static bool may_join(const struct words *words)
{
	size_t options = 3 + strtoul(words->texts[2], NULL, 10) + 4;

	return words->count > options && strspn(words->texts[options], "01") >= 4 &&
	       words->texts[options][1] == '1';
}

static bool replay(size_t index, const char *what)
{
	const struct words *words = &requests[index % COUNT_OF(requests)];

	story("%s of a request about %s%s", what, relied_in(words) != NULL ? "a hold " : "no hold",
	      relied_in(words) != NULL ? relied_in(words)->id : "");
	server_send(words);
	d.has_dead_waiter = d.has_dead_waiter || may_join(words);
	tally(what);
	return true;
}

static bool step_resend(void)
{
	return request_count > 0 && replay(request_count - 1, "resends");
}

static bool step_replay(void)
{
	size_t kept = request_count < COUNT_OF(requests) ? request_count : COUNT_OF(requests);

	return kept > 0 &&
	       replay(request_count - 1 - chance((unsigned)kept), "replays of an early request");
}

/* A request that came late has acquired it for no client. */
static bool step_release_unknown(void)
{
	struct rlock_hold *hold = NULL;
	const struct record *record;
	enum rlock_status status;
	enum rlock_kind kind = d.kind;
	char id[RLOCK_HOLD_ID_MAX];

	look();
	if (now.record_count == 0)
		return false;
	record = &now.records[chance((unsigned)now.record_count)];
	if (relied_of(record->id) != NULL)
		return false;
	if (d.kind == RLOCK_WRITE && !is_writer(record))
		kind = RLOCK_READ;
	(void)snprintf(id, sizeof(id), "%s", record->id);
	story("release %.8s of no client", id);
	if (rlock_hold_new(kind, &name, 1, id, rlock_now_ms(), 30000, &hold) != RLOCK_OK)
		differs("no hold");
	status = rlock_release(d.conn, hold, patience());
	if (status != RLOCK_NOT_HELD)
		check_status("release", status, RLOCK_OK, d.conn);
	rlock_hold_free(hold);
	look();
	if (record_of(id) != NULL)
		differs("hold %.8s is released, and there", id);
	tally("releases of what a late request had acquired");
	return true;
}

/* ---- keys beside the lock that are gone ---- */

/* Whatever happens then, each key that is made has a TTL. */
static bool step_delete_side_key(void)
{
	static const char *const deleted[] = { "rlock_holds:{" LOCK "}", "rlock_ends:{" LOCK "}",
					       "rlock_waiters:{" LOCK "}",
					       "redisson_lock_timeout:{" LOCK "}" };
	const char *key = deleted[chance(COUNT_OF(deleted))];

	if (server_number("DEL %s", key) == 0)
		return false;
	story("delete %s", key);
	/* All or some of the holds are lost. */
	for (size_t i = 0; i < HOLDS; i++)
		forget(&d.holds[i]);
	d.is_dirty = d.has_dead_waiter = true;
	tally("times a key beside the lock was deleted");
	return true;
}

/* ---- nothing is left ---- */

static void release_all(void)
{
	for (size_t i = 0; i < HOLDS; i++) {
		if (d.holds[i].handle == NULL)
			continue;
		check_status("release", rlock_release(d.conn, d.holds[i].handle, patience()),
			     RLOCK_OK, d.conn);
		forget(&d.holds[i]);
	}
}

/* Of a semaphore that was broken the counter and the total stay. */
static bool is_left(const char *key)
{
	static const char *const of_waiters[] = {
		"rlock_queue:{" LOCK "}", "rlock_writer:{" LOCK "}", "rlock_waiters:{" LOCK "}",
		"redisson_lock_queue:{" LOCK "}", "redisson_lock_timeout:{" LOCK "}"
	};

	for (size_t i = 0; i < COUNT_OF(of_waiters) && d.has_dead_waiter; i++)
		if (strcmp(key, of_waiters[i]) == 0)
			return false;
	return !is_semaphore() ||
	       (strcmp(key, LOCK) != 0 && strcmp(key, "rlock_total:{" LOCK "}") != 0);
}

static bool step_clean(void)
{
	struct words words = { 0 };
	char owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];
	enum rlock_status status;
	struct redisReply *reply;

	story("break by force");
	release_all();
	for (int i = 0; i < 3; i++) {
		status = rlock_break(d.conn, &name, NULL, RLOCK_ANY, owner, note);
		if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
			check_status("break", status, RLOCK_OK, d.conn);
	}
	reply = server_reply("KEYS *");
	for (size_t i = 0; i < reply->elements && !d.is_dirty; i++) {
		const char *key = reply->element[i]->str;
		long long ttl_ms = server_number("PTTL %s", key);

		if (is_left(key) && (ttl_ms == -1 || ttl_ms > MOMENT_MS))
			differs("'%s' is left", key);
	}
	freeReplyObject(reply);
	server_do("FLUSHDB");
	/* One that came late would break what others rely on. */
	while (server_next_request(&words))
		words_free(&words);
	d.is_dirty = d.has_dead_waiter = false;
	d.right = "";
	tally("times all was broken by force");
	return true;
}

/* ---- all of it ---- */

static const struct choice choices[] = {
	{ 100, step_acquire },        { 60, step_release }, { 20, step_renew },
	{ 10, step_keep_until },      { 20, step_resend },  { 20, step_replay },
	{ 20, step_release_unknown }, { 4, step_clean },    { 1, step_delete_side_key },
};

static void step(void)
{
	while (!chance_step(choices, COUNT_OF(choices)))
		continue;
	collect();
	compare();
}

static void begin(enum rlock_kind kind)
{
	d.kind = kind;
	server_become_root();
	d.conn = conn_new(-1);
	server_do("ACL SETUSER limited on >secret allkeys allchannels +@all");
	reconnect();
	d.right = "";
	server_watch();
	for (size_t i = 0; i < OWNERS; i++)
		if (rlock_owner_new(1 + i, d.owners[i]) != RLOCK_OK)
			differs("no owner");
}

static void begin_plain(void)
{
	begin(RLOCK_PLAIN);
}

static void begin_fair(void)
{
	begin(RLOCK_FAIR);
}

static void begin_readwrite(void)
{
	begin(RLOCK_WRITE);
}

static void begin_semaphore(void)
{
	begin(RLOCK_SEMAPHORE);
}

static void end(void)
{
	(void)step_clean();
	for (size_t i = 0; i < COUNT_OF(requests); i++)
		words_free(&requests[i]);
	freeReplyObject(now.reply);
	rlock_conn_free(d.conn);
	rlock_conn_free(d.user);
}

static void print(void)
{
	for (size_t i = 0; i < HOLDS; i++)
		if (d.holds[i].handle != NULL)
			(void)printf("  relied on %s\n", d.holds[i].id);
	for (size_t i = 0; i < now.record_count; i++)
		(void)printf("  record    %s %s %" PRId64 "\n", now.records[i].id,
			     now.records[i].field, now.records[i].end_ms - now.now_ms);
	struct redisReply *reply = server_reply("KEYS *");

	for (size_t i = 0; i < reply->elements; i++)
		(void)printf("  key       %s\n", reply->element[i]->str);
	freeReplyObject(reply);
	for (size_t i = 0; now.lock != NULL && i < now.lock->elements; i += 2)
		(void)printf("  lock      %s %s\n", now.lock->element[i]->str,
			     now.lock->element[i + 1]->str);
}

const struct model disturbed_plain_model = { "disturbed-plain", begin_plain, step, end, print },
		   disturbed_fair_model = { "disturbed-fair", begin_fair, step, end, print },
		   disturbed_readwrite_model = { "disturbed-readwrite", begin_readwrite, step, end,
						 print },
		   disturbed_semaphore_model = { "disturbed-semaphore", begin_semaphore, step, end,
						 print };
