/*
 * The configuration file: where it is found, and what stands in its lines.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stddef.h>
#include <sys/stat.h>

#include "options/draft.h"

/*
 * Options from the first file that is there. 0, or the exit code after one line on stderr. The
 * draft points into *text_out, which the caller frees; NULL when there is no file.
 */
int config_read(struct draft *draft, char **text_out, size_t *len_out);

/*
 * A small file as a whole, with a NUL behind it; malloc'ed. Of what was opened, a link's target, is
 * *stat_out. NULL with errno, which is EFBIG for more than max bytes.
 */
char *config_read_file(const char *path, size_t max, struct stat *stat_out, size_t *len_out);

#endif
