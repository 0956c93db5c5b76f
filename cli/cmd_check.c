/*
 * check: whether locks can be relied on here: the servers, one after the other, where the options are from, and this
 * machine.
 */

#include "base/exits.h"
#include "base/output.h"
#include "caller.h"
#include "check_machine.h"
#include "check_server.h"
#include "check_settings.h"
#include "findings.h"
#include "verbs.h"

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
