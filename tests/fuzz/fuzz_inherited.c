/*
 * cli/process_lock/held.c: RLOCK_HELD may hold anything, since any caller can set it. What is taken from there is
 * well formed, and the word that rlock appends is found again.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "process_lock/held.h"

#define ID "0123456789abcdef0123456789abcdef"
#define SERVER "redis://127.0.0.1:6379/0"

static const struct rlock_name name = { "job", 3 };

static void check_owners(const char *value)
{
	char **owners = NULL;
	size_t count = 0;
	char *copy = strdup(value);

	ALWAYS(copy != NULL);
	inherited_owners(copy, &name, 1, &owners, &count);
	free(copy);
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(owners[i]);

		ALWAYS(len > 0 && len < RLOCK_OWNER_MAX && strpbrk(owners[i], " \n") == NULL);
	}
	owners_free(owners, count);
}

static void check_found(const char *value)
{
	char *copy = strdup(value);
	struct held found;

	ALWAYS(copy != NULL);
	if (inherited_find(copy, SERVER, &name, RLOCK_ANY, &found))
		ALWAYS(found.lease_ms > 0 && strlen(found.hold_id) < RLOCK_HOLD_ID_MAX &&
		       found.hold_id[0] != '\0' && rlock_kind_name(found.kind) != NULL);
	free(copy);
}

/* The hold has no owner, as none was acquired: its word is written, but is no hold's. */
static void check_extended(const char *value)
{
	struct rlock_hold *hold = NULL;
	char *extended;

	ALWAYS(rlock_hold_new(RLOCK_READ, &name, 1, ID, 0, 30000, &hold) == RLOCK_OK);
	extended = inherited_extend(value, SERVER, RLOCK_READ, &name, 1, hold, 88122);
	ALWAYS(extended != NULL && strncmp(extended, value, strlen(value)) == 0);
	ALWAYS(strstr(extended + strlen(value), "/read/job//" ID "/30000/") != NULL);
	free(extended);
	rlock_hold_free(hold);
}

static void check_written(const char *value)
{
	const struct held held = { SERVER, RLOCK_READ, name, "a:1", ID, 30000, 4711, 88122 };
	struct held found;
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);

	ALWAYS(out != NULL && fprintf(out, "%s ", value) > 0);
	held_write(out, &held);
	ALWAYS(fclose(out) == 0);
	ALWAYS(inherited_find(written, SERVER, &name, RLOCK_ANY, &found));
	ALWAYS(found.kind == RLOCK_READ && found.lease_ms == 30000 &&
	       strcmp(found.hold_id, ID) == 0 && found.pid == 4711 && found.start == 88122);
	free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *value = fuzz_text(data, size);

	check_owners(value);
	check_found(value);
	check_extended(value);
	check_written(value);
	free(value);
	return 0;
}
