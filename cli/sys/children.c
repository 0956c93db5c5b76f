/*
 * Reads /proc/PID/task/TID/children, which has pids with blanks between them, in one line without a limit. What the
 * children are is left to the callers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/number.h"
#include "sys/children.h"
#include "sys/file_read.h"
#include "sys/threads.h"

static void add_of_thread(pid_t pid, pid_t thread, struct pid_list *out)
{
	char path[64], *text = NULL;
	const char *cursor;
	size_t size = 0;
	int64_t child;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
			     (int)thread) >= sizeof(path))
		return;
	file = fopen(path, "re");
	if (file == NULL)
		return;
	if (getline(&text, &size, file) > 0) {
		cursor = text;
		while (number_read(&cursor, &child) && pid_list_add(out, (pid_t)child))
			;
	}
	free(text);
	(void)fclose(file);
}

bool children_are_listed(void)
{
	return access("/proc/thread-self/children", R_OK) == 0;
}

void children_add(pid_t pid, struct pid_list *out)
{
	struct pid_list threads = { 0 };

	threads_add(pid, &threads);
	for (size_t i = 0; i < threads.count; i++)
		add_of_thread(pid, threads.pids[i], out);
	pid_list_free(&threads);
}

size_t children_of_self(pid_t *out, size_t max)
{
	char text[4096];
	const char *cursor = text;
	size_t count = 0;
	int64_t child;

	if (file_read_start(AT_FDCWD, "/proc/thread-self/children", 0, text, sizeof(text)) < 0)
		return 0;
	while (count < max && number_read(&cursor, &child))
		out[count++] = (pid_t)child;
	return count;
}
