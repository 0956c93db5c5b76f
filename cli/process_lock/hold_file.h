/*
 * The hold file of a lock without a command: which process the lock is for, and what its release needs, but never a
 * password. By it the process, and those below it, find their hold; or by RLOCK_HELD that of an `rlock run` above them.
 */
#ifndef HOLD_FILE_H
#define HOLD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "process_lock/descriptor.h"
#include "process_lock/held.h"

struct hold_file {
	/*
	 * RLOCK_PURPOSE_PROCESS; or RLOCK_PURPOSE_COMMAND: of an `rlock run`, found by RLOCK_HELD. That hold has no file, and one
	 * name; its note, and when it was acquired and renewed, are not known.
	 */
	enum rlock_purpose purpose;
	int dir_fd;     /* the runtime directory */
	pid_t pid;      /* the process that the lock is for */
	uint64_t start; /* when that process started */
	struct rlock_name *names;
	const char **owners; /* one for each name */
	size_t name_count;
	enum rlock_kind kind;
	char hold_id[RLOCK_HOLD_ID_MAX];
	const char *server;
	const char *note; /* of the hold; NULL: not known */
	char *text; /* of a file that was read: names, owners, server and note point into it; NULL: into others' memory */
	int64_t sent_ms, lease_ms;
	int64_t acquired_ms;
	int64_t remember_ms; /* --remember; 0: not at all */
	bool is_fixed_lease;
	bool reads_requests; /* as in the record of the hold: struct rlock_record */
	bool is_lost;
	bool is_abandoned; /* a release failed while the lock was surely held: the server may have carried it out */
	int descriptor; /* of that process, for which the lock is; -1: for all of the process */
	struct file_id file; /* that the descriptor was open on when it was locked */
	pid_t renewer;
	uint64_t renewer_start;
	int claim_fd; /* of hold_file_claim; -1: not claimed */

	/* Of a search alone. */
	int steps; /* how far pid is above the process whose holds were looked for; 0: it is that process */
	struct hold_file *next;
};

/*
 * A file for a lock of that process, yet to be filled and saved: what can fail about its directory fails here. NULL
 * after one line by message_error, with EXIT_SYSTEM.
 */
struct hold_file *hold_file_new(pid_t pid, uint64_t start);
/* All of a list. */
void hold_file_free(struct hold_file *file);

/* Append a name with its owner, which are not copied. False when out of memory. */
bool hold_file_add_name(struct hold_file *file, const struct rlock_name *name, const char *owner);

/* Write the file, or replace it. 0, or the exit code after one line by message_error. */
int hold_file_save(const struct hold_file *file);

void hold_file_remove(const struct hold_file *file);
/* A release failed, which the caller may try again; the server may have carried it out. A failure is not reported. */
void hold_file_mark_abandoned(struct hold_file *file, bool was_held);

/* ---- for the renewer ---- */

/*
 * Make the file as young as this renewal, since cleaners of /tmp remove old files, and write it again if it was
 * removed. A failure is not reported.
 */
void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms);
/* The same file as it is now, for hold_file_free; NULL when it cannot be read. */
struct hold_file *hold_file_read_again(const struct hold_file *file);
void hold_file_mark_lost(struct hold_file *file);

/* ---- searches, each of which removes the files of processes that have ended ---- */

/*
 * The hold that pid, or else the nearest process above it, has on exactly these names on that server, or by `rlock run` on
 * the first of them; the most recent one of several. NULL when there is none: *near_out is then a hold that comes close
 * (on other names as well, or on another server), else NULL. The caller frees either. *code_out is 0, or the exit code
 * when, after one line by message_error, the runtime directory is unfit to be used, or could not be searched.
 */
struct hold_file *hold_file_find(pid_t pid, const struct rlock_name *names, size_t name_count,
				 const char *server, enum rlock_kind mode,
				 struct hold_file **near_out, int *code_out);

/*
 * The holds that the descriptor's owner itself has for it on that server, a list by next, which the caller frees. Their
 * name is the path that the file had when it was locked. *code_out as above.
 */
struct hold_file *hold_file_find_of_descriptor(const struct descriptor *descriptor,
					       const char *server, int *code_out);

/* Say in one line by message_error what near is, and which command line to write instead. pid: of --pid; 0: none. */
void hold_file_report_near(const struct hold_file *near, const struct rlock_name *names,
			   size_t name_count, const char *server, const char *verb, pid_t pid);

/*
 * Append the owners by which pid and those above it hold any of the names, in no order. 0, or the exit code after one
 * line by message_error.
 */
int hold_file_find_owners(pid_t pid, const struct rlock_name *names, size_t name_count,
			  char ***owners, size_t *count);

/*
 * The same file as it is now, and until its hold_file_free no other unlock releases this hold. NULL when another unlock
 * has released it meanwhile, or has tried to: then the caller has to look for the hold again; or with *code_out, the exit
 * code after one line by message_error, else 0. The renewer, which writes the file as well, must have ended.
 */
struct hold_file *hold_file_claim(const struct hold_file *file, int *code_out);

#endif
