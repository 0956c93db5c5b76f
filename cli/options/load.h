/*
 * The options of one call: the command line counts before the environment, and that before the configuration file.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "options/opts.h"

/*
 * Read argv (argv[0] is the program, argv[1] the verb), the environment and the configuration file, and begin the log of --log.
 * 0, or the exit code after one line by message_error; a password in argv is overwritten in either case.
 * `-h` or `--help` after a verb prints the help of that verb and sets *is_done. load_free frees opts after a 0 without
 * *is_done.
 */
int load_opts(const struct verb *verb, int argc, char **argv, struct opts *opts, bool *is_done);
void load_free(struct opts *opts);

#define SETTING_REASON_MAX 160

/* A value that a source has given, whether it counts, and if it does not, why: for rlock check. */
struct setting {
	const char *option;   /* its name; NULL: the variable stands for none */
	const char *variable; /* of the environment; NULL: another source */
	enum opt_source source;
	size_t line;                      /* of the configuration file */
	const char *value;                /* as it was given; NULL: not to be shown */
	bool is_of_other_verbs;           /* this one has no use for it */
	char ignored[SETTING_REASON_MAX]; /* the reason; empty: it counts */
	char text[64];                    /* for value */
};

/* Call see with one setting after the other. */
void load_settings(const struct opts *opts, void (*see)(void *ctx, const struct setting *setting),
		   void *ctx);

#endif
