/*
 * What a command has left running when it ended, for those who wait for that as well: --wait-all. Keeper and
 * renewer ask for it by the same look, whoever is alive and running.
 */
#ifndef LEFTOVERS_H
#define LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold/lease_state.h"

struct leftovers {
	const struct lease_state *lease_state;
	int fd;           /* readable when the one of them that is known has ended; -1: none is */
	int64_t again_ms; /* when to look again without that; INT64_MAX: not by the clock */
	int64_t pace_ms;
	bool is_none; /* as of the last look */
};

void leftovers_init(struct leftovers *leftovers, const struct lease_state *lease_state);
void leftovers_clear(struct leftovers *leftovers);

/*
 * Whether the command, which has ended, left something running that the lock is to be kept for. True, too, when that
 * can't be told now. The processes are looked at when it is time to; keeper and renewer as for job_processes.
 */
bool leftovers_run(struct leftovers *leftovers, pid_t keeper, pid_t renewer);

#endif
