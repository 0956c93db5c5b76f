/*
 * inside [NAME]: a command for `rlock ...` that runs until the file "end-commands" of its test is there, or "out-NAME"; 60 s at most, and
 * no longer than the test's directory is there. It says by the file "in-NAME" that it has begun.
 * run_until_ended is the same. In C, since a test starts several, and a shell takes longer to begin than rlock.
 */
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STAY_S 60
#define LOOK_MS 20

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
	for (int looks = 0; looks < STAY_S * 1000 / LOOK_MS && is_there(directory, "", "");
	     looks++) {
		if (is_there(directory, "end-commands", "") ||
		    (argc > 1 && is_there(directory, "out-", argv[1])))
			return 0;
		(void)poll(NULL, 0, LOOK_MS);
	}
	return 0;
}
