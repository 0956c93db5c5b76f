/*
 * What the fuzz targets share. Each of them defines LLVMFuzzerTestOneInput(), and frees all memory
 * that it allocates, because a leak is a finding too.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Assert a claim that must hold for any input. A false claim aborts the program, so the fuzzer saves the input. */
#define ALWAYS(claim) ((claim) ? (void)0 : fuzz_fail(#claim, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *claim, const char *file, int line);

/*
 * Copy the bytes and a NUL into a block of exactly that size, so that the sanitizer finds reads beyond it. The caller frees the
 * block.
 */
char *fuzz_text(const uint8_t *data, size_t size);

/* Copy the first line, as fuzz_text does. Set *data and *size to the rest. */
char *fuzz_line(const uint8_t **data, size_t *size);

/* Whether a message can go to a terminal as it is: one line, no control character. */
bool fuzz_is_shown_safely(const char *text);

/* Create a directory for this process, and change to it. It is removed when the process exits normally. */
void fuzz_enter_directory(void);

#endif
