/*
 * Finds the hold files of a process and of those above it that are on given names. Each search removes the files of
 * processes that have ended.
 */
#ifndef HOLD_FILE_FIND_H
#define HOLD_FILE_FIND_H

#include "process_lock/hold_file.h"

/*
 * The hold that pid, or else the nearest process above it, has on exactly these names on that server; the most recent
 * one of several. NULL when there is none: *near_out is then a hold that comes close (on other names as well, or on
 * another server), or NULL. The caller frees either. *code_out is 0, or the exit code when, after one line by
 * message_error, the runtime directory is unfit to be used, or could not be searched.
 */
struct hold_file *hold_file_find(pid_t pid, const struct rlock_name *names, size_t name_count,
				 const char *server, enum rlock_kind mode,
				 struct hold_file **near_out, int *code_out);

/* Say in one line by message_error what near is, and which command line to write instead. pid: of --pid; 0: none. */
void hold_file_find_report_near(const struct hold_file *near, const struct rlock_name *names,
				size_t name_count, const char *server, const char *verb, pid_t pid);

/*
 * Append the owners by which pid and those above it hold any of the names, in no order, to owners, a malloc'ed array of
 * malloc'ed strings. 0, or the exit code after one line by message_error.
 */
int hold_file_find_owners(pid_t pid, const struct rlock_name *names, size_t name_count,
			  char ***owners, size_t *count);

#endif
