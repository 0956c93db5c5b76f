/*
 * The rules that tests give: which requests, or the replies to them, are to have which fault.
 */
#ifndef FAULTPROXY_RULES_H
#define FAULTPROXY_RULES_H

#include <stddef.h>

enum fault {
	FAULT_NONE,
	FAULT_CUT,
	FAULT_DROP,
	FAULT_HOLD,
	FAULT_STALL,
	FAULT_END,
	FAULT_TRICKLE,
	FAULT_GARBAGE,
};

/* For so many requests that match; the text is copied. Older rules come first. */
void rules_add(enum fault fault, const char *match, long times);
void rules_clear(void);
/* How many are not used up. */
size_t rules_count(void);

/* What is to happen to a request: the oldest rule that matches it, which is good for one request less
 * then. */
enum fault rules_apply(const char *request, size_t len);

#endif
