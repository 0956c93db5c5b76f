/*
 * A fair lock and its model: several threads wait in its queue, are cancelled, acquire it in their turn, or without a
 * message when the holder lost it; newcomers try to overtake them; and Java's waiters join the queue and leave it.
 *
 * After each step the lock is held, or the head of the queue is none of ours.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fair.h"

static const struct choice choices[] = {
	{ 120, fair_step_wait },
	{ 30, fair_step_cancel },
	{ 6, fair_step_requeue },
	{ 10, fair_step_wait_a_moment },
	{ 200, fair_step_release },
	{ 10, fair_step_release_again },
	{ 60, fair_step_reenter },
	{ 60, fair_step_newcomer },
	{ 40, fair_step_plain },
	{ 5, fair_step_other_kind },
	{ 30, fair_step_renew },
	{ 6, fair_step_keep_until },
	{ 15, fair_step_stop },
	{ 10, fair_step_break },
	{ 10, fair_step_find },
	{ 10, fair_step_race_of_cancel },
	{ 10, fair_step_race_of_deadline },
	{ 2, fair_step_lose },
	{ 3, fair_step_lose_and_cancel },
	{ 2, fair_step_lease_ends },
	{ 12, fair_step_java_joins },
	{ 6, fair_step_dead_java_joins },
	{ 4, fair_step_java_leaves },
	{ 60, fair_step_java_acquires },
	{ 60, fair_step_java_releases },
	{ 3, fair_step_java_is_late },
	{ 10, fair_step_set_deadline_back },
	{ 10, fair_step_remove_heads },
	{ 10, fair_step_dead_of_ours },
};

static void step(void)
{
	while (!chance_step(choices, COUNT_OF(choices)))
		continue;
	fair_compare();
}

static void begin(void)
{
	for (size_t i = 0; i < CONNS; i++)
		fair.conns[i] = conn_new(-1);
	for (size_t i = 0; i < WAITERS; i++)
		fair.waiters[i] = waiter_new();
}

/* All waiters are cancelled, all holds released, and nothing is left. */
static void end(void)
{
	while (fair.queue_len > 0 || fair.expected.party_count > 0 ||
	       expected_listed(&fair.expected) > 0) {
		if (fair_any_of_ours() != NULL)
			(void)fair_step_cancel();
		else if (!fair_step_release() && !fair_step_java_leaves() &&
			 !fair_step_java_acquires())
			(void)fair_step_java_releases();
		fair_compare();
	}
	server_do("DEL %s", LAST);
	expected_free(&fair.expected);
	for (size_t i = 0; i < WAITERS; i++)
		waiter_free(fair.waiters[i]);
	for (size_t i = 0; i < CONNS; i++)
		rlock_conn_free(fair.conns[i]);
}

static void print(void)
{
	for (size_t i = 0; i < fair.queue_len; i++)
		(void)printf("  queue     %s%s%s\n", fair.queue[i].owner,
			     fair.queue[i].waiter == NULL ? ", Java's" : "",
			     fair.queue[i].is_dead ? ", dead" : "");
	(void)printf("  token     %" PRId64 "\n", fair.last_token);
	expected_print(&fair.expected);
}

const struct model fair_model = { "fair", begin, step, end, print };
