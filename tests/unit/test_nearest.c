/*
 * usage.c: the word that was meant.
 */
#include "options/usage.h"

#include "unit.h"

static void check(const char *typed, const char *want)
{
	static const char *const words[] = { "run",     "lock",    "fair",  "wait", "ttl",
					     "no-wait", "verbose", "lease", NULL };
	struct nearest nearest = { .typed = typed };

	for (size_t i = 0; words[i] != NULL; i++)
		nearest_try(&nearest, words[i]);
	CHECK_STRING(nearest.word != NULL ? nearest.word : "none", want, "'%s' means %s", typed,
		     want);
}

void test_nearest(void)
{
	check("wiat", "wait");
	check("wai", "wait");
	check("wayt", "wait");
	check("wwait", "wait");
	check("rnu", "run");
	check("RUN", "run");
	check("Wiat", "wait");
	check("tll", "ttl");
	check("verbsoe", "verbose");
	check("no-wiat", "no-wait");
	check("lease-time", "none");
	check("nightly", "none");
	check("x", "none");
	check("", "none");
	check("a-word-that-is-longer-than-all-words-are", "none");
}
