/*
 * Store the error text of a call, and pass trace lines to the caller's function. The library prints nothing. The module that detects a
 * failure writes its text.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "rlock.h"

enum rlock_status rlock__fail(struct rlock__error *error, enum rlock_status status,
			      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	error->status = status;
	error->name_index = error->why_at = 0;
	error->heals_itself = error->is_of_master = error->is_about_channel = false;
	error->failure = (struct rlock_failure){ .held_ms = -1, .kept_until_ms = -1 };
	rlock__trace(error, "%s", error->text);
	return status;
}

enum rlock_status rlock__fail_memory(struct rlock__error *error)
{
	return rlock__fail(error, RLOCK_ENOMEM, "out of memory");
}

enum rlock_status rlock__fail_peer(struct rlock__error *error, enum rlock_status status,
				   const char *format, ...)
{
	bool is_unreachable = status == RLOCK_ENET;
	bool has_origin = is_unreachable && error->origin != NULL;
	const char *action = is_unreachable ? "reach" : "connect to";
	size_t why_at;
	char why[RLOCK_ERROR_MAX / 2];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (error->peer == NULL)
		return rlock__fail(error, status, "%s", why);
	(void)rlock__fail(error, status, "cannot %s %s: %s%s", action, error->peer, why,
			  has_origin ? error->origin : "");
	why_at = strlen("cannot  : ") + strlen(action) + strlen(error->peer);
	error->why_at = why_at < strlen(error->text) ? why_at : 0;
	/* Let the caller suspect the URL only if the URL itself names the server: sentinels or nodes may have named it. */
	error->failure.is_unreachable = is_unreachable && !has_origin;
	return status;
}

void rlock__error_set_reply(struct rlock__error *error, const char *reply)
{
	size_t len = strlen(error->text), reply_len = strlen(reply);

	if (reply_len <= len && strcmp(error->text + len - reply_len, reply) == 0)
		error->failure.reply_len = reply_len;
}

const char *rlock__error_reply(const struct rlock__error *error)
{
	return error->text + strlen(error->text) - error->failure.reply_len;
}

void rlock__trace(const struct rlock__error *error, const char *format, ...)
{
	char step[RLOCK_ERROR_MAX];
	va_list args;

	if (error->trace == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(step, sizeof(step), format, args);
	va_end(args);
	error->trace(error->trace_ctx, error->server, step);
}

/* The number of negative statuses: an offset for the array below. */
#define BELOW_OK (-RLOCK_ESERVER)

const char *rlock_status_name(enum rlock_status status)
{
	static const char *const names[] = {
		[RLOCK_OK + BELOW_OK] = "ok",
		[RLOCK_BUSY + BELOW_OK] = "busy",
		[RLOCK_NOT_HELD + BELOW_OK] = "not_held",
		[RLOCK_CANCELLED + BELOW_OK] = "cancelled",
		[RLOCK_NOT_NOTIFIED + BELOW_OK] = "not_notified",
		[RLOCK_ENET + BELOW_OK] = "enet",
		[RLOCK_EAUTH + BELOW_OK] = "eauth",
		[RLOCK_EACL + BELOW_OK] = "eacl",
		[RLOCK_EKIND + BELOW_OK] = "ekind",
		[RLOCK_EDEADLOCK + BELOW_OK] = "edeadlock",
		[RLOCK_EUNSUPPORTED + BELOW_OK] = "eunsupported",
		[RLOCK_EINVAL + BELOW_OK] = "einval",
		[RLOCK_ENOMEM + BELOW_OK] = "enomem",
		[RLOCK_ESYS + BELOW_OK] = "esys",
		[RLOCK_ESERVER + BELOW_OK] = "eserver",
	};
	int row = (int)status + BELOW_OK;

	return row >= 0 && row <= RLOCK_NOT_NOTIFIED + BELOW_OK ? names[row] : "unknown";
}
