/*
 * cli/process_lock/hold_file.c: the file of a lock without a command. The first line of the input is the file's name; an empty line, or
 * a line with a slash, means a name that fits this process. The rest is the content of the file, after the line that says where it was written. A file that is accepted is
 * written again, and must read as the same.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process_lock/hold_file.h"
#include "sys/proc.h"

#include "fuzz.h"

#define ID "0123456789abcdef0123456789abcdef"
#define SERVER "redis://127.0.0.1:6379/0"

static const struct rlock_name job = { "job", 3 };

static struct proc self;
static char good_name[96];
/* The first line of a hold file that was written here. */
static char place[256];

/* Save a hold file, and read its first line into place: it says where the file was written. */
static void prepare(void)
{
	struct hold_file *file;
	FILE *saved;

	fuzz_enter_directory();
	ALWAYS(proc_read(getpid(), &self) &&
	       setenv("RLOCK_RUNTIME_DIR", getcwd(place, sizeof(place)), 1) == 0);
	(void)snprintf(good_name, sizeof(good_name), "hold-%d-%" PRIu64 "-" ID, (int)self.pid,
		       self.start);
	file = hold_file_new(self.pid, self.start);
	ALWAYS(file != NULL);
	memcpy(file->hold_id, ID, sizeof(ID));
	ALWAYS(hold_file_save(file) == 0);
	saved = fopen(good_name, "re");
	ALWAYS(saved != NULL && fgets(place, sizeof(place), saved) != NULL);
	ALWAYS(strncmp(place, "place ", strlen("place ")) == 0);
	(void)fclose(saved);
	hold_file_remove(file);
	hold_file_free(file);
}

static void check_same(const struct hold_file *file, const struct hold_file *again)
{
	struct hold_file *now = hold_file_read_again(file);

	ALWAYS(again->name_count == file->name_count && again->kind == file->kind);
	ALWAYS(strcmp(again->server, file->server) == 0 && strcmp(again->note, file->note) == 0);
	for (size_t i = 0; i < file->name_count; i++) {
		ALWAYS(again->names[i].len == file->names[i].len);
		ALWAYS(memcmp(again->names[i].text, file->names[i].text, file->names[i].len) == 0);
		ALWAYS(strcmp(again->owners[i], file->owners[i]) == 0);
	}
	ALWAYS(again->acquired_ms == file->acquired_ms && again->renewer == file->renewer &&
	       again->renewer_start == file->renewer_start);
	ALWAYS(again->is_lost == file->is_lost && again->is_abandoned == file->is_abandoned &&
	       again->is_fixed_lease == file->is_fixed_lease &&
	       again->reads_requests == file->reads_requests);
	ALWAYS(again->descriptor == file->descriptor &&
	       (file->descriptor < 0 ||
		memcmp(&again->file, &file->file, sizeof(file->file)) == 0));
	ALWAYS(now != NULL && now->sent_ms == file->sent_ms && now->lease_ms == file->lease_ms);
	hold_file_free(now);
}

/* Check a hold file that was accepted, write it again, and compare the two. Frees file; NULL: none was accepted. */
static void check_hold_file(struct hold_file *file)
{
	struct hold_file *again, *near = NULL;
	const char *why;
	int code;

	if (file == NULL)
		return;
	for (size_t i = 0; i < file->name_count; i++) {
		ALWAYS(rlock_name_check(&file->names[i], &why) == RLOCK_OK);
		ALWAYS(file->owners[i][0] != '\0' && strlen(file->owners[i]) < RLOCK_OWNER_MAX);
	}
	hold_file_report_near(file, &job, 1, SERVER, "unlock", 0);
	ALWAYS(hold_file_save(file) == 0);
	again = hold_file_find(self.pid, file->names, file->name_count, file->server, RLOCK_ANY,
			       &near, &code);
	ALWAYS(again != NULL && near == NULL);
	check_same(file, again);
	hold_file_mark_lost(again);
	hold_file_free(again);
	hold_file_remove(file);
	hold_file_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hold_file *near = NULL;
	char *line, **owners = NULL;
	const char *name;
	size_t count = 0;
	FILE *out;
	int code;

	if (place[0] == '\0')
		prepare();
	line = fuzz_line(&data, &size);
	name = line[0] == '\0' || strchr(line, '/') != NULL ? good_name : line;
	out = fopen(name, "we");
	if (out != NULL) {
		ALWAYS(fputs(place, out) >= 0 && fwrite(data, 1, size, out) == size &&
		       fclose(out) == 0);
		hold_file_find_owners(self.pid, &job, 1, &owners, &count);
		while (count > 0)
			free(owners[--count]);
		free(owners);
		check_hold_file(hold_file_find(self.pid, &job, 1, SERVER, RLOCK_ANY, &near, &code));
		ALWAYS(code == 0);
		check_hold_file(near);
		(void)unlink(name);
	}
	free(line);
	return 0;
}
