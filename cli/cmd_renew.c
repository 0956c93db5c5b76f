/*
 * renew: renew the caller's hold once, and print its TTL. caller.c finds the hold, and lib renews it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exits.h"
#include "base/message.h"
#include "caller.h"
#include "options/names.h"
#include "process_lock/hold_file.h"
#include "process_lock/inherited.h"
#include "verbs.h"

/* Renews one hold and prints its TTL. lost_code is the exit code for a hold that the server does not have any more. */
static int renew(const struct opts *opts, struct rlock_conn *conn, struct rlock_hold *hold,
		 int64_t lease_ms, int lost_code)
{
	enum rlock_status status = rlock_renew(conn, hold, lease_ms, INT64_MAX);
	char left[DURATION_TEXT_MAX];

	if (status == RLOCK_NOT_HELD)
		return caller_say(opts, conn, lost_code);
	if (status != RLOCK_OK)
		return caller_say_failure(opts, conn, status);
	if (printf("%s\n", duration_print(rlock_hold_ttl_ms(hold), left)) < 0 ||
	    fflush(stdout) != 0) {
		message_error("cannot write to standard output");
		return EXIT_SYSTEM;
	}
	return 0;
}

static int renew_process_lock(const struct opts *opts, struct rlock_conn *conn,
			      struct hold_file *file)
{
	struct rlock_hold *hold = NULL;
	char names[NAMES_SHOWN_MAX];
	int code;

	if (file->is_lost) {
		message_error("%s: the lock had been lost",
			      names_show(opts->names, opts->name_count, names));
		return EXIT_LOST;
	}
	if (rlock_hold_new(file->kind, file->names, file->name_count, file->hold_id, file->sent_ms,
			   file->lease_ms, &hold) != RLOCK_OK) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	code = renew(opts, conn, hold, file->lease_ms, EXIT_LOST);
	/* The renewer, which watches over a fixed lease, learns from the file that the lease ends later. */
	if (code == 0 && file->is_fixed_lease) {
		file->sent_ms = rlock_hold_sent_ms(hold);
		code = hold_file_save(file);
	}
	rlock_hold_free(hold);
	return code;
}

/* Under `rlock run` the hold is in the environment. The run's own renewer or fixed lease goes on as before. */
static int renew_run(const struct opts *opts, struct rlock_conn *conn, const struct inherited *run)
{
	struct rlock_hold *hold = NULL;
	int code;

	if (rlock_hold_new(run->kind, opts->names, 1, run->hold_id, 0, run->lease_ms, &hold) !=
	    RLOCK_OK) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	code = renew(opts, conn, hold, run->lease_ms, EXIT_LOST);
	rlock_hold_free(hold);
	return code;
}

static int renew_owner(const struct opts *opts, struct rlock_conn *conn)
{
	char owner[RLOCK_OWNER_MAX];
	int worst = 0;

	(void)snprintf(owner, sizeof(owner), OWNER_FORMAT, opts->owner);
	for (size_t i = 0; i < opts->name_count; i++) {
		struct rlock_hold *hold = NULL;
		struct opts one = opts_of_name(opts, i);
		enum rlock_status status =
			rlock_find(conn, &opts->names[i], owner, opts->mode, &hold);
		int code;

		if (status == RLOCK_NOT_HELD)
			code = caller_say(&one, conn, EXIT_NOT_HELD);
		else if (status != RLOCK_OK)
			code = caller_say_failure(&one, conn, status);
		else
			code = renew(&one, conn, hold, opts->lease_ms, caller_lost_code(hold));
		rlock_hold_free(hold);
		if (code > worst)
			worst = code;
	}
	return worst;
}

static int renew_found(const struct opts *opts, struct rlock_conn *conn,
		       const struct caller_hold *hold)
{
	if (hold->is_run)
		return renew_run(opts, conn, &hold->run);
	if (hold->hold_file == NULL)
		return caller_say_none(opts, hold, "renew");
	return renew_process_lock(opts, conn, hold->hold_file);
}

/* Renews names that were not locked together without a command, each for itself. Returns the worst of the codes. */
static int renew_one_by_one(const struct opts *opts, struct rlock_conn *conn)
{
	int worst = 0;

	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);
		struct caller_hold hold;
		int code = caller_find(&one, &hold);

		if (code == 0) {
			code = renew_found(&one, conn, &hold);
			caller_hold_clear(&hold);
		}
		if (code > worst)
			worst = code;
	}
	return worst;
}

static int renew_caller(const struct opts *opts, struct rlock_conn *conn)
{
	struct caller_hold hold;
	int code = caller_find(opts, &hold);

	if (code != 0)
		return code;
	if (opts->name_count > 1 && (hold.hold_file == NULL || hold.is_run))
		code = renew_one_by_one(opts, conn);
	else
		code = renew_found(opts, conn, &hold);
	caller_hold_clear(&hold);
	return code;
}

static int renew_any(const struct opts *opts, struct rlock_conn *conn)
{
	return opts->owner != NULL ? renew_owner(opts, conn) : renew_caller(opts, conn);
}

int cmd_renew(const struct verb *verb, struct opts *opts)
{
	(void)verb;
	return caller_run(opts, renew_any);
}
