/*
 * The hosts and ports that a URL names: one server's, or those of several sentinels or nodes.
 * Parsing them is for url_parse.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "url/endpoints.h"

bool rlock__endpoints_add(struct rlock__endpoints *endpoints, char *host, int port)
{
	struct rlock__endpoint *items =
		realloc(endpoints->items, (endpoints->count + 1) * sizeof(*items));

	if (items == NULL) {
		free(host);
		return false;
	}
	endpoints->items = items;
	items[endpoints->count++] = (struct rlock__endpoint){ host, port };
	return true;
}

bool rlock__endpoint_is(const struct rlock__endpoint *endpoint, const char *host, int port)
{
	return endpoint->port == port && strcmp(endpoint->host, host) == 0;
}

bool rlock__endpoints_contain(const struct rlock__endpoints *endpoints, const char *host, int port)
{
	for (size_t i = 0; i < endpoints->count; i++)
		if (rlock__endpoint_is(&endpoints->items[i], host, port))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	const struct rlock__endpoint *left = a, *right = b;
	int order = strcmp(left->host, right->host);

	return order != 0 ? order : left->port - right->port;
}

void rlock__endpoints_sort(struct rlock__endpoints *endpoints)
{
	if (endpoints->count > 1)
		qsort(endpoints->items, endpoints->count, sizeof(*endpoints->items), compare);
}

bool rlock__endpoints_copy(const struct rlock__endpoints *endpoints, struct rlock__endpoints *out)
{
	for (size_t i = 0; i < endpoints->count; i++) {
		char *host = strdup(endpoints->items[i].host);

		if (host == NULL || !rlock__endpoints_add(out, host, endpoints->items[i].port))
			return false;
	}
	return true;
}

void rlock__endpoints_free(struct rlock__endpoints *endpoints)
{
	for (size_t i = 0; i < endpoints->count; i++)
		free(endpoints->items[i].host);
	free(endpoints->items);
	*endpoints = (struct rlock__endpoints){ 0 };
}

static char *endpoint_text(const char *host, int port)
{
	char *name = rlock__text_percent_encode(host, ":");
	char *text = NULL;

	if (name == NULL)
		return NULL;
	if (asprintf(&text, strchr(name, ':') != NULL ? "[%s]:%d" : "%s:%d", name, port) < 0)
		text = NULL;
	free(name);
	return text;
}

char *rlock__endpoints_text(const struct rlock__endpoints *endpoints)
{
	char *list = NULL;

	for (size_t i = 0; i < endpoints->count; i++) {
		char *text = endpoint_text(endpoints->items[i].host, endpoints->items[i].port);
		char *longer = NULL;

		if (text == NULL || asprintf(&longer, "%s%s%s", list != NULL ? list : "",
					     list != NULL ? "," : "", text) < 0)
			longer = NULL;
		free(text);
		free(list);
		if (longer == NULL)
			return NULL;
		list = longer;
	}
	return list;
}
