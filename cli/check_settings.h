/*
 * Which source each option is from, for `rlock check`.
 */
#ifndef CHECK_SETTINGS_H
#define CHECK_SETTINGS_H

#include "findings.h"
#include "options/settings.h"

/* Text: a line for each, as a part of the findings. */
void check_settings_print(struct findings *findings, const struct settings *settings);
/* JSON: a member of the open object. */
void check_settings_json(struct json *json, const struct settings *settings);

#endif
