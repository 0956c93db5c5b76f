/*
 * The command that contenders for a lock run: notes when its turn began and when it ended, by the
 * clock that all of them share. When it ends is told from outside.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: turn FILE INDEX FIFO\n"
	"FILE is an array of pairs of 64-bit nanoseconds on CLOCK_MONOTONIC, the begin and the end;\n"
	"INDEX is the pair to fill. The turn ends when FIFO, opened for reading, comes to its end.\n";

struct turn {
	int64_t begin_ns;
	volatile int64_t end_ns;
};

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t begin_ns = now_ns();
	struct turn *turns, *turn;
	int file_fd, fifo_fd;
	size_t size;
	char byte;

	if (argc != 4) {
		(void)fputs(usage, stderr);
		return 64;
	}
	file_fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (file_fd < 0) {
		perror(argv[1]);
		return 1;
	}
	size = (strtoul(argv[2], NULL, 10) + 1) * sizeof(*turns);
	turns = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);
	if (turns == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	turn = &turns[size / sizeof(*turns) - 1];
	turn->begin_ns = begin_ns;
	fifo_fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (fifo_fd < 0) {
		perror(argv[3]);
		return 1;
	}
	while (read(fifo_fd, &byte, 1) > 0)
		;
	/* Nothing stands between this and the end but the kernel. */
	turn->end_ns = now_ns();
	_exit(0);
}
