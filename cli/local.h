/*
 * The private server of a local: URL: one for each user of a machine, on a unix socket in the runtime directory.
 */
#ifndef LOCAL_H
#define LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "sys/proc.h"

/*
 * Give a local: URL the socket of the private server, and start the server if none listens. If many processes do so at the
 * same time, one of them starts the server, and all use it. cancel_fd (-1: none) ends the wait. Returns 0 if the socket is
 * set, or if cancel_fd ended the wait; then *is_cancelled is set. Otherwise returns the exit code after one line by
 * message_error. EXIT_SYSTEM: a failure of this machine. EXIT_CONFIG: no redis-server or valkey-server is installed.
 * EXIT_UNREACHABLE: no server listens by deadline_ms.
 */
int local_resolve(struct rlock_url *url, int64_t deadline_ms, int cancel_fd, bool *is_cancelled);

/*
 * Whether the process is a private server, of whichever runtime directory. It belongs to no command, although one may have started it.
 * Of the servers whose descriptors are hidden from us, such as those of root, only the one of our own directory is known.
 */
bool local_is_server(const struct proc *proc);

/*
 * Find a lost server: a private server of this user for the runtime directory dir_fd, whose socket, files or directory
 * were removed or moved. No call finds it by its socket any more, but its locks are still held. Reads all processes of
 * /proc. Returns its pid; 0: there is none; -1 with errno.
 */
pid_t local_find_lost_server(int dir_fd);

#endif
