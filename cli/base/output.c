/*
 * Finds out whether all that was printed has been written. What is printed is the verbs' business.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/exits.h"
#include "base/message.h"
#include "base/output.h"

int output_end(int code)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return code;
	message_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}
