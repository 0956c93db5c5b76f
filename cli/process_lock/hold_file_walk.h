/*
 * Goes through the hold files of a process and those above it.
 */
#ifndef HOLD_FILE_WALK_H
#define HOLD_FILE_WALK_H

#include <sys/types.h>

#include "process_lock/hold_file.h"
#include "process_lock/runtime_dir.h"

/* Gets a file, which it then owns. distance is how far above the process is whose file it is; 0: the process itself. */
typedef void (*hold_file_walk_fn)(void *ctx, struct hold_file *file, int distance);

/*
 * Call fn with each hold file of pid or a process above it, and remove the files of processes that have ended. Closes
 * the directories; -1 stands for one that is not there. 0, or the first errno when some files could not be looked at.
 */
int hold_file_walk(const int dir_fds[RUNTIME_DIR_COUNT], pid_t pid, hold_file_walk_fn fn,
		   void *ctx);

#endif
