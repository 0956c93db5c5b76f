/*
 * renew: renew the caller's hold, or that of --owner, once, and print its TTL. caller_hold.c finds the caller's hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exits.h"
#include "base/message.h"
#include "base/output.h"
#include "caller.h"
#include "caller_hold.h"
#include "options/names.h"
#include "process_lock/hold_file.h"
#include "process_lock/held.h"
#include "verbs.h"

/* Renews a hold and prints its TTL. lost_code is the exit code for a hold that the server does not have any more. */
static int renew(const struct opts *opts, struct rlock_conn *conn, struct rlock_hold *hold,
		 int64_t lease_ms, int lost_code)
{
	enum rlock_status status = rlock_renew(conn, hold, lease_ms, INT64_MAX);
	char ttl[DURATION_TEXT_MAX];

	if (status == RLOCK_NOT_HELD)
		return caller_report(opts, conn, lost_code);
	if (status != RLOCK_OK)
		return caller_report_failure(opts, conn, status);
	(void)printf("%s\n", duration_print(rlock_hold_ttl_ms(hold), ttl));
	return output_end(0);
}

static int renew_process_lock(const struct opts *opts, struct rlock_conn *conn,
			      struct hold_file *file)
{
	struct rlock_hold *hold = NULL;
	char names[NAMES_SHOWN_MAX];
	int code;

	if (file->is_lost) {
		message_error(
			"%s: lock lost before it was renewed: its renewer found that out earlier",
			names_show(opts->names, opts->name_count, names));
		return EXIT_LOST;
	}
	if (rlock_hold_new(file->kind, file->names, file->name_count, file->hold_id, file->sent_ms,
			   file->lease_ms, &hold) != RLOCK_OK)
		return message_out_of_memory();
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
	    RLOCK_OK)
		return message_out_of_memory();
	code = renew(opts, conn, hold, run->lease_ms, EXIT_LOST);
	rlock_hold_free(hold);
	return code;
}

static int renew_hold(const struct opts *opts, struct rlock_conn *conn,
		      const struct caller_hold *hold)
{
	if (!hold->is_run)
		return renew_process_lock(opts, conn, hold->hold_file);
	/* An `rlock run` may hold some of the names only. */
	return opts->name_count > 1 ? CALLER_HOLD_ONE_BY_ONE : renew_run(opts, conn, &hold->run);
}

static int renew_owner(const struct opts *opts, struct rlock_conn *conn)
{
	struct rlock_hold *hold = NULL;
	char owner[RLOCK_OWNER_MAX];
	enum rlock_status status = caller_find_owned(opts, conn, owner, &hold);
	int code;

	if (status == RLOCK_NOT_HELD)
		return caller_report(opts, conn, EXIT_NOT_HELD);
	if (status != RLOCK_OK)
		return caller_report_failure(opts, conn, status);
	code = renew(opts, conn, hold, opts->lease_ms, caller_lost_code(hold));
	rlock_hold_free(hold);
	return code;
}

static int renew_any(const struct opts *opts, struct rlock_conn *conn)
{
	return opts->owner != NULL ? caller_each_name(opts, conn, renew_owner)
				   : caller_hold_each(opts, conn, "renew", renew_hold);
}

int cmd_renew(const struct verb *verb, struct opts *opts)
{
	(void)verb;
	return caller_run(opts, renew_any);
}
