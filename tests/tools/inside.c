/*
 * inside NAME: a command for `rlock ...` that says by the file "in-NAME" of its test that it has begun, and when, in
 * microseconds. It runs until the file "out-NAME" or "let-go" is there.
 */
#include <limits.h>
#include <sys/time.h>

#include "staying.h"

#define EX_USAGE 64
#define US_PER_S 1000000LL

static void say_when(const char *path)
{
	FILE *file = fopen(path, "we");
	struct timeval now;

	(void)gettimeofday(&now, NULL);
	if (file == NULL ||
	    fprintf(file, "%lld\n", (long long)now.tv_sec * US_PER_S + (long long)now.tv_usec) <
		    0 ||
	    fclose(file) != 0) {
		perror(path);
		exit(STAYING_EXIT);
	}
}

int main(int argc, char **argv)
{
	char in[PATH_MAX], out[PATH_MAX], let_go[PATH_MAX];
	const char *directory;

	if (argc != 2) {
		(void)fputs("usage: inside NAME\n", stderr);
		return EX_USAGE;
	}
	directory = go_to_test();
	(void)snprintf(in, sizeof(in), "%s/in-%s", directory, argv[1]);
	(void)snprintf(out, sizeof(out), "%s/out-%s", directory, argv[1]);
	(void)snprintf(let_go, sizeof(let_go), "%s/let-go", directory);
	say_when(in);
	stay_until(directory, out, let_go);
	return 0;
}
