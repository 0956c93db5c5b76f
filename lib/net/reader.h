/*
 * Replies in the bytes of a stream, of limited size.
 */
#ifndef RLOCK_NET_READER_H
#define RLOCK_NET_READER_H

#include <stdbool.h>
#include <stddef.h>

struct redisReply;
struct rlock__reader;

/* NULL when out of memory. */
struct rlock__reader *rlock__reader_new(void);
void rlock__reader_free(struct rlock__reader *reader);
/* Copies the bytes that come next. false: out of memory. */
bool rlock__reader_feed(struct rlock__reader *reader, const char *bytes, size_t len);
/* The next complete reply, which the caller frees, or NULL. false: there will be none. */
bool rlock__reader_next(struct rlock__reader *reader, struct redisReply **out);
/* Why there will be none; NULL: out of memory. */
const char *rlock__reader_why(const struct rlock__reader *reader);

#endif
