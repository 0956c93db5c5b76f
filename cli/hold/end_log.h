/*
 * The event that ends a hold: it is logged once, by keeper or renewer.
 */
#ifndef END_LOG_H
#define END_LOG_H

#include "hold/lease_state.h"
#include "log/event_log.h"

/* The lock is lost, as the lease state says. */
void end_log_lost(struct lease_state *lease_state);

/* The hold has ended with that event, unless it was lost before. */
void end_log(struct lease_state *lease_state, const struct event *event);

#endif
