/*
 * Why a call of the library failed, with what the program adds to it. What is added is the caller's business.
 */
#include <stdio.h>
#include <string.h>

#include "base/failure.h"

char *failure_print(const struct rlock_conn *conn, const char *added, char out[FAILURE_TEXT_MAX])
{
	const char *text = rlock_conn_error(conn), *reply = rlock_conn_error_reply(conn);
	int len = (int)(strlen(text) - strlen(reply));

	if (added[0] == '\0')
		(void)snprintf(out, FAILURE_TEXT_MAX, "%s", text);
	else if (reply[0] == '\0')
		(void)snprintf(out, FAILURE_TEXT_MAX, "%s: %s", text, added);
	else
		(void)snprintf(out, FAILURE_TEXT_MAX, "%.*s%s: %s", len, text, added, reply);
	return out;
}
