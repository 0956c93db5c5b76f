/*
 * Replies on a stream, of limited size.
 */
#ifndef RLOCK_NET_READER_H
#define RLOCK_NET_READER_H

#include <stdbool.h>

struct redisContext;
struct redisReply;
struct rlock__reader;

/* Takes over stream; NULL when out of memory: then stream still belongs to the caller. */
struct rlock__reader *rlock__reader_new(struct redisContext *stream);
/* Closes the stream. */
void rlock__reader_free(struct rlock__reader *reader);
/* Read what has come, once. false: the stream is broken, and has the reason. */
bool rlock__reader_fill(struct rlock__reader *reader);
/* The next complete reply, or NULL. false: there will be none; the stream has the reason, unless rlock__reader_excess
 * has it. */
bool rlock__reader_next(struct rlock__reader *reader, struct redisReply **out);
/* Which limit a reply exceeded; NULL: none. */
const char *rlock__reader_excess(const struct rlock__reader *reader);

#endif
