/*
 * check: whether locks can be relied on here: the servers, one after the other, where the options are from, and this
 * machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/number.h"
#include "base/output.h"
#include "caller.h"
#include "check_server.h"
#include "findings.h"
#include "local.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "verbs.h"

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
static void check_settings_print(struct findings *findings, const struct settings *settings)
{
	int width = findings->subject_width;

	findings_about(findings, "options", "");
	findings->subject_width = NAME_WIDTH;
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->items[i];
		bool is_ignored = setting->ignored[0] != '\0';
		char value[USAGE_SHOWN_MAX], buffer[WHERE_MAX];

		findings_add(findings, is_ignored ? FINDING_NOTE : FINDING_OK, 0,
			     subject_of(setting), "%s, %s%s%s%s",
			     setting->value != NULL ? usage_show(setting->value, value)
						    : "(not shown)",
			     where(settings, setting, buffer), is_ignored ? ": not used: " : "",
			     setting->ignored,
			     setting->is_of_other_verbs && !is_ignored ? ", for other verbs" : "");
	}
	findings->subject_width = width;
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

static bool is_server_program(const struct proc *proc)
{
	return strcmp(proc->name, "redis-server") == 0 || strcmp(proc->name, "valkey-server") == 0;
}

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
static void look_at(struct findings *findings, const struct proc *proc, const struct stat *own)
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
			findings, FINDING_NOTE, 0, "local",
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
static void check_local(struct findings *findings, int dir_fd)
{
	DIR *processes = local_server_pid() != 0 ? opendir("/proc") : NULL;
	struct dirent *entry;
	struct stat own;

	if (processes == NULL || fstat(dir_fd, &own) != 0)
		goto out;
	while ((entry = readdir(processes)) != NULL) {
		struct proc proc;
		int64_t pid;

		if (number_parse(entry->d_name, &pid) && proc_read((pid_t)pid, &proc) &&
		    is_server_program(&proc))
			look_at(findings, &proc, &own);
	}
out:
	if (processes != NULL)
		(void)closedir(processes);
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

static void check_surroundings(struct findings *findings, const char *path)
{
	const char *chosen = runtime_dir_path();
	struct stat st;

	if (lstat(chosen, &st) == 0 && !S_ISLNK(st.st_mode) && st.st_uid != geteuid())
		findings_add(findings, FINDING_NOTE, 0, "directory",
			     "%s belongs to user %lu, so that local: can't be used: remove it",
			     chosen, (unsigned long)st.st_uid);
	if (strncmp(path, "/tmp/", 5) == 0 && has_private_tmp())
		findings_add(
			findings, FINDING_NOTE, 0, "directory",
			"/tmp is this service's own: it shares no local: server and no lock without a "
			"command with others: set RLOCK_RUNTIME_DIR, or PrivateTmp=no");
	if (has_cleaner(path))
		findings_add(findings, FINDING_NOTE, 0, "directory",
			     "systemd-tmpfiles removes old files there: put 'x %s' into "
			     "/etc/tmpfiles.d/rlock.conf",
			     strncmp(path, "/tmp/rlock-", strlen("/tmp/rlock-")) == 0
				     ? "/tmp/rlock-*"
				     : path);
}

/* Why the directory cannot be used is printed as an error by the call that opens it. */
static void check_directory(struct findings *findings)
{
	int dir_fd = runtime_dir_open(true);
	const char *path;

	if (dir_fd < 0) {
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "directory",
			     "%s can't be used for locks without a command: standard error has the "
			     "reason",
			     runtime_dir_path());
		return;
	}
	path = runtime_dir_path_of(dir_fd);
	findings_add(findings, FINDING_OK, 0, "directory", "%s", path);
	check_surroundings(findings, path);
	check_local(findings, dir_fd);
	(void)close(dir_fd);
}

static void check_system(struct findings *findings)
{
	const char *reason = os_check_proc();

	/* os_check_kernel() prints the reason as an error. */
	if (os_check_kernel() != 0)
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "kernel",
			     "cannot watch processes: standard error has the reason");
	else
		findings_add(findings, FINDING_OK, 0, "kernel", "has all that is needed");
	if (reason != NULL)
		findings_add(findings, FINDING_BAD, EXIT_CONFIG, "proc", "%s", reason);
	else
		findings_add(findings, FINDING_OK, 0, "proc",
			     "shows the processes of this PID namespace");
}

static void check_machine(struct findings *findings)
{
	check_directory(findings);
	check_system(findings);
}

/* ---- all of it ---- */

static int check(const struct opts *opts, struct rlock_conn *conn)
{
	struct findings findings;
	int code = 0;

	findings_begin(&findings, opts->json);
	for (size_t i = 0; i < rlock_conn_server_count(conn); i++) {
		enum rlock_status status;

		findings_about(&findings, rlock_conn_server(conn, i), opts->server_origin);
		status = check_server(&findings, opts, conn, i);
		if (status == RLOCK_OK)
			continue;
		findings_add(&findings, FINDING_BAD, exit_code_of(status), "server", "%s",
			     rlock_conn_error(conn));
		code = caller_report_failure(opts, conn, status);
	}
	if (!opts->json)
		check_settings_print(&findings, &opts->settings);
	findings_about(&findings, NULL, "");
	check_machine(&findings);
	findings_end_parts(&findings);
	if (opts->json)
		check_settings_json(&findings.json, &opts->settings);
	findings_end(&findings);
	return output_end(code != 0 ? code : findings.code);
}

int cmd_check(const struct verb *verb, struct opts *opts)
{
	(void)verb;
	return caller_run(opts, check);
}
