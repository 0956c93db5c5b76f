/*
 * renew: push the caller's hold forward once, and print what is left of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "caller.h"
#include "cli.h"
#include "duration.h"
#include "exits.h"
#include "held.h"
#include "names.h"
#include "say.h"
#include "session.h"

/* Renew one hold and print; lost_code is what a hold that has gone means here. */
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
		say_error("cannot write to standard output");
		return EXIT_SYSTEM;
	}
	return 0;
}

static int renew_session(const struct opts *opts, struct rlock_conn *conn, struct session *session)
{
	struct rlock_hold *hold = NULL;
	char names[NAMES_SHOWN_MAX];
	int code;

	if (session->is_lost) {
		say_error("%s: the lock had been lost",
			  names_show(opts->names, opts->name_count, names));
		return EXIT_LOST;
	}
	if (rlock_hold_new(session->kind, session->names, session->name_count, session->hold_id,
			   session->sent_ms, session->lease_ms, &hold) != RLOCK_OK) {
		say_error("out of memory");
		return EXIT_SYSTEM;
	}
	code = renew(opts, conn, hold, session->lease_ms, EXIT_LOST);
	/* Who watches over a fixed lease learns from the file that it ends later. */
	if (code == 0 && session->is_fixed_lease) {
		session->sent_ms = rlock_hold_sent_ms(hold);
		code = session_save(session);
	}
	rlock_hold_free(hold);
	return code;
}

/* Under `rlock run` the hold stands in the environment. Its own watchdog or lease goes on as
 * before. */
static int renew_held(const struct opts *opts, struct rlock_conn *conn, const char *value)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < opts->name_count; i++) {
		struct rlock_hold *hold = NULL;
		struct opts one = *opts;
		struct held held;
		char name[NAME_SHOWN_MAX];

		one.names = &opts->names[i];
		one.name_count = 1;
		if (value == NULL ||
		    !held_find(value, rlock_url_server(opts->url), one.names, &held)) {
			say_error("%s: not held by this process or one above it",
				  name_show(&one, 0, name));
			return EXIT_NOT_HELD;
		}
		if (rlock_hold_new(held.kind, one.names, 1, held.hold_id, 0, held.lease_ms,
				   &hold) != RLOCK_OK) {
			say_error("out of memory");
			return EXIT_SYSTEM;
		}
		code = renew(&one, conn, hold, held.lease_ms, EXIT_LOST);
		rlock_hold_free(hold);
	}
	return code;
}

static int renew_owner(const struct opts *opts, struct rlock_conn *conn)
{
	char owner[RLOCK_OWNER_MAX];
	int code = 0;

	(void)snprintf(owner, sizeof(owner), OWNER_FORMAT, opts->owner);
	for (size_t i = 0; code == 0 && i < opts->name_count; i++) {
		struct rlock_hold *hold = NULL;
		struct opts one = *opts;
		enum rlock_status status =
			rlock_find(conn, RLOCK_PLAIN, &opts->names[i], owner, &hold);

		one.names = &opts->names[i];
		one.name_count = 1;
		if (status == RLOCK_NOT_HELD)
			code = caller_say(&one, conn, EXIT_NOT_HELD);
		else if (status != RLOCK_OK)
			code = caller_say_failure(&one, conn, status);
		else
			code = renew(&one, conn, hold, opts->lease_ms, EXIT_NOT_HELD);
		rlock_hold_free(hold);
	}
	return code;
}

static int renew_caller(const struct opts *opts, struct rlock_conn *conn)
{
	struct session *near = NULL;
	/* From ourselves on: a shell may have become us for its last command. */
	pid_t pid = opts->pid != 0 ? (pid_t)opts->pid : getpid();
	const char *server = rlock_url_server(opts->url), *value = getenv(HELD_VARIABLE);
	int code;
	struct session *session =
		session_find(pid, opts->names, opts->name_count, server, &near, &code);
	struct held held;

	if (code != 0)
		return code;
	if (value != NULL && held_find(value, server, &opts->names[0], &held) &&
	    session_is_outside(session, held.hold_id)) {
		code = renew_held(opts, conn, value);
	} else if (session != NULL) {
		code = renew_session(opts, conn, session);
	} else if (near != NULL) {
		session_say_near(near, opts->names, opts->name_count, rlock_url_server(opts->url),
				 "renew");
		code = EXIT_NOT_HELD;
	} else {
		code = renew_held(opts, conn, value);
	}
	session_free(session);
	session_free(near);
	return code;
}

int cmd_renew(const struct verb *verb, struct opts *opts)
{
	struct rlock_conn *conn = NULL;
	bool is_cancelled = false;
	int code = caller_connect(opts, -1, &is_cancelled, &conn);

	(void)verb;
	(void)signal(SIGPIPE, SIG_IGN);
	if (code != 0)
		return code;
	code = opts->owner != NULL ? renew_owner(opts, conn) : renew_caller(opts, conn);
	rlock_conn_free(conn);
	return code;
}
