/*
 * The counts that tests ask for. Each is counted where it happens.
 */
#include <stdio.h>

#include "buffer.h"
#include "counts.h"

struct counts counts;

void counts_print(struct buffer *out)
{
	char text[256];

	(void)snprintf(
		text, sizeof(text),
		"connections=%lu requests=%lu replies=%lu dropped=%lu writes_up=%lu spoiled=%lu"
		" bytes_up=%lu bytes_down=%lu",
		counts.connections, counts.requests, counts.replies, counts.dropped,
		counts.writes_up, counts.spoiled, counts.bytes_up, counts.bytes_down);
	buffer_add_text(out, text);
}

void counts_reset(void)
{
	counts = (struct counts){ 0 };
}
