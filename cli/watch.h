/*
 * Prints something again and again, as watch(1) does.
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdint.h>
#include <stdio.h>

/* Prints it once; returns the exit code. */
typedef int (*watch_print_fn)(void *ctx, FILE *out);

/*
 * Print it every every_ms: on a terminal in place, elsewhere one after the other. While no server is reached it goes
 * on. It returns the exit code of any other failure, and else never: a signal ends the process, with the last state on
 * the terminal.
 */
int watch_run(int64_t every_ms, watch_print_fn print, void *ctx);

#endif
