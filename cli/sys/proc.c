/*
 * One process, as /proc shows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"
#include "sys/file_read.h"
#include "sys/proc.h"
#include "sys/transient_errno.h"

#define STAT_MAX 1024
/* Had from the start, as the table in proc_tree.c: most environments have room in it. */
#define TEXT_USUAL ((size_t)1 << 16)
static char usual_text[TEXT_USUAL + 1];

/* file_read_start of a file of that process. */
static ssize_t read_start(pid_t pid, const char *file, char *out, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return file_read_start(AT_FDCWD, path, 0, out, size);
}

/* A process that goes while it is looked at is as gone as one that was before. */
static enum proc_lookup sight_of_failure(void)
{
	return is_transient_errno(errno) ? PROC_UNSEEN : PROC_GONE;
}

/* Which of the numbers behind the state are of use; proc(5) counts them from 4 on. */
enum {
	FIELD_PARENT = 4,
	FIELD_SESSION = 6,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_STACK = 28
};

static bool read_numbers(const char *cursor, struct proc *out)
{
	int64_t numbers[FIELD_STACK + 1];

	for (int field = FIELD_PARENT; field <= FIELD_STACK; field++) {
		while (*cursor == ' ')
			cursor++;
		/* A limit of memory among them may be larger than an int64; it's none of ours. */
		numbers[field] = 0;
		if (*cursor == '\0' ||
		    (!number_read(&cursor, &numbers[field]) && field <= FIELD_START))
			return false;
		cursor += strcspn(cursor, " ");
	}
	out->parent = (pid_t)numbers[FIELD_PARENT];
	out->session = (pid_t)numbers[FIELD_SESSION];
	out->threads = (long)numbers[FIELD_THREADS];
	out->start = (uint64_t)numbers[FIELD_START];
	out->stack = (uint64_t)numbers[FIELD_STACK];
	return true;
}

/* The fields stand behind the last parenthesis: the name may hold anything, blanks and brackets too. */
static bool parse_stat(char *text, struct proc *out)
{
	struct proc proc = { .pid = out->pid };
	char *open_bracket, *close_bracket;
	size_t name_len;

	open_bracket = strchr(text, '(');
	close_bracket = strrchr(text, ')');
	if (open_bracket == NULL || close_bracket == NULL || close_bracket < open_bracket ||
	    close_bracket[1] != ' ' || close_bracket[2] == '\0')
		return false;
	proc.state = close_bracket[2];
	if (!read_numbers(close_bracket + 3, &proc))
		return false;
	name_len = (size_t)(close_bracket - open_bracket - 1);
	if (name_len >= sizeof(proc.name))
		name_len = sizeof(proc.name) - 1;
	memcpy(proc.name, open_bracket + 1, name_len);
	*out = proc;
	return true;
}

enum proc_lookup proc_look(pid_t pid, struct proc *out)
{
	char text[STAT_MAX];
	struct proc proc = { .pid = pid };

	if (read_start(pid, "stat", text, sizeof(text)) < 0)
		return sight_of_failure();
	if (!parse_stat(text, &proc))
		return PROC_GONE;
	*out = proc;
	return PROC_SEEN;
}

bool proc_read(pid_t pid, struct proc *out)
{
	return proc_look(pid, out) == PROC_SEEN;
}

bool proc_is_hidden(pid_t pid)
{
	struct proc proc;

	return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) &&
	       proc_look(pid, &proc) == PROC_GONE;
}

/* The last part of a program's path, without what the kernel puts behind that when the file was replaced. */
static bool program_name(const char *link, char *out, size_t size)
{
	static const char deleted[] = " (deleted)";
	ssize_t len = readlink(link, out, size - 1);
	char *slash;

	if (len < 0)
		return false;
	if ((size_t)len >= sizeof(deleted) &&
	    memcmp(out + len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		len -= (ssize_t)sizeof(deleted) - 1;
	out[len] = '\0';
	slash = strrchr(out, '/');
	if (slash != NULL)
		memmove(out, slash + 1, strlen(slash));
	return true;
}

bool proc_runs_our_program(pid_t pid)
{
	char link[64], ours[PATH_MAX], its[PATH_MAX];

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	if (!program_name(link, its, sizeof(its)))
		return errno == EACCES || errno == EPERM;
	return program_name("/proc/self/exe", ours, sizeof(ours)) && strcmp(its, ours) == 0;
}

bool proc_is_gone(const struct proc *proc)
{
	return proc->state == 'X' || (proc->state == 'Z' && proc->threads <= 1);
}

bool proc_has_ended(pid_t pid, uint64_t start)
{
	struct proc proc;
	enum proc_lookup lookup = proc_look(pid, &proc);

	if (lookup == PROC_SEEN)
		return (start != 0 && proc.start != start) || proc_is_gone(&proc);
	return lookup == PROC_GONE;
}

uint64_t proc_namespace(void)
{
	struct stat stat_of_namespace;

	if (stat("/proc/self/ns/pid", &stat_of_namespace) != 0)
		return 0;
	return stat_of_namespace.st_ino;
}

int proc_open(pid_t pid, uint64_t start)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), error;
	enum proc_lookup lookup;
	struct proc proc;

	if (fd < 0 || start == 0)
		return fd;
	/* Looked at again behind the open: from now on the number can't change its meaning. */
	lookup = proc_look(pid, &proc);
	if (lookup == PROC_SEEN && proc.start == start)
		return fd;
	error = lookup == PROC_UNSEEN ? errno : ESRCH;
	(void)close(fd);
	errno = error;
	return -1;
}

bool proc_command_line(pid_t pid, char *out, size_t size, size_t *len_out)
{
	ssize_t len = read_start(pid, "cmdline", out, size);

	*len_out = len > 0 ? (size_t)len : 0;
	return len >= 0;
}

static void text_free(char *text)
{
	if (text != usual_text)
		free(text);
}

/* Twice the size, with room for a NUL behind it; NULL when out of memory, and text is free. */
static char *text_grow(char *text, size_t size)
{
	char *larger = malloc(2 * size + 1);

	if (larger != NULL)
		memcpy(larger, text, size);
	text_free(text);
	return larger;
}

/* A whole file of a process, with a NUL behind it; NULL with errno. text_free. */
static char *read_whole(pid_t pid, const char *file, size_t *len_out)
{
	size_t size = TEXT_USUAL, len = 0;
	char *text = usual_text, path[64];
	ssize_t got = 0;
	int fd, error;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && text != NULL && (got = read(fd, text + len, size - len)) > 0) {
		len += (size_t)got;
		if (len == size) {
			text = text_grow(text, size);
			size *= 2;
		}
	}
	error = errno;
	if (fd >= 0)
		(void)close(fd);
	if (text != NULL && (fd < 0 || got < 0)) {
		text_free(text);
		text = NULL;
	}
	if (text != NULL)
		text[len] = '\0';
	*len_out = len;
	errno = error;
	return text;
}

enum proc_lookup proc_carries_hold(pid_t pid, const char *hold_id)
{
	static const char variable[] = "RLOCK_HELD=";
	size_t len;
	char *text = read_whole(pid, "environ", &len);
	bool is_found = false;

	if (text == NULL)
		return sight_of_failure();
	for (size_t i = 0; i < len && !is_found; i += strlen(text + i) + 1)
		is_found = strncmp(text + i, variable, sizeof(variable) - 1) == 0 &&
			   strstr(text + i, hold_id) != NULL;
	text_free(text);
	return is_found ? PROC_SEEN : PROC_GONE;
}
