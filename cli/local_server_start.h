/*
 * Starts the private server.
 */
#ifndef LOCAL_SERVER_START_H
#define LOCAL_SERVER_START_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The path of redis-server, or else of valkey-server. False when neither is installed. */
bool local_server_start_find_program(char out[PATH_MAX]);

/*
 * Start program on socket_path, and write down its pid, which is *pid_out then. 0, or an errno; ETIMEDOUT at
 * deadline_ms. The server may not listen yet.
 */
int local_server_start(int dir_fd, char *program, char *socket_path, int64_t deadline_ms,
		       pid_t *pid_out);

#endif
