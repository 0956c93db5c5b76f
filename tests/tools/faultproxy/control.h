/*
 * The clients of the control socket, which send commands.
 */
#ifndef FAULTPROXY_CONTROL_H
#define FAULTPROXY_CONTROL_H

#include <stdbool.h>

#include "buffer.h"

struct control {
	struct control *next;
	int fd;
	bool is_dead; /* to be closed and freed now */
	struct buffer in;
};

/* Takes over fd. */
void control_open(int fd);
/* The first one of all; the newest comes first. */
struct control *control_first(void);

/* Read what has come, and answer each whole line. */
void control_read(struct control *control);

/* Free those that are dead. */
void control_sweep(void);
void control_end_all(void);

#endif
