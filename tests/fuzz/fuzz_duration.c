/*
 * cli/base/units.c: any text is a duration or none, and one that is printed reads as the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#include "fuzz.h"

#define LONGEST_MS (10000 * INT64_C(86400000))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	char printed[DURATION_TEXT_MAX];
	int64_t ms = -7, again_ms = -7, any_ms = 0;

	if (duration_parse(text, &ms)) {
		ALWAYS(ms >= 0 && ms <= LONGEST_MS);
		ALWAYS(duration_parse(duration_print(ms, printed), &again_ms) && again_ms == ms);
	} else {
		ALWAYS(ms == -7);
	}
	free(text);
	/* Numbers of a server are printed, too. */
	memcpy(&any_ms, data, size < sizeof(any_ms) ? size : sizeof(any_ms));
	ALWAYS(strlen(duration_print(any_ms, printed)) < sizeof(printed));
	return 0;
}
