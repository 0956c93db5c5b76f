/*
 * Searches the runtime directories for the hold files of a process and those above it, and removes those of processes
 * that have ended. hold_file.c knows what is in a file, and runtime_dir.c where the directories are.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/names.h"
#include "options/usage.h"
#include "process_lock/ancestors.h"
#include "process_lock/hold_file_find.h"
#include "process_lock/inherited.h"
#include "process_lock/runtime_dir.h"
#include "sys/proc.h"
#include "sys/transient_errno.h"

/* ---- in the directories ---- */

typedef void (*visit_fn)(void *ctx, struct hold_file *file, int distance);

struct visit {
	int dir_fd;
	pid_t pid;
	uint64_t pid_namespace;     /* ours; 0: unknown, and no process is taken for dead */
	struct ancestors ancestors; /* empty: not looked up yet */
	visit_fn fn;
	void *ctx;
};

/* The writer of the file was killed before it could give the file its final name. */
static bool is_half_written_by_the_dead(const struct visit *visit, const char *name)
{
	uint64_t pid_namespace;
	pid_t pid;

	return hold_file_parse_new_name(name, &pid_namespace, &pid) &&
	       pid_namespace == visit->pid_namespace && proc_has_ended(pid, 0);
}

/* Containers may share the directory: a process number of theirs is another process's here. */
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

	if (is_half_written_by_the_dead(visit, name))
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
static int for_each(int dir_fd, pid_t pid, visit_fn fn, void *ctx)
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

/* Does the same in each of the directories. 0, or the first errno. */
static int for_each_in(const int dir_fds[RUNTIME_DIR_COUNT], pid_t pid, visit_fn fn, void *ctx)
{
	int first_error = 0;

	for (size_t i = 0; i < RUNTIME_DIR_COUNT; i++) {
		int error = for_each(dir_fds[i], pid, fn, ctx);

		if (first_error == 0)
			first_error = error;
	}
	return first_error;
}

static int report_unlooked(int error)
{
	message_error("cannot look for locks in '%s': %s", runtime_dir_path(), strerror(error));
	return EXIT_SYSTEM;
}

/* ---- among them ---- */

static bool is_among(const struct rlock_name *name, const struct rlock_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].len == name->len && memcmp(names[i].text, name->text, name->len) == 0)
			return true;
	return false;
}

static size_t names_in(const struct hold_file *file, const struct rlock_name *names, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < file->name_count; i++)
		found += is_among(&file->names[i], names, count) ? 1 : 0;
	return found;
}

struct search {
	const struct rlock_name *names;
	size_t name_count;
	const char *server;
	enum rlock_kind mode;
	struct hold_file *exact, *near;
	int exact_distance;
};

static void consider(void *ctx, struct hold_file *file, int steps)
{
	struct search *search = ctx;
	size_t common = names_in(file, search->names, search->name_count);
	struct hold_file **place = NULL;

	if (common == search->name_count && common == file->name_count &&
	    strcmp(file->server, search->server) == 0) {
		bool is_nearest = search->exact == NULL || steps < search->exact_distance ||
				  (steps == search->exact_distance &&
				   file->acquired_ms >= search->exact->acquired_ms);

		if (is_nearest && rlock_kind_is(file->kind, search->mode)) {
			place = &search->exact;
			search->exact_distance = steps;
		}
	} else if (common > 0) {
		place = &search->near;
	}
	if (place == NULL) {
		hold_file_free(file);
		return;
	}
	hold_file_free(*place);
	*place = file;
}

struct hold_file *hold_file_find(pid_t pid, const struct rlock_name *names, size_t name_count,
				 const char *server, enum rlock_kind mode,
				 struct hold_file **near_out, int *code_out)
{
	struct search search = { names, name_count, server, mode, NULL, NULL, 0 };
	int dir_fds[RUNTIME_DIR_COUNT], error;

	*code_out = runtime_dir_open_existing(dir_fds);
	error = for_each_in(dir_fds, pid, consider, &search);
	if (error != 0)
		*code_out = report_unlooked(error);
	if (search.exact == NULL)
		*near_out = search.near;
	else
		hold_file_free(search.near);
	return search.exact;
}

void hold_file_find_say_near(const struct hold_file *near, const struct rlock_name *names,
			     size_t name_count, const char *server, const char *verb)
{
	bool is_elsewhere = strcmp(near->server, server) != 0;
	char wanted[NAMES_SHOWN_MAX];
	struct usage_line line;

	usage_begin(&line, verb);
	if (is_elsewhere) {
		usage_add_plain(&line, "--url");
		usage_add(&line, &near->server, 1);
	}
	usage_add_names(&line, near->names, near->name_count);
	message_error("%s: %s: %s", names_show(names, name_count, wanted),
		      is_elsewhere ? "held on another server" : "was locked together with others",
		      line.text);
}

struct owner_list {
	const struct rlock_name *names;
	size_t name_count;
	char ***owners;
	size_t *count;
};

static void collect_owner(void *ctx, struct hold_file *file, int steps)
{
	struct owner_list *list = ctx;

	(void)steps; /* at most one owner holds a lock: their order does not matter */
	for (size_t i = 0; i < file->name_count; i++)
		if (is_among(&file->names[i], list->names, list->name_count))
			owners_add(list->owners, list->count, file->owners[i],
				   strlen(file->owners[i]));
	hold_file_free(file);
}

int hold_file_find_owners(pid_t pid, const struct rlock_name *names, size_t name_count,
			  char ***owners, size_t *count)
{
	struct owner_list list = { names, name_count, owners, count };
	/* `rlock run` needs no such directory, so it ignores a directory that is unfit to be used. */
	int dir_fds[RUNTIME_DIR_COUNT];
	int unopened = runtime_dir_open_all_quietly(dir_fds);
	int error = for_each_in(dir_fds, pid, collect_owner, &list);

	if (error == 0)
		error = unopened;
	/* A process that holds the lock without knowing it would deadlock. */
	return error != 0 ? report_unlooked(error) : 0;
}
