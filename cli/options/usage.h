/*
 * The user's words in messages, made fit to be shown.
 */
#ifndef USAGE_H
#define USAGE_H

/* The longest text that usage_show makes, with the NUL. */
#define USAGE_SHOWN_MAX 256

/* A text from outside, for use in a message: no password, no control characters, not too long. */
char *usage_show(const char *text, char out[USAGE_SHOWN_MAX]);

/* Report "WHERE 'value': why" by message_error; value may be NULL. where must be fit to be shown. */
void usage_bad_value(const char *where, const char *value, const char *why);

#endif
