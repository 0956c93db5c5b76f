/*
 * Connect a verb to the servers that the options name. Report each failure by one message and an exit code.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "caller.h"
#include "local.h"
#include "options/opts.h"
#include "options/servers.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/os.h"

static void trace(void *ctx, const char *server, const char *step)
{
	(void)ctx;
	/* Most steps that fail contain the name of the server. Do not print it twice. */
	if (strstr(step, server) != NULL)
		message_debug("%s", step);
	else
		message_debug("%s: %s", server, step);
}

int caller_resolve(struct opts *opts, int cancel_fd, bool *is_cancelled)
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
	int code = caller_resolve(opts, cancel_fd, is_cancelled);

	if (code != 0 || *is_cancelled)
		return code;
	(void)snprintf(client_name, sizeof(client_name), "rlock-%d", (int)getpid());
	conn_opts.connect_timeout_ms = opts->connect_timeout_ms;
	conn_opts.client_name = client_name;
	conn_opts.cancel_fd = cancel_fd;
	conn_opts.quorum = opts->quorum;
	conn_opts.replicas = (size_t)opts->replicas;
	for (size_t i = 0; i < opts->url_count; i++)
		/* Keep passwords and TLS keys out of core dumps. */
		if (rlock_url_has_password(opts->urls[i]) || opts->password_source != NULL ||
		    opts->sentinel_password_file != NULL ||
		    rlock_url_tls(opts->urls[i], RLOCK_TLS_CERT) != NULL)
			os_hide_memory();
	status = rlock_conn_new(opts->urls, opts->url_count, &conn_opts, out);
	if (*out == NULL)
		return message_out_of_memory();
	if (status != RLOCK_OK)
		return caller_report_failure(opts, *out, status);
	if (message_is_verbose())
		rlock_conn_set_trace(*out, trace, NULL);
	return 0;
}

int caller_explain_failure(const struct opts *opts, const struct rlock_conn *conn,
			   enum rlock_status status, char out[FAILURE_TEXT_MAX])
{
	bool lacks_password = rlock_conn_failure(conn)->lacks_password;
	const char *added = "";
	char buffer[ORIGIN_MAX];

	if (status == RLOCK_EAUTH || lacks_password)
		added = servers_password_origin(opts, buffer);
	else if (rlock_conn_failure(conn)->is_unreachable)
		added = servers_origin(opts, buffer);
	else if (status == RLOCK_EUNSUPPORTED)
		added = servers_tls_origin(opts, buffer);
	else if (rlock_conn_failure(conn)->is_transient && opts->wait_ms <= 0 &&
		 (opt_table[OPT_WAIT].verbs & opts->verb->set) != 0)
		added = "give --wait";
	else if (status == RLOCK_EKIND) /* the key has a lock of another kind, or no lock */
		added = rlock_conn_failure(conn)->is_readwrite
				? "take read or write, or another name"
				: "take another name";
	(void)failure_print(conn, added, out);
	return lacks_password ? EXIT_CONFIG : exit_code_of(status);
}

int caller_report_failure(const struct opts *opts, const struct rlock_conn *conn,
			  enum rlock_status status)
{
	char subject[NAME_SUBJECT_MAX], why[FAILURE_TEXT_MAX];
	int code = caller_explain_failure(opts, conn, status, why);

	message_error("%s%s", names_show_subject(opts, rlock_conn_error_name(conn), subject), why);
	return code;
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

/*
 * Report each name with '*' or '?', which was probably meant as a pattern. Only list takes a pattern, and a lock with
 * such a name is rarely held.
 */
static void report_patterns(const struct opts *opts)
{
	for (size_t i = 0; i < opts->name_count; i++) {
		char name[NAME_SHOWN_MAX];
		struct usage_line line;

		if (strpbrk(opts->names[i].text, "*?") == NULL)
			continue;
		usage_line(&line, PLAIN("rlock list"));
		usage_line_add_names(&line, &opts->names[i], 1);
		message_info("%s: a name is no pattern here; try: %s",
			     names_show_one(opts, i, name), line.text);
	}
}

int caller_run(struct opts *opts, caller_fn act)
{
	struct rlock_conn *conn = NULL;
	bool is_cancelled = false;
	int code;

	/*
	 * A verb that changes something ignores SIGPIPE, because it must continue if the reader of our output has
	 * ended. A verb that only reports may end then.
	 */
	if ((opts->verb->set & VERBS_REPORT) == 0)
		(void)signal(SIGPIPE, SIG_IGN);
	code = caller_connect(opts, -1, &is_cancelled, &conn);
	if (code == 0)
		code = act(opts, conn);
	if (code == EXIT_NOT_HELD && (opts->verb->set & VERBS_NAMES) != 0 && !opts->json)
		report_patterns(opts);
	rlock_conn_free(conn);
	return code;
}
