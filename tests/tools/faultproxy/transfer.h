/*
 * The bytes of a connection, in both directions: when they may pass, and that they do.
 */
#ifndef FAULTPROXY_TRANSFER_H
#define FAULTPROXY_TRANSFER_H

#include <stdint.h>

struct conn;
struct pollfd;

/* What to poll either side for; 0: nothing. */
short transfer_client_events(const struct conn *conn, int64_t now_us);
short transfer_server_events(const struct conn *conn, int64_t now_us);
/* The next time after now_us at which there is more to poll for; NEVER_US: none is known. */
int64_t transfer_next_us(const struct conn *conn, int64_t now_us);

/* Read and write what can be, by what was found when polling. */
void transfer_serve(struct conn *conn, const struct pollfd *client, const struct pollfd *server);
/* What follows from all that was read and written. */
void transfer_settle(struct conn *conn);

#endif
