/*
 * lib/url/url.c, and lib/base/text.c below it: a URL that is accepted has one text for its server, and no
 * text shows its password.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"
#include "url/url.h"

#include "fuzz.h"

/* What rlock_url_server says is a URL of the same server. */
static void check_server(const struct rlock_url *url)
{
	struct rlock_url *again = NULL;
	char why[RLOCK_ERROR_MAX];

	ALWAYS(rlock_url_parse(rlock_url_server(url), &again, why) == RLOCK_OK);
	ALWAYS(strcmp(rlock_url_server(again), rlock_url_server(url)) == 0);
	ALWAYS(rlock_url_scheme(again) == rlock_url_scheme(url) && again->db == url->db);
	ALWAYS(!rlock_url_has_password(again) && again->user == NULL);
	ALWAYS(fuzz_is_shown_safely(rlock_url_server(url)));
	rlock_url_free(again);
}

static void check_changes(struct rlock_url *url)
{
	struct rlock_url *copy = rlock__url_copy(url);

	ALWAYS(copy != NULL && strcmp(rlock_url_server(copy), rlock_url_server(url)) == 0);
	ALWAYS(rlock_url_set_db(copy, -1) == RLOCK_EINVAL);
	/* Of local: the database has no place in the URL, only an option. */
	if (rlock_url_set_db(copy, 7) == RLOCK_OK && rlock_url_scheme(copy) != RLOCK_SCHEME_LOCAL)
		check_server(copy);
	ALWAYS(rlock_url_set_password(copy, "secret") == RLOCK_OK && rlock_url_has_password(copy));
	ALWAYS(strstr(rlock_url_server(copy), "secret") == NULL ||
	       strstr(rlock_url_server(url), "secret") != NULL);
	if (rlock_url_set_socket(copy, "/run/redis.sock") == RLOCK_OK) {
		ALWAYS(rlock_url_scheme(copy) == RLOCK_SCHEME_UNIX);
		check_server(copy);
	}
	rlock_url_free(copy);
}

/*
 * Of a URL that was accepted the password is hidden whole. More may be, where an '@', a "password=" or a second '?'
 * stands behind it, too; but nothing where there is none of them.
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

static void check_text(const char *text, size_t len)
{
	size_t encoded_len = rlock_percent_encode(text, len, "/", NULL, 0);
	char *encoded = malloc(encoded_len + 1), *any = malloc(len + 1), shown[64];

	ALWAYS(encoded != NULL && any != NULL);
	ALWAYS(rlock_percent_encode(text, len, "/", encoded, encoded_len + 1) == encoded_len);
	ALWAYS(rlock_percent_decode(encoded, encoded_len) == (long)len);
	ALWAYS(memcmp(encoded, text, len) == 0);
	memcpy(any, text, len + 1);
	ALWAYS(rlock_percent_decode(any, len) <= (long)len);
	ALWAYS(fuzz_is_shown_safely(rlock_escape(text, len, shown, sizeof(shown))));
	free(encoded);
	free(any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *hidden = strdup(text);
	char why[RLOCK_ERROR_MAX] = "";
	struct rlock_url *url = NULL;

	ALWAYS(hidden != NULL);
	rlock_url_hide_password(hidden);
	ALWAYS(strlen(hidden) == strlen(text));
	if (rlock_url_parse(text, &url, why) == RLOCK_OK) {
		check_server(url);
		check_changes(url);
		check_hidden(url, text, hidden);
	} else {
		ALWAYS(url == NULL && why[0] != '\0' && fuzz_is_shown_safely(why));
	}
	check_text(text, strlen(text));
	rlock_url_free(url);
	free(hidden);
	free(text);
	return 0;
}
