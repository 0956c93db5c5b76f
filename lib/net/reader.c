/*
 * Reads replies with hiredis' reader, and limits their size: hiredis keeps all that it is sent, allocates at once what
 * an array announces, and frees nested replies by recursion. What a reply means is for the caller.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "net/reader.h"
#include "rlock.h"

/* Far more than the largest reply that we ask for: inspect.lua's, with less than 2000 elements. */
#define ELEMENTS_MAX (1 << 18)
#define BYTES_MAX (1 << 22)
#define DEPTH_MAX 7 /* the limit of hiredis 0.14; later versions have none */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

struct rlock__reader {
	redisReader *replies;
	redisReplyObjectFunctions functions; /* those of hiredis, but for arrays */
	void *(*create_array)(const redisReadTask *, element_count);
	size_t elements, bytes; /* announced and received of the reply that is being read */
	const char *excess;     /* which limit was exceeded; NULL: none */
};

static bool is_too_deep(const redisReadTask *task)
{
	int depth = 1;

	for (task = task->parent; task != NULL; task = task->parent)
		depth++;
	return depth > DEPTH_MAX;
}

/* For every kind of reply that has others inside. 0.14 truncates a count that is too large to a negative one. */
static void *create_array(const redisReadTask *task, element_count count)
{
	struct rlock__reader *reader = task->privdata;

	if (is_too_deep(task)) {
		reader->excess = "its reply is nested too deeply";
		return NULL;
	}
	if (count > (element_count)(ELEMENTS_MAX - reader->elements)
#if HIREDIS_MAJOR < 1
	    || count < 0
#endif
	) {
		reader->excess = "its reply has too many elements";
		return NULL;
	}
	reader->elements += (size_t)count;
	return reader->create_array(task, count);
}

struct rlock__reader *rlock__reader_new(void)
{
	struct rlock__reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	reader->replies = redisReaderCreate();
	if (reader->replies == NULL) {
		free(reader);
		return NULL;
	}
	reader->functions = *reader->replies->fn;
	reader->create_array = reader->functions.createArray;
	reader->functions.createArray = create_array;
	reader->replies->fn = &reader->functions;
	reader->replies->privdata = reader;
	return reader;
}

void rlock__reader_free(struct rlock__reader *reader)
{
	if (reader == NULL)
		return;
	redisReaderFree(reader->replies);
	free(reader);
}

bool rlock__reader_feed(struct rlock__reader *reader, const char *bytes, size_t len)
{
	reader->bytes += len;
	return redisReaderFeed(reader->replies, bytes, len) == REDIS_OK;
}

bool rlock__reader_next(struct rlock__reader *reader, struct redisReply **out)
{
	const redisReader *replies = reader->replies;
	void *reply = NULL;

	if (redisReaderGetReply(reader->replies, &reply) != REDIS_OK)
		return false;
	*out = reply;
	if (reply != NULL) {
		reader->elements = 0;
		reader->bytes = replies->len - replies->pos;
	} else if (reader->bytes > BYTES_MAX) {
		reader->excess = "its reply is too long";
		return false;
	}
	return true;
}

const char *rlock__reader_why(const struct rlock__reader *reader)
{
	if (reader->excess != NULL)
		return reader->excess;
	return reader->replies->err == REDIS_ERR_OOM ? NULL : reader->replies->errstr;
}
