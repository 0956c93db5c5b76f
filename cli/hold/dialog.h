/*
 * Records that the front and its renewer send each other over a pair of sockets, without waiting. The state of the hold
 * is not sent, since both processes can read it in the lease.
 */
#ifndef DIALOG_H
#define DIALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "log/event_log.h"

/*
 * Most signals that a loop reads in one iteration, and most records from the front, because a flood of them must not keep
 * the loop from its other work. Records from the renewer have no limit: it sends one only for a line or a wake-up.
 */
#define DIALOG_AT_ONCE 64

enum record_kind {
	/* From either side: the lease has changed, read it. */
	RECORD_WAKEUP,
	/* From the renewer: a line for standard error, or for the log. */
	RECORD_MESSAGE,
	RECORD_LOG,
};

struct record {
	enum record_kind kind;
	/* syslog priority of RECORD_LOG */
	int priority;
	size_t len;
	char text[LOG_LINE_MAX];
};

/* Wake the other side. False: the socket is full, since the other side is stopped or blocked, or memory is short. */
bool dialog_send_wakeup(int fd);
/*
 * Read the next record. False: there is none now. This does not show the death of the other side, because each side has
 * both ends open.
 */
bool dialog_read(int fd, struct record *out);

/*
 * Send the messages and log lines of this process to the other side from now on. fd -1: the other side is dead; drop messages,
 * and write the log from this process.
 */
void dialog_take_output(int fd);
/* Print a record that is a line for standard error, or write a line for the log. Ignore other records. */
void dialog_print(const struct record *record);

#endif
