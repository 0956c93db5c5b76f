/*
 * The configuration file: where it is found, and what stands in its lines.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stddef.h>

#include "options/merge.h"

/*
 * Options from the first file that is there. 0, or the exit code after one line on stderr. The
 * merge points into *text_out, which the caller frees; NULL when there is no file.
 */
int config_read(struct option_merge *merge, char **text_out, size_t *len_out);

#endif
