/*
 * Prints the help of rlock as a whole: the verbs, and what is the same for all of them. That of one verb is printed by
 * options/help.c.
 */
#include <stdio.h>

#include "overview.h"
#include "verbs.h"

#define PAGES                                                                                      \
	"Manual pages:\n"                                                                          \
	"  rlock(1)           verbs, options, exit codes, messages and examples\n"                 \
	"  rlock(7)           what is guaranteed, leases, questions and answers\n"                 \
	"  rlock.conf(5)      the configuration file, URLs, passwords and TLS\n"                   \
	"  rlock-output(5)    what status, list, check and --log print, and JSON\n"                \
	"  rlock-protocol(7)  what is on the server, and its rights\n"                             \
	"  librlock(3)        the library\n"

static void print_verbs(enum help_extent extent)
{
	(void)printf("Verbs:\n");
	for (size_t i = 0; i < verb_count; i++) {
		if (verbs[i].alias_of == NULL)
			(void)printf("  %-14s%s\n", verbs[i].name, verbs[i].summary);
		else if (extent == HELP_FULL)
			(void)printf("  %-14sanother name for %s\n", verbs[i].name,
				     verbs[i].alias_of);
	}
	(void)printf("  %-14s%s\n", "help [VERB]", "print all help, or all options of a verb");
	(void)printf("  %-14s%s\n\n", "version", "print the version");
}

void overview_print(enum help_extent extent)
{
	(void)printf("usage: rlock VERB [OPTION...] NAME... [-- COMMAND [ARG...]]\n\n"
		     "Locks for many machines, kept on a Redis or Valkey server.\n\n");
	print_verbs(extent);
	(void)printf(
		"Examples:\n"
		"  rlock run --wait 15m deploy -- ./deploy.sh  # one deployment at a time\n"
		"  rlock run -n -E 0 nightly -- ./backup.sh    # not while one runs elsewhere\n\n");
	if (extent == HELP_FULL) {
		(void)printf("Options, each for some of the verbs:\n");
		help_print_groups();
		(void)putchar('\n');
		help_print_exit_codes();
		(void)printf("\n" PAGES "\n");
	}
	if (extent == HELP_FULL)
		(void)printf(
			"'rlock VERB -h' has the options of a verb that are used most, --help all.\n");
	else
		(void)printf(
			"'rlock VERB -h' has a verb's usual options, 'rlock --help' the exit codes.\n");
}
