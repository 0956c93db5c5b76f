/*
 * The hold file of a lock without a command: which process the lock is for, and what its release needs.
 * hold_file_find.h looks for such files, and hold_file_claim.h decides which unlock may release by one.
 */
#ifndef HOLD_FILE_H
#define HOLD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"

#define HOLD_FILE_NAME_MAX 128

struct hold_file {
	int dir_fd;             /* the runtime directory */
	pid_t pid;              /* the process that the lock is for */
	uint64_t start;         /* when that process started */
	uint64_t pid_namespace; /* that of pid and renewer; 0: unknown */
	struct rlock_name *names;
	char **owners; /* one for each name */
	size_t name_count;
	enum rlock_kind kind;
	char hold_id[RLOCK_HOLD_ID_MAX];
	char *server;
	int64_t sent_ms, lease_ms;
	int64_t acquired_ms;
	bool is_fixed_lease;
	bool is_lost;
	bool is_abandoned; /* a release failed while the lock was surely held: the server may have carried it out */
	pid_t renewer;
	uint64_t renewer_start;
	int claim_fd; /* of hold_file_claim; -1: not claimed */
};

void hold_file_free(struct hold_file *file);

/* Append a name with its owner; both are copied. False when out of memory. */
bool hold_file_add_name(struct hold_file *file, const char *name, size_t name_len,
			const char *owner);

/* Write the file, or replace it. 0, or the exit code after one line by message_error. */
int hold_file_save(const struct hold_file *file);

void hold_file_remove(const struct hold_file *file);

/* The name of the file in its directory. */
void hold_file_name(const struct hold_file *file, char out[HOLD_FILE_NAME_MAX]);

/* Read pid, start and hold_id from the name of a file. False when the name is not that of a hold file. */
bool hold_file_parse_name(const char *name, struct hold_file *out);

/* Read from the name of a half-written file which process writes it. False when the name is not that of such a file. */
bool hold_file_parse_new_name(const char *name, uint64_t *pid_namespace_out, pid_t *pid_out);

/* NULL when the file is no hold file of ours or is incomplete, or, as errno says, when it cannot be read now. */
struct hold_file *hold_file_read(int dir_fd, const char *name);

/* ---- for the renewer; file may be NULL in hold_file_dir_fd ---- */

int hold_file_dir_fd(const struct hold_file *file);
/*
 * Make the file as young as this renewal, since cleaners of /tmp remove old files, and write it again if it was
 * removed. A failure is not reported.
 */
void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms);
bool hold_file_reload(const struct hold_file *file, int64_t *sent_ms, int64_t *lease_ms);
void hold_file_mark_lost(struct hold_file *file);

#endif
