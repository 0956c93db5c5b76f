/* Find a word in a list like "plain|fair". */
#ifndef CHOICE_H
#define CHOICE_H

/* The index of value among words like "plain|fair"; -1: value is none of these words. */
int choice_find(const char *words, const char *value);

#endif
