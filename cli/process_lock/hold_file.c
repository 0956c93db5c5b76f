/*
 * Write, read and find hold files. The file of a hold is "hold-PID-START-HOLDID", with lines "KEY VALUE". runtime_dir.c
 * knows the directory, hold_entry.c the format of a lock's line. A file is written again only if its hold is lost, a
 * release failed, its descriptor was closed, a fixed lease was renewed, or a cleaner removed the file.
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
#include <time.h>
#include <unistd.h>

#include "base/choice.h"
#include "base/message.h"
#include "base/units.h"
#include "lib/base/array.h"
#include "options/opts.h"
#include "options/usage.h"
#include "process_lock/hold_file.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"

#define FILE_PREFIX "hold-"
#define NEW_PREFIX "new-" /* start of the name of a file that is being written */
#define FILE_NAME_MAX 128
#define FILE_SIZE_MAX (1 << 19)
#define TIME_MAX_MS (INT64_MAX / 4)
#define STATE_NUMBERS 10 /* how many numbers follow the key "state" */
/*
 * A file that is being written is removed at this age. Writing takes milliseconds, so its writer must have been killed.
 */
#define NEW_MAX_S 3600
/*
 * Key of the first line, which has the writer's boot id and namespaces. Other machines and containers may share the
 * directory: if the line differs from ours, the file's pids and times mean nothing here.
 */
#define PLACE_KEY "place "
#define PLACE_MAX 128
#define FILE_ID_KEY "file" /* key of the line about the file that a descriptor has open */
/*
 * How long to wait for another unlock. Its request lasts at most DELIVERY_MS (finish.h), 5 s, so it should have ended
 * before.
 */
#define CLAIM_MS 10000
#define CLAIM_LOOK_MS 10

/* ---- one file ---- */

static struct hold_file *make_empty(void)
{
	struct hold_file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	file->purpose = RLOCK_PURPOSE_PROCESS;
	file->dir_fd = file->claim_fd = file->descriptor = -1;
	return file;
}

struct hold_file *hold_file_new(pid_t pid, uint64_t start)
{
	struct hold_file *file = make_empty();

	if (file == NULL) {
		(void)message_out_of_memory();
		return NULL;
	}
	file->pid = pid;
	file->start = start;
	file->note = "";
	file->dir_fd = runtime_dir_open(true);
	if (file->dir_fd >= 0)
		return file;
	hold_file_free(file);
	return NULL;
}

void hold_file_free(struct hold_file *file)
{
	struct hold_file *next;

	for (; file != NULL; file = next) {
		next = file->next;
		free(file->names);
		free(file->owners);
		free(file->text);
		if (file->dir_fd >= 0)
			(void)close(file->dir_fd);
		if (file->claim_fd >= 0)
			(void)close(file->claim_fd);
		free(file);
	}
}

bool hold_file_add_name(struct hold_file *file, const struct rlock_name *name, const char *owner)
{
	struct rlock_name *names = array_room(file->names, file->name_count, sizeof(*names));
	const char **owners = array_room(file->owners, file->name_count, sizeof(*owners));

	if (names != NULL)
		file->names = names;
	if (owners != NULL)
		file->owners = owners;
	if (names == NULL || owners == NULL)
		return false;
	names[file->name_count] = *name;
	owners[file->name_count++] = owner;
	return true;
}

static void name_of(const struct hold_file *file, char out[FILE_NAME_MAX])
{
	(void)snprintf(out, FILE_NAME_MAX, FILE_PREFIX "%d-%" PRIu64 "-%s", (int)file->pid,
		       file->start, file->hold_id);
}

/* Read pid, start and hold_id from a file's name. False: it is not the name of a hold file. */
static bool parse_name(const char *name, struct hold_file *out)
{
	int64_t pid, start;

	if (strncmp(name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
		return false;
	name += strlen(FILE_PREFIX);
	if (!number_read(&name, &pid) || *name++ != '-' || !number_read(&name, &start) ||
	    *name++ != '-' || pid <= 0 || pid > INT_MAX || start < 0 ||
	    !rlock_hold_id_is_valid(name))
		return false;
	out->pid = (pid_t)pid;
	out->start = (uint64_t)start;
	memcpy(out->hold_id, name, RLOCK_HOLD_ID_MAX);
	return true;
}

/* ---- write ---- */

/* Print the first line, with the ids of our boot and our namespaces. False with errno: /proc cannot show them now. */
static bool print_place(char out[PLACE_MAX])
{
	const struct os_scope *place = os_scope();

	if (place != NULL)
		(void)snprintf(out, PLACE_MAX, PLACE_KEY "%s %" PRIu64 " %" PRIu64, place->boot,
			       place->pids, place->times);
	return place != NULL;
}

static void print_lines(FILE *out, const struct hold_file *file, const char *place)
{
	char note[3 * RLOCK_NOTE_MAX];

	(void)rlock_percent_encode(file->note, strlen(file->note), ":/ ", note, sizeof(note));
	(void)fprintf(out,
		      "%s\nstate %d %" PRIu64 " %" PRId64 " %" PRId64 " %d %" PRId64
		      " %d %d %d %d\nnote %s\n",
		      place, (int)file->renewer, file->renewer_start, file->sent_ms,
		      file->acquired_ms, file->descriptor, file->remember_ms, file->is_fixed_lease,
		      file->reads_requests, file->is_lost, file->is_abandoned, note);
	if (file->descriptor >= 0)
		(void)fprintf(out, FILE_ID_KEY " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n",
			      file->file.device, file->file.inode, file->file.born_ns);
	for (size_t i = 0; i < file->name_count; i++) {
		(void)fputs("held ", out);
		hold_entry_write(out, &(struct hold_entry){ .server = file->server,
							    .kind = file->kind,
							    .name = file->names[i],
							    .owner = file->owners[i],
							    .hold_id = file->hold_id,
							    .lease_ms = file->lease_ms,
							    .pid = file->pid,
							    .start = file->start });
		(void)fputc('\n', out);
	}
}

/*
 * Write a new file, and rename it to the name of the old one. So a reader sees the old or the new content, never a
 * part.
 */
static bool replace_file(const struct hold_file *file)
{
	char new_name[FILE_NAME_MAX], name[FILE_NAME_MAX], place[PLACE_MAX];
	FILE *out = NULL;
	bool is_written = false;
	int fd;

	if (!print_place(place))
		return false;
	name_of(file, name);
	(void)snprintf(new_name, sizeof(new_name), NEW_PREFIX "%d-%s", (int)getpid(),
		       file->hold_id);
	fd = runtime_dir_create(file->dir_fd, new_name, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return false;
	out = fdopen(fd, "w");
	if (out == NULL) {
		(void)close(fd);
	} else {
		print_lines(out, file, place);
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

	if (replace_file(file))
		return 0;
	name_of(file, name);
	message_error_of_lock("cannot write '%s/%s': %s", runtime_dir_path_of(file->dir_fd), name,
			      strerror(errno));
	return EXIT_SYSTEM;
}

void hold_file_remove(const struct hold_file *file)
{
	char name[FILE_NAME_MAX];

	name_of(file, name);
	(void)unlinkat(file->dir_fd, name, 0);
}

void hold_file_mark_abandoned(struct hold_file *file, bool was_held)
{
	file->is_abandoned = file->is_abandoned || was_held;
	/* Ignore a failure. At worst a later call reports the lock as lost, although our request has released it. */
	(void)replace_file(file);
}

void hold_file_mark_lost(struct hold_file *file)
{
	file->is_lost = true;
	/*
	 * Ignore a failure, for example a full disk: without this note, an unlock learns of the loss from the server.
	 */
	(void)replace_file(file);
}

void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms)
{
	char name[FILE_NAME_MAX];
	int dir_fd;

	file->sent_ms = sent_ms;
	file->lease_ms = lease_ms;
	name_of(file, name);
	if (utimensat(file->dir_fd, name, NULL, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    replace_file(file) || errno != ENOENT)
		return;
	/* The whole directory was removed, so make it again. */
	dir_fd = runtime_dir_open(true);
	if (dir_fd < 0)
		return;
	(void)close(file->dir_fd);
	file->dir_fd = dir_fd;
	(void)replace_file(file);
}

/* ---- read ---- */

/* Returns the text of a file, malloc'ed; NULL with errno. */
static char *read_text(int dir_fd, const char *name)
{
	struct stat stat;
	size_t len;
	char *text =
		file_read_all(openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
			      FILE_SIZE_MAX, 0, &stat, &len);

	/*
	 * Trust only regular files of this user. Another user may have put a file here before the directory had mode
	 * 0700.
	 */
	if (text == NULL || (S_ISREG(stat.st_mode) && stat.st_uid == geteuid()))
		return text;
	free(text);
	errno = EPERM;
	return NULL;
}

/* Add the lock of an entry to the file. All entries of a file have the same kind, lease and server. */
static bool add_entry(struct hold_file *file, const struct hold_entry *held)
{
	file->kind = held->kind;
	file->lease_ms = held->lease_ms;
	file->server = held->server;
	return held->lease_ms <= TIME_MAX_MS && hold_file_add_name(file, &held->name, held->owner);
}

/*
 * Read the numbers of the line "state", in the order of print_lines. False: the line is wrong. Refuse numbers beyond
 * TIME_MAX_MS: rlock writes none, and sums of two times below it cannot overflow.
 */
static bool read_state(struct hold_file *file, const char *value)
{
	int64_t numbers[STATE_NUMBERS];
	const int64_t *next = numbers;

	for (int i = 0; i < STATE_NUMBERS; i++)
		if (!number_read(&value, &numbers[i]) || numbers[i] < -TIME_MAX_MS ||
		    numbers[i] > TIME_MAX_MS)
			return false;
	file->renewer = (pid_t)*next++;
	file->renewer_start = (uint64_t)*next++;
	file->sent_ms = *next++;
	file->acquired_ms = *next++;
	file->descriptor = (int)*next++;
	file->remember_ms = *next++;
	file->is_fixed_lease = *next++ != 0;
	file->reads_requests = *next++ != 0;
	file->is_lost = *next++ != 0;
	file->is_abandoned = *next++ != 0;
	return *value == '\0' && numbers[0] >= 0 && file->renewer == numbers[0] &&
	       numbers[1] >= 0 && file->descriptor == numbers[4];
}

static bool read_file_id(struct file_id *out, const char *value)
{
	uint64_t *const parts[] = { &out->device, &out->inode, &out->born_ns };
	char *end;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++, value = end) {
		errno = 0;
		*parts[i] = strtoull(value, &end, 16);
		if (errno != 0 || end == value)
			return false;
	}
	return *value == '\0';
}

/* Decode the note in place. False: it is malformed or too long. */
static bool read_note(struct hold_file *file, char *value)
{
	long len = rlock_percent_decode(value, strlen(value));

	file->note = value;
	return len >= 0 && len < RLOCK_NOTE_MAX;
}

static bool read_line(struct hold_file *file, char *line)
{
	char *value = strchr(line, ' ');
	struct hold_entry held;

	if (value == NULL)
		return false;
	*value++ = '\0';
	if (strcmp(line, "held") == 0)
		return hold_entry_parse(value, &held) && add_entry(file, &held);
	if (strcmp(line, FILE_ID_KEY) == 0)
		return read_file_id(&file->file, value);
	if (strcmp(line, "note") == 0)
		return read_note(file, value);
	/* Ignore other keys, which a later version may add. */
	return strcmp(line, "state") != 0 || read_state(file, value);
}

/*
 * Read all lines of file->text. False with errno. ESTALE: another machine or container wrote the file. 0: the file is
 * incomplete, or rlock did not write it. Another errno: memory is short, or /proc cannot show our own boot id and
 * namespaces now.
 */
static bool read_lines(struct hold_file *file)
{
	char *rest, *line = strtok_r(file->text, "\n", &rest), place[PLACE_MAX];

	if (!print_place(place))
		return false;
	/*
	 * Reset errno: if the content is wrong, it stays 0. A lack of memory sets it, and then the caller does not
	 * remove the file as wrong.
	 */
	errno = 0;
	if (line == NULL || strncmp(line, PLACE_KEY, strlen(PLACE_KEY)) != 0)
		return false;
	if (strcmp(line, place) != 0) {
		errno = ESTALE;
		return false;
	}
	while ((line = strtok_r(NULL, "\n", &rest)) != NULL)
		if (!read_line(file, line))
			return false;
	return file->name_count > 0 && file->note != NULL;
}

/*
 * Read a file. NULL with the errno of read_text or read_lines. The errno is 0 also if name is not the name of a hold
 * file.
 */
static struct hold_file *read_file(int dir_fd, const char *name)
{
	struct hold_file *file = make_empty();
	int error;

	if (file == NULL)
		return NULL;
	errno = 0;
	if (parse_name(name, file))
		file->text = read_text(dir_fd, name);
	if (file->text != NULL && read_lines(file))
		file->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (file->dir_fd >= 0)
		return file;
	error = errno;
	hold_file_free(file);
	errno = error;
	return NULL;
}

struct hold_file *hold_file_read_again(const struct hold_file *file)
{
	char name[FILE_NAME_MAX];

	name_of(file, name);
	return read_file(file->dir_fd, name);
}

/* ---- a process and its ancestors ---- */

struct ancestors {
	struct proc *chain; /* the process, its parent, and so on; the caller frees it */
	size_t count;
};

/*
 * Read pid and its ancestors into out->chain. Returns 0; or errno: out of memory, or /proc cannot show a process now.
 */
static int read_ancestors(struct ancestors *out, pid_t pid)
{
	uint64_t child_start = UINT64_MAX;
	struct proc proc, *longer;

	while (pid > 0) {
		enum proc_lookup lookup = proc_find(pid, &proc);

		if (lookup == PROC_UNSEEN)
			return errno;
		/*
		 * Stop at a parent that is younger than its child: the parent has ended, and another process has got its
		 * pid.
		 */
		if (lookup == PROC_GONE || proc.start > child_start)
			break;
		longer = array_room(out->chain, out->count, sizeof(*longer));
		if (longer == NULL)
			return ENOMEM;
		out->chain = longer;
		out->chain[out->count++] = proc;
		pid = proc.parent;
		child_start = proc.start;
	}
	return 0;
}

/*
 * The number of generations from the first process of the chain up to pid; 0: pid is that process. -1: pid is not in
 * the chain.
 */
static int distance(const struct ancestors *ancestors, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < ancestors->count; i++)
		if (ancestors->chain[i].pid == pid && ancestors->chain[i].start == start)
			return (int)i;
	return -1;
}

/* ---- the holds of a process and of those above it ---- */

struct search {
	pid_t pid;
	struct ancestors ancestors; /* ancestors of pid; empty: not read yet */
	struct hold_file *first;    /* list of the hold files that were found */
};

/*
 * If the file is a hold of pid or an ancestor, add it to the search. If it is out of date, remove it. Returns 0, or
 * errno: the file cannot be read now.
 */
static int visit(struct search *search, int dir_fd, const char *name)
{
	struct hold_file named, *file;
	int steps, error = 0;
	struct stat st;

	/*
	 * Remove a file that still has the prefix of a new file, and is old. It is incomplete: its writer was killed
	 * before the rename.
	 */
	if (strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) == 0 &&
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_mtime < time(NULL) - NEW_MAX_S)
		(void)unlinkat(dir_fd, name, 0);
	if (!parse_name(name, &named))
		return 0;
	/*
	 * If the process in the file's name does not run here now, remove the file, unless another machine or container
	 * wrote it.
	 */
	if (proc_has_ended(named.pid, named.start)) {
		file = read_file(dir_fd, name);
		if (file != NULL || (errno != ESTALE && !is_transient_errno(errno)))
			(void)unlinkat(dir_fd, name, 0);
		hold_file_free(file);
		return 0;
	}
	if (search->ancestors.count == 0)
		error = read_ancestors(&search->ancestors, search->pid);
	steps = distance(&search->ancestors, named.pid, named.start);
	if (error != 0 || steps < 0)
		return error;
	file = read_file(dir_fd, name);
	if (file == NULL)
		return is_transient_errno(errno) ? errno : 0;
	file->steps = steps;
	file->next = search->first;
	search->first = file;
	return 0;
}

/*
 * Visit the files of a directory, and close dir_fd. Returns 0, or errno: a file could not be read now, and the search
 * ended there.
 */
static int search_directory(struct search *search, int dir_fd)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *entry = NULL;
	int error = 0;

	if (dir == NULL) {
		error = errno;
		(void)close(dir_fd);
		return error;
	}
	do {
		errno = 0;
		entry = readdir(dir);
		error = entry != NULL ? visit(search, dir_fd, entry->d_name) : errno;
	} while (entry != NULL && error == 0);
	(void)closedir(dir);
	return error;
}

/*
 * List all holds of pid and its ancestors. *code_out is 0, or the exit code after one line by message_error: a
 * directory cannot be used, or a file could not be read.
 */
static struct hold_file *find_all(pid_t pid, bool is_directory_needed, int *code_out)
{
	struct search search = { .pid = pid };
	int dir_fds[RUNTIME_DIR_COUNT], error = 0;

	*code_out = runtime_dir_open_all(is_directory_needed, dir_fds);
	for (size_t i = 0; *code_out == 0 && i < RUNTIME_DIR_COUNT; i++) {
		int failed = dir_fds[i] >= 0 ? search_directory(&search, dir_fds[i]) : 0;

		error = error != 0 ? error : failed;
	}
	free(search.ancestors.chain);
	if (error != 0) {
		message_error_of_lock("cannot look for locks in '%s': %s", runtime_dir_path(),
				      strerror(error));
		*code_out = EXIT_SYSTEM;
	}
	return search.first;
}

static bool is_nearer(const struct hold_file *file, const struct hold_file *than)
{
	return than == NULL || file->steps < than->steps ||
	       (file->steps == than->steps && file->acquired_ms >= than->acquired_ms);
}

/*
 * The number of generations from pid up to the renewer of an `rlock run`; -1: the renewer is no ancestor. If /proc does
 * not show the renewer, it may have been killed, or be in another PID namespace. Then compare start times: descendants
 * of its command are younger than the renewer, and processes above it are older. Compare pids if both were started in
 * the same hundredth of a second.
 */
static int run_distance(const struct ancestors *ancestors, pid_t pid, const struct hold_entry *run)
{
	int steps = distance(ancestors, run->pid, run->start);
	size_t i = 0;

	if (steps >= 0 || pid != getpid())
		return steps;
	while (i < ancestors->count &&
	       (ancestors->chain[i].start > run->start ||
		(ancestors->chain[i].start == run->start && ancestors->chain[i].pid > run->pid)))
		i++;
	return (int)i;
}

/*
 * Find the hold of an `rlock run` above pid, by our own RLOCK_HELD. NULL: there is none, or *code_out is the exit code after one line by
 * message_error.
 */
static struct hold_file *find_run(pid_t pid, const struct rlock_name *name, const char *server,
				  enum rlock_kind mode, int *code_out)
{
	const char *value = getenv(INHERITED_VARIABLE);
	struct hold_file *run = value != NULL ? make_empty() : NULL;
	struct ancestors ancestors = { 0 };
	struct hold_entry held;
	int error;

	if (run == NULL)
		return NULL;
	run->text = strdup(value);
	if (run->text == NULL || !inherited_find(run->text, server, name, mode, &held) ||
	    !add_entry(run, &held))
		goto none;
	memcpy(run->hold_id, held.hold_id, RLOCK_HOLD_ID_MAX);
	run->purpose = RLOCK_PURPOSE_COMMAND;
	/*
	 * With the latest possible time, this hold is preferred to that of a file whose process is as many generations
	 * above pid.
	 */
	run->acquired_ms = INT64_MAX;
	error = read_ancestors(&ancestors, pid);
	run->steps = run_distance(&ancestors, pid, &held);
	free(ancestors.chain);
	if (error == 0 && run->steps >= 0)
		return run;
	if (error != 0) {
		message_error_of_lock("cannot look at the processes above process %d: %s", (int)pid,
				      strerror(error));
		*code_out = EXIT_SYSTEM;
	}
none:
	hold_file_free(run);
	return NULL;
}

/* The number of names in the file that are among these names. */
static size_t count_common(const struct hold_file *file, const struct rlock_name *names,
			   size_t name_count)
{
	size_t common = 0;

	for (size_t i = 0; i < file->name_count; i++)
		common += hold_entry_is_among(&file->names[i], names, name_count) ? 1 : 0;
	return common;
}

#define COMPARED_MAX 33 /* longer names are similar to none */

/* Whether the file has a name that the user may have mistyped. */
static bool has_similar_name(const struct hold_file *file, const struct rlock_name *name)
{
	char typed[COMPARED_MAX], other[COMPARED_MAX];
	struct nearest nearest = { .typed = typed };

	(void)snprintf(typed, sizeof(typed), "%.*s", (int)name->len, name->text);
	for (size_t i = 0; i < file->name_count && name->len < COMPARED_MAX; i++)
		if (file->names[i].len < COMPARED_MAX) {
			(void)snprintf(other, sizeof(other), "%.*s", (int)file->names[i].len,
				       file->names[i].text);
			nearest_try(&nearest, other);
		}
	return nearest.word != NULL;
}

struct hold_file *hold_file_find(pid_t pid, const struct rlock_name *names, size_t name_count,
				 const char *server, enum rlock_kind mode,
				 struct hold_file **near_out, int *code_out)
{
	struct hold_file *file = find_all(pid, true, code_out), *next, *run = NULL;
	struct hold_file *exact = NULL, *near = NULL, **place;

	for (; file != NULL; file = next) {
		size_t common = count_common(file, names, name_count);

		next = file->next;
		file->next = NULL;
		place = NULL;
		if (common == name_count && common == file->name_count &&
		    strcmp(file->server, server) == 0)
			place = rlock_kind_is(file->kind, mode) && is_nearer(file, exact) ? &exact
											  : NULL;
		else if (common > 0 || (near == NULL && has_similar_name(file, &names[0])))
			place = &near;
		hold_file_free(place != NULL ? *place : file);
		if (place != NULL)
			*place = file;
	}
	if (*code_out == 0)
		run = find_run(pid, &names[0], server, mode, code_out);
	if (run != NULL && is_nearer(run, exact)) {
		hold_file_free(exact);
		exact = run;
	} else {
		hold_file_free(run);
	}
	*near_out = exact == NULL ? near : NULL;
	if (exact != NULL)
		hold_file_free(near);
	return exact;
}

struct hold_file *hold_file_find_of_descriptor(const struct descriptor *descriptor,
					       const char *server, int *code_out)
{
	struct hold_file *first = find_all(descriptor->owner, false, code_out), **link = &first;
	struct hold_file *file;

	while ((file = *link) != NULL) {
		if (file->steps == 0 && file->descriptor == descriptor->fd &&
		    file_id_is_same(&file->file, &descriptor->file) && file->name_count == 1 &&
		    strcmp(file->server, server) == 0) {
			link = &file->next;
			continue;
		}
		*link = file->next;
		file->next = NULL;
		hold_file_free(file);
	}
	return first;
}

int hold_file_find_owners(pid_t pid, const struct rlock_name *names, size_t name_count,
			  char ***owners, size_t *count)
{
	int code;

	/*
	 * Ignore a directory that cannot be used, since `rlock run` does not need one. But fail if a file cannot be
	 * read now: without the owner in it, the process would wait for a lock that it holds itself. If there are
	 * several owners, the server decides which of them holds the lock.
	 */
	struct hold_file *first = find_all(pid, false, &code);

	for (const struct hold_file *file = first; file != NULL; file = file->next)
		for (size_t i = 0; i < file->name_count; i++)
			if (hold_entry_is_among(&file->names[i], names, name_count))
				owners_add(owners, count, file->owners[i]);
	hold_file_free(first);
	return code;
}

int hold_file_report_near(const struct hold_file *near, const struct rlock_name *names,
			  size_t name_count, const char *server, const char *verb, pid_t pid)
{
	bool is_elsewhere = strcmp(near->server, server) != 0;
	bool is_similar = count_common(near, names, name_count) == 0;
	char wanted[NAMES_SHOWN_MAX], process[32], *near_server = (char *)near->server;
	struct usage_line line;

	(void)snprintf(process, sizeof(process), "--pid %d", (int)pid);
	usage_line(&line, PLAIN("rlock"), PLAIN(verb),
		   { is_elsewhere ? "--url" : NULL, &near_server, is_elsewhere ? 1 : 0 },
		   PLAIN(pid != 0 ? process : NULL));
	usage_line_add_names(&line, near->names, near->name_count);
	message_error("%s: %s; try: %s", names_show(names, name_count, wanted),
		      is_similar     ? "not held, but a lock with a similar name is"
		      : is_elsewhere ? "held on another server"
				     : "was locked together with others",
		      line.text);
	/* If near has one of the names on this server, only the command line is wrong. */
	return is_similar || is_elsewhere ? EXIT_NOT_HELD : EXIT_USAGE;
}

/*
 * ---- claims: only one unlock at a time acts on a hold, since a second one would report the hold that the first
 * released as lost. A renewal writes the file only with a claim, so that a file that an unlock has removed does not return ----
 */

/*
 * Lock the file against other claims, until end_ms at the latest. False: another process has locked it for too long, for example
 * because it is stopped. On a file system without locks the result is true, although nothing excludes other claims.
 */
static bool lock_file(int fd, int64_t end_ms)
{
	while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
		if (rlock_now_ms() >= end_ms)
			return false;
		(void)poll(NULL, 0, CLAIM_LOOK_MS);
	}
	return true;
}

/* Report by errno why the file cannot be used. Returns the exit code. */
static int report_unreadable(const char *verb, int dir_fd, const char *name)
{
	message_error_of_lock("cannot %s '%s/%s': %s", verb, runtime_dir_path_of(dir_fd), name,
			      strerror(errno));
	return EXIT_SYSTEM;
}

/*
 * Open the file of this name, and lock it. flock locks the file, not its name: if another process has replaced the file
 * meanwhile, open the new one. -1 with *code_out as hold_file_claim sets it.
 */
static int open_locked(int dir_fd, const char *name, int *code_out)
{
	int64_t end_ms = rlock_now_ms() + CLAIM_MS;
	int fd;

	*code_out = 0;
	while ((fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) >= 0) {
		bool is_locked = lock_file(fd, end_ms);

		if (is_locked && file_is_named(fd, dir_fd, name))
			return fd;
		(void)close(fd);
		if (is_locked)
			continue;
		message_error_of_lock("another unlock or renew of this lock has not ended within "
				      "%d s; try again, or terminate it",
				      CLAIM_MS / 1000);
		*code_out = EXIT_SYSTEM;
		return -1;
	}
	if (errno != ENOENT)
		*code_out = report_unreadable("open", dir_fd, name);
	return -1;
}

struct hold_file *hold_file_claim(const struct hold_file *file, int *code_out)
{
	struct hold_file *claimed;
	char name[FILE_NAME_MAX];
	int fd;

	name_of(file, name);
	fd = open_locked(file->dir_fd, name, code_out);
	if (fd < 0)
		return NULL;
	claimed = hold_file_read_again(file);
	if (claimed != NULL) {
		claimed->claim_fd = fd;
		return claimed;
	}
	/* 0, ERANGE and ESTALE: it was replaced by a file that is wrong, or of another machine. So this hold was released. */
	if (errno != ENOENT && errno != 0 && errno != ERANGE && errno != ESTALE)
		*code_out = report_unreadable("read", file->dir_fd, name);
	(void)close(fd);
	return NULL;
}
