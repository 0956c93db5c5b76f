/*
 * One file a hold in the runtime directory, "hold-PID-START-HOLDID", lines "key value". It says
 * whose the lock is and how to give it back; the secret to reach the server is not in it. Files of
 * processes that are gone are removed by whoever comes by in the same pid namespace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/number.h"
#include "base/say.h"
#include "options/names.h"
#include "options/usage.h"
#include "process_lock/held.h"
#include "process_lock/hold_file.h"
#include "process_lock/runtime.h"
#include "sys/procs.h"
#include "sys/shortage.h"

#define FILE_PREFIX "hold-"
#define NEW_PREFIX "new-"
#define FILE_NAME_MAX 128
#define FILE_SIZE_MAX (1 << 18)
#define TIME_MAX_MS (INT64_MAX / 4)
/* Longer than an unlock takes at most. */
#define CLAIM_MS 10000
#define CLAIM_LOOK_MS 10

void hold_file_free(struct hold_file *file)
{
	if (file == NULL)
		return;
	for (size_t i = 0; i < file->name_count; i++) {
		free((char *)file->names[i].text);
		free(file->owners[i]);
	}
	free(file->names);
	free(file->owners);
	free(file->server);
	if (file->dir_fd >= 0)
		(void)close(file->dir_fd);
	if (file->claim_fd >= 0)
		(void)close(file->claim_fd);
	free(file);
}

bool hold_file_add_name(struct hold_file *file, const char *name, size_t name_len,
			const char *owner)
{
	size_t count = file->name_count + 1;
	struct rlock_name *names = realloc(file->names, count * sizeof(*names));
	char **owners, *name_copy, *owner_copy;

	if (names != NULL)
		file->names = names;
	owners = realloc(file->owners, count * sizeof(*owners));
	if (owners != NULL)
		file->owners = owners;
	name_copy = strndup(name, name_len);
	owner_copy = strdup(owner);
	if (names == NULL || owners == NULL || name_copy == NULL || owner_copy == NULL) {
		free(name_copy);
		free(owner_copy);
		return false;
	}
	names[file->name_count] = (struct rlock_name){ name_copy, name_len };
	owners[file->name_count++] = owner_copy;
	return true;
}

static void file_name(const struct hold_file *file, char out[FILE_NAME_MAX])
{
	(void)snprintf(out, FILE_NAME_MAX, FILE_PREFIX "%d-%" PRIu64 "-%s", (int)file->pid,
		       file->start, file->hold_id);
}

/* ---- write ---- */

static int say_unwritable(const struct hold_file *file, const char *name)
{
	int error = errno;

	say_error("cannot write '%s/%s': %s", runtime_path_of(file->dir_fd), name, strerror(error));
	return EXIT_SYSTEM;
}

static void print_lines(FILE *out, const struct hold_file *file)
{
	char encoded[3 * RLOCK_NAME_MAX + 1];

	(void)fprintf(out, "server %s\nkind %s\npid_namespace %" PRIu64 "\n", file->server,
		      rlock_kind_name(file->kind), file->pid_namespace);
	(void)fprintf(out, "sent_ms %" PRId64 "\nlease_ms %" PRId64 "\nhad_ms %" PRId64 "\n",
		      file->sent_ms, file->lease_ms, file->had_ms);
	(void)fprintf(out, "fixed %d\nlost %d\ngiven_up %d\nrenewer %d %" PRIu64 "\n",
		      file->is_fixed_lease, file->is_lost, file->is_given_up, (int)file->renewer,
		      file->renewer_start);
	for (size_t i = 0; i < file->name_count; i++) {
		(void)rlock_percent_encode(file->names[i].text, file->names[i].len, "", encoded,
					   sizeof(encoded));
		(void)fprintf(out, "name %s %s\n", encoded, file->owners[i]);
	}
}

/* A new file in the old one's place, so that a reader sees the one or the other whole. */
static bool replace_file(const struct hold_file *file, const char *name)
{
	char new_name[FILE_NAME_MAX + 48];
	FILE *out = NULL;
	bool is_written = false;
	int fd;

	(void)snprintf(new_name, sizeof(new_name), NEW_PREFIX "%" PRIu64 "-%d-%s",
		       file->pid_namespace, (int)getpid(), file->hold_id);
	fd = openat(file->dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return false;
	out = fdopen(fd, "w");
	if (out == NULL) {
		(void)close(fd);
	} else {
		print_lines(out, file);
		is_written = ferror(out) == 0;
		is_written = fclose(out) == 0 && is_written;
	}
	if (is_written)
		is_written = renameat(file->dir_fd, new_name, file->dir_fd, name) == 0;
	if (!is_written) {
		int error = errno;

		(void)unlinkat(file->dir_fd, new_name, 0);
		errno = error;
	}
	return is_written;
}

int hold_file_save(const struct hold_file *file)
{
	char name[FILE_NAME_MAX];

	file_name(file, name);
	return replace_file(file, name) ? 0 : say_unwritable(file, name);
}

void hold_file_remove(const struct hold_file *file)
{
	char name[FILE_NAME_MAX];

	file_name(file, name);
	(void)unlinkat(file->dir_fd, name, 0);
}

void hold_file_mark_lost(struct hold_file *file)
{
	char name[FILE_NAME_MAX];

	file->is_lost = true;
	file_name(file, name);
	/* Should the disk be full, an unlock still learns it from the server. */
	(void)replace_file(file, name);
}

void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms)
{
	char name[FILE_NAME_MAX];
	int dir_fd;

	file->sent_ms = sent_ms;
	file->lease_ms = lease_ms;
	file_name(file, name);
	if (utimensat(file->dir_fd, name, NULL, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    replace_file(file, name) || errno != ENOENT)
		return;
	/* The directory has gone, too. */
	dir_fd = runtime_open_for_holds();
	if (dir_fd < 0)
		return;
	(void)close(file->dir_fd);
	file->dir_fd = dir_fd;
	(void)replace_file(file, name);
}

int hold_file_dir_fd(const struct hold_file *file)
{
	return file != NULL ? file->dir_fd : -1;
}

/* ---- read ---- */

/* NULL with errno. */
static char *read_whole(int dir_fd, const char *name)
{
	struct stat stat;
	char *text = NULL;
	ssize_t len = 0;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), error;

	if (fd < 0)
		return NULL;
	/* Another user's may have come here before the directory was closed to others. */
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid() &&
	    stat.st_size <= FILE_SIZE_MAX)
		text = malloc((size_t)stat.st_size + 1);
	if (text != NULL) {
		len = read(fd, text, (size_t)stat.st_size);
		text[len > 0 ? len : 0] = '\0';
	}
	error = errno;
	(void)close(fd);
	if (len < 0) {
		free(text);
		text = NULL;
	}
	errno = error;
	return text;
}

/* "NAME OWNER", the name percent-encoded. */
static bool read_name(struct hold_file *file, char *value)
{
	char *owner = strchr(value, ' ');
	struct rlock_name name = { value, 0 };
	const char *why;
	long len;

	if (owner == NULL)
		return false;
	*owner++ = '\0';
	len = rlock_percent_decode(value, strlen(value));
	if (len < 0)
		return false;
	name.len = (size_t)len;
	return rlock_name_check(&name, &why) == RLOCK_OK &&
	       rlock_owner_check(owner, &why) == RLOCK_OK &&
	       hold_file_add_name(file, name.text, name.len, owner);
}

/* No time of ours is so far away; sums of those that are not fit. */
static bool read_ms(const char *value, int64_t *out_ms)
{
	int64_t ms;

	if (!number_parse(value, &ms) || ms < -TIME_MAX_MS || ms > TIME_MAX_MS)
		return false;
	*out_ms = ms;
	return true;
}

static bool read_inode(const char *value, uint64_t *out)
{
	int64_t number;

	if (!number_parse(value, &number) || number < 0)
		return false;
	*out = (uint64_t)number;
	return true;
}

/* "PID START" */
static bool read_process(const char *value, pid_t *pid, uint64_t *start)
{
	int64_t pid_number, start_number;

	if (!number_read(&value, &pid_number) || !number_read(&value, &start_number) ||
	    *value != '\0' || pid_number < 0 || pid_number > INT_MAX || start_number < 0)
		return false;
	*pid = (pid_t)pid_number;
	*start = (uint64_t)start_number;
	return true;
}

static bool read_line(struct hold_file *file, char *line)
{
	char *value = strchr(line, ' ');

	if (value == NULL)
		return false;
	*value++ = '\0';
	if (strcmp(line, "name") == 0)
		return read_name(file, value);
	if (strcmp(line, "server") == 0) {
		free(file->server);
		file->server = strdup(value);
		return file->server != NULL;
	}
	if (strcmp(line, "kind") == 0)
		return rlock_kind_parse(value, strlen(value), &file->kind);
	if (strcmp(line, "sent_ms") == 0)
		return read_ms(value, &file->sent_ms);
	if (strcmp(line, "lease_ms") == 0)
		return read_ms(value, &file->lease_ms);
	if (strcmp(line, "had_ms") == 0)
		return read_ms(value, &file->had_ms);
	if (strcmp(line, "pid_namespace") == 0)
		return read_inode(value, &file->pid_namespace);
	if (strcmp(line, "renewer") == 0)
		return read_process(value, &file->renewer, &file->renewer_start);
	if (strcmp(line, "fixed") == 0)
		file->is_fixed_lease = value[0] == '1';
	else if (strcmp(line, "lost") == 0)
		file->is_lost = value[0] == '1';
	else if (strcmp(line, "given_up") == 0)
		file->is_given_up = value[0] == '1';
	return true; /* what a later version adds is passed over */
}

static bool is_whole(const struct hold_file *file)
{
	return file->server != NULL && file->name_count > 0 && file->lease_ms > 0;
}

/* Whose file that is, by its name. */
static bool read_file_name(const char *name, struct hold_file *out)
{
	int64_t pid, start;

	if (strncmp(name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
		return false;
	name += strlen(FILE_PREFIX);
	if (!number_read(&name, &pid) || *name++ != '-' || !number_read(&name, &start) ||
	    *name++ != '-' || pid <= 0 || pid > INT_MAX || start < 0)
		return false;
	if (strlen(name) != RLOCK_HOLD_ID_MAX - 1 ||
	    strspn(name, "0123456789abcdef") != RLOCK_HOLD_ID_MAX - 1)
		return false;
	out->pid = (pid_t)pid;
	out->start = (uint64_t)start;
	memcpy(out->hold_id, name, RLOCK_HOLD_ID_MAX);
	return true;
}

/* NULL when the file is not one of ours, or not whole; or, by errno, when it can't be read now. */
static struct hold_file *hold_file_read(int dir_fd, const char *name)
{
	struct hold_file *file = calloc(1, sizeof(*file));
	char *text = NULL, *line, *rest;
	bool is_good = file != NULL;
	int error;

	if (is_good) {
		file->dir_fd = -1;
		file->claim_fd = -1;
		is_good = read_file_name(name, file);
	}
	if (is_good) {
		text = read_whole(dir_fd, name);
		is_good = text != NULL;
	}
	/* What a line fails by, if not by what it says, is memory. */
	if (is_good)
		errno = 0;
	for (line = is_good ? strtok_r(text, "\n", &rest) : NULL; line != NULL && is_good;
	     line = strtok_r(NULL, "\n", &rest))
		is_good = read_line(file, line);
	error = errno;
	free(text);
	if (is_good && is_whole(file)) {
		file->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
		if (file->dir_fd >= 0)
			return file;
		error = errno;
	}
	hold_file_free(file);
	errno = error;
	return NULL;
}

bool hold_file_reload(const struct hold_file *file, int64_t *sent_ms, int64_t *lease_ms)
{
	char name[FILE_NAME_MAX];
	struct hold_file *read;

	file_name(file, name);
	read = hold_file_read(file->dir_fd, name);
	if (read == NULL)
		return false;
	*sent_ms = read->sent_ms;
	*lease_ms = read->lease_ms;
	hold_file_free(read);
	return true;
}

/* ---- claim ---- */

/* The lock is a file's, not a name's: behind the other one's end the name may be another file's, or nobody's. */
static bool is_still_named(const struct hold_file *file, const char *name)
{
	struct stat claimed, named;

	return fstat(file->claim_fd, &claimed) == 0 &&
	       fstatat(file->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       claimed.st_dev == named.st_dev && claimed.st_ino == named.st_ino;
}

/* False when another one has it for too long: stopped, say. Where files can't be locked nobody is kept out. */
static bool lock_file(int fd)
{
	int64_t end_ms = rlock_now_ms() + CLAIM_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
		if (rlock_now_ms() >= end_ms)
			return false;
		(void)poll(NULL, 0, CLAIM_LOOK_MS);
	}
	return true;
}

/* Behind the look that found it another one may have come, and gone again. */
static bool read_again(struct hold_file *file, const char *name)
{
	struct hold_file *read = hold_file_read(file->dir_fd, name);

	if (read == NULL)
		return false;
	file->sent_ms = read->sent_ms;
	file->lease_ms = read->lease_ms;
	file->is_lost = read->is_lost;
	file->is_given_up = read->is_given_up;
	hold_file_free(read);
	return true;
}

int hold_file_claim(struct hold_file *file, bool *is_ours_out)
{
	char name[FILE_NAME_MAX];

	*is_ours_out = false;
	file_name(file, name);
	file->claim_fd = openat(file->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file->claim_fd < 0 && errno == ENOENT)
		return 0;
	if (file->claim_fd < 0) {
		say_error("cannot open '%s/%s': %s", runtime_path(), name, strerror(errno));
		return EXIT_SYSTEM;
	}
	if (!lock_file(file->claim_fd)) {
		say_error(
			"another unlock has been giving this lock back for %d s, and has not ended",
			CLAIM_MS / 1000);
		return EXIT_SYSTEM;
	}
	*is_ours_out = is_still_named(file, name) && read_again(file, name);
	return 0;
}

/* ---- whose it is ---- */

struct ancestors {
	struct proc *procs; /* from the process itself upwards */
	size_t count, capacity;
};

static bool ancestors_add(struct ancestors *ancestors, const struct proc *proc)
{
	if (ancestors->count == ancestors->capacity) {
		size_t capacity = ancestors->capacity == 0 ? 32 : ancestors->capacity * 2;
		struct proc *procs = realloc(ancestors->procs, capacity * sizeof(*procs));

		if (procs == NULL)
			return false;
		ancestors->procs = procs;
		ancestors->capacity = capacity;
	}
	ancestors->procs[ancestors->count++] = *proc;
	return true;
}

/* 0, or errno when one of them can't be seen now. */
static int ancestors_read(pid_t pid, struct ancestors *out)
{
	uint64_t child_start = UINT64_MAX;
	struct proc proc;

	while (pid > 0) {
		enum proc_sight sight = proc_look(pid, &proc);

		if (sight == PROC_UNSEEN)
			return errno;
		/* A parent is older than its child: this one has got the number of one that has gone. */
		if (sight == PROC_GONE || proc.start > child_start)
			break;
		if (!ancestors_add(out, &proc))
			return ENOMEM;
		pid = proc.parent;
		child_start = proc.start;
	}
	return 0;
}

/* How far above: 0 is the process itself; -1 when it is none of them. */
static int distance(const struct ancestors *ancestors, const struct hold_file *file)
{
	for (size_t i = 0; i < ancestors->count; i++)
		if (ancestors->procs[i].pid == file->pid &&
		    ancestors->procs[i].start == file->start)
			return (int)i;
	return -1;
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

typedef void (*visit_fn)(void *ctx, struct hold_file *file, int distance);

struct visit {
	int dir_fd;
	pid_t pid;
	uint64_t pid_namespace;     /* ours; 0: not known, and nobody is taken for dead */
	struct ancestors ancestors; /* none: not looked up yet */
	visit_fn fn;
	void *ctx;
};

/* "new-NAMESPACE-PID-HOLDID": its writer was killed before it could give it its name. */
static bool is_half_written_by_the_dead(const struct visit *visit, const char *name)
{
	int64_t pid, pid_namespace;

	if (strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
		return false;
	name += strlen(NEW_PREFIX);
	return number_read(&name, &pid_namespace) && *name++ == '-' && number_read(&name, &pid) &&
	       *name == '-' && pid > 0 && pid <= INT_MAX && pid_namespace > 0 &&
	       (uint64_t)pid_namespace == visit->pid_namespace && proc_has_ended((pid_t)pid, 0);
}

/* The directory may be shared with containers: a number there is another process's here. */
static bool is_from_elsewhere(const struct visit *visit, const struct hold_file *file)
{
	return file->pid_namespace != 0 && visit->pid_namespace != 0 &&
	       file->pid_namespace != visit->pid_namespace;
}

/* Of a process that is not to be seen: it has ended, or it is elsewhere. */
static void sweep(const struct visit *visit, const char *name)
{
	struct hold_file *file;
	bool is_to_stay;

	if (visit->pid_namespace == 0)
		return;
	file = hold_file_read(visit->dir_fd, name);
	is_to_stay = file != NULL ? is_from_elsewhere(visit, file) : is_shortage(errno);
	hold_file_free(file);
	if (!is_to_stay)
		(void)unlinkat(visit->dir_fd, name, 0);
}

/* 0, or errno when it can't be told now whether the file is one that is looked for. */
static int visit_file(struct visit *visit, const char *name)
{
	struct hold_file by_name = { 0 }, *file;
	int steps, error;

	if (is_half_written_by_the_dead(visit, name))
		(void)unlinkat(visit->dir_fd, name, 0);
	if (!read_file_name(name, &by_name))
		return 0;
	if (proc_has_ended(by_name.pid, by_name.start)) {
		sweep(visit, name);
		return 0;
	}
	error = visit->ancestors.count == 0 ? ancestors_read(visit->pid, &visit->ancestors) : 0;
	if (error != 0)
		return error;
	steps = distance(&visit->ancestors, &by_name);
	if (steps < 0)
		return 0;
	file = hold_file_read(visit->dir_fd, name);
	if (file == NULL)
		return is_shortage(errno) ? errno : 0;
	if (is_from_elsewhere(visit, file)) {
		hold_file_free(file);
		return 0;
	}
	visit->fn(visit->ctx, file, steps);
	return 0;
}

/*
 * Gives each hold file of pid or a process above it to fn, which owns it then. Sweeps out the dead. Takes
 * dir_fd, and does nothing with -1. 0, or errno when not all could be looked at.
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
	free(visit.ancestors.procs);
	return error;
}

/* The same in each of the directories. */
static int for_each_in(const int dir_fds[RUNTIME_DIRS], pid_t pid, visit_fn fn, void *ctx)
{
	int first_error = 0;

	for (size_t i = 0; i < RUNTIME_DIRS; i++) {
		int error = for_each(dir_fds[i], pid, fn, ctx);

		if (first_error == 0)
			first_error = error;
	}
	return first_error;
}

static int say_unlooked(int error)
{
	say_error("cannot look for locks in '%s': %s", runtime_path(), strerror(error));
	return EXIT_SYSTEM;
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
		bool is_nearest =
			search->exact == NULL || steps < search->exact_distance ||
			(steps == search->exact_distance && file->had_ms >= search->exact->had_ms);

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
	int dir_fds[RUNTIME_DIRS], error;

	*code_out = runtime_open_existing(dir_fds);
	error = for_each_in(dir_fds, pid, consider, &search);
	if (error != 0)
		*code_out = say_unlooked(error);
	if (search.exact == NULL)
		*near_out = search.near;
	else
		hold_file_free(search.near);
	return search.exact;
}

int hold_file_is_outside_run(const struct hold_file *file, const char *run_hold_id, bool *out)
{
	enum proc_sight sight =
		file != NULL ? proc_carries_hold(file->pid, run_hold_id) : PROC_GONE;

	if (sight == PROC_UNSEEN) {
		say_error("cannot look at process %d: %s", (int)file->pid, strerror(errno));
		return EXIT_SYSTEM;
	}
	*out = sight == PROC_GONE;
	return 0;
}

void hold_file_say_near(const struct hold_file *near, const struct rlock_name *names,
			size_t name_count, const char *server, const char *verb)
{
	bool is_elsewhere = strcmp(near->server, server) != 0;
	char asked[NAMES_SHOWN_MAX];
	struct usage_line line;

	usage_begin(&line, verb);
	if (is_elsewhere) {
		usage_add_plain(&line, "--url");
		usage_add(&line, &near->server, 1);
	}
	usage_add_names(&line, near->names, near->name_count);
	say_error("%s: %s: %s", names_show(names, name_count, asked),
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

	(void)steps; /* at most one of them holds a lock: the order is for nobody */
	for (size_t i = 0; i < file->name_count; i++)
		if (is_among(&file->names[i], list->names, list->name_count))
			owners_add(list->owners, list->count, file->owners[i],
				   strlen(file->owners[i]));
	hold_file_free(file);
}

int hold_file_owners(pid_t pid, const struct rlock_name *names, size_t name_count, char ***owners,
		     size_t *count)
{
	struct owner_list list = { names, name_count, owners, count };
	/* Who runs a command needs no such directory, sound or not. */
	int dir_fds[RUNTIME_DIRS];
	int unopened = runtime_open_all_quietly(dir_fds);
	int error = for_each_in(dir_fds, pid, collect_owner, &list);

	if (error == 0)
		error = unopened;
	/* Who has the lock and does not know it would wait for himself. */
	return error != 0 ? say_unlooked(error) : 0;
}
