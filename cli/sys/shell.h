/*
 * A command of sh whose output is read, or a file, without waiting for it. It runs below a helper process, in a session without a
 * terminal and in the directory "/", where all rlock processes can start it alike. By its name other
 * processes know a helper (job.c), and nothing of it runs on after its time, its own end or that of this process.
 */
#ifndef SHELL_H
#define SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of output that are kept. */
#define SHELL_OUTPUT_MAX 65536

enum shell_end {
	SHELL_EXITED,
	SHELL_SIGNALLED,
	SHELL_LATE,   /* it was killed at the deadline */
	SHELL_FAILED, /* it could not be started */
	SHELL_KILLED, /* its helper was killed */
};

struct shell {
	pid_t parent; /* the process that called shell_start */
	pid_t helper;
	int fd; /* becomes readable when shell_advance can go on */
	int output_fd, end_fd;
	bool is_output_over;
	char *output; /* with a NUL after it; wiped by shell_stop */
	size_t output_len;
	enum shell_end end;
	int value; /* the status that it exited with, the signal, or the errno */
};

/*
 * NULL with errno. environment: of the command, up to a NULL; its signals and its nice value are those that rlock was
 * started with. shell_stop frees what it returns.
 */
struct shell *shell_start(const char *command, char *const environment[], int64_t deadline_ms);
/*
 * The same for what is in a file, an absolute path: its file system may not answer. SHELL_EXITED with 0; or SHELL_FAILED
 * with the errno, which is EPERM unless it is a regular file that has none of the bits of unsafe in its mode.
 */
struct shell *shell_start_reading(const char *path, mode_t unsafe);
/* Read what there is. true: it is over, and end, value and output are final. */
bool shell_advance(struct shell *shell);
/*
 * Kill what runs still; what a killed helper had started, too, where that became ours (os_adopt_orphans). In the child of
 * a fork() it leaves the parent's alone.
 */
void shell_stop(struct shell *shell);

#endif
