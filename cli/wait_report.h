/*
 * The messages about a wait for a lock: what it waits for, that it is over, and how long it took. message.c decides which
 * are printed, but for the first.
 */
#ifndef WAIT_REPORT_H
#define WAIT_REPORT_H

#include <stdint.h>

#include "lib/rlock.h"
#include "options/opts.h"

/* While it waits: the holder, since when it holds, and the waiter's position. Without -v only to a terminal. */
void wait_report_blocker(const struct opts *opts, const struct rlock_blocker *blocker);

/* After RLOCK_BUSY: busy, or timed out, and the holder. */
void wait_report_busy(const struct opts *opts, const struct rlock_conn *conn);

void wait_report_acquired(const struct opts *opts, int64_t waited_ms);

#endif
