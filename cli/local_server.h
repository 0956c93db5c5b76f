/*
 * Tells which process is the private server.
 */
#ifndef LOCAL_SERVER_H
#define LOCAL_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#define LOCAL_SERVER_SOCKET "local.sock"

/* The private server's process, which does not belong to a command; 0 when there is none. */
pid_t local_server_pid(void);

/*
 * 0 when a server listens in the runtime directory dir_fd, else the errno that says why none does; EPERM when the
 * server is another user's, behind a link, say. *pid_out is then the server's pid, 0 if it is in another pid namespace.
 */
int local_server_connect(int dir_fd, pid_t *pid_out);

/* The pid that the last start wrote down; 0 when there is none. */
pid_t local_server_read_pid(int dir_fd);

/* Write down the pid of a server that is being started. False with errno. */
bool local_server_write_pid(int dir_fd, pid_t pid);

/*
 * Whether pid is a server of this directory that has not ended. A pid file may be older than the process that has the
 * pid by now; but no other process works in this directory.
 */
bool local_server_runs(int dir_fd, pid_t pid);

#endif
