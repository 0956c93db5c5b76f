/*
 * The right to release by a hold file: one unlock at a time has it.
 */
#ifndef HOLD_FILE_CLAIM_H
#define HOLD_FILE_CLAIM_H

#include <stdbool.h>

#include "process_lock/hold_file.h"

/*
 * Keep others from releasing this hold, until hold_file_free, and read again how it stands. *is_ours_out is false when
 * one of them did so, or tried to, meanwhile: then the hold has to be looked for again. 0, or the exit code after one
 * line by say_error. The renewer, which writes the file as well, must have ended.
 */
int hold_file_claim(struct hold_file *file, bool *is_ours_out);

#endif
