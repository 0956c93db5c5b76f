/*
 * Where the servers and their passwords were named, as messages say it.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "options/draft.h"

/* Sets both origins in the draft's opts, before passwords that are no URL's are added to the URLs. */
void origin_set(const struct draft *draft);

#endif
