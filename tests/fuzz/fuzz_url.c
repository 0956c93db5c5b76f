/*
 * lib/url/url.c and url_parse.c: an accepted URL has one canonical text for its server, and no text shows its password.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"
#include "url/url.h"

#include "fuzz.h"

/* The text of rlock_url_server must be a URL of the same server. */
static void check_server(const struct rlock_url *url)
{
	struct rlock_url *again = NULL;
	struct rlock_url_error error;

	ALWAYS(rlock_url_parse(rlock_url_server(url), &again, &error) == RLOCK_OK);
	ALWAYS(strcmp(rlock_url_server(again), rlock_url_server(url)) == 0);
	ALWAYS(rlock_url_scheme(again) == rlock_url_scheme(url) && again->db == url->db);
	ALWAYS(!rlock_url_has_password(again) && again->user == NULL);
	ALWAYS(fuzz_is_shown_safely(rlock_url_server(url)));
	rlock_url_free(again);
}

static void check_changes(struct rlock_url *url)
{
	const bool has_word = strstr(rlock_url_server(url), "secret") != NULL;

	ALWAYS(rlock_url_set_db(url, -1) == RLOCK_EINVAL);
	/* A local: URL cannot contain a database, only the option can set it. */
	if (rlock_url_set_db(url, 7) == RLOCK_OK && rlock_url_scheme(url) != RLOCK_SCHEME_LOCAL)
		check_server(url);
	ALWAYS(rlock_url_set_password(url, "secret") == RLOCK_OK && rlock_url_has_password(url));
	ALWAYS(has_word || strstr(rlock_url_server(url), "secret") == NULL);
	if (rlock_url_set_socket(url, "/run/redis.sock") == RLOCK_OK) {
		ALWAYS(rlock_url_scheme(url) == RLOCK_SCHEME_UNIX);
		check_server(url);
	}
}

/*
 * The password of an accepted URL must be hidden completely. More can be hidden if an '@', a "password=" or a second '?'
 * follows it; without any of these nothing else is hidden.
 */
static void check_hidden(const struct rlock_url *url, const char *text, const char *hidden)
{
	const char *at = strchr(text, '@'), *body = strstr(text, "://"), *query = strchr(text, '?');
	bool has_queries = query != NULL && strchr(query + 1, '?') != NULL;

	if (rlock_url_has_password(url)) {
		const char *colon = strchr(body + 3, ':');

		for (const char *secret = colon + 1; secret < at; secret++)
			ALWAYS(hidden[secret - text] == '*');
	} else if (at == NULL && !has_queries && strcasestr(text, "password=") == NULL) {
		ALWAYS(strcmp(hidden, text) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *hidden = strdup(text);
	struct rlock_url_error error = { .why = "" };
	struct rlock_url *url = NULL;

	ALWAYS(hidden != NULL);
	rlock_url_hide_password(hidden);
	ALWAYS(strlen(hidden) == strlen(text));
	if (rlock_url_parse(text, &url, &error) == RLOCK_OK) {
		check_server(url);
		check_hidden(url, text, hidden);
		check_changes(url);
	} else {
		ALWAYS(url == NULL && error.why[0] != '\0' && fuzz_is_shown_safely(error.why));
	}
	rlock_url_free(url);
	free(hidden);
	free(text);
	return 0;
}
