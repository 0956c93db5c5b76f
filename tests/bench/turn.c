/*
 * The command of contenders for a lock: records when it started and when it ended, on a clock that all of them share. The benchmark
 * decides when it ends.
 *
 *     turn FILE INDEX FIFO
 *
 * FILE is an array of pairs of 64-bit nanoseconds on CLOCK_MONOTONIC, start and end; INDEX is the pair to fill. The command ends when FIFO,
 * opened for reading, reaches end of file.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t pair[2] = { now_ns(), 0 };
	int file_fd, fifo_fd;
	off_t at;
	char byte;

	if (argc != 4)
		return 64;
	at = (off_t)(strtoul(argv[2], NULL, 10) * sizeof(pair));
	file_fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (file_fd < 0 || pwrite(file_fd, &pair[0], sizeof(pair[0]), at) < 0) {
		perror(argv[1]);
		return 1;
	}
	fifo_fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	while (read(fifo_fd, &byte, 1) > 0)
		;
	/* Read the clock as late as possible: only the write and the exit follow. */
	pair[1] = now_ns();
	if (pwrite(file_fd, &pair[1], sizeof(pair[1]), at + (off_t)sizeof(pair[0])) < 0)
		perror(argv[1]);
	_exit(0);
}
