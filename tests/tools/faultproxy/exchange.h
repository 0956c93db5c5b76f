/*
 * Requests and the replies to them: what was read is forwarded whole, with the faults that the rules say.
 */
#ifndef FAULTPROXY_EXCHANGE_H
#define FAULTPROXY_EXCHANGE_H

#include <stdbool.h>

struct conn;

/* What has come from the client, or from the server, as far as it is whole. */
void exchange_take_up(struct conn *conn);
void exchange_take_down(struct conn *conn);

/* Whether nothing that the server still says is for the client. */
bool exchange_is_over(const struct conn *conn);

#endif
