/*
 * Ends a hold on the server. Who may do so, and when, is keeper.c's and renewer.c's business; what the result means is
 * the caller's.
 */
#include "hold/finish.h"

#define RELEASE_MS 5000

enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold)
{
	return rlock_release(conn, hold, rlock_now_ms() + RELEASE_MS);
}

enum rlock_status finish_release_or_keep(struct rlock_conn *conn, struct rlock_hold *hold,
					 const struct watch *watch)
{
	int64_t now_ms = rlock_now_ms(), left_ms = watch->had_ms + watch->at_least_ms - now_ms;

	rlock_conn_set_cancel(conn, -1);
	/* It may have been renewed by `rlock renew`, or by a renewer, of which there may have been several. */
	rlock_hold_set_sent_ms(hold, watch->sent_ms);
	if (watch->at_least_ms > 0 && left_ms > 0)
		return rlock_linger(conn, hold, left_ms, now_ms + RELEASE_MS);
	return finish_release(conn, hold);
}
