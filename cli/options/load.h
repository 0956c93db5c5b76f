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

/* A value from one source, for rlock check; and why the value does not count, if so. */
struct setting {
	/* name of the option; NULL: the setting is a variable that replaces no option */
	const char *option;
	/* variable of the environment that has the value; NULL: the value is from another source */
	const char *variable;
	enum opt_source source;
	size_t line;                      /* line of the configuration file; 0: another source */
	const char *value;                /* as the source gave it; NULL: secret */
	bool is_of_other_verbs;           /* the option has no effect on check */
	char ignored[SETTING_REASON_MAX]; /* why the value does not count; empty: it counts */
	char text[64];                    /* room for the text of a default value */
};

/* Call see for each setting that rlock check may show: given values, variables, files, default values. */
void load_settings(const struct opts *opts, void (*see)(void *ctx, const struct setting *setting),
		   void *ctx);

#endif
