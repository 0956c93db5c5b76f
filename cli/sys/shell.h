/*
 * Read the output of a sh command, or a file, without waiting. The command runs below a helper process, in a session
 * without a terminal and in the directory "/". So it behaves the same whichever rlock process starts it. When the
 * command ends, at its deadline, and when this process ends, all processes of the command are killed. Other rlock
 * processes know a helper by its name (job.c).
 */
#ifndef SHELL_H
#define SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most bytes of output that are stored. Further bytes are read and dropped. */
#define SHELL_OUTPUT_MAX 65536

enum shell_end {
	SHELL_EXITED,
	SHELL_SIGNALLED,
	/* The command, or the child that reads the file, was killed at its deadline. */
	SHELL_LATE,
	/* The command could not be started, or the file could not be read. */
	SHELL_FAILED,
	/* The helper was killed. */
	SHELL_KILLED,
};

struct shell {
	/* the process that called shell_start or shell_start_reading */
	pid_t parent;
	pid_t helper;
	/* becomes readable when shell_advance can read something */
	int fd;
	/* pipes for the output, and for the report of the end */
	int output_fd, end_fd;
	bool is_output_over;
	/* the output with a NUL after it; shell_stop wipes it */
	char *output;
	size_t output_len;
	enum shell_end end;
	/* exit status, number of the signal, or errno */
	int value;
};

/*
 * Start a command of sh, with this environment, and with the signals and the nice value that rlock was started with.
 * shell_stop frees the result. NULL with errno.
 */
struct shell *shell_start(const char *command, char *const environment[], int64_t deadline_ms);
/*
 * Start to read a file whose file system may hang. path must be absolute. The end is SHELL_EXITED with 0; SHELL_LATE;
 * or SHELL_FAILED with the errno. EPERM: the file is not a regular file, or its mode has one of the bits in unsafe.
 */
struct shell *shell_start_reading(const char *path, mode_t unsafe);
/* Read the output so far. True: the command or reader has ended, and end, value and output are final. */
bool shell_advance(struct shell *shell);
/*
 * Kill the command if it runs, and free shell. If the helper was killed, and we adopt orphans, also kill the processes
 * that the helper had started. In a child that was forked after shell_start, only free shell.
 */
void shell_stop(struct shell *shell);
/*
 * Reap all helpers that have ended, also a helper that still ran when its shell_stop returned: it would stay a zombie, since
 * os_child_peek does not report it. If a helper was killed, and we adopt orphans, also kill the processes that the helper had
 * started.
 */
void shell_reap(void);

#endif
