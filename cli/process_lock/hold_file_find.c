/*
 * Chooses, of the hold files of a process and those above it, the ones on given names. hold_file_walk.c reads the
 * directories, and hold_file.c knows what is in a file.
 */
#include <stdio.h>
#include <string.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/names.h"
#include "options/usage_line.h"
#include "process_lock/hold_file_find.h"
#include "process_lock/hold_file_walk.h"
#include "process_lock/inherited.h"
#include "process_lock/owners.h"
#include "process_lock/runtime_dir.h"

static int report_unlooked(int error)
{
	message_error("cannot look for locks in '%s': %s", runtime_dir_path(), strerror(error));
	return EXIT_SYSTEM;
}

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
	error = hold_file_walk(dir_fds, pid, consider, &search);
	if (error != 0)
		*code_out = report_unlooked(error);
	if (search.exact == NULL)
		*near_out = search.near;
	else
		hold_file_free(search.near);
	return search.exact;
}

void hold_file_find_report_near(const struct hold_file *near, const struct rlock_name *names,
				size_t name_count, const char *server, const char *verb, pid_t pid)
{
	bool is_elsewhere = strcmp(near->server, server) != 0;
	char wanted[NAMES_SHOWN_MAX], process[32];
	struct usage_line line;

	usage_line_begin(&line, verb);
	if (is_elsewhere) {
		usage_line_add_plain(&line, "--url");
		usage_line_add(&line, &near->server, 1);
	}
	if (pid != 0) {
		(void)snprintf(process, sizeof(process), "--pid %d", (int)pid);
		usage_line_add_plain(&line, process);
	}
	usage_line_add_names(&line, near->names, near->name_count);
	message_error("%s: %s: try: %s", names_show(names, name_count, wanted),
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

	(void)steps; /* their order does not matter: the server tells which of them holds the lock */
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
	int error = hold_file_walk(dir_fds, pid, collect_owner, &list);

	if (error == 0)
		error = unopened;
	/* A process that holds the lock without knowing it would deadlock. */
	return error != 0 ? report_unlooked(error) : 0;
}
