/*
 * What the fuzz targets share. Each of them has LLVMFuzzerTestOneInput() and frees all the memory
 * that it allocates, because a leak is a finding too.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must be true whatever the input is. Ends the program, which makes the input a finding. */
#define ALWAYS(claim) ((claim) ? (void)0 : fuzz_fail(#claim, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *claim, const char *file, int line);

/* The bytes with a NUL after them, in a block that is not one byte larger. The caller frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* Cut off the first line, NUL-terminated as above; *data and *size are then what follows it. */
char *fuzz_line(const uint8_t **data, size_t *size);

/* Whether a message can go to a terminal as it is: one line, no control character. */
bool fuzz_is_shown_safely(const char *text);

/* Make a directory for this process alone, which goes when the process ends well; go there. */
void fuzz_enter_directory(void);

#endif
