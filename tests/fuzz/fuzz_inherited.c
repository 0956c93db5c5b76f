/*
 * cli/process_lock/hold_entry.c: RLOCK_HELD can have any content, since every caller can set it. Accepted entries must be well formed, and an
 * entry that rlock appends must be found again.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "process_lock/hold_entry.h"

#define ID "0123456789abcdef0123456789abcdef"
#define SERVER "redis://127.0.0.1:6379/0"

static const struct rlock_name name = { "job", 3 };

/* Read all entries of value. The reader changes value; copy contains the original. */
static void check_read(char *value, char *copy)
{
	char **owners = NULL;
	size_t count = 0;
	struct hold_entry found;

	inherited_owners(value, &name, 1, &owners, &count);
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(owners[i]);

		ALWAYS(len > 0 && len < RLOCK_OWNER_MAX && strpbrk(owners[i], " \n") == NULL);
	}
	owners_free(owners, count);
	if (inherited_find(copy, SERVER, &name, RLOCK_ANY, &found))
		ALWAYS(found.lease_ms > 0 && strlen(found.hold_id) < RLOCK_HOLD_ID_MAX &&
		       found.hold_id[0] != '\0' && rlock_kind_name(found.kind) != NULL);
}

static void check_written(const char *value)
{
	const struct hold_entry held = { SERVER, RLOCK_READ, name, "a:1", ID, 30000, 4711, 88122 };
	struct hold_entry found;
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);

	ALWAYS(out != NULL && fprintf(out, "%s ", value) > 0);
	hold_entry_write(out, &held);
	ALWAYS(fclose(out) == 0);
	ALWAYS(inherited_find(written, SERVER, &name, RLOCK_ANY, &found));
	ALWAYS(found.kind == RLOCK_READ && found.lease_ms == 30000 &&
	       strcmp(found.hold_id, ID) == 0 && found.pid == 4711 && found.start == 88122);
	free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *value = fuzz_text(data, size), *copy = fuzz_text(data, size);

	check_written(value);
	check_read(value, copy);
	free(copy);
	free(value);
	return 0;
}
