/*
 * The configuration file as an option source.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "options/opts.h"

#define CONFIG_OF_MACHINE "/etc/rlock.conf"

/*
 * Store the options of the first file that exists in opts. Returns 0, or the exit code after one line by message_error.
 */
int config_read(struct opts *opts);

#endif
