/*
 * Opens a connection, in steps that never wait.
 */
#ifndef RLOCK_NET_CONNECTION_OPEN_H
#define RLOCK_NET_CONNECTION_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "rlock.h"

struct pollfd;
struct rlock__connection;

/* Begin to connect: RLOCK_OK, and it is to be gone on with. */
enum rlock_status rlock__connection_open_begin(struct rlock__connection *connection,
					       int64_t deadline_ms);
/* Go on with it, as the last poll allows. true: it is over; RLOCK_OK: the stream is open, with the login queued. */
bool rlock__connection_open_advance(struct rlock__connection *connection, bool is_ready,
				    enum rlock_status *status_out);
/* What to poll for meanwhile, and until when. */
void rlock__connection_open_await(const struct rlock__connection *connection, struct pollfd *out,
				  int64_t *until_ms);
/* Hang up a broken stream, with the reason in the error. */
enum rlock_status rlock__connection_fail_stream(struct rlock__connection *connection);

#endif
