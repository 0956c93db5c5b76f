/*
 * A fair lock and its model: several threads stand in its line, give up, get it in their turn, or by
 * themselves when the holder loses it; newcomers try to get past them; and strangers come into the line and
 * go.
 *
 * After each step either somebody holds the lock, or nobody of ours is next.
 */
#include <inttypes.h>
#include <stdio.h>

#include "fair.h"

static const struct choice choices[] = {
	{ 120, fair_step_wait },
	{ 30, fair_step_give_up },
	{ 6, fair_step_come_again },
	{ 10, fair_step_wait_a_moment },
	{ 200, fair_step_release },
	{ 10, fair_step_release_again },
	{ 60, fair_step_enter },
	{ 60, fair_step_newcomer },
	{ 40, fair_step_plain },
	{ 5, fair_step_other_kind },
	{ 30, fair_step_renew },
	{ 6, fair_step_linger },
	{ 10, fair_step_break },
	{ 10, fair_step_find },
	{ 10, fair_step_race_of_cancel },
	{ 10, fair_step_race_of_deadline },
	{ 2, fair_step_lose },
	{ 3, fair_step_lose_and_give_up },
	{ 2, fair_step_lease_ends },
	{ 12, fair_step_stranger_comes },
	{ 6, fair_step_dead_stranger_comes },
	{ 4, fair_step_stranger_goes },
	{ 60, fair_step_stranger_takes },
	{ 60, fair_step_stranger_releases },
	{ 3, fair_step_stranger_is_late },
	{ 10, fair_step_put_back },
	{ 10, fair_step_drop },
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

/* All give up and give back, and nothing is left. */
static void end(void)
{
	while (fair.line_len > 0 || fair.book.party_count > 0 || book_listed(&fair.book) > 0) {
		if (fair_any_of_ours() != NULL)
			(void)fair_step_give_up();
		else if (!fair_step_release() && !fair_step_stranger_goes() &&
			 !fair_step_stranger_takes())
			(void)fair_step_stranger_releases();
		fair_compare();
	}
	book_free(&fair.book);
	for (size_t i = 0; i < WAITERS; i++)
		waiter_free(fair.waiters[i]);
	for (size_t i = 0; i < CONNS; i++)
		rlock_conn_free(fair.conns[i]);
}

static void print(void)
{
	for (size_t i = 0; i < fair.line_len; i++)
		(void)printf("  queue     %s%s%s\n", fair.line[i].owner,
			     fair.line[i].waiter == NULL ? ", a stranger" : "",
			     fair.line[i].is_dead ? ", dead" : "");
	(void)printf("  token     %" PRId64 "\n", fair.last_token);
	book_print(&fair.book);
}

const struct model fair_model = { "fair", begin, step, end, print };
