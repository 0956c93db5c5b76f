/*
 * What a command has left running when it ended, for those who wait for that as well: --wait-all. Keeper and
 * renewer ask for it by the same look, whoever is alive and running.
 */
#ifndef LEFTOVERS_H
#define LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/procs.h"

struct leftovers {
	int fd;           /* readable when the one of them that is known has ended; -1: none is */
	int64_t again_ms; /* when to look again without that; INT64_MAX: not by the clock */
	int64_t pace_ms;
	bool is_none; /* as of the last look */
};

void leftovers_init(struct leftovers *leftovers);
void leftovers_clear(struct leftovers *leftovers);

/* False while the one that is known runs, or it is too early to look again: then there are some. */
bool leftovers_are_due(const struct leftovers *leftovers, int64_t now_ms);

/* Whether a process of roots runs, by a look at processes. True, too, when that can't be told now. */
bool leftovers_look(struct leftovers *leftovers, const struct proc_roots *roots, int64_t now_ms);

#endif
