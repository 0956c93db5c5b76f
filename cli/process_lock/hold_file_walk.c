/*
 * Goes through the hold files of a process and those above it, and removes each file whose process has ended: no other
 * process is left to remove it. runtime_dir.c knows the directories, and the callers which file they want.
 */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "process_lock/ancestors.h"
#include "process_lock/hold_file_walk.h"
#include "sys/file_read.h"
#include "sys/proc.h"

struct visit {
	int dir_fd;
	pid_t pid;
	uint64_t pid_namespace;     /* ours; 0: unknown, and no process is taken for dead */
	struct ancestors ancestors; /* empty: not looked up yet */
	hold_file_walk_fn fn;
	void *ctx;
};

/* The writer of the file was killed before it could give the file its final name. */
static bool is_half_written_leftover(const struct visit *visit, const char *name)
{
	uint64_t pid_namespace;
	pid_t pid;

	return hold_file_parse_new_name(name, &pid_namespace, &pid) &&
	       pid_namespace == visit->pid_namespace && proc_has_ended(pid, 0);
}

/* Containers may share the directory: a pid of theirs is another process's here. */
static bool is_from_elsewhere(const struct visit *visit, const struct hold_file *file)
{
	return file->pid_namespace != 0 && visit->pid_namespace != 0 &&
	       file->pid_namespace != visit->pid_namespace;
}

/*
 * Removes the hold file of a process that does not run here: the process has ended, unless it is in another namespace.
 * Then the file stays.
 */
static void sweep(const struct visit *visit, const char *name)
{
	struct hold_file *file;
	bool is_to_stay;

	if (visit->pid_namespace == 0)
		return;
	file = hold_file_read(visit->dir_fd, name);
	is_to_stay = file != NULL ? is_from_elsewhere(visit, file) : is_transient_errno(errno);
	hold_file_free(file);
	if (!is_to_stay)
		(void)unlinkat(visit->dir_fd, name, 0);
}

/* 0, or errno when we cannot tell now whether the search is for this file. */
static int visit_file(struct visit *visit, const char *name)
{
	struct hold_file by_name = { 0 }, *file;
	int steps, error;

	if (is_half_written_leftover(visit, name))
		(void)unlinkat(visit->dir_fd, name, 0);
	if (!hold_file_parse_name(name, &by_name))
		return 0;
	if (proc_has_ended(by_name.pid, by_name.start)) {
		sweep(visit, name);
		return 0;
	}
	error = visit->ancestors.count == 0 ? ancestors_read(&visit->ancestors, visit->pid) : 0;
	if (error != 0)
		return error;
	steps = ancestors_distance(&visit->ancestors, by_name.pid, by_name.start);
	if (steps < 0)
		return 0;
	file = hold_file_read(visit->dir_fd, name);
	if (file == NULL)
		return is_transient_errno(errno) ? errno : 0;
	if (is_from_elsewhere(visit, file)) {
		hold_file_free(file);
		return 0;
	}
	visit->fn(visit->ctx, file, steps);
	return 0;
}

/*
 * Passes each hold file of pid or a process above it to fn, which then owns it, and removes the files of processes that
 * have ended. Closes dir_fd, and does nothing if it is -1. 0, or errno when some files could not be looked at.
 */
static int for_each(int dir_fd, pid_t pid, hold_file_walk_fn fn, void *ctx)
{
	struct visit visit = { .dir_fd = dir_fd, .pid = pid, .fn = fn, .ctx = ctx };
	struct dirent *entry;
	int error = 0;
	DIR *dir;

	if (dir_fd < 0)
		return 0;
	dir = fdopendir(dir_fd);
	if (dir == NULL) {
		error = errno;
		(void)close(dir_fd);
		return error;
	}
	visit.pid_namespace = proc_namespace();
	while (error == 0) {
		errno = 0;
		entry = readdir(dir);
		error = entry != NULL ? visit_file(&visit, entry->d_name) : errno;
		if (entry == NULL)
			break;
	}
	(void)closedir(dir);
	ancestors_free(&visit.ancestors);
	return error;
}

int hold_file_walk(const int dir_fds[RUNTIME_DIR_COUNT], pid_t pid, hold_file_walk_fn fn, void *ctx)
{
	int first_error = 0;

	for (size_t i = 0; i < RUNTIME_DIR_COUNT; i++) {
		int error = for_each(dir_fds[i], pid, fn, ctx);

		if (first_error == 0)
			first_error = error;
	}
	return first_error;
}
