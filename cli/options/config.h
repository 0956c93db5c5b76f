/*
 * The configuration file as an option source.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stddef.h>

#include "options/merge.h"

/*
 * Merge the options of the first file that exists. 0, or the exit code after one line by message_error. The merge
 * points into *text_out, which the caller frees; NULL when there is no file.
 */
int config_read(struct option_merge *merge, char **text_out, size_t *len_out);

#endif
