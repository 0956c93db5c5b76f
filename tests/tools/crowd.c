/*
 * A machine that has many processes: so many that do nothing, and end when this one does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char usage[] = "usage: crowd COUNT\n"
			    "Starts so many processes, says \"ready\", and waits to be killed.\n";

static void be_one(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() == parent)
		(void)pause();
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t parent = getpid();
	long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

	if (count <= 0) {
		(void)fputs(usage, stderr);
		return 64;
	}
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("crowd: fork");
			return 71;
		}
		if (pid == 0)
			be_one(parent);
	}
	(void)puts("ready");
	(void)fflush(stdout);
	(void)pause();
	return 0;
}
