/*
 * What has passed since the start, or since the counts were reset.
 */
#ifndef FAULTPROXY_COUNTS_H
#define FAULTPROXY_COUNTS_H

struct buffer;

struct counts {
	unsigned long connections, requests, replies, dropped, writes_up, spoiled, bytes_up,
		bytes_down;
};

extern struct counts counts;

/* As the command "count" prints them. */
void counts_print(struct buffer *out);
void counts_reset(void);

#endif
