/*
 * The file of a lock without a command: whose the lock is, and how to release it. Where such files are looked for is in
 * hold_file_find.h, who may release by one in hold_file_claim.h.
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
	pid_t pid;              /* the process that the lock belongs to */
	uint64_t start;         /* and when that process started */
	uint64_t pid_namespace; /* in which pid and renewer are numbers; 0: not known */
	struct rlock_name *names;
	char **owners; /* one a name */
	size_t name_count;
	enum rlock_kind kind;
	char hold_id[RLOCK_HOLD_ID_MAX];
	char *server;
	int64_t sent_ms, lease_ms;
	int64_t had_ms;
	bool is_fixed_lease;
	bool is_lost;
	bool is_given_up; /* an unlock was sent, and not answered */
	pid_t renewer;
	uint64_t renewer_start;
	int claim_fd; /* of hold_file_claim; -1: not claimed */
};

void hold_file_free(struct hold_file *file);

/* Append a name with its owner; both are copied. False when out of memory. */
bool hold_file_add_name(struct hold_file *file, const char *name, size_t name_len,
			const char *owner);

/* Write it, or write it anew. 0, or the exit code after one line by say_error. */
int hold_file_save(const struct hold_file *file);

void hold_file_remove(const struct hold_file *file);

/* What it is called in its directory. */
void hold_file_name(const struct hold_file *file, char out[HOLD_FILE_NAME_MAX]);

/* Whose file that is, by its name: pid, start and hold_id are set. False when it is none of ours. */
bool hold_file_parse_name(const char *name, struct hold_file *out);

/* The same of one that has not got its name yet: who writes it. */
bool hold_file_parse_new_name(const char *name, uint64_t *pid_namespace_out, pid_t *pid_out);

/* NULL when the file is not one of ours, or not whole; or, by errno, when it can't be read now. */
struct hold_file *hold_file_read(int dir_fd, const char *name);

/* ---- for the renewer; file may be NULL in hold_file_dir_fd ---- */

int hold_file_dir_fd(const struct hold_file *file);
/* The file is no older than this, and there: cleaners of /tmp go by age. Without a word. */
void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms);
bool hold_file_reload(const struct hold_file *file, int64_t *sent_ms, int64_t *lease_ms);
void hold_file_mark_lost(struct hold_file *file);

#endif
