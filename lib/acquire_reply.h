/*
 * The replies of the scripts that acquire.
 */
#ifndef RLOCK_ACQUIRE_REPLY_H
#define RLOCK_ACQUIRE_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

struct redisReply;

/* Reads a reply of the index-th server into ctx, a struct rlock__waiter: the server's state, and what it granted. */
enum rlock_status rlock__acquire_reply_read(void *ctx, size_t index, struct redisReply *reply);

#endif
