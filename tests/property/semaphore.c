/*
 * A semaphore and its model: holds of ours with one permit or several, which are renewed, released, kept, lost and broken;
 * Java's permits of both sorts beside them; and totals that change.
 *
 * After each step what is free, what is held and the total are as the model counts them, and no slot is given twice; a new
 * hold has the lowest ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define NAME "permits"
#define PERMITS "{permits}:timeout"
#define HOLDS_KEY "rlock_holds:{permits}"
#define HOLDS 12 /* at a time */
#define TAKE_MAX 3
#define TOTAL_MAX 12

struct permits {
	struct rlock_hold *handle; /* NULL: there is none */
	int64_t take;
	bool is_kept, lacks_one;
	bool reads_requests, is_told; /* to stop */
};

static struct {
	struct rlock_conn *conn;
	struct permits holds[HOLDS];
	int64_t total;
	int64_t java, java_late; /* permits in the set; of the latter the time is over */
	int64_t unheld;          /* RSemaphore's */
	unsigned long java_id;
} sem;

static const struct rlock_name name = { NAME, sizeof(NAME) - 1 };

static int64_t permits_of(const struct permits *hold)
{
	return hold->handle != NULL ? hold->take - (hold->lacks_one ? 1 : 0) : 0;
}

static int64_t ours(void)
{
	int64_t count = 0;

	for (size_t i = 0; i < HOLDS; i++)
		count += permits_of(&sem.holds[i]);
	return count;
}

static int64_t free_permits(void)
{
	return sem.total - ours() - sem.java - sem.java_late - sem.unheld;
}

/* ---- slots ---- */

void semaphore_check_slots(const char *holds, const char *permits)
{
	long long slot = server_number(
		"EVAL %s 2 %s %s",
		"local held, seen, now = {}, {}, redis.call('TIME') "
		"for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do held[id] = true end "
		"local listed, in_use = redis.call('HGETALL', KEYS[1]), redis.call('HGET', KEYS[1], 'slots') "
		"for i = 1, #listed, 2 do "
		"local end_ms, slots = string.match(listed[i + 1], '^%S+ %d+ (%d+) %d+:([%d,]+) ') "
		"local number = 0 "
		"for slot in string.gmatch(slots or '', '%d+') do "
		"number = number + 1 "
		"if end_ms / 1000 > tonumber(now[1]) and held[listed[i] .. ':' .. number] then "
		"if seen[slot] then return tonumber(slot) end "
		"seen[slot] = true "
		"if in_use and string.sub(in_use, slot, slot) ~= 'x' then return -slot end "
		"end end end return 0",
		holds, permits);

	if (slot > 0)
		differs("two holds have slot %lld", slot);
	if (slot < 0)
		differs("slot %lld is in use, and does not count so", -slot);
}

static void mark_slots(const struct permits *hold, bool *is_used)
{
	char *end;

	for (const char *at = rlock_hold_slots(hold->handle, 0); *at != '\0'; at = end) {
		long slot = strtol(at, &end, 10);

		if (slot < 1 || slot > TOTAL_MAX)
			differs("a hold has slot %ld", slot);
		is_used[slot] = true;
	}
}

/* Those of a hold that was acquired now are the lowest that no other one has. */
static void check_lowest(const struct permits *acquired)
{
	bool is_used[TOTAL_MAX + 1] = { false };
	char lowest[64] = "";
	size_t len = 0;
	int64_t count = 0;

	for (size_t i = 0; i < HOLDS; i++) {
		/* Whether the slot of a permit that was lost is in use is not said. */
		if (sem.holds[i].lacks_one)
			return;
		if (sem.holds[i].handle != NULL && &sem.holds[i] != acquired)
			mark_slots(&sem.holds[i], is_used);
	}
	for (int slot = 1; slot <= TOTAL_MAX && count < acquired->take; slot++) {
		if (is_used[slot])
			continue;
		len += (size_t)snprintf(lowest + len, sizeof(lowest) - len, "%s%d",
					count++ > 0 ? " " : "", slot);
	}
	if (strcmp(rlock_hold_slots(acquired->handle, 0), lowest) != 0)
		differs("it has slots '%s', and '%s' are the lowest",
			rlock_hold_slots(acquired->handle, 0), lowest);
	tally("times the slots were the lowest");
}

/* ---- comparison ---- */

static int64_t told(void)
{
	int64_t count = 0;

	for (size_t i = 0; i < HOLDS; i++)
		count += sem.holds[i].is_told;
	return count;
}

static const char count_requests[] =
	"local count = 0 "
	"for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do "
	"if string.find(field, ':stop$') then count = count + 1 end end "
	"return count";

static void compare(void)
{
	int64_t held = ours() + sem.java + sem.java_late;
	int64_t free =
		server_number("EVAL %s 1 %s", "return tonumber(redis.call('GET', KEYS[1]))", NAME);

	if (free != free_permits())
		differs("%" PRId64 " are free, and not %" PRId64, free, free_permits());
	if (server_number("ZCARD %s", PERMITS) != held)
		differs("%lld are held, and not %" PRId64, server_number("ZCARD %s", PERMITS),
			held);
	if (server_number("EVAL %s 1 %s", "return tonumber(redis.call('GET', KEYS[1]))",
			  "rlock_total:{" NAME "}") != sem.total)
		differs("the total is not %" PRId64, sem.total);
	semaphore_check_slots(HOLDS_KEY, PERMITS);
	if (server_number("EVAL %s 1 %s", count_requests, HOLDS_KEY) != told())
		differs("not %" PRId64 " requests stand", told());
}

/* Any hold that is there, or a place for one. NULL: there is none. */
static struct permits *any(bool is_there)
{
	size_t first = chance(HOLDS);

	for (size_t i = 0; i < HOLDS; i++) {
		struct permits *hold = &sem.holds[(first + i) % HOLDS];

		if ((hold->handle != NULL) == is_there)
			return hold;
	}
	return NULL;
}

static void forget(struct permits *hold)
{
	rlock_hold_free(hold->handle);
	*hold = (struct permits){ 0 };
}

/* ---- steps ---- */

static bool step_acquire(void)
{
	struct permits *hold = any(false);
	struct rlock_request request = RLOCK_REQUEST_INIT;
	int64_t take = 1 + (int64_t)chance(TAKE_MAX);
	enum rlock_status status;
	bool has_room;

	if (hold == NULL || take > sem.total)
		return false;
	sem.java_late = 0;
	has_room = free_permits() >= take;
	request.kind = RLOCK_SEMAPHORE;
	request.names = &name;
	request.name_count = 1;
	request.lease_ms = chance_lease_ms();
	request.wait_ms = 0;
	request.permits = sem.total;
	request.take = take;
	request.process = one_in(4) ? NULL : &expected_process;
	story("acquire %" PRId64, take);
	status = rlock_acquire(sem.conn, &request, &hold->handle);
	check_status("acquire", status, has_room ? RLOCK_OK : RLOCK_BUSY, sem.conn);
	hold->take = has_room ? take : 0;
	if (has_room)
		check_lowest(hold);
	hold->reads_requests = request.process != NULL;
	tally(has_room ? "times permits were acquired" : "times there were too few");
	return true;
}

static bool step_release(void)
{
	struct permits *hold = any(true);
	enum rlock_status status;

	if (hold == NULL)
		return false;
	story("release %" PRId64, hold->take);
	status = rlock_release(sem.conn, hold->handle, patience());
	check_status("release", status, hold->lacks_one ? RLOCK_NOT_HELD : RLOCK_OK, sem.conn);
	status = rlock_release(sem.conn, hold->handle, patience());
	check_status("release again", status, RLOCK_NOT_HELD, sem.conn);
	status = rlock_renew(sem.conn, hold->handle, 30000, patience());
	check_status("renew after it", status, RLOCK_NOT_HELD, sem.conn);
	forget(hold);
	tally("times permits were released");
	return true;
}

static bool step_renew(void)
{
	struct permits *hold = any(true);
	enum rlock_status status;

	if (hold == NULL)
		return false;
	story("renew");
	status = rlock_renew(sem.conn, hold->handle, chance_lease_ms(), patience());
	check_status("renew", status, hold->lacks_one || hold->is_kept ? RLOCK_NOT_HELD : RLOCK_OK,
		     sem.conn);
	if (status == RLOCK_OK &&
	    (rlock_hold_told_by(hold->handle, &(size_t){ 0 }) != NULL) != hold->is_told)
		differs("the renewal has%s found a request", hold->is_told ? " not" : "");
	return true;
}

static bool step_keep_until(void)
{
	struct permits *hold = any(true);
	enum rlock_status status;

	if (hold == NULL || hold->lacks_one)
		return false;
	story("keep until");
	status = rlock_keep_until(sem.conn, hold->handle, chance_lease_ms(), patience());
	check_status("keep until", status, RLOCK_OK, sem.conn);
	hold->is_kept = true;
	if (hold->is_told)
		forget(hold);
	return true;
}

/* As a Java client whose clock is ahead does it. */
static bool step_lose(void)
{
	struct permits *hold = any(true);

	if (hold == NULL || hold->lacks_one)
		return false;
	story("lose one of %" PRId64, hold->take);
	server_do("ZREM %s %s:1", PERMITS, rlock_hold_id(hold->handle));
	server_do("INCRBY %s 1", NAME);
	hold->lacks_one = true;
	tally("times a permit was lost");
	return true;
}

static bool step_resize(void)
{
	int64_t total = 1 + (int64_t)chance(TOTAL_MAX), had = 0;

	story("resize to %" PRId64, total);
	check_status("resize", rlock_resize(sem.conn, &name, total, &had), RLOCK_OK, sem.conn);
	if (had != sem.total)
		differs("it had %" PRId64 ", and not %" PRId64, had, sem.total);
	sem.java_late = 0;
	sem.total = total;
	return true;
}

/* What it finds of ours is asked, unless it cannot be. */
static void check_stop(const struct rlock_stop *stop)
{
	size_t found = 0, listed = 0;

	for (size_t i = 0; i < HOLDS; i++) {
		struct permits *hold = &sem.holds[i];
		bool is_told = hold->reads_requests && !hold->is_kept;

		if (permits_of(hold) == 0)
			continue;
		found++;
		for (size_t n = 0; n < stop->count; n++) {
			if (strcmp(stop->holds[n].id, rlock_hold_id(hold->handle)) != 0)
				continue;
			listed++;
			if (stop->holds[n].is_told != is_told)
				differs("hold %s was%s asked", stop->holds[n].id,
					is_told ? " not" : "");
		}
		hold->is_told = is_told;
	}
	if (listed != found)
		differs("of %zu holds %zu were found", found, listed);
	if (stop->count != found + (size_t)(sem.java + sem.java_late) + (size_t)(sem.unheld > 0))
		differs("%zu holders were found", stop->count);
}

static bool step_stop(void)
{
	struct rlock_stop stop = { 0 };
	enum rlock_status status;

	story("stop");
	status = rlock_stop(sem.conn, &name, NULL, "me@here", &stop);
	check_status("stop", status, stop.count > 0 ? RLOCK_OK : RLOCK_NOT_HELD, sem.conn);
	check_stop(&stop);
	tally("times holders were asked to stop");
	rlock_stop_clear(&stop);
	return true;
}

static bool step_break(void)
{
	char owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];
	/* What Java's dead have is free again. */
	bool is_free = free_permits() + sem.java_late == sem.total;
	int64_t had = 0;

	story("break");
	check_status("break", rlock_break(sem.conn, &name, NULL, RLOCK_ANY, owner, note), RLOCK_OK,
		     sem.conn);
	if (is_free != (owner[0] == '\0'))
		differs("it was said to be held by '%s'", owner);
	if (is_free) {
		tally("times a free semaphore was deleted");
		if (server_number("DBSIZE") != 0)
			differs("a key is left");
		check_status("resize", rlock_resize(sem.conn, &name, sem.total, &had), RLOCK_OK,
			     sem.conn);
		if (had != -1)
			differs("it had %" PRId64 ", and was deleted", had);
	}
	for (size_t i = 0; i < HOLDS; i++)
		forget(&sem.holds[i]);
	sem.java = sem.java_late = sem.unheld = 0;
	return true;
}

/* ---- Java ---- */

static void java_adds(const char *score)
{
	server_do("ZADD %s %s java-%lu", PERMITS, score, ++sem.java_id);
	server_do("INCRBY %s -1", NAME);
}

static bool step_java_acquires(void)
{
	if (free_permits() < 1)
		return false;
	story("Java acquires");
	java_adds(one_in(2) ? "922337203685477" : "9000000000000");
	sem.java++;
	return true;
}

/* It is dead, and the next request of ours reclaims what it had. */
static bool step_java_dies(void)
{
	if (free_permits() < 1)
		return false;
	story("Java dies");
	java_adds("1000");
	sem.java_late++;
	tally("times Java died");
	return true;
}

static bool step_java_releases(void)
{
	if (sem.java < 1)
		return false;
	story("Java releases");
	server_do("ZPOPMAX %s", PERMITS);
	server_do("INCRBY %s 1", NAME);
	sem.java--;
	return true;
}

static bool step_semaphore(void)
{
	bool acquires = one_in(2);

	if (acquires ? free_permits() < 1 : sem.unheld < 1)
		return false;
	story(acquires ? "RSemaphore acquires" : "RSemaphore releases");
	server_do("INCRBY %s %d", NAME, acquires ? -1 : 1);
	sem.unheld += acquires ? 1 : -1;
	return true;
}

static const struct choice choices[] = {
	{ 100, step_acquire },  { 60, step_release },       { 30, step_renew },
	{ 5, step_keep_until }, { 5, step_lose },           { 8, step_resize },
	{ 2, step_break },      { 20, step_java_acquires }, { 20, step_java_releases },
	{ 10, step_java_dies }, { 30, step_semaphore },     { 10, step_stop },
};

/* ---- all of it ---- */

static void step(void)
{
	while (!chance_step(choices, COUNT_OF(choices)))
		continue;
	compare();
}

static void begin(void)
{
	int64_t had = 0;

	sem.conn = conn_new(-1);
	sem.total = 5;
	check_status("resize", rlock_resize(sem.conn, &name, sem.total, &had), RLOCK_OK, sem.conn);
}

/* All are released, and nothing else is left. */
static void end(void)
{
	while (any(true) != NULL)
		(void)step_release();
	(void)step_break();
	compare();
	if (server_number("DBSIZE") != 2)
		differs("more is left than the counter and the total");
	server_do("FLUSHDB");
	rlock_conn_free(sem.conn);
}

static void print(void)
{
	(void)printf("  total     %" PRId64 ", free %" PRId64 ", ours %" PRId64 ", Java's %" PRId64
		     " and %" PRId64 " late, %" PRId64 " unheld\n",
		     sem.total, free_permits(), ours(), sem.java, sem.java_late, sem.unheld);
}

const struct model semaphore_model = { "semaphore", begin, step, end, print };
