/*
 * Changes to the options of one call, for the verbs. load.c reads the options.
 */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "options/opts.h"

int opts_set_server(struct opts *opts)
{
	size_t size = 1;
	char *end;

	free(opts->server);
	for (size_t i = 0; i < opts->url_count; i++)
		size += strlen(rlock_url_server(opts->urls[i])) + 1;
	opts->server = malloc(size);
	if (opts->server == NULL)
		return message_out_of_memory();
	end = opts->server;
	*end = '\0';
	for (size_t i = 0; i < opts->url_count; i++) {
		if (i > 0)
			end = stpcpy(end, " ");
		end = stpcpy(end, rlock_url_server(opts->urls[i]));
	}
	return 0;
}

void opts_free_urls(struct opts *opts)
{
	for (size_t i = 0; i < opts->url_count; i++)
		rlock_url_free(opts->urls[i]);
	free(opts->urls);
	opts->urls = NULL;
	opts->url_count = 0;
}

struct opts opts_of_name(const struct opts *opts, size_t index)
{
	struct opts one = *opts;

	one.names = &opts->names[index];
	one.name_count = 1;
	return one;
}
