/*
 * Connects for a command, reports why a call failed, and finds the holds that the caller means.
 * What is then done with the connection and with the holds is for the cmd_*.c files to decide.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "caller.h"
#include "local.h"
#include "options/names.h"
#include "options/usage.h"
#include "process_lock/hold_file_find.h"
#include "sys/proc.h"

static void trace(void *ctx, const char *server, const char *step)
{
	(void)ctx;
	message_debug("%s: %s", server, step);
}

static int resolve_local(struct opts *opts, int cancel_fd, bool *is_cancelled)
{
	int64_t deadline_ms = rlock_now_ms() + opts->connect_timeout_ms;
	int code;

	if (rlock_url_scheme(opts->urls[0]) != RLOCK_SCHEME_LOCAL)
		return 0;
	code = local_resolve(opts->urls[0], deadline_ms, cancel_fd, is_cancelled);
	return code != 0 || *is_cancelled ? code : opts_set_server(opts);
}

int caller_connect(struct opts *opts, int cancel_fd, bool *is_cancelled, struct rlock_conn **out)
{
	struct rlock_conn_opts conn_opts = RLOCK_CONN_OPTS_INIT;
	char client_name[32];
	enum rlock_status status;
	int code = resolve_local(opts, cancel_fd, is_cancelled);

	if (code != 0 || *is_cancelled)
		return code;
	(void)snprintf(client_name, sizeof(client_name), "rlock-%d", (int)getpid());
	conn_opts.connect_timeout_ms = opts->connect_timeout_ms;
	conn_opts.client_name = client_name;
	conn_opts.cancel_fd = cancel_fd;
	conn_opts.quorum = opts->quorum;
	for (size_t i = 0; i < opts->url_count; i++)
		/* A core dump would show the password. */
		if (rlock_url_has_password(opts->urls[i]))
			(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	status = rlock_conn_new(opts->urls, opts->url_count, &conn_opts, out);
	if (*out == NULL) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	if (status != RLOCK_OK)
		return caller_report_failure(opts, *out, status);
	if (message_is_verbose())
		rlock_conn_set_trace(*out, trace, NULL);
	return 0;
}

int caller_report(const struct opts *opts, const struct rlock_conn *conn, int code)
{
	char name[NAME_SHOWN_MAX];

	message_error("%s: %s", names_show_one(opts, rlock_conn_error_name(conn), name),
		      rlock_conn_error(conn));
	return code;
}

int caller_report_failure(const struct opts *opts, const struct rlock_conn *conn,
			  enum rlock_status status)
{
	const char *origin = "";
	char name[NAME_SHOWN_MAX];

	if (status == RLOCK_EAUTH)
		origin = opts->password_origin;
	else if (rlock_conn_error_is_unreachable(conn))
		origin = opts->server_origin;
	message_error("%s: %s%s%s", names_show_one(opts, rlock_conn_error_name(conn), name),
		      rlock_conn_error(conn), origin[0] != '\0' ? ": " : "", origin);
	return exit_code_of(status);
}

/*
 * Sets *is_run_out if `rlock run` holds the lock nearer to us than file (may be NULL) does. If file was made inside the
 * run, its process was given the run's hold in its environment. 0, or the exit code after one line by message_error when we
 * cannot tell.
 */
static int find_nearer(const struct hold_file *file, const char *run_hold_id, bool *is_run_out)
{
	enum proc_lookup lookup =
		file != NULL ? proc_carries_hold(file->pid, run_hold_id) : PROC_GONE;

	if (lookup == PROC_UNSEEN) {
		message_error("cannot look at process %d: %s", (int)file->pid, strerror(errno));
		return EXIT_SYSTEM;
	}
	*is_run_out = lookup == PROC_GONE;
	return 0;
}

static void hold_clear(struct caller_hold *hold)
{
	hold_file_free(hold->hold_file);
	hold_file_free(hold->near);
}

/* 0, or the exit code after one line by message_error. hold_clear frees what was found. */
static int hold_find(const struct opts *opts, struct caller_hold *out)
{
	const char *server = opts->server, *value = getenv(INHERITED_VARIABLE);
	/* The search begins with our own process: a shell may have become us for its last command. */
	pid_t pid = opts->pid != 0 ? opts->pid : getpid();
	int code;

	*out = (struct caller_hold){ 0 };
	out->hold_file = hold_file_find(pid, opts->names, opts->name_count, server, opts->mode,
					&out->near, &code);
	if (code == 0 && value != NULL &&
	    inherited_find(value, server, &opts->names[0], opts->mode, &out->run))
		code = find_nearer(out->hold_file, out->run.hold_id, &out->is_run);
	if (code != 0)
		hold_clear(out);
	return code;
}

static int report_none(const struct opts *opts, const struct caller_hold *hold, const char *verb)
{
	const char *user = getenv("SUDO_USER");
	char names[NAMES_SHOWN_MAX], shown[USAGE_SHOWN_MAX], process[32] = "this process";

	if (opts->pid != 0)
		(void)snprintf(process, sizeof(process), "process %d", opts->pid);
	(void)names_show(opts->names, opts->name_count, names);
	if (hold->near != NULL)
		hold_file_find_say_near(hold->near, opts->names, opts->name_count, opts->server,
					verb);
	else if (geteuid() == 0 && user != NULL && strcmp(user, "root") != 0)
		message_error(
			"%s: not held by %s or one above it: a lock of user %s is found without "
			"sudo",
			names, process, usage_show(user, shown));
	else
		message_error(
			"%s: not held by %s or one above it: name the process with --pid PID, or "
			"the owner with --owner ID",
			names, process);
	return EXIT_NOT_HELD;
}

/* The hold on all names of opts together. */
static int act_on_hold(const struct opts *opts, struct rlock_conn *conn, const char *verb,
		       caller_hold_fn act)
{
	struct caller_hold hold;
	int code;

	do {
		code = hold_find(opts, &hold);
		if (code != 0)
			return code;
		if (hold.hold_file == NULL && opts->name_count > 1)
			code = CALLER_ONE_BY_ONE;
		else if (hold.hold_file == NULL && !hold.is_run)
			code = report_none(opts, &hold, verb);
		else
			code = act(opts, conn, &hold);
		hold_clear(&hold);
	} while (code == CALLER_FIND_AGAIN);
	return code;
}

int caller_each_hold(const struct opts *opts, struct rlock_conn *conn, const char *verb,
		     caller_hold_fn act)
{
	int code = act_on_hold(opts, conn, verb, act), worst = 0;

	if (code != CALLER_ONE_BY_ONE)
		return code;
	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);

		code = act_on_hold(&one, conn, verb, act);
		if (code > worst)
			worst = code;
	}
	return worst;
}

int caller_each_name(const struct opts *opts, struct rlock_conn *conn, caller_fn act)
{
	int worst = 0;

	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);
		int code = act(&one, conn);

		if (code > worst)
			worst = code;
	}
	return worst;
}

int caller_lost_code(const struct rlock_hold *found)
{
	return found != NULL && rlock_hold_lease_ms(found) == RLOCK_LEASE_LOST ? EXIT_LOST
									       : EXIT_NOT_HELD;
}

int caller_run(struct opts *opts, caller_fn act)
{
	struct rlock_conn *conn = NULL;
	bool is_cancelled = false;
	int code;

	/* hiredis writes to streams that may be broken, and the reader of our output may have ended. */
	(void)signal(SIGPIPE, SIG_IGN);
	code = caller_connect(opts, -1, &is_cancelled, &conn);
	if (code == 0)
		code = act(opts, conn);
	rlock_conn_free(conn);
	return code;
}
