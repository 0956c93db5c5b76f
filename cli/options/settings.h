/*
 * The settings of one call: what each option source has given, whether that counts, and if it does not, why.
 * They are recorded where that is decided, and rlock check prints them.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"
#include "options/usage.h"

/* From the lowest to the highest. */
enum opt_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_ARGV };

#define SETTING_REASON_MAX 160

struct setting {
	const char *option;   /* its name; NULL: the variable stands for none */
	const char *variable; /* of the environment; NULL: another source */
	enum opt_source source;
	size_t line;              /* of the configuration file */
	const char *value;        /* as it was given; NULL: not to be shown */
	bool is_of_other_verbs;   /* this one has no use for it */
	bool is_of_other_servers; /* of the file's, while another source names the servers */
	char ignored[SETTING_REASON_MAX]; /* the reason; empty: it counts */
};

/* All zero at the start. */
struct settings {
	struct setting *items;
	size_t count;
	/* The configuration file, as messages show it; and one that is not read, as it is not needed. Empty: none. */
	char config[USAGE_SHOWN_MAX], skipped[USAGE_SHOWN_MAX];
	const char *skipped_why;
};

/* Record a copy of setting; its texts must last as long as the settings. False when out of memory. */
bool settings_add(struct settings *settings, const struct setting *setting);
/* Record the variable of the environment, if it is set and not empty, that stands for option, which may be NULL. */
bool settings_add_variable(struct settings *settings, const char *variable, const char *option,
			   bool is_secret);
/* From here on what is recorded of that option, or variable, does not count; the first reason that is given stays. */
void settings_ignore(struct settings *settings, const char *name, const char *reason);
/* Whether the file has such an option for its servers, while another source names the servers. */
bool settings_is_of_other_servers(const struct settings *settings, const char *option);
void settings_free(struct settings *settings);

#endif
