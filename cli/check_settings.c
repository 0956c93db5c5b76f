/*
 * Prints which source each option is from, and which were given in vain. options/ has recorded that, and no secret is
 * shown.
 */
#include <stdio.h>

#include "check_settings.h"

/* All names fit but conflict-exit-code and sentinel-password-file. */
#define NAME_WIDTH 17
#define WHERE_MAX (USAGE_SHOWN_MAX + 64)

/* The variable stands for itself where it stands for no option. */
static const char *subject_of(const struct setting *setting)
{
	return setting->option != NULL ? setting->option : setting->variable;
}

static const char *where(const struct settings *settings, const struct setting *setting,
			 char out[WHERE_MAX])
{
	switch (setting->source) {
	case SOURCE_ARGV:
		return "from the command line";
	case SOURCE_ENVIRONMENT:
		if (setting->option == NULL)
			return "from the environment";
		(void)snprintf(out, WHERE_MAX, "from %s in the environment", setting->variable);
		return out;
	case SOURCE_FILE:
		(void)snprintf(out, WHERE_MAX, "from %s:%zu", settings->config, setting->line);
		return out;
	case SOURCE_DEFAULT:
		break;
	}
	return "the default";
}

void check_settings_print(struct findings *findings, const struct settings *settings)
{
	int width = findings->subject_width;

	findings_about(findings, "options", "");
	findings->subject_width = NAME_WIDTH;
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->items[i];
		bool is_ignored = setting->ignored[0] != '\0';
		char value[USAGE_SHOWN_MAX], buffer[WHERE_MAX];

		findings_add(findings, is_ignored ? FINDING_NOTE : FINDING_OK, 0,
			     subject_of(setting), "%s, %s%s%s%s",
			     setting->value != NULL ? usage_show(setting->value, value)
						    : "(not shown)",
			     where(settings, setting, buffer), is_ignored ? ": not used: " : "",
			     setting->ignored,
			     setting->is_of_other_verbs && !is_ignored ? ", for other verbs" : "");
	}
	findings->subject_width = width;
}

static const char *source_name(enum opt_source source)
{
	static const char *const names[] = { [SOURCE_DEFAULT] = "default",
					     [SOURCE_FILE] = "file",
					     [SOURCE_ENVIRONMENT] = "environment",
					     [SOURCE_ARGV] = "command line" };

	return names[source];
}

static void put_value(struct json *json, const char *value)
{
	char shown[USAGE_SHOWN_MAX];

	json_text(json, "value", value != NULL ? usage_show(value, shown) : "");
}

void check_settings_json(struct json *json, const struct settings *settings)
{
	json_open(json, "options", '[');
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->items[i];
		bool is_of_file = setting->source == SOURCE_FILE;

		json_open(json, NULL, '{');
		json_text(json, "option", setting->option != NULL ? setting->option : "");
		put_value(json, setting->value);
		json_text(json, "source", source_name(setting->source));
		json_text(json, "variable", setting->variable != NULL ? setting->variable : "");
		json_text(json, "file", is_of_file ? settings->config : "");
		if (is_of_file)
			json_number(json, "line", (int64_t)setting->line);
		else
			json_null(json, "line");
		json_bool(json, "used", setting->ignored[0] == '\0');
		json_bool(json, "other_verbs", setting->is_of_other_verbs);
		json_text(json, "reason", setting->ignored);
		json_close(json, '}');
	}
	json_close(json, ']');
}
