/*
 * Rules, in the order in which they were given, and whether a request matches one. What a fault does is exchange.c's
 * business.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "die.h"
#include "resp.h"
#include "rules.h"

static struct rule {
	struct rule *next;
	enum fault fault;
	char *match;
	long left;
} * rules;

/* ---- matching ---- */

static bool contains(const char *text, size_t len, const char *match, size_t match_len)
{
	size_t i;

	for (i = 0; i + match_len <= len; i++)
		if (strncasecmp(text + i, match, match_len) == 0)
			return true;
	return false;
}

static bool has_word(const char *request, size_t len, const char *match, size_t match_len)
{
	struct resp_words words = resp_request_words(request, len);
	const char *text;
	size_t text_len;

	while (resp_next_word(&words, &text, &text_len))
		if (contains(text, text_len, match, match_len))
			return true;
	return false;
}

/* match is "*", "A" or "A!B". */
static bool request_matches(const char *request, size_t len, const char *match)
{
	const char *without = strchr(match, '!');
	size_t match_len = without != NULL ? (size_t)(without - match) : strlen(match);

	if (strcmp(match, "*") == 0)
		return true;
	return has_word(request, len, match, match_len) &&
	       (without == NULL || !has_word(request, len, without + 1, strlen(without + 1)));
}

/* ---- the list ---- */

void rules_add(enum fault fault, const char *match, long times)
{
	struct rule **end = &rules;
	struct rule *rule = die_if_null(calloc(1, sizeof(*rule)));

	rule->fault = fault;
	rule->match = die_if_null(strdup(match));
	rule->left = times;
	while (*end != NULL)
		end = &(*end)->next;
	*end = rule;
}

/* Take the rule at that place out of the list. */
static void drop(struct rule **at)
{
	struct rule *rule = *at;

	*at = rule->next;
	free(rule->match);
	free(rule);
}

void rules_clear(void)
{
	while (rules != NULL)
		drop(&rules);
}

size_t rules_count(void)
{
	const struct rule *rule;
	size_t count = 0;

	for (rule = rules; rule != NULL; rule = rule->next)
		count++;
	return count;
}

enum fault rules_apply(const char *request, size_t len)
{
	struct rule **at = &rules;
	enum fault fault;

	while (*at != NULL && !request_matches(request, len, (*at)->match))
		at = &(*at)->next;
	if (*at == NULL)
		return FAULT_NONE;
	fault = (*at)->fault;
	if (--(*at)->left <= 0)
		drop(at);
	return fault;
}
