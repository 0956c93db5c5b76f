/*
 * What rlock and its renewer send each other: records over a pair of sockets, which neither waits to send or to read. What
 * they tell each other of the hold stands in the lease.
 */
#ifndef DIALOG_H
#define DIALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "log/event_log.h"

/* So many signals or records are read in one turn of a loop, which may come faster than they are read. */
#define DIALOG_AT_ONCE 64

enum record_kind {
	RECORD_WAKEUP,  /* from either: look at the lease */
	RECORD_MESSAGE, /* from the renewer: a line for standard error */
	RECORD_LOG,     /* the same for the log */
};

struct record {
	enum record_kind kind;
	int priority; /* of RECORD_LOG */
	size_t len;
	char text[LOG_LINE_MAX];
};

/* False: it found no room, since the other side is stopped or writes to what does not take it, or memory is short. */
bool dialog_send_wakeup(int fd);
/* The next record; false: there is none now. Each side keeps both ends open: the end of a process is no news here. */
bool dialog_read(int fd, struct record *out);

/*
 * From now on the messages and the log of this process go to the other side; fd -1: messages go nowhere, and the log
 * is written from here.
 */
void dialog_take_output(int fd);
/* Print what the other side has sent, if it is a line. */
void dialog_print(const struct record *record);

#endif
