/*
 * Default values of the options; changes that verbs make to them; names and holders as messages show them, escaped and
 * shortened. load.c reads the options.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "options/opts.h"

const struct opts opts_initial = {
	.quorum_text = "all",
	.take = 1,
	.wait_ms = -1,
	.complain_after_ms = -1,
	.held_for_ms = -1,
	.conflict_exit_code = EXIT_CONFLICT,
	.lease_ms = 30000,
	.signal = SIGTERM,
	.grace_ms = 5000,
	.connect_timeout_ms = 5000,
	.mode = RLOCK_ANY,
};

const struct rlock_name *opts_pattern(const struct opts *opts)
{
	static const struct rlock_name any = { "*", 1 };

	return opts->name_count > 0 ? &opts->names[0] : &any;
}

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

/* ---- lock names and holders, as messages show them ---- */

#define LONGEST_ESCAPE 64 /* print no further name in less room than this */

char *names_show_one(const struct opts *opts, size_t index, char out[NAME_SHOWN_MAX])
{
	const struct rlock_name *name =
		index < opts->name_count ? &opts->names[index] : opts_pattern(opts);

	return rlock_escape(name->text, name->len, out, NAME_SHOWN_MAX);
}

char *names_show_subject(const struct opts *opts, size_t index, char out[NAME_SUBJECT_MAX])
{
	char name[NAME_SHOWN_MAX];

	out[0] = '\0';
	if (opts->name_count > 0)
		(void)snprintf(out, NAME_SUBJECT_MAX, "%s: ", names_show_one(opts, index, name));
	return out;
}

char *names_show(const struct rlock_name *names, size_t count, char out[NAMES_SHOWN_MAX])
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count && len + LONGEST_ESCAPE < NAMES_SHOWN_MAX; i++) {
		if (i > 0)
			out[len++] = ' ';
		(void)rlock_escape(names[i].text, names[i].len, out + len, NAMES_SHOWN_MAX - len);
		len += strlen(out + len);
	}
	return out;
}

char *names_show_holder(const char *note, const char *owner, char out[HOLDER_SHOWN_MAX])
{
	if (note[0] != '\0')
		(void)snprintf(out, HOLDER_SHOWN_MAX, "%s (%s)", note, owner);
	else
		(void)snprintf(out, HOLDER_SHOWN_MAX, "%s", owner);
	return out;
}
