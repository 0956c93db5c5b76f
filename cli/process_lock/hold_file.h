/*
 * The file of a lock without a command, in the runtime directory: whose the lock is, and how to release it.
 */
#ifndef HOLD_FILE_H
#define HOLD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"

struct hold_file {
	int dir_fd;             /* the runtime directory */
	pid_t pid;              /* whom the lock belongs to */
	uint64_t start;         /* and when that process started */
	uint64_t pid_namespace; /* where numbers of processes are these; 0: not known */
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
	int claim_fd; /* -1: not claimed */
};

void hold_file_free(struct hold_file *file);

/* Append a name with its owner; both are copied. False when out of memory. */
bool hold_file_add_name(struct hold_file *file, const char *name, size_t name_len,
			const char *owner);

/* Write it, or write it anew. 0, or the exit code after one line by say_error. */
int hold_file_save(const struct hold_file *file);

void hold_file_remove(const struct hold_file *file);

/*
 * Keep others from giving this hold back, until hold_file_free, and read again how it stands. *is_ours_out is false when
 * one of them did so, or tried to, meanwhile: then the hold has to be looked for again. 0, or the exit code after one
 * line by say_error. The renewer, which writes the file as well, must have ended.
 */
int hold_file_claim(struct hold_file *file, bool *is_ours_out);

/*
 * The hold that pid, or else the nearest process above it, has on exactly these names on that
 * server; of several the most recent one. NULL when there is none: *near_out is then one that comes
 * close (on other names as well, or on another server), or NULL. The caller frees either. *code_out is
 * 0, or the exit code when, after one line by say_error, the runtime directory is not fit to be used, or
 * could not be looked through.
 */
struct hold_file *hold_file_find(pid_t pid, const struct rlock_name *names, size_t name_count,
				 const char *server, enum rlock_kind mode,
				 struct hold_file **near_out, int *code_out);

/*
 * Whether `rlock run` holds the lock nearer to us than file (may be NULL) does: the process of a
 * hold file that was made inside the run was given the run's hold in its environment. 0, or the exit code
 * when, after one line by say_error, that can't be told.
 */
int hold_file_is_outside_run(const struct hold_file *file, const char *run_hold_id, bool *out);

/* One line by say_error: what near is, and what to write instead. */
void hold_file_say_near(const struct hold_file *near, const struct rlock_name *names,
			size_t name_count, const char *server, const char *verb);

/*
 * The owners by which pid and those above it hold any of the names, nearest first: owners is a
 * malloc'ed array of malloc'ed strings. 0, or the exit code after one line by say_error.
 */
int hold_file_owners(pid_t pid, const struct rlock_name *names, size_t name_count, char ***owners,
		     size_t *count);

/* ---- for the renewer; file may be NULL in hold_file_dir_fd ---- */

int hold_file_dir_fd(const struct hold_file *file);
/* The file is no older than this, and there: cleaners of /tmp go by age. Without a word. */
void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms);
bool hold_file_reload(const struct hold_file *file, int64_t *sent_ms, int64_t *lease_ms);
void hold_file_mark_lost(struct hold_file *file);

#endif
