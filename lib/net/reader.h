/*
 * Replies, and how much of one there may be.
 */
#ifndef RLOCK_NET_READER_H
#define RLOCK_NET_READER_H

#include <stdbool.h>

struct redisContext;
struct redisReply;
struct rlock__reader;

/* Takes over stream; NULL when out of memory, and it is the caller's still. */
struct rlock__reader *rlock__reader_new(struct redisContext *stream);
/* Closes the stream. */
void rlock__reader_free(struct rlock__reader *reader);
/* Take what has come, once. false: the stream is broken, and says why. */
bool rlock__reader_fill(struct rlock__reader *reader);
/* The next reply that is there as a whole, or NULL. false: there will be none; why is in the stream, unless
 * it is an excess. */
bool rlock__reader_next(struct rlock__reader *reader, struct redisReply **out);
/* What the server said too much of; NULL: nothing. */
const char *rlock__reader_excess(const struct rlock__reader *reader);

#endif
