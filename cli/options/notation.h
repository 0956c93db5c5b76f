/* Durations as other programs write them: "10min", "2h30", "00:05:00", "PT5M", "1_000". */
#ifndef NOTATION_H
#define NOTATION_H

#include <stdbool.h>

#include "base/units.h"

/* Whether the word is a unit of durations, also one of another notation, like "mins". */
bool notation_is_unit(const char *word);

/*
 * Print the duration in our notation, if typed has another notation, and its meaning is certain. False: typed is no such
 * duration, or may have several meanings, like "1:30" and "P1M".
 */
bool notation_translate(const char *typed, char out[DURATION_TEXT_MAX]);

/*
 * The duration in our notation: the word itself, or out if the word has the notation of another program. NULL: the word
 * is no duration.
 */
const char *notation_find(const char *word, char out[DURATION_TEXT_MAX]);

#endif
