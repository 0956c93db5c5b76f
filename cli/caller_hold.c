/*
 * Finds the hold that the caller means: that of a hold file, or that of an `rlock run` if this is nearer. What is then
 * done with the hold is for the cmd_*.c files to decide.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "caller_hold.h"
#include "options/names.h"
#include "options/usage.h"
#include "sys/proc.h"

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
		code = hold_file_find_nearer(out->hold_file, &out->run, pid, &out->is_run);
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
		hold_file_report_near(hold->near, opts->names, opts->name_count, opts->server, verb,
				      opts->pid);
	else if (geteuid() == 0 && user != NULL && strcmp(user, "root") != 0)
		message_error(
			"%s: not held by %s or its ancestors: a lock of user %s is found only "
			"without sudo",
			names, process, usage_show(user, shown));
	else
		message_error(
			"%s: not held by %s or its ancestors: name the process with --pid PID, or "
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
			code = CALLER_HOLD_ONE_BY_ONE;
		else if (hold.hold_file == NULL && !hold.is_run)
			code = report_none(opts, &hold, verb);
		else
			code = act(opts, conn, &hold);
		hold_clear(&hold);
	} while (code == CALLER_HOLD_FIND_AGAIN);
	return code;
}

int caller_hold_each(const struct opts *opts, struct rlock_conn *conn, const char *verb,
		     caller_hold_fn act)
{
	int code = act_on_hold(opts, conn, verb, act), worst = 0;

	if (code != CALLER_HOLD_ONE_BY_ONE)
		return code;
	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);

		code = act_on_hold(&one, conn, verb, act);
		if (code > worst)
			worst = code;
	}
	return worst;
}
