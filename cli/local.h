/*
 * local: the private server of one machine and user, on a unix socket in the runtime directory.
 */
#ifndef LOCAL_H
#define LOCAL_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"

/*
 * Turn a local: URL into the socket of the private server, and start that if none answers. Many may
 * do so at once: one starts it, all find it. cancel_fd (or -1) ends the wait. 0, or the exit code
 * after one line by message_error (EXIT_SYSTEM, EXIT_CONFIG when no redis-server or valkey-server is
 * installed, EXIT_UNREACHABLE when it does not come up by deadline_ms; 0 with *is_cancelled set when
 * cancel_fd ended it).
 */
int local_resolve(struct rlock_url *url, int64_t deadline_ms, int cancel_fd, _Bool *is_cancelled);

/* The private server's process, which is none of a command's; 0 when none was started here. */
pid_t local_server_pid(void);

#endif
