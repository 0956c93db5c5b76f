/*
 * sem: acquire permits of a semaphore, as cmd_lock.c does a lock; or change how many it has.
 */
#include <inttypes.h>

#include "base/message.h"
#include "caller.h"
#include "options/names.h"
#include "verbs.h"

static int resize_one(const struct opts *opts, struct rlock_conn *conn)
{
	char name[NAME_SHOWN_MAX];
	int64_t had;
	enum rlock_status status = rlock_resize(conn, &opts->names[0], opts->permits, &had);

	if (status != RLOCK_OK)
		return caller_report_failure(opts, conn, status);
	(void)names_show_one(opts, 0, name);
	if (had < 0)
		message_debug("%s: has %d permits in all; it did not exist before", name,
			      opts->permits);
	else
		message_debug("%s: has %d permits in all; it had %" PRId64 " before", name,
			      opts->permits, had);
	return 0;
}

static int resize(const struct opts *opts, struct rlock_conn *conn)
{
	return caller_each_name(opts, conn, resize_one);
}

int cmd_sem(const struct verb *verb, struct opts *opts)
{
	return opts->resize ? caller_run(opts, resize) : cmd_lock(verb, opts);
}
