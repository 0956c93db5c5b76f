/*
 * What the program cannot go on after: it says so, and ends.
 */
#ifndef FAULTPROXY_DIE_H
#define FAULTPROXY_DIE_H

_Noreturn void die(const char *what, const char *why);

/* Returns memory; ends the program if it is NULL. */
void *die_if_null(void *memory);

#endif
