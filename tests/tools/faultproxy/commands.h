/*
 * The commands by which a test sets the proxy's faults, and asks what has happened.
 */
#ifndef FAULTPROXY_COMMANDS_H
#define FAULTPROXY_COMMANDS_H

#include <stdbool.h>

struct buffer;

/* Carry out one line, which is taken to pieces. NULL, or what is wrong; what is put into answer takes the place of "ok". */
const char *commands_run(char *line, struct buffer *answer);

/* Whether "quit" was among them. */
bool commands_want_end(void);

#endif
