/*
 * Logs how a hold ended. Keeper and renewer may both find out, and either may be killed: a flag in the lease state says
 * whether the end has been logged.
 */
#include "hold/end_log.h"
#include "hold/report.h"

void end_log(struct lease_state *lease_state, const struct event *event)
{
	if (event_log_is_on() && !atomic_exchange(&lease_state->is_end_logged, true))
		event_log(event);
}

void end_log_lost(struct lease_state *lease_state)
{
	char reason[REPORT_REASON_MAX];
	struct event event = { .kind = EVENT_LOST };

	if (!event_log_is_on() || lease_state->is_end_logged)
		return;
	event.reason = report_lost_reason(lease_state, reason);
	end_log(lease_state, &event);
}
