/*
 * Helper processes: what may hang, or is not to be met by a search for a command's processes, happens in one of them.
 */
#ifndef HELPER_H
#define HELPER_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Fork a helper. In it, which has all signals blocked and a session of its own, this returns 0: it makes
 * async-signal-safe calls only, since there may have been other threads, and ends by _exit. -1 with errno.
 */
pid_t helper_fork(void);
/* Wait a short time for its end; if it has not ended then, later calls reap it. */
void helper_reap(pid_t pid);

#endif
