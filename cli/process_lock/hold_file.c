/*
 * The format of a hold file: each hold has one, "hold-PID-START-HOLDID", with lines "key value". The file says which
 * process the lock is for and how to release it, but never a password. hold_file_walk.c removes the files of processes
 * that have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/number.h"
#include "base/message.h"
#include "process_lock/hold_file.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"

#define FILE_PREFIX "hold-"
/* The file is named "new-NAMESPACE-PID-HOLDID" while it is written. */
#define NEW_PREFIX "new-"
#define FILE_SIZE_MAX (1 << 18)
#define TIME_MAX_MS (INT64_MAX / 4)

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

void hold_file_name(const struct hold_file *file, char out[HOLD_FILE_NAME_MAX])
{
	(void)snprintf(out, HOLD_FILE_NAME_MAX, FILE_PREFIX "%d-%" PRIu64 "-%s", (int)file->pid,
		       file->start, file->hold_id);
}

/* ---- write ---- */

static int report_unwritable(const struct hold_file *file, const char *name)
{
	int error = errno;

	message_error("cannot write '%s/%s': %s", runtime_dir_path_of(file->dir_fd), name,
		      strerror(error));
	return EXIT_SYSTEM;
}

static void print_lines(FILE *out, const struct hold_file *file)
{
	char encoded[3 * RLOCK_NAME_MAX + 1];

	(void)fprintf(out, "server %s\nkind %s\npid_namespace %" PRIu64 "\n", file->server,
		      rlock_kind_name(file->kind), file->pid_namespace);
	(void)fprintf(out, "sent_ms %" PRId64 "\nlease_ms %" PRId64 "\nacquired_ms %" PRId64 "\n",
		      file->sent_ms, file->lease_ms, file->acquired_ms);
	(void)fprintf(out, "fixed %d\nlost %d\ngiven_up %d\nrenewer %d %" PRIu64 "\n",
		      file->is_fixed_lease, file->is_lost, file->is_abandoned, (int)file->renewer,
		      file->renewer_start);
	for (size_t i = 0; i < file->name_count; i++) {
		(void)rlock_percent_encode(file->names[i].text, file->names[i].len, "", encoded,
					   sizeof(encoded));
		(void)fprintf(out, "name %s %s\n", encoded, file->owners[i]);
	}
}

/* Puts a new file in the old one's place, so that a reader sees either the one or the other whole. */
static bool replace_file(const struct hold_file *file, const char *name)
{
	char new_name[HOLD_FILE_NAME_MAX + 48];
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
	char name[HOLD_FILE_NAME_MAX];

	hold_file_name(file, name);
	return replace_file(file, name) ? 0 : report_unwritable(file, name);
}

void hold_file_remove(const struct hold_file *file)
{
	char name[HOLD_FILE_NAME_MAX];

	hold_file_name(file, name);
	(void)unlinkat(file->dir_fd, name, 0);
}

void hold_file_mark_lost(struct hold_file *file)
{
	char name[HOLD_FILE_NAME_MAX];

	file->is_lost = true;
	hold_file_name(file, name);
	/* If this fails, since the disk is full, say, an unlock still learns from the server that the lock was lost. */
	(void)replace_file(file, name);
}

void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms)
{
	char name[HOLD_FILE_NAME_MAX];
	int dir_fd;

	file->sent_ms = sent_ms;
	file->lease_ms = lease_ms;
	hold_file_name(file, name);
	if (utimensat(file->dir_fd, name, NULL, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    replace_file(file, name) || errno != ENOENT)
		return;
	/* The directory was removed, too. */
	dir_fd = runtime_dir_open_for_holds();
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

/* The text of a file, malloc'ed; NULL with errno. */
static char *read_text(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), error;
	struct stat stat;
	char *text = NULL;
	size_t len;

	if (fd < 0)
		return NULL;
	/* Another user may have put the file here before the directory was closed to others. */
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid() &&
	    stat.st_size <= FILE_SIZE_MAX)
		text = file_read_fd(fd, (size_t)stat.st_size, &len);
	error = errno;
	(void)close(fd);
	errno = error;
	return text;
}

/* The value is "NAME OWNER", with the name percent-encoded. */
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

/* rlock writes no time beyond TIME_MAX_MS, and sums of times within it do not overflow. */
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

/* The value is "PID START". */
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
	if (strcmp(line, "acquired_ms") == 0)
		return read_ms(value, &file->acquired_ms);
	if (strcmp(line, "pid_namespace") == 0)
		return read_inode(value, &file->pid_namespace);
	if (strcmp(line, "renewer") == 0)
		return read_process(value, &file->renewer, &file->renewer_start);
	if (strcmp(line, "fixed") == 0)
		file->is_fixed_lease = value[0] == '1';
	else if (strcmp(line, "lost") == 0)
		file->is_lost = value[0] == '1';
	else if (strcmp(line, "given_up") == 0)
		file->is_abandoned = value[0] == '1';
	return true; /* keys that a later version adds are ignored */
}

static bool is_whole(const struct hold_file *file)
{
	return file->server != NULL && file->name_count > 0 && file->lease_ms > 0;
}

bool hold_file_parse_name(const char *name, struct hold_file *out)
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

bool hold_file_parse_new_name(const char *name, uint64_t *pid_namespace_out, pid_t *pid_out)
{
	int64_t pid, pid_namespace;

	if (strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
		return false;
	name += strlen(NEW_PREFIX);
	if (!number_read(&name, &pid_namespace) || *name++ != '-' || !number_read(&name, &pid) ||
	    *name != '-' || pid <= 0 || pid > INT_MAX || pid_namespace <= 0)
		return false;
	*pid_namespace_out = (uint64_t)pid_namespace;
	*pid_out = (pid_t)pid;
	return true;
}

struct hold_file *hold_file_read(int dir_fd, const char *name)
{
	struct hold_file *file = calloc(1, sizeof(*file)), *result = NULL;
	char *text = NULL, *rest;
	int error;

	if (file == NULL)
		return NULL;
	file->dir_fd = file->claim_fd = -1;
	errno = 0;
	if (!hold_file_parse_name(name, file))
		goto out;
	text = read_text(dir_fd, name);
	if (text == NULL)
		goto out;
	/* Bad content leaves no transient errno; lack of memory does, and then the file is not taken for bad. */
	errno = 0;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		if (!read_line(file, line))
			goto out;
	if (!is_whole(file))
		goto out;
	file->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (file->dir_fd >= 0)
		result = file;
out:
	error = errno;
	free(text);
	if (result == NULL)
		hold_file_free(file);
	errno = error;
	return result;
}

bool hold_file_reload(const struct hold_file *file, int64_t *sent_ms, int64_t *lease_ms)
{
	char name[HOLD_FILE_NAME_MAX];
	struct hold_file *read;

	hold_file_name(file, name);
	read = hold_file_read(file->dir_fd, name);
	if (read == NULL)
		return false;
	*sent_ms = read->sent_ms;
	*lease_ms = read->lease_ms;
	hold_file_free(read);
	return true;
}
