/*
 * Owners and hold ids.
 */
#ifndef RLOCK_OWNER_H
#define RLOCK_OWNER_H

#include "rlock.h"

struct rlock__connection;

enum rlock_status rlock__hold_id_new(char out[RLOCK_HOLD_ID_MAX]);
/* rlock_owner_check, with the reason in the connection's text. */
enum rlock_status rlock__check_owner(struct rlock__connection *connection, const char *owner);

#endif
