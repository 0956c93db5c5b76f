/*
 * Records what the option sources have given. Which of it counts is decided by merge.c and servers.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "options/settings.h"

bool settings_add(struct settings *settings, const struct setting *setting)
{
	struct setting *larger =
		array_grow(settings->items, settings->count, sizeof(settings->items[0]));

	if (larger == NULL)
		return false;
	settings->items = larger;
	settings->items[settings->count++] = *setting;
	return true;
}

bool settings_add_variable(struct settings *settings, const char *variable, const char *option,
			   bool is_secret)
{
	const char *value = getenv(variable);

	if (value == NULL || *value == '\0')
		return true;
	return settings_add(settings, &(struct setting){ .option = option,
							 .variable = variable,
							 .source = SOURCE_ENVIRONMENT,
							 .value = is_secret ? NULL : value });
}

static bool is_named(const struct setting *setting, const char *name)
{
	return (setting->option != NULL && strcmp(setting->option, name) == 0) ||
	       (setting->variable != NULL && strcmp(setting->variable, name) == 0);
}

void settings_ignore(struct settings *settings, const char *name, const char *reason)
{
	for (size_t i = 0; i < settings->count; i++) {
		struct setting *setting = &settings->items[i];

		if (is_named(setting, name) && setting->ignored[0] == '\0')
			(void)snprintf(setting->ignored, sizeof(setting->ignored), "%s", reason);
	}
}

bool settings_is_of_other_servers(const struct settings *settings, const char *option)
{
	for (size_t i = 0; i < settings->count; i++)
		if (settings->items[i].is_of_other_servers && is_named(&settings->items[i], option))
			return true;
	return false;
}

void settings_free(struct settings *settings)
{
	free(settings->items);
	*settings = (struct settings){ 0 };
}
