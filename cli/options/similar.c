/*
 * Find the option of some verbs that a wrong name stands for. foreign.c needs it for command lines, load.c for variables of the
 * environment, and config.c for the configuration file.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "options/hints.h"
#include "options/similar.h"
#include "options/table.h"
#include "options/usage.h"

size_t similar_option_count(unsigned verbs, const char *name, const struct opt **out)
{
	size_t count = 0, len = strlen(name);

	for (size_t id = 0; id < OPT_COUNT; id++) {
		if ((opt_table[id].verbs & verbs) == 0 ||
		    strncmp(opt_table[id].name, name, len) != 0)
			continue;
		*out = &opt_table[id];
		count++;
	}
	return count;
}

const char *similar_option_same(unsigned verbs, const char *name)
{
	char typed[OPTION_MAX];
	const struct hint *hint;
	const struct opt *opt;

	(void)snprintf(typed, sizeof(typed), "--%s", name);
	for (char *byte = typed; *byte != '\0'; byte++)
		*byte = (char)(*byte == '_' ? '-' : tolower((unsigned char)*byte));
	opt = table_by_name(verbs, typed + 2, strlen(typed + 2));
	if (opt != NULL)
		return opt->name;
	hint = hints_find(verbs, typed, NULL);
	if (hint != NULL && hint->instead != OPT_COUNT)
		return opt_table[hint->instead].name;
	return usage_is_password(typed + 2) ? opt_table[OPT_PASSWORD_FILE].name : NULL;
}

const char *similar_option_near(unsigned verbs, const char *name)
{
	struct nearest nearest = { .typed = name };

	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & verbs) != 0)
			nearest_try(&nearest, opt_table[id].name);
	return nearest.word;
}

/* The longest option that is the first words of name, as in "wait-time". NULL: none. */
static const char *find_first_words(unsigned verbs, const char *name)
{
	for (size_t len = strlen(name); len > 0; len--) {
		const struct opt *opt = name[len] == '-' || name[len] == '_'
						? table_by_name(verbs, name, len)
						: NULL;

		if (opt != NULL)
			return opt->name;
	}
	return NULL;
}

const char *similar_option_find(unsigned verbs, const char *name)
{
	const char *same = similar_option_same(verbs, name);
	const struct opt *whole = NULL;
	const char *near = similar_option_near(verbs, name);

	if (same != NULL)
		return same;
	if (similar_option_count(verbs, name, &whole) == 1)
		return whole->name;
	return near != NULL ? near : find_first_words(verbs, name);
}
