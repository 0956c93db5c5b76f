/*
 * Logs how a hold ended. That each of keeper and renewer may find that out, and may be killed, is why the lease state says
 * whether it was logged.
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
