/*
 * The hold files of a process and of those above it. Looking for one removes those of processes that have ended.
 */
#ifndef HOLD_FILE_FIND_H
#define HOLD_FILE_FIND_H

#include "process_lock/hold_file.h"

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

/* One line by say_error: what near is, and what to write instead. */
void hold_file_find_say_near(const struct hold_file *near, const struct rlock_name *names,
			     size_t name_count, const char *server, const char *verb);

/*
 * The owners by which pid and those above it hold any of the names, in no order: appended to owners, a
 * malloc'ed array of malloc'ed strings. 0, or the exit code after one line by say_error.
 */
int hold_file_find_owners(pid_t pid, const struct rlock_name *names, size_t name_count,
			  char ***owners, size_t *count);

#endif
