/*
 * Puts into words what a call does, and why it failed. The library prints nothing: the words go to the caller's trace
 * function, and those of a failure stay to be read. The module that knows the facts chooses the words.
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
	error->name_index = 0;
	error->is_unreachable = error->lacks_password = error->will_pass = false;
	error->held_ms = error->kept_until_ms = -1;
	error->process = (struct rlock_process){ 0 };
	error->reply_len = 0;
	rlock__trace(error, "%s", error->text);
	return status;
}

enum rlock_status rlock__fail_memory(struct rlock__error *error)
{
	return rlock__fail(error, RLOCK_ENOMEM, "out of memory");
}

void rlock__error_set_reply(struct rlock__error *error, const char *reply)
{
	size_t len = strlen(error->text), reply_len = strlen(reply);

	if (reply_len <= len && strcmp(error->text + len - reply_len, reply) == 0)
		error->reply_len = reply_len;
}

const char *rlock__error_reply(const struct rlock__error *error)
{
	return error->text + strlen(error->text) - error->reply_len;
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

const char *rlock_status_name(enum rlock_status status)
{
	static const char *const names[] = {
		[RLOCK_OK - RLOCK_ESERVER] = "ok",
		[RLOCK_BUSY - RLOCK_ESERVER] = "busy",
		[RLOCK_NOT_HELD - RLOCK_ESERVER] = "not_held",
		[RLOCK_CANCELLED - RLOCK_ESERVER] = "cancelled",
		[RLOCK_NOT_NOTIFIED - RLOCK_ESERVER] = "not_notified",
		[RLOCK_ENET - RLOCK_ESERVER] = "enet",
		[RLOCK_EAUTH - RLOCK_ESERVER] = "eauth",
		[RLOCK_EACL - RLOCK_ESERVER] = "eacl",
		[RLOCK_EKIND - RLOCK_ESERVER] = "ekind",
		[RLOCK_EDEADLOCK - RLOCK_ESERVER] = "edeadlock",
		[RLOCK_EUNSUPPORTED - RLOCK_ESERVER] = "eunsupported",
		[RLOCK_EINVAL - RLOCK_ESERVER] = "einval",
		[RLOCK_ENOMEM - RLOCK_ESERVER] = "enomem",
		[RLOCK_ESYS - RLOCK_ESERVER] = "esys",
		[RLOCK_ESERVER - RLOCK_ESERVER] = "eserver",
	};
	size_t row = (size_t)(status - RLOCK_ESERVER);

	return row < sizeof(names) / sizeof(names[0]) ? names[row] : "unknown";
}
