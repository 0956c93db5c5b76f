/*
 * inside [NAME]: a command for rlock. It creates the file "in-NAME", and runs until its test creates the file "end-commands" or
 * "out-NAME"; but for 60 s at most, and only while the test's directory exists. run_until_ended is another name of this program.
 * It is in C since tests start many of them, and a shell starts more slowly than rlock.
 */
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STAY_S 60
#define POLL_MS 20

static bool is_there(const char *directory, const char *word, const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s%s", directory, word, name);
	return access(path, F_OK) == 0;
}

static int say(const char *directory, const char *name)
{
	char path[PATH_MAX];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/in-%s", directory, name);
	file = fopen(path, "we");
	if (file == NULL)
		return -1;
	(void)fputs("in\n", file);
	return fclose(file);
}

int main(int argc, char **argv)
{
	const char *directory = getenv("BATS_TEST_TMPDIR");

	if (directory == NULL || access(directory, X_OK) != 0 ||
	    (argc > 1 && say(directory, argv[1]) != 0)) {
		perror("BATS_TEST_TMPDIR");
		return 71;
	}
	for (int polls = 0; polls < STAY_S * 1000 / POLL_MS && is_there(directory, "", "");
	     polls++) {
		if (is_there(directory, "end-commands", "") ||
		    (argc > 1 && is_there(directory, "out-", argv[1])))
			return 0;
		(void)poll(NULL, 0, POLL_MS);
	}
	return 0;
}
