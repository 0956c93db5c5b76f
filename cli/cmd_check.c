/*
 * check: whether locks can be relied on here: each server, whether it can keep a lock for as long as it says, and what the
 * user may do there; where the options are from; and this machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/least.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "local.h"
#include "options/opts.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "verbs.h"

/* ---- findings: one line each, or a JSON document, and the exit code that follows from all of them ---- */

/* Of one finding. Else it is the exit code for what is not sound. */
enum {
	FINDING_OK = 0,
	FINDING_NOTE = -1, /* locks are sound, with a limit that is worth knowing */
};

struct check {
	const struct opts *opts;
	struct rlock_conn *conn;
	size_t index;      /* of the server that is looked at */
	int code;          /* the worst so far; 0: all is sound */
	struct json json;  /* out is NULL: lines for people */
	bool has_part;     /* that is still open in the document */
	int subject_width; /* of the column in text */
};

/* Of one finding; all rights that there are fit into it. */
#define TEXT_MAX 8192
#define SUBJECT_WIDTH 11

static void end_part(struct check *check)
{
	if (!check->has_part)
		return;
	json_close(&check->json, ']');
	json_close(&check->json, '}');
}

/*
 * What the findings up to the next call are about: a server or the like, or NULL for this machine; and a remark, maybe
 * empty.
 */
static void findings_about(struct check *check, const char *server, const char *remark)
{
	if (check->json.out == NULL) {
		(void)printf("%s%s%s\n", server != NULL ? server : "this machine",
			     remark[0] != '\0' ? ": " : "", remark);
		return;
	}
	end_part(check);
	check->has_part = true;
	json_open(&check->json, NULL, '{');
	json_text(&check->json, "server", server != NULL ? server : "");
	json_open(&check->json, "findings", '[');
}

static void print(struct check *check, int code, const char *subject, const char *text)
{
	const char *level = code == FINDING_OK ? "ok" : code == FINDING_NOTE ? "note" : "bad";

	if (check->json.out == NULL) {
		(void)printf("%-4s  %-*s  %s\n", code > 0 ? "BAD" : level, check->subject_width,
			     subject, text);
		return;
	}
	json_open(&check->json, NULL, '{');
	json_text(&check->json, "level", level);
	json_text(&check->json, "subject", subject);
	json_text(&check->json, "text", text);
	json_close(&check->json, '}');
}

/* A finding about a subject, one word. */
__attribute__((format(printf, 4, 5))) static void
findings_add(struct check *check, int code, const char *subject, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	/* The highest code counts: settings have to be mended before rights. */
	if (code > check->code)
		check->code = code;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print(check, code, subject, text);
}

/* ---- a server: what it is ---- */

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

static void check_role(struct check *check, const struct rlock_server_info *info)
{
	if (info->role[0] == '\0')
		findings_add(check, FINDING_NOTE, "role",
			     "unknown: the user may not call INFO: try: ACL SETUSER USER +info");
	else if (strcmp(info->role, "master") != 0)
		findings_add(
			check, EXIT_CONFIG, "role",
			"%s: cannot grant a lock: give the URL of its master, or of the sentinels",
			info->role);
	else
		findings_add(check, FINDING_OK, "role", "master%s",
			     info->is_cluster ? ", in a cluster" : "");
}

static void check_version(struct check *check, const struct rlock_server_info *info)
{
	char up[DURATION_TEXT_MAX];

	if (info->version[0] != '\0')
		findings_add(check, FINDING_OK, "version", "%s %s, up for %s",
			     info->is_valkey ? "Valkey" : "Redis", info->version,
			     duration_print_rough(most(info->uptime_s, 0) * 1000, up));
}

/* Each lock has a TTL, so policies for keys with one are no better than those for all. */
static void check_eviction(struct check *check, const struct rlock_server_info *info)
{
	if (info->eviction_policy[0] == '\0')
		return;
	if (strcmp(info->eviction_policy, "noeviction") == 0)
		findings_add(check, FINDING_OK, "eviction", "noeviction");
	else if (info->memory_max == 0)
		findings_add(check, FINDING_NOTE, "eviction",
			     "%s: deletes locks as soon as maxmemory is set: "
			     "try: CONFIG SET maxmemory-policy noeviction",
			     info->eviction_policy);
	else
		findings_add(check, EXIT_CONFIG, "eviction",
			     "%s deletes locks when the memory is full: "
			     "try: CONFIG SET maxmemory-policy noeviction",
			     info->eviction_policy);
}

static void check_persistence(struct check *check, const struct rlock_server_info *info)
{
	if (info->has_append_file == 1)
		findings_add(check, FINDING_OK, "persistence", "append-only file");
	else if (info->has_append_file == 0 && info->has_snapshots == 1)
		findings_add(check, FINDING_NOTE, "persistence",
			     "snapshots only: a restart loses the locks since the last one: "
			     "try: CONFIG SET appendonly yes");
	else if (info->has_append_file == 0)
		findings_add(check, FINDING_NOTE, "persistence",
			     "none%s: a restart deletes all locks: try: CONFIG SET appendonly yes",
			     info->has_snapshots < 0 ? ", or snapshots only" : "");
}

static void check_replicas(struct check *check, const struct rlock_server_info *info)
{
	if (info->replicas < 0)
		return;
	if (info->replicas < check->opts->replicas)
		findings_add(check, EXIT_CONFIG, "replicas",
			     "%" PRId64
			     ", but --replicas needs %d: add replicas, or lower --replicas",
			     info->replicas, check->opts->replicas);
	else if (info->replicas == 0)
		findings_add(check, FINDING_NOTE, "replicas",
			     "none: if this server is lost, so are all its locks");
	else
		findings_add(check, FINDING_OK, "replicas", "%" PRId64, info->replicas);
}

static enum rlock_status check_info(struct check *check)
{
	struct rlock_server_info info;
	enum rlock_status status = rlock_conn_server_info(check->conn, check->index, &info);

	if (status != RLOCK_OK)
		return status;
	check_version(check, &info);
	check_role(check, &info);
	check_eviction(check, &info);
	check_persistence(check, &info);
	check_replicas(check, &info);
	return RLOCK_OK;
}

/* ---- a server: time ---- */

static int compare(const void *a, const void *b)
{
	int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return first < second ? -1 : first > second;
}

static enum rlock_status check_latency(struct check *check)
{
	int64_t trips_us[ROUND_TRIPS], median_us, worst_us;
	int64_t limit_us = check->opts->lease_ms * 1000 / LATENCY_DIVISOR;
	char lease[DURATION_TEXT_MAX];
	/* The first one connects. */
	enum rlock_status status = rlock_conn_round_trip(check->conn, check->index, &trips_us[0]);

	for (size_t i = 0; status == RLOCK_OK && i < ROUND_TRIPS; i++)
		status = rlock_conn_round_trip(check->conn, check->index, &trips_us[i]);
	if (status != RLOCK_OK)
		return status;
	qsort(trips_us, ROUND_TRIPS, sizeof(trips_us[0]), compare);
	median_us = trips_us[ROUND_TRIPS / 2];
	worst_us = trips_us[ROUND_TRIPS - 1];
	findings_add(check, worst_us <= limit_us ? FINDING_OK : EXIT_CONFIG, "latency",
		     "median %.2f ms, worst %.2f ms, of %d%s%s", (double)median_us / 1000,
		     (double)worst_us / 1000, ROUND_TRIPS,
		     worst_us <= limit_us ? "" : ": too slow for a lease of ",
		     worst_us <= limit_us ? "" : duration_print(check->opts->lease_ms, lease));
	return RLOCK_OK;
}

/* The sharpest of several looks: a busy machine makes some of them long. */
static enum rlock_status look_at_clock(struct check *check, struct rlock_clock_look *out)
{
	for (size_t i = 0; i < LOOKS; i++) {
		struct rlock_clock_look look;
		enum rlock_status status =
			rlock_conn_look_at_clock(check->conn, check->index, &look);

		if (status != RLOCK_OK)
			return status;
		if (i == 0 ||
		    look.own_end_us - look.own_begin_us < out->own_end_us - out->own_begin_us)
			*out = look;
	}
	return RLOCK_OK;
}

/* Only what is sure counts: the server may have looked at its clock at any moment until its reply was there. */
static void judge_drift(struct check *check, const struct rlock_clock_look looks[2])
{
	int64_t server_us = looks[1].server_us - looks[0].server_us;
	int64_t most_us = looks[1].own_end_us - looks[0].own_begin_us;
	int64_t least_us = looks[1].own_begin_us - looks[0].own_end_us;
	int64_t drift_us = server_us > most_us    ? server_us - most_us
			   : server_us < least_us ? server_us - least_us
						  : 0;

	if (llabs(drift_us) > most_us / DRIFT_DIVISOR)
		findings_add(
			check, EXIT_CONFIG, "clock",
			"in %.1f s it drifted %+.2f %% from this machine's: it was set just now, or one "
			"of the two clocks is wrong: check again",
			(double)most_us / SECOND_US, 100 * (double)drift_us / (double)most_us);
	else
		findings_add(check, FINDING_OK, "clock",
			     "as fast as this machine's, within %.2f %%",
			     100 * (double)(most_us - least_us) / (double)most_us);
}

static enum rlock_status check_drift(struct check *check)
{
	struct rlock_clock_look looks[2];
	enum rlock_status status = look_at_clock(check, &looks[0]);

	if (status == RLOCK_OK) {
		(void)rlock_poll(NULL, 0, rlock_now_ms() + DRIFT_MS);
		status = look_at_clock(check, &looks[1]);
	}
	if (status == RLOCK_OK && looks[0].server_us >= 0 && looks[1].server_us >= 0)
		judge_drift(check, looks);
	return status;
}

/* ---- a server: rights ---- */

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

static enum rlock_status check_rights(struct check *check)
{
	/* What a pattern of ACL SETUSER begins with. */
	const struct rlock_name prefix = { check->opts->names[0].text,
					   strcspn(check->opts->names[0].text, "*") };
	struct lacks lacks = { .needed = "" };
	enum rlock_status status =
		rlock_conn_try_rights(check->conn, check->index, &prefix, add_lack, &lacks);
	const char *url_user = rlock_url_user(check->opts->urls[check->index]);
	char kinds[64], user[USER_MAX] = "default";

	if (url_user != NULL)
		(void)rlock_escape(url_user, strlen(url_user), user, sizeof(user));
	if (status != RLOCK_OK)
		return status;
	name_kinds(lacks.kinds, kinds);
	if (lacks.needed[0] != '\0')
		findings_add(check, EXIT_DENIED, "rights",
			     "%s locks can't be used: try: ACL SETUSER %s%s%s%s", kinds, user,
			     lacks.needed, lacks.for_semaphores, lacks.optional);
	else if (lacks.for_semaphores[0] != '\0')
		/* Many users need none: locks are sound. */
		findings_add(check, FINDING_NOTE, "rights",
			     "all that locks need, but semaphores can't be used: for these "
			     "try: ACL SETUSER %s%s%s",
			     user, lacks.for_semaphores, lacks.optional);
	else if (lacks.optional[0] != '\0')
		findings_add(check, FINDING_NOTE, "rights",
			     "all that are needed; for the rest try: ACL SETUSER %s%s", user,
			     lacks.optional);
	else
		findings_add(check, FINDING_OK, "rights", "all");
	return RLOCK_OK;
}

/* ---- a server: permits ---- */

/* Whether it has no character that makes it a pattern. */
static bool is_name(const struct rlock_name *pattern)
{
	return strcspn(pattern->text, "*?[\\") == pattern->len;
}

static void judge_permits(struct check *check, const struct rlock_inspection *inspection)
{
	char name[NAME_SHOWN_MAX];

	(void)names_show_one(check->opts, 0, name);
	for (size_t i = 0; i < inspection->unseen_count; i++)
		if (strcmp(inspection->unseen[i].what, "holders") == 0 ||
		    strcmp(inspection->unseen[i].what, "total") == 0) {
			findings_add(check, FINDING_NOTE, "permits", "%s: not seen: %s", name,
				     inspection->unseen[i].why);
			return;
		}
	if (inspection->unheld_permits > 0)
		findings_add(check, FINDING_NOTE, "permits",
			     "%s: %" PRId64 " of %" PRId64
			     " have no record of a holder, as Java's RSemaphore leaves none: if no "
			     "such client runs, they are lost: while no client holds a permit try: "
			     "rlock unlock --force %s",
			     name, inspection->unheld_permits, inspection->permits, name);
	else
		findings_add(check, FINDING_OK, "permits",
			     "%s: %" PRId64 " of %" PRId64
			     " free, none without a record of a holder",
			     name, inspection->free_permits, inspection->permits);
}

/* For a name, not a pattern: to find all semaphores would be a look at each key of the server. They have one server. */
static enum rlock_status check_permits(struct check *check)
{
	struct rlock_inspection *inspections = NULL;
	size_t count = 0;
	enum rlock_status status;

	if (rlock_conn_server_count(check->conn) > 1 || !is_name(&check->opts->names[0]))
		return RLOCK_OK;
	status = rlock_inspect(check->conn, &check->opts->names[0], &inspections, &count);
	/* What is denied is reported among the rights. */
	if (status == RLOCK_EACL)
		return RLOCK_OK;
	if (status == RLOCK_OK && inspections[0].kind == RLOCK_SEMAPHORE &&
	    inspections[0].state != RLOCK_STATE_OTHER)
		judge_permits(check, &inspections[0]);
	rlock_inspections_free(inspections, count);
	return status;
}

/* ---- a server: all of it ---- */

/* RLOCK_OK, or the failure that kept it from going on, with the text in conn. */
static enum rlock_status check_server(struct check *check)
{
	enum rlock_status status = check_latency(check);

	if (status == RLOCK_OK)
		status = check_info(check);
	if (status == RLOCK_OK)
		status = check_drift(check);
	if (status == RLOCK_OK)
		status = check_rights(check);
	return status == RLOCK_OK ? check_permits(check) : status;
}

/* ---- the settings ---- */

/* All names fit but conflict-exit-code and sentinel-password-file. */
#define NAME_WIDTH 17
#define WHERE_MAX (USAGE_SHOWN_MAX + 64)

/* The variable stands for itself where it stands for no option. */
static const char *subject_of(const struct setting *setting)
{
	return setting->option != NULL ? setting->option : setting->variable;
}

static const char *where(const struct settings *settings, const struct setting *setting,
			 char out[WHERE_MAX])
{
	switch (setting->source) {
	case SOURCE_ARGV:
		return "from the command line";
	case SOURCE_ENVIRONMENT:
		if (setting->option == NULL)
			return "from the environment";
		(void)snprintf(out, WHERE_MAX, "from %s in the environment", setting->variable);
		return out;
	case SOURCE_FILE:
		(void)snprintf(out, WHERE_MAX, "from %s:%zu", settings->config, setting->line);
		return out;
	case SOURCE_DEFAULT:
		break;
	}
	return "the default";
}

/* Text: a line for each, as a part of the findings. */
static void check_settings_print(struct check *check, const struct settings *settings)
{
	int width = check->subject_width;

	findings_about(check, "options", "");
	check->subject_width = NAME_WIDTH;
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->items[i];
		bool is_ignored = setting->ignored[0] != '\0';
		char value[USAGE_SHOWN_MAX], buffer[WHERE_MAX];

		findings_add(check, is_ignored ? FINDING_NOTE : FINDING_OK, subject_of(setting),
			     "%s, %s%s%s%s",
			     setting->value != NULL ? usage_show(setting->value, value)
						    : "(not shown)",
			     where(settings, setting, buffer), is_ignored ? ": not used: " : "",
			     setting->ignored,
			     setting->is_of_other_verbs && !is_ignored ? ", for other verbs" : "");
	}
	check->subject_width = width;
}

static const char *source_name(enum opt_source source)
{
	static const char *const names[] = { [SOURCE_DEFAULT] = "default",
					     [SOURCE_FILE] = "file",
					     [SOURCE_ENVIRONMENT] = "environment",
					     [SOURCE_ARGV] = "command line" };

	return names[source];
}

static void put_value(struct json *json, const char *value)
{
	char shown[USAGE_SHOWN_MAX];

	json_text(json, "value", value != NULL ? usage_show(value, shown) : "");
}

/* JSON: a member of the open object. */
static void check_settings_json(struct json *json, const struct settings *settings)
{
	json_open(json, "options", '[');
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->items[i];
		bool is_of_file = setting->source == SOURCE_FILE;

		json_open(json, NULL, '{');
		json_text(json, "option", setting->option != NULL ? setting->option : "");
		put_value(json, setting->value);
		json_text(json, "source", source_name(setting->source));
		json_text(json, "variable", setting->variable != NULL ? setting->variable : "");
		json_text(json, "file", is_of_file ? settings->config : "");
		if (is_of_file)
			json_number(json, "line", (int64_t)setting->line);
		else
			json_null(json, "line");
		json_bool(json, "used", setting->ignored[0] == '\0');
		json_bool(json, "other_verbs", setting->is_of_other_verbs);
		json_text(json, "reason", setting->ignored);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* ---- other local: servers of this user ---- */

#define SHOWN_MAX 1024

/* Of this user; and for root after sudo, of the user that called it. */
static bool is_of_caller(uid_t uid)
{
	const char *sudo_uid = getenv("SUDO_UID");
	int64_t number;

	return uid == geteuid() || (geteuid() == 0 && sudo_uid != NULL &&
				    number_parse(sudo_uid, &number) && (int64_t)uid == number);
}

static void show_path(int fd, char out[SHOWN_MAX])
{
	char link[64], target[SHOWN_MAX];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, target, sizeof(target));
	(void)rlock_escape(target, len > 0 ? (size_t)len : 0, out, SHOWN_MAX);
}

/* The process may end, and its pid be reused, at any time: the checks are made on the directory that was opened. */
static void look_at(struct check *check, const struct proc *proc, const struct stat *own)
{
	char entry[64], path[SHOWN_MAX];
	struct stat process, dir;
	int fd;

	(void)snprintf(entry, sizeof(entry), "/proc/%ld", (long)proc->pid);
	if (stat(entry, &process) != 0 || !is_of_caller(process.st_uid))
		return;
	(void)snprintf(entry, sizeof(entry), "/proc/%ld/cwd", (long)proc->pid);
	fd = open(entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &dir) == 0 && (dir.st_dev != own->st_dev || dir.st_ino != own->st_ino) &&
	    local_is_server(fd, proc->pid)) {
		show_path(fd, path);
		findings_add(
			check, FINDING_NOTE, "local",
			"process %ld of user %lu is another local: server, in %s: its locks and "
			"those of local: here do not exclude each other: use one user and one "
			"RLOCK_RUNTIME_DIR; to end it and its locks: kill %ld",
			(long)proc->pid, (unsigned long)process.st_uid, path, (long)proc->pid);
	}
	(void)close(fd);
}

/*
 * Callers of one server do not exclude callers of another. The working directory of a private server is its runtime
 * directory, so /proc leads to it wherever it is, even if its socket was removed or it sees another /tmp. Without a
 * server here nothing is split.
 */
static void check_local(struct check *check, int dir_fd)
{
	struct pid_list pids = { 0 };
	struct stat own;

	if (local_server_pid() == 0 || fstat(dir_fd, &own) != 0)
		return;
	(void)os_list_processes(&pids);
	for (size_t i = 0; i < pids.count; i++) {
		struct proc proc;

		if (proc_read(pids.pids[i], &proc) && local_is_program(proc.name))
			look_at(check, &proc, &own);
	}
	pid_list_free(&pids);
}

/* ---- this machine ---- */

#define MOUNTS_MAX (1 << 20)

static bool is_in_tmp(const char *path)
{
	return strncmp(path, "/tmp/", 5) == 0 || strncmp(path, "/var/tmp/", 9) == 0;
}

/* For a unit with PrivateTmp=, systemd mounts a directory below /systemd-private-... over /tmp. */
static bool has_private_tmp(void)
{
	size_t len = 0;
	struct stat stat;
	char *mounts = file_read_all(AT_FDCWD, "/proc/self/mountinfo", 0, MOUNTS_MAX, &stat, &len);
	char *rest = mounts, *line;
	bool is_private = false;

	while ((line = strsep(&rest, "\n")) != NULL) {
		char root[256], point[256];

		/* A later mount hides the one before. */
		if (sscanf(line, "%*s %*s %*s %255s %255s", root, point) == 2 &&
		    strcmp(point, "/tmp") == 0)
			is_private = strstr(root, "/systemd-private-") != NULL;
	}
	free(mounts);
	return is_private;
}

/* Whether systemd-tmpfiles may delete old files below path. packaging/rlock.tmpfiles.conf exempts /tmp/rlock-* only. */
static bool has_cleaner(const char *path)
{
	static const char *const files[] = { "/etc/tmpfiles.d/rlock.conf",
					     "/run/tmpfiles.d/rlock.conf",
					     "/usr/local/lib/tmpfiles.d/rlock.conf",
					     "/usr/lib/tmpfiles.d/rlock.conf" };

	/* sd_booted(3) looks at it, too. */
	if (access("/run/systemd/system", F_OK) != 0 || !is_in_tmp(path))
		return false;
	if (strncmp(path, "/tmp/rlock-", strlen("/tmp/rlock-")) != 0)
		return true;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (access(files[i], F_OK) == 0)
			return false;
	return true;
}

static void check_surroundings(struct check *check, const char *path)
{
	const char *chosen = runtime_dir_path();
	struct stat st;

	if (lstat(chosen, &st) == 0 && !S_ISLNK(st.st_mode) && st.st_uid != geteuid())
		findings_add(check, FINDING_NOTE, "directory",
			     "%s belongs to user %lu, so that local: can't be used: remove it",
			     chosen, (unsigned long)st.st_uid);
	if (strncmp(path, "/tmp/", 5) == 0 && has_private_tmp())
		findings_add(
			check, FINDING_NOTE, "directory",
			"/tmp is this service's own: it shares no local: server and no lock without a "
			"command with others: set RLOCK_RUNTIME_DIR, or PrivateTmp=no");
	if (has_cleaner(path))
		findings_add(check, FINDING_NOTE, "directory",
			     "systemd-tmpfiles removes old files there: put 'x %s' into "
			     "/etc/tmpfiles.d/rlock.conf",
			     strncmp(path, "/tmp/rlock-", strlen("/tmp/rlock-")) == 0
				     ? "/tmp/rlock-*"
				     : path);
}

/* Why the directory cannot be used is printed as an error by the call that opens it. */
static void check_directory(struct check *check)
{
	int dir_fd = runtime_dir_open(true);
	const char *path;

	if (dir_fd < 0) {
		findings_add(check, EXIT_CONFIG, "directory",
			     "%s can't be used for locks without a command: standard error has the "
			     "reason",
			     runtime_dir_path());
		return;
	}
	path = runtime_dir_path_of(dir_fd);
	findings_add(check, FINDING_OK, "directory", "%s", path);
	check_surroundings(check, path);
	check_local(check, dir_fd);
	(void)close(dir_fd);
}

static void check_reason(struct check *check, const char *subject, const char *reason,
			 const char *sound)
{
	findings_add(check, reason != NULL ? EXIT_CONFIG : FINDING_OK, subject, "%s",
		     reason != NULL ? reason : sound);
}

/* ---- all of it ---- */

int cmd_check(const struct opts *opts, struct rlock_conn *conn)
{
	struct check check = { .opts = opts, .conn = conn, .subject_width = SUBJECT_WIDTH };
	int code = 0;

	if (opts->json) {
		check.json.out = stdout;
		json_open(&check.json, NULL, '{');
		json_open(&check.json, "parts", '[');
	}
	for (; check.index < rlock_conn_server_count(conn); check.index++) {
		enum rlock_status status;

		findings_about(&check, rlock_conn_server(conn, check.index), opts->server_origin);
		status = check_server(&check);
		if (status == RLOCK_OK)
			continue;
		findings_add(&check, exit_code_of(status), "server", "%s", rlock_conn_error(conn));
		code = caller_report_failure(opts, conn, status);
	}
	if (!opts->json)
		check_settings_print(&check, &opts->settings);
	findings_about(&check, NULL, "");
	check_directory(&check);
	check_reason(&check, "kernel", os_check_kernel(), "has all that is needed");
	check_reason(&check, "proc", os_check_proc(), "shows the processes of this PID namespace");
	if (opts->json) {
		end_part(&check);
		json_close(&check.json, ']');
		check_settings_json(&check.json, &opts->settings);
		json_bool(&check.json, "sound", check.code == 0);
		json_close(&check.json, '}');
		(void)putchar('\n');
	}
	return output_end(code != 0 ? code : check.code);
}
