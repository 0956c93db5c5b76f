/*
 * Finds the configuration file.
 */
#ifndef CONFIG_FIND_H
#define CONFIG_FIND_H

#include <stddef.h>

#include "options/merge.h"

/*
 * The text of the first file that exists is in *text_out, which the caller frees; NULL when there is none. merge has
 * the options that may name the file, and gets its path. 0, or the exit code after one line by message_error.
 */
int config_find(struct option_merge *merge, char **text_out, size_t *len_out);

#endif
