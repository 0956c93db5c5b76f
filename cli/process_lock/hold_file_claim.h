/*
 * The right to release by a hold file: one unlock at a time has this right.
 */
#ifndef HOLD_FILE_CLAIM_H
#define HOLD_FILE_CLAIM_H

#include <stdbool.h>

#include "process_lock/hold_file.h"

/*
 * Keep other unlocks from releasing this hold until hold_file_free, and read the state of the hold again. *is_ours_out
 * is false when another unlock has released it meanwhile, or has tried to: then the caller has to look for the hold
 * again. 0, or the exit code after one line by message_error. The renewer, which writes the file as well, must have
 * ended.
 */
int hold_file_claim(struct hold_file *file, bool *is_ours_out);

#endif
