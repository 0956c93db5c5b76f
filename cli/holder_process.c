/*
 * Looks for the process of a holder, which the default note of rlock names: cmd_lock.c makes it. A user may have chosen
 * such a text, so nothing but a message may depend on it.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/number.h"
#include "holder_process.h"

/* A lock of --owner, "ID:0", has no process, and what --at-least keeps has none any more. */
static bool has_process(const struct rlock_holder *holder)
{
	const struct rlock_name *owner = &holder->owner;

	return holder->client == RLOCK_CLIENT_RLOCK && !holder->is_kept && holder->ttl_ms != 0 &&
	       !(owner->len >= 2 && memcmp(owner->text + owner->len - 2, ":0", 2) == 0);
}

/* The pid in "user@host pid 123 program"; 0: it is none of this host. */
static pid_t pid_in_note(const struct rlock_name *note)
{
	char text[RLOCK_NOTE_MAX], before[sizeof(((struct utsname *)NULL)->nodename) + 8];
	struct utsname host;
	const char *cursor;
	int64_t pid;

	if (note->len >= sizeof(text) || uname(&host) != 0)
		return 0;
	memcpy(text, note->text, note->len);
	text[note->len] = '\0';
	(void)snprintf(before, sizeof(before), "@%s pid ", host.nodename);
	cursor = strstr(text, before);
	if (cursor == NULL)
		return 0;
	cursor += strlen(before);
	return number_read(&cursor, &pid) && *cursor == ' ' && pid > 0 && pid <= INT_MAX
		       ? (pid_t)pid
		       : 0;
}

bool holder_process_is_gone(const struct rlock_holder *holder, pid_t *pid_out)
{
	pid_t pid = has_process(holder) ? pid_in_note(&holder->note) : 0;

	/* Another user's process, which /proc may hide, is EPERM. */
	if (pid == 0 || kill(pid, 0) == 0 || errno != ESRCH)
		return false;
	*pid_out = pid;
	return true;
}
