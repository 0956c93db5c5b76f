/*
 * The hold file of a lock without a command. It names the process that the lock is for, and has all that a release needs,
 * but no password. The process and its descendants find their hold by this file. They find the hold of an `rlock run` above
 * them by RLOCK_HELD.
 */
#ifndef HOLD_FILE_H
#define HOLD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "process_lock/descriptor.h"
#include "process_lock/hold_entry.h"

struct hold_file {
	/*
	 * RLOCK_PURPOSE_PROCESS: a hold with a file. RLOCK_PURPOSE_COMMAND: the hold of an `rlock run`, found by
	 * RLOCK_HELD. It has no file and one name. Its note, and the times of its acquisition and renewal, are not known.
	 */
	enum rlock_purpose purpose;
	int dir_fd;     /* descriptor of the runtime directory */
	pid_t pid;      /* the process that the lock is for */
	uint64_t start; /* when that process started */
	struct rlock_name *names;
	const char **owners; /* one for each name */
	size_t name_count;
	enum rlock_kind kind;
	char hold_id[RLOCK_HOLD_ID_MAX];
	const char *server;
	const char *note; /* note of the hold; NULL: not known */
	/* Content of a file that was read: names, owners, server and note point into it. NULL: they point into the caller's memory. */
	char *text;
	int64_t sent_ms, lease_ms;
	int64_t acquired_ms;
	int64_t remember_ms; /* from --remember; 0: the server does not remember the hold */
	bool is_fixed_lease;
	bool reads_requests; /* as in struct rlock_record */
	bool is_lost;
	/*
	 * The server may have released the hold without our knowledge: a release failed while the lock was certainly held, or the
	 * renewer of a closed descriptor is about to send one.
	 */
	bool is_abandoned;
	/* descriptor of the process that the lock is for; -1: the lock is for the process itself */
	int descriptor;
	struct file_id file; /* the file that the descriptor had open when it was locked */
	pid_t renewer;
	uint64_t renewer_start;
	int claim_fd; /* descriptor from hold_file_claim; -1: the hold is not claimed */

	/* Only in results of a search. */
	int steps; /* generations from the process of the search up to pid; 0: pid is that process */
	struct hold_file *next;
};

/*
 * Begin a file for a lock of that process; the caller fills and saves it. The directory is opened here, so that a failure comes before
 * the lock is acquired. NULL after one line by message_error: exit with EXIT_SYSTEM.
 */
struct hold_file *hold_file_new(pid_t pid, uint64_t start);
/* Free a file and all that follow it by next. */
void hold_file_free(struct hold_file *file);

/* Append a name with its owner; neither is copied. False: out of memory. */
bool hold_file_add_name(struct hold_file *file, const struct rlock_name *name, const char *owner);

/* Write the file, or replace it. Returns 0, or the exit code after one line by message_error. */
int hold_file_save(const struct hold_file *file);

void hold_file_remove(const struct hold_file *file);
/*
 * Record that the server may have carried out a release, although no reply to it came. So a later unlock does not
 * report the missing hold as lost. was_held: the lock was certainly held when the release was sent; if not, the record
 * stays as it was. An error here is not reported.
 */
void hold_file_mark_abandoned(struct hold_file *file, bool was_held);

/* ---- for the renewer ---- */

/*
 * Set the file's time to now, because cleaners of /tmp remove old files. If the file was removed, write it again. An
 * error is not reported.
 */
void hold_file_touch(struct hold_file *file, int64_t sent_ms, int64_t lease_ms);
/* Read the file again; free the result with hold_file_free. NULL: it cannot be read. */
struct hold_file *hold_file_read_again(const struct hold_file *file);
void hold_file_mark_lost(struct hold_file *file);

/* ---- searches: each also removes the files of processes that have ended ---- */

/*
 * Find the hold that pid, or else its nearest ancestor, has on exactly these names on that server. A hold of an `rlock
 * run` counts if it is on the first name. If there are several such holds, return the most recent. NULL: there is none.
 * *near_out is then NULL, or a hold of pid or an ancestor that has some of the names, but also others, not all, or
 * another server; or a name that is similar to the first one. The caller frees both. *code_out is 0, or the exit code after one line by message_error: the runtime
 * directory cannot be used or searched.
 */
struct hold_file *hold_file_find(pid_t pid, const struct rlock_name *names, size_t name_count,
				 const char *server, enum rlock_kind mode,
				 struct hold_file **near_out, int *code_out);

/*
 * Find the holds that the descriptor's owner has for this descriptor on that server. Returns a list by next, which the
 * caller frees. The name of each hold is the path that the file had when it was locked. *code_out is set as by
 * hold_file_find.
 */
struct hold_file *hold_file_find_of_descriptor(const struct descriptor *descriptor,
					       const char *server, int *code_out);

/*
 * Report in one line by message_error what near is, and which command line to type instead. pid is that of --pid; 0: none. Returns
 * the exit code.
 */
int hold_file_report_near(const struct hold_file *near, const struct rlock_name *names,
			  size_t name_count, const char *server, const char *verb, pid_t pid);

/*
 * Append the owners of all holds that pid and its ancestors have on any of the names, in no particular order. Returns
 * 0, or the exit code after one line by message_error.
 */
int hold_file_find_owners(pid_t pid, const struct rlock_name *names, size_t name_count,
			  char ***owners, size_t *count);

/*
 * Lock the file and read it again, so that no other unlock releases this hold until hold_file_free of the result. An unlock ends
 * the renewer before the call, since it writes the file as well. Returns NULL with *code_out 0 if the file was removed, because
 * another unlock has released the hold. NULL with another *code_out: the exit code after one line by message_error.
 */
struct hold_file *hold_file_claim(const struct hold_file *file, int *code_out);

#endif
