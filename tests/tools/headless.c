/*
 * headless: a process whose first thread has ended, and whose second one runs until the file "let-go" of its test is there.
 * It writes the file "headless" when that is so.
 */
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "staying.h"

static const char *directory;

static void *stay(void *arg)
{
	char let_go[PATH_MAX], headless[PATH_MAX], stat[512] = "";
	FILE *file;

	(void)arg;
	(void)snprintf(let_go, sizeof(let_go), "%s/let-go", directory);
	(void)snprintf(headless, sizeof(headless), "%s/headless", directory);
	/* The first thread is a zombie when it has ended. */
	while (strstr(stat, ") Z ") == NULL) {
		file = fopen("/proc/self/stat", "re");
		if (file == NULL || fgets(stat, sizeof(stat), file) == NULL)
			exit(STAYING_EXIT);
		(void)fclose(file);
	}
	file = fopen(headless, "we");
	if (file == NULL || fclose(file) != 0)
		exit(STAYING_EXIT);
	stay_until(directory, let_go, let_go);
	exit(0);
}

int main(void)
{
	pthread_t second;

	directory = go_to_test();
	if (pthread_create(&second, NULL, stay, NULL) != 0)
		return STAYING_EXIT;
	pthread_exit(NULL);
}
