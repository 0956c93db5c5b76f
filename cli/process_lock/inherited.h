/*
 * RLOCK_HELD: the inherited holds of this process, which `rlock run` acquired for it or for a process above it. There
 * is one word for each lock: SERVER/KIND/NAME/OWNER/HOLDID/LEASE_MS, each part percent-encoded.
 */
#ifndef INHERITED_H
#define INHERITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"
#include "sys/proc.h"

/*
 * The value to pass on to a command: old (may be NULL) with one more word for each name of hold. It is malloc'ed; NULL
 * when out of memory.
 */
char *inherited_extend(const char *old, const char *server, enum rlock_kind kind,
		       const struct rlock_name *names, size_t name_count,
		       const struct rlock_hold *hold);

/*
 * A copy of value without the holds on server that are over, as is_over says, and without words that are no hold. The
 * oldest words are left out first, and no more of them than it takes to be max bytes long. The copy is malloc'ed; NULL
 * when out of memory.
 */
typedef bool (*inherited_is_over_fn)(void *ctx, const struct rlock_name *name, const char *owner);
char *inherited_prune(const char *value, const char *server, size_t max,
		      inherited_is_over_fn is_over, void *ctx);

/*
 * Append the owners under which value says that name is held, the most recent first, to a malloc'ed array of malloc'ed
 * strings. Malformed words are ignored: rlock did not write them.
 */
void inherited_owners(const char *value, const struct rlock_name *name, char ***owners,
		      size_t *count);

/* The most recent hold on name on server that value tells of and that fits mode; false when there is none. */
struct inherited {
	enum rlock_kind kind;
	char hold_id[RLOCK_HOLD_ID_MAX];
	int64_t lease_ms;
};
bool inherited_find(const char *value, const char *server, const struct rlock_name *name,
		    enum rlock_kind mode, struct inherited *out);

#endif
