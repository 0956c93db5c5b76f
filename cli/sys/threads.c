/*
 * Lists /proc/PID/task. What is done with the threads is left to the callers.
 */
#include <dirent.h>
#include <stdio.h>

#include "base/number.h"
#include "sys/threads.h"

void threads_add(pid_t pid, struct pid_list *out)
{
	struct dirent *entry;
	char path[32];
	int64_t thread;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (number_parse(entry->d_name, &thread) && !pid_list_add(out, (pid_t)thread))
			break;
	(void)closedir(dir);
}
