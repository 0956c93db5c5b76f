/*
 * Where the servers and their passwords were named, as messages say it.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "options/merge.h"

/* Sets both origins in the merge's opts, before passwords that are no URL's are added to the URLs. */
void origin_set(const struct option_merge *merge);

#endif
