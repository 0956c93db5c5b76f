/*
 * The replies on a stream, by hiredis' reader, and how much of one a server may say: hiredis would keep
 * whatever it is sent, make room at once for whatever is announced, and free what is nested by recursion.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "net/reader.h"
#include "rlock.h"

/* Far more than any of our scripts has to say, which is three elements a name. */
#define ELEMENTS_MAX (1 << 18)
#define BYTES_MAX (1 << 22)
#define DEPTH_MAX 7 /* what hiredis 0.14 allows; later versions know no end */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

struct rlock__reader {
	redisContext *stream;
	redisReplyObjectFunctions functions; /* hiredis', but for arrays */
	void *(*create_array)(const redisReadTask *, element_count);
	size_t elements, bytes; /* of the reply that is being read, announced and come */
	const char *excess;     /* what there is too much of; NULL: nothing */
};

static bool is_too_deep(const redisReadTask *task)
{
	int depth = 1;

	for (task = task->parent; task != NULL; task = task->parent)
		depth++;
	return depth > DEPTH_MAX;
}

/* For every kind of reply that has others inside. 0.14 cuts a number that is too large to a negative one. */
static void *create_array(const redisReadTask *task, element_count count)
{
	struct rlock__reader *reader = task->privdata;

	if (is_too_deep(task)) {
		reader->excess = "its answer is nested too deeply";
		return NULL;
	}
	if (count > (element_count)(ELEMENTS_MAX - reader->elements)
#if HIREDIS_MAJOR < 1
	    || count < 0
#endif
	) {
		reader->excess = "its answer has too many elements";
		return NULL;
	}
	reader->elements += (size_t)count;
	return reader->create_array(task, count);
}

struct rlock__reader *rlock__reader_new(struct redisContext *stream)
{
	struct rlock__reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	reader->stream = stream;
	reader->functions = *stream->reader->fn;
	reader->create_array = reader->functions.createArray;
	reader->functions.createArray = create_array;
	stream->reader->fn = &reader->functions;
	stream->reader->privdata = reader;
	return reader;
}

void rlock__reader_free(struct rlock__reader *reader)
{
	if (reader == NULL)
		return;
	redisFree(reader->stream);
	free(reader);
}

bool rlock__reader_fill(struct rlock__reader *reader)
{
	redisReader *buffer = reader->stream->reader;
	size_t len = buffer->len;

	if (redisBufferRead(reader->stream) != REDIS_OK)
		return false;
	reader->bytes += buffer->len - len;
	return true;
}

bool rlock__reader_next(struct rlock__reader *reader, struct redisReply **out)
{
	const redisReader *buffer = reader->stream->reader;
	void *reply = NULL;

	if (redisGetReplyFromReader(reader->stream, &reply) != REDIS_OK)
		return false;
	*out = reply;
	if (reply != NULL) {
		reader->elements = 0;
		reader->bytes = buffer->len - buffer->pos;
	} else if (reader->bytes > BYTES_MAX) {
		reader->excess = "its answer is too long";
		return false;
	}
	return true;
}

const char *rlock__reader_excess(const struct rlock__reader *reader)
{
	return reader->excess;
}
