/*
 * Read the options of one call. The command line takes precedence over the environment, and the environment over the
 * configuration file.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "options/opts.h"

/*
 * Read argv (argv[0] is the program, argv[1] the verb), the environment and the configuration file, and open the log of
 * --log. Returns 0, or the exit code after one line by message_error. Passwords in argv are overwritten in either case.
 * `-h` and `--help` print the help of the verb and set *is_done. The caller frees opts by load_free after 0 without
 * *is_done.
 */
int load_opts(const struct verb *verb, int argc, char **argv, struct opts *opts, bool *is_done);
void load_free(struct opts *opts);

#define SETTING_REASON_MAX 160

/* A value from one source, and why it does not count, for rlock check. */
struct setting {
	const char *option;   /* name; NULL: only a variable */
	const char *variable; /* NULL: not from the environment */
	enum opt_source source;
	size_t line;                      /* in the configuration file */
	const char *value;                /* as given; NULL: secret */
	bool is_of_other_verbs;           /* check does not use it */
	char ignored[SETTING_REASON_MAX]; /* reason; empty: it counts */
	char text[64];                    /* room for value */
};

/* Call see for each setting. */
void load_settings(const struct opts *opts, void (*see)(void *ctx, const struct setting *setting),
		   void *ctx);

#endif
