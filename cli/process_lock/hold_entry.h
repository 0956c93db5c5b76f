/*
 * The format of a hold in RLOCK_HELD and in hold files: one word for each name, SERVER/KIND/NAME/OWNER/HOLDID/LEASE_MS/PID:START, each
 * part percent-encoded. RLOCK_HELD lists the inherited holds, which `rlock run` acquired for this process or an ancestor; the latest
 * comes last.
 */
#ifndef HOLD_ENTRY_H
#define HOLD_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "sys/proc.h"

/* One word. The pointers belong to the caller; after hold_entry_parse they point into the word. */
struct hold_entry {
	const char *server;
	enum rlock_kind kind;
	struct rlock_name name;
	const char *owner;
	const char *hold_id;
	int64_t lease_ms;
	/*
	 * in RLOCK_HELD: the renewer, which is the command's parent; in a hold file: the process that the lock is for
	 */
	pid_t pid;
	uint64_t start;
};

/* Write an entry as one word. Check for errors by ferror(out). */
void hold_entry_write(FILE *out, const struct hold_entry *entry);
/* Decode a word in place. False: rlock did not write it. */
bool hold_entry_parse(char *word, struct hold_entry *out);
bool hold_entry_is_among(const struct rlock_name *name, const struct rlock_name *names,
			 size_t count);

/* ---- RLOCK_HELD ---- */

/*
 * Make the RLOCK_HELD of a command: old (may be NULL) with one more word for each name of hold. The caller must be the
 * command's parent; start: when the caller was started. If the value is too long for exec, omit holds that have ended.
 * Returns a malloc'ed text. NULL: out of memory.
 */
char *inherited_extend(const char *old, const char *server, enum rlock_kind kind,
		       const struct rlock_name *names, size_t name_count,
		       const struct rlock_hold *hold, uint64_t start);

/* The next two functions decode the words in place: pass a copy of the value. */

/* Append the owners of all holds in value that are on any of the names, the most recent first. */
void inherited_owners(char *value, const struct rlock_name *names, size_t name_count,
		      char ***owners, size_t *count);
/*
 * Find in value the most recent hold on name, on that server and of the kind mode (RLOCK_ANY: of any kind). False:
 * there is none.
 */
bool inherited_find(char *value, const char *server, const struct rlock_name *name,
		    enum rlock_kind mode, struct hold_entry *out);

/* ---- owners: a malloc'ed array of malloc'ed strings, which contains each owner once ---- */

/* Append a copy of owner, unless owners contains it already. Out of memory: owner is not appended. */
void owners_add(char ***owners, size_t *count, const char *owner);
void owners_free(char **owners, size_t count);

#endif
