/*
 * The process of the private server: which one it is, and how it is started.
 */
#ifndef LOCAL_SERVER_H
#define LOCAL_SERVER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
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

/*
 * Whether pid is a server of this directory that has not ended. A pid file may be older than the process that has the
 * pid by now; but no other process works in this directory.
 */
bool local_server_runs(int dir_fd, pid_t pid);

/* The path of redis-server, or else of valkey-server. False when neither is installed. */
bool local_server_find_program(char out[PATH_MAX]);

/*
 * Start program on socket_path, and write down its pid, which is *pid_out then. 0, or an errno; ETIMEDOUT at
 * deadline_ms. The server may not listen yet.
 */
int local_server_start(int dir_fd, char *program, char *socket_path, int64_t deadline_ms,
		       pid_t *pid_out);

#endif
