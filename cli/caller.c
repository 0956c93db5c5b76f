/*
 * Connects for a command, says why a call failed, and finds the hold that the caller means. What is then done with the
 * connection and the hold is for the cmd_*.c files to decide.
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

/* The library's text begins so when the server may be the wrong one; about other failures it says more. */
#define UNREACHED "cannot reach "

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
	if (status == RLOCK_OK) {
		if (message_is_verbose())
			rlock_conn_set_trace(*out, trace, NULL);
		return 0;
	}
	if (*out == NULL) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	return caller_say_failure(opts, *out, status);
}

int caller_say(const struct opts *opts, const struct rlock_conn *conn, int code)
{
	char name[NAME_SHOWN_MAX];

	message_error("%s: %s", names_show_one(opts, rlock_conn_error_name(conn), name),
		      rlock_conn_error(conn));
	return code;
}

int caller_say_failure(const struct opts *opts, const struct rlock_conn *conn,
		       enum rlock_status status)
{
	const char *error = rlock_conn_error(conn), *origin = "";
	char name[NAME_SHOWN_MAX];

	if (status == RLOCK_EAUTH)
		origin = opts->password_origin;
	else if (strncmp(error, UNREACHED, strlen(UNREACHED)) == 0)
		origin = opts->server_origin;
	message_error("%s: %s%s%s", names_show_one(opts, rlock_conn_error_name(conn), name), error,
		      origin[0] != '\0' ? ": " : "", origin);
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

int caller_find(const struct opts *opts, struct caller_hold *out)
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
		caller_hold_clear(out);
	return code;
}

void caller_hold_clear(struct caller_hold *hold)
{
	hold_file_free(hold->hold_file);
	hold_file_free(hold->near);
}

int caller_say_none(const struct opts *opts, const struct caller_hold *hold, const char *verb)
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
