/*
 * The leftover processes of a command that has ended. Keeper and renewer both wait for them with --wait-all, so
 * that either may be dead or stopped; what their end means is left to keeper.c and observer.c.
 */
#ifndef LEFTOVERS_H
#define LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold/lease_state.h"

struct leftovers {
	const struct lease_state *lease_state;
	int fd;           /* pidfd of one that is known to run; -1: none is known */
	int64_t again_ms; /* when to look again without a pidfd; INT64_MAX: no later look is planned */
	int64_t pace_ms;
	bool is_none; /* as of the last look */
};

void leftovers_init(struct leftovers *leftovers, const struct lease_state *lease_state);
void leftovers_clear(struct leftovers *leftovers);

/*
 * When all that the lock is kept for had ended at the latest: the command, which has ended, and with --wait-all its
 * leftovers. 0: some run, or that cannot be told now. Looks at processes when it is time to; keeper and renewer are as
 * for job_processes.
 */
int64_t leftovers_end_ms(struct leftovers *leftovers, pid_t keeper, pid_t renewer);

#endif
