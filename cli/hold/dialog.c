/*
 * Send and read records, each as one packet. renewer.c and front.c decide what follows from a record.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "hold/dialog.h"

/* socket to which this process sends its lines after dialog_take_output; -1: none */
static int output_fd = -1;

/* Send a record as one packet, without copying its text. False: memory is short, or the socket is full. */
static bool dialog_send(int fd, enum record_kind kind, int priority, const char *text, size_t len)
{
	struct record head = { .kind = kind, .priority = priority };
	struct iovec parts[2] = { { &head, offsetof(struct record, text) }, { 0 } };
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	head.len = min_size(len, sizeof(head.text));
	parts[1].iov_base = (char *)text;
	parts[1].iov_len = head.len;
	return sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}

bool dialog_send_wakeup(int fd)
{
	return dialog_send(fd, RECORD_WAKEUP, 0, NULL, 0);
}

bool dialog_read(int fd, struct record *out)
{
	ssize_t len;

	if (fd < 0)
		return false;
	do
		len = read(fd, out, sizeof(*out));
	while (len < 0 && errno == EINTR);
	return len >= (ssize_t)offsetof(struct record, text) &&
	       (size_t)len == offsetof(struct record, text) + out->len;
}

static void send_message(const char *line, size_t len)
{
	if (output_fd >= 0)
		(void)dialog_send(output_fd, RECORD_MESSAGE, 0, line, len);
}

static void send_log(const char *line, size_t len, int priority)
{
	(void)dialog_send(output_fd, RECORD_LOG, priority, line, len);
}

void dialog_take_output(int fd)
{
	output_fd = fd;
	message_set_writer(send_message);
	event_log_set_writer(fd >= 0 ? send_log : NULL);
}

void dialog_print(const struct record *record)
{
	if (record->kind == RECORD_MESSAGE)
		message_line(record->text, record->len);
	else if (record->kind == RECORD_LOG)
		event_log_write(record->text, record->len, record->priority);
}
