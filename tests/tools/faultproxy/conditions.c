/*
 * The state of the network, which commands.c sets. The connections look at it with each byte that they move.
 */
#include "clock.h"
#include "conditions.h"

struct conditions conditions = { .stall_us = 300 * MS_US };

void conditions_clear(void)
{
	conditions = (struct conditions){ .stall_us = conditions.stall_us };
}
