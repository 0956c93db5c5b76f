/*
 * Redis' protocol: where a request or reply ends, and the words that it is made of.
 */
#ifndef FAULTPROXY_RESP_H
#define FAULTPROXY_RESP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The length of the whole value at bytes (RESP2 or RESP3; streamed ones aside), 0 when a part of it
 * hasn't come yet, -1 when it is no value.
 */
long resp_value_len(const char *bytes, size_t len);
/* The same of a request, which may be a bare line. */
long resp_request_len(const char *bytes, size_t len);

/* The words of a request or reply, one after the other. */
struct resp_words {
	const char *pos, *end;
	bool is_inline;
};

struct resp_words resp_request_words(const char *request, size_t len);
/* Of a request or reply that is an array, or of a push. */
struct resp_words resp_array_words(const char *array, size_t len);
/* The next word, which stays in the request; false behind the last one. */
bool resp_next_word(struct resp_words *words, const char **text_out, size_t *len_out);

/* Upper and lower case are the same. */
bool resp_word_is(const char *text, size_t len, const char *word);
bool resp_word_ends_with(const char *text, size_t len, const char *end);

#endif
