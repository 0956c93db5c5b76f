/*
 * The end of the program by a message. A test that has no proxy any more fails, so there is nothing to clear up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "faultproxy: %s: %s\n", what, why);
	exit(2);
}

void *die_if_null(void *memory)
{
	if (memory == NULL)
		die("memory", strerror(ENOMEM));
	return memory;
}
