/*
 * Looks at a server: what it is, whether it can keep a lock for as long as it says, and what the user may do there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exits.h"
#include "base/least.h"
#include "check_server.h"
#include "options/names.h"

#define ROUND_TRIPS 20
/* A lease is counted on for a thousandth less than it is, since two clocks do not run at the same speed. */
#define DRIFT_DIVISOR 1000
/* How far apart the two looks at both clocks are. */
#define DRIFT_MS 1000
#define LOOKS 5
/*
 * A renewal is due after a third of the lease, and SIGTERM comes a third later: there is to be time for three requests.
 */
#define LATENCY_DIVISOR 9
#define SECOND_US 1000000

/* ---- what it is ---- */

static void check_role(struct findings *findings, const struct rlock_server_info *info)
{
	if (info->role[0] == '\0')
		findings_add(findings, FINDING_NOTE, 0, "role",
			     "unknown: the user may not call INFO: try: ACL SETUSER USER +info");
	else if (strcmp(info->role, "master") != 0)
		findings_add(
			findings, FINDING_BAD, EXIT_CONFIG, "role",
			"%s: cannot grant a lock: give the URL of its master, or of the sentinels",
			info->role);
	else
		findings_add(findings, FINDING_OK, 0, "role", "master%s",
			     info->is_cluster ? ", in a cluster" : "");
}

static void check_version(struct findings *findings, const struct rlock_server_info *info)
{
	char up[DURATION_TEXT_MAX];

	if (info->version[0] != '\0')
		findings_add(findings, FINDING_OK, 0, "version", "%s %s, up for %s",
			     info->is_valkey ? "Valkey" : "Redis", info->version,
			     duration_print_rough(most(info->uptime_s, 0) * 1000, up));
}

/* Each lock has a TTL, so policies for keys with one are no better than those for all. */
static void check_eviction(struct findings *findings, const struct rlock_server_info *info)
{
	if (info->eviction_policy[0] == '\0')
		return;
	if (strcmp(info->eviction_policy, "noeviction") == 0)
		findings_add(findings, FINDING_OK, 0, "eviction", "noeviction");
	else if (info->memory_max == 0)
		findings_add(findings, FINDING_NOTE, 0, "eviction",
			     "%s: deletes locks as soon as maxmemory is set: "
			     "try: CONFIG SET maxmemory-policy noeviction",
			     info->eviction_policy);
	else
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "eviction",
			     "%s deletes locks when the memory is full: "
			     "try: CONFIG SET maxmemory-policy noeviction",
			     info->eviction_policy);
}

static void check_persistence(struct findings *findings, const struct rlock_server_info *info)
{
	if (info->has_append_file == 1)
		findings_add(findings, FINDING_OK, 0, "persistence", "append-only file");
	else if (info->has_append_file == 0 && info->has_snapshots == 1)
		findings_add(findings, FINDING_NOTE, 0, "persistence",
			     "snapshots only: a restart loses the locks since the last one: "
			     "try: CONFIG SET appendonly yes");
	else if (info->has_append_file == 0)
		findings_add(findings, FINDING_NOTE, 0, "persistence",
			     "none%s: a restart deletes all locks: try: CONFIG SET appendonly yes",
			     info->has_snapshots < 0 ? ", or snapshots only" : "");
}

static void check_replicas(struct findings *findings, const struct opts *opts,
			   const struct rlock_server_info *info)
{
	if (info->replicas < 0)
		return;
	if (info->replicas < opts->replicas)
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "replicas",
			     "%" PRId64
			     ", but --replicas needs %d: add replicas, or lower --replicas",
			     info->replicas, opts->replicas);
	else if (info->replicas == 0)
		findings_add(findings, FINDING_NOTE, 0, "replicas",
			     "none: if this server is lost, so are all its locks");
	else
		findings_add(findings, FINDING_OK, 0, "replicas", "%" PRId64, info->replicas);
}

static enum rlock_status check_info(struct findings *findings, const struct opts *opts,
				    struct rlock_conn *conn, size_t index)
{
	struct rlock_server_info info;
	enum rlock_status status = rlock_conn_server_info(conn, index, &info);

	if (status != RLOCK_OK)
		return status;
	check_version(findings, &info);
	check_role(findings, &info);
	check_eviction(findings, &info);
	check_persistence(findings, &info);
	check_replicas(findings, opts, &info);
	return RLOCK_OK;
}

/* ---- time ---- */

static int compare(const void *a, const void *b)
{
	int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return first < second ? -1 : first > second;
}

static enum rlock_status check_latency(struct findings *findings, const struct opts *opts,
				       struct rlock_conn *conn, size_t index)
{
	int64_t trips_us[ROUND_TRIPS], median_us, worst_us;
	int64_t limit_us = opts->lease_ms * 1000 / LATENCY_DIVISOR;
	char lease[DURATION_TEXT_MAX];
	/* The first one connects. */
	enum rlock_status status = rlock_conn_round_trip(conn, index, &trips_us[0]);

	for (size_t i = 0; status == RLOCK_OK && i < ROUND_TRIPS; i++)
		status = rlock_conn_round_trip(conn, index, &trips_us[i]);
	if (status != RLOCK_OK)
		return status;
	qsort(trips_us, ROUND_TRIPS, sizeof(trips_us[0]), compare);
	median_us = trips_us[ROUND_TRIPS / 2];
	worst_us = trips_us[ROUND_TRIPS - 1];
	findings_add(findings, worst_us <= limit_us ? FINDING_OK : FINDING_BAD, EXIT_CONFIG,
		     "latency", "median %.2f ms, worst %.2f ms, of %d%s%s",
		     (double)median_us / 1000, (double)worst_us / 1000, ROUND_TRIPS,
		     worst_us <= limit_us ? "" : ": too slow for a lease of ",
		     worst_us <= limit_us ? "" : duration_print(opts->lease_ms, lease));
	return RLOCK_OK;
}

/* The sharpest of several looks: a busy machine makes some of them long. */
static enum rlock_status look_at_clock(struct rlock_conn *conn, size_t index,
				       struct rlock_clock_look *out)
{
	for (size_t i = 0; i < LOOKS; i++) {
		struct rlock_clock_look look;
		enum rlock_status status = rlock_conn_look_at_clock(conn, index, &look);

		if (status != RLOCK_OK)
			return status;
		if (i == 0 ||
		    look.own_end_us - look.own_begin_us < out->own_end_us - out->own_begin_us)
			*out = look;
	}
	return RLOCK_OK;
}

/* Only what is sure counts: the server may have looked at its clock at any moment until its reply was there. */
static void judge_drift(struct findings *findings, const struct rlock_clock_look looks[2])
{
	int64_t server_us = looks[1].server_us - looks[0].server_us;
	int64_t most_us = looks[1].own_end_us - looks[0].own_begin_us;
	int64_t least_us = looks[1].own_begin_us - looks[0].own_end_us;
	int64_t drift_us = server_us > most_us    ? server_us - most_us
			   : server_us < least_us ? server_us - least_us
						  : 0;

	if (llabs(drift_us) > most_us / DRIFT_DIVISOR)
		findings_add(
			findings, FINDING_BAD, EXIT_CONFIG, "clock",
			"in %.1f s it drifted %+.2f %% from this machine's: it was set just now, or one "
			"of the two clocks is wrong: check again",
			(double)most_us / SECOND_US, 100 * (double)drift_us / (double)most_us);
	else
		findings_add(findings, FINDING_OK, 0, "clock",
			     "as fast as this machine's, within %.2f %%",
			     100 * (double)(most_us - least_us) / (double)most_us);
}

static enum rlock_status check_drift(struct findings *findings, struct rlock_conn *conn,
				     size_t index)
{
	struct rlock_clock_look looks[2];
	enum rlock_status status = look_at_clock(conn, index, &looks[0]);

	if (status == RLOCK_OK) {
		(void)rlock_poll(NULL, 0, rlock_now_ms() + DRIFT_MS);
		status = look_at_clock(conn, index, &looks[1]);
	}
	if (status == RLOCK_OK && looks[0].server_us >= 0 && looks[1].server_us >= 0)
		judge_drift(findings, looks);
	return status;
}

/* ---- rights ---- */

#define LACKS_MAX 4096
#define USER_MAX 512

struct lacks {
	char needed[LACKS_MAX], for_semaphores[LACKS_MAX], optional[LACKS_MAX];
	unsigned kinds;
};

static void add_lack(void *ctx, const struct rlock_lack *lack)
{
	struct lacks *lacks = ctx;
	char *list = lack->is_optional                      ? lacks->optional
		     : lack->kinds == 1U << RLOCK_SEMAPHORE ? lacks->for_semaphores
							    : lacks->needed;
	size_t len = strlen(list);

	if (!lack->is_optional)
		lacks->kinds |= lack->kinds;
	(void)snprintf(list + len, LACKS_MAX - len, " %s", lack->right);
}

/* "fair, read": the kinds of locks that can't be used. */
static void name_kinds(unsigned kinds, char out[64])
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned kind = 0; kind < RLOCK_ANY && len < 64; kind++)
		if ((kinds & 1U << kind) != 0)
			len += (size_t)snprintf(out + len, 64 - len, "%s%s", len > 0 ? ", " : "",
						rlock_kind_name((enum rlock_kind)kind));
}

static enum rlock_status check_rights(struct findings *findings, const struct opts *opts,
				      struct rlock_conn *conn, size_t index)
{
	/* What a pattern of ACL SETUSER begins with. */
	const struct rlock_name prefix = { opts->names[0].text, strcspn(opts->names[0].text, "*") };
	struct lacks lacks = { .needed = "" };
	enum rlock_status status = rlock_conn_try_rights(conn, index, &prefix, add_lack, &lacks);
	const char *url_user = rlock_url_user(opts->urls[index]);
	char kinds[64], user[USER_MAX] = "default";

	if (url_user != NULL)
		(void)rlock_escape(url_user, strlen(url_user), user, sizeof(user));
	if (status != RLOCK_OK)
		return status;
	name_kinds(lacks.kinds, kinds);
	if (lacks.needed[0] != '\0')
		findings_add(findings, FINDING_BAD, EXIT_DENIED, "rights",
			     "%s locks can't be used: try: ACL SETUSER %s%s%s%s", kinds, user,
			     lacks.needed, lacks.for_semaphores, lacks.optional);
	else if (lacks.for_semaphores[0] != '\0')
		/* Many users need none: locks are sound. */
		findings_add(findings, FINDING_NOTE, 0, "rights",
			     "all that locks need, but semaphores can't be used: for these "
			     "try: ACL SETUSER %s%s%s",
			     user, lacks.for_semaphores, lacks.optional);
	else if (lacks.optional[0] != '\0')
		findings_add(findings, FINDING_NOTE, 0, "rights",
			     "all that are needed; for the rest try: ACL SETUSER %s%s", user,
			     lacks.optional);
	else
		findings_add(findings, FINDING_OK, 0, "rights", "all");
	return RLOCK_OK;
}

/* ---- permits ---- */

/* Whether it has no character that makes it a pattern. */
static bool is_name(const struct rlock_name *pattern)
{
	return strcspn(pattern->text, "*?[\\") == pattern->len;
}

static void judge_permits(struct findings *findings, const struct opts *opts,
			  const struct rlock_inspection *inspection)
{
	char name[NAME_SHOWN_MAX];

	(void)names_show_one(opts, 0, name);
	for (size_t i = 0; i < inspection->unseen_count; i++)
		if (strcmp(inspection->unseen[i].what, "holders") == 0 ||
		    strcmp(inspection->unseen[i].what, "total") == 0) {
			findings_add(findings, FINDING_NOTE, 0, "permits", "%s: not seen: %s", name,
				     inspection->unseen[i].why);
			return;
		}
	if (inspection->unheld_permits > 0)
		findings_add(findings, FINDING_NOTE, 0, "permits",
			     "%s: %" PRId64 " of %" PRId64
			     " have no record of a holder, as Java's RSemaphore leaves none: if no "
			     "such client runs, they are lost: while no client holds a permit try: "
			     "rlock unlock --force %s",
			     name, inspection->unheld_permits, inspection->permits, name);
	else
		findings_add(findings, FINDING_OK, 0, "permits",
			     "%s: %" PRId64 " of %" PRId64
			     " free, none without a record of a holder",
			     name, inspection->free_permits, inspection->permits);
}

/* For a name, not a pattern: to find all semaphores would be a look at each key of the server. They have one server. */
static enum rlock_status check_permits(struct findings *findings, const struct opts *opts,
				       struct rlock_conn *conn)
{
	struct rlock_inspection *inspections = NULL;
	size_t count = 0;
	enum rlock_status status;

	if (rlock_conn_server_count(conn) > 1 || !is_name(&opts->names[0]))
		return RLOCK_OK;
	status = rlock_inspect(conn, &opts->names[0], &inspections, &count);
	/* What is denied is reported among the rights. */
	if (status == RLOCK_EACL)
		return RLOCK_OK;
	if (status == RLOCK_OK && inspections[0].kind == RLOCK_SEMAPHORE &&
	    inspections[0].state != RLOCK_STATE_OTHER)
		judge_permits(findings, opts, &inspections[0]);
	rlock_inspections_free(inspections, count);
	return status;
}

/* ---- all of it ---- */

enum rlock_status check_server(struct findings *findings, const struct opts *opts,
			       struct rlock_conn *conn, size_t index)
{
	enum rlock_status status = check_latency(findings, opts, conn, index);

	if (status != RLOCK_OK)
		return status;
	status = check_info(findings, opts, conn, index);
	if (status != RLOCK_OK)
		return status;
	status = check_drift(findings, conn, index);
	if (status != RLOCK_OK)
		return status;
	status = check_rights(findings, opts, conn, index);
	if (status != RLOCK_OK)
		return status;
	return check_permits(findings, opts, conn);
}
