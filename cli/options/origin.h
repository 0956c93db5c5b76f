/*
 * Where the servers and their passwords are from, as messages say it.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "options/merge.h"

/* Set both origins in the merge's opts. To be called before other passwords than the URLs' own are set in the URLs. */
void origin_set(const struct option_merge *merge);

#endif
