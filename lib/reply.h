/*
 * What the replies to several requests have in common.
 */
#ifndef RLOCK_REPLY_H
#define RLOCK_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

struct redisReply;
struct rlock__connection;
struct rlock__error;
struct rlock__routes;
struct rlock__script;

/* Whether reply is an array of at least count integers. */
bool rlock__reply_has_integers(const struct redisReply *reply, size_t count);
/* Which name an element of a route's reply is about, counted from 1 there. False when it is none of them. */
bool rlock__reply_read_index(const struct rlock__routes *routes, size_t index,
			     const struct redisReply *element, size_t *name_index_out);
/* A reply that the script does not give. */
enum rlock_status rlock__reply_fail(struct rlock__connection *connection,
				    const struct rlock__script *script);
/* The key of that name is no lock of this kind; type is its type, as the script told it. */
enum rlock_status rlock__reply_fail_kind(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);
/* RLOCK_BUSY: "held by NOTE (OWNER)", of how, and of texts that are escaped; the note may be empty. */
enum rlock_status rlock__reply_fail_held(struct rlock__error *error, const char *how,
					 const char *note, const char *owner);
/* The hold is lost; type is that of the value which has overwritten its key, as the script told it, or NULL. */
enum rlock_status rlock__reply_fail_lost(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);

#endif
