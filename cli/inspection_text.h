/*
 * What the servers say of a name, as text for people.
 */
#ifndef INSPECTION_TEXT_H
#define INSPECTION_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/duration.h"
#include "lib/rlock.h"

/*
 * Print what each of count servers says; once, where all of them say the same. width is that of the terminal, 0: none.
 * False when out of memory.
 */
bool inspection_text(const struct rlock_inspection *inspections, size_t count, size_t width,
		     FILE *out);
/* A time of an inspection: "3m12s"; "-" where it is not known, or there is none. Returns out. */
char *inspection_text_time(int64_t ms, char out[DURATION_TEXT_MAX]);

#endif
