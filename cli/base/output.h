/*
 * The end of what a verb prints.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

/*
 * Write out what was printed to standard output: a full disk must not pass for success. code, or EXIT_SYSTEM after one
 * line by message_error.
 */
int output_end(int code);

#endif
