/*
 * What rlock and its renewer tell each other: records over a pair of sockets, which neither waits to send or to read.
 */
#ifndef DIALOG_H
#define DIALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "log/event_log.h"

/* So many signals or records are read in one turn of a loop, which may come faster than they are read. */
#define DIALOG_AT_ONCE 64

enum record_kind {
	/* From the renewer. */
	RECORD_MESSAGE, /* a line for standard error */
	RECORD_LOG,     /* a line for the log; number: its priority */
	RECORD_RUNNING, /* the command has been started */
	RECORD_STOPPED, /* the command was stopped; number: which of its stops that was */
	RECORD_LEFT, /* the command has ended, and leftover processes keep the lock: rlock may end */
	RECORD_ACQUIRED, /* a lock for a process is held, and waits for rlock to commit it */
	/* From rlock. */
	RECORD_SIGNALS, /* rlock was sent signals: the lease has them */
	RECORD_CONTINUED, /* rlock goes on after it has stopped with its command; number: that of RECORD_STOPPED */
};

struct record {
	enum record_kind kind;
	int number;
	size_t len;
	char text[LOG_LINE_MAX];
};

/* False: it found no room, since the other side is stopped or writes to what does not take it, or memory is short. */
bool dialog_send(int fd, enum record_kind kind, int number, const char *text, size_t len);
/*
 * The next record; false: there is none now. When the other end is closed, as by the end of its process, fd is taken out of
 * events_fd: it would be readable all the time, until that process has ended altogether, and may keep it from that.
 */
bool dialog_read(int fd, int events_fd, struct record *out);

/*
 * From now on the messages and the log of this process go to the other side; fd -1: messages go nowhere, and the log
 * is written from here.
 */
void dialog_take_output(int fd);
/* Print what the other side has sent. False: it is another record. */
bool dialog_print(const struct record *record);

#endif
