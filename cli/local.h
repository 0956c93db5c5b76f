/*
 * local: the private server of one machine and user, on a unix socket in the runtime directory.
 */
#ifndef LOCAL_H
#define LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"

/*
 * Turn a local: URL into the socket of the private server, and start that if none listens. Many processes may do so at
 * once: one starts it, and all find it. cancel_fd (or -1) ends the wait. 0, or the exit code after one line by
 * message_error (EXIT_SYSTEM, EXIT_CONFIG when no redis-server or valkey-server is installed, EXIT_UNREACHABLE when it
 * does not listen by deadline_ms; 0 with *is_cancelled set when cancel_fd ended it).
 */
int local_resolve(struct rlock_url *url, int64_t deadline_ms, int cancel_fd, bool *is_cancelled);

/* Whether a program of that name is one that local: starts. */
bool local_is_program(const char *name);
/* The private server's process, which does not belong to a command; 0 when there is none. */
pid_t local_server_pid(void);

/*
 * A server of this user for the runtime directory dir_fd that lives, but that no call finds any more, since its files were
 * removed or moved, maybe with the directory: its locks are still held. 0: there is none; -1 with errno. It looks at all processes.
 */
pid_t local_find_lost_server(int dir_fd);

#endif
