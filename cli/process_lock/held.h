/*
 * How a hold is written down, in RLOCK_HELD and in hold files: a word for each lock,
 * SERVER/KIND/NAME/OWNER/HOLDID/LEASE_MS/PID:START, each part percent-encoded. In RLOCK_HELD are the inherited holds,
 * which `rlock run` acquired for this process or for one above it, the latest last.
 */
#ifndef HELD_H
#define HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "sys/proc.h"

/* One word. What it points to belongs to others: of a word that was read, to that. */
struct held {
	const char *server;
	enum rlock_kind kind;
	struct rlock_name name;
	const char *owner;
	const char *hold_id;
	int64_t lease_ms;
	pid_t pid; /* in RLOCK_HELD the parent of the command, else the process that the lock is for */
	uint64_t start;
};

/* Errors are out's: ferror. */
void held_write(FILE *out, const struct held *held);
/* Decodes the word in place. False for one that rlock did not write. */
bool held_read(char *word, struct held *out);
bool held_is_hold_id(const char *text);
bool held_is_among(const struct rlock_name *name, const struct rlock_name *names, size_t count);

/* ---- RLOCK_HELD ---- */

/*
 * The value to pass on to a command, by its parent, which started at start: old (may be NULL) with one more word for each name of hold. Where it
 * would be too long for exec, holds that are over are left out. It is malloc'ed; NULL when out of memory.
 */
char *inherited_extend(const char *old, const char *server, enum rlock_kind kind,
		       const struct rlock_name *names, size_t name_count,
		       const struct rlock_hold *hold, uint64_t start);

/* The next two take a copy of the value, and decode its words in place. */

/* Append the owners under which value says that any of the names is held, the most recent first. */
void inherited_owners(char *value, const struct rlock_name *names, size_t name_count,
		      char ***owners, size_t *count);
/* The most recent hold on name on server that value tells of and that fits mode; false when there is none. */
bool inherited_find(char *value, const char *server, const struct rlock_name *name,
		    enum rlock_kind mode, struct held *out);

/* ---- owners, each once: a malloc'ed array of malloc'ed strings ---- */

/* Append a copy of owner, unless owners contains it already. Out of memory, it is left out. */
void owners_add(char ***owners, size_t *count, const char *owner);
void owners_free(char **owners, size_t count);

#endif
