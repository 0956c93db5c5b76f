/*
 * A set of hashes. Its seed is random, so that no text can be made to pass for another one.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "base/seen.h"
#include "base/text.h"

#define CAPACITY_FIRST 1024

/* Where the hash is, or the empty place for it. */
static uint64_t *place_of(uint64_t *hashes, size_t capacity, uint64_t value)
{
	size_t at = (size_t)value & (capacity - 1);

	while (hashes[at] != 0 && hashes[at] != value)
		at = (at + 1) & (capacity - 1);
	return &hashes[at];
}

static bool grow(struct rlock__seen *seen)
{
	size_t capacity = seen->capacity == 0 ? CAPACITY_FIRST : seen->capacity * 2;
	uint64_t *hashes = calloc(capacity, sizeof(*hashes));

	if (hashes == NULL)
		return false;
	/* Without random bytes it works as well, for texts that are not made to hurt it. */
	if (seen->capacity == 0)
		(void)!getrandom(&seen->seed, sizeof(seen->seed), GRND_NONBLOCK);
	for (size_t i = 0; i < seen->capacity; i++)
		if (seen->hashes[i] != 0)
			*place_of(hashes, capacity, seen->hashes[i]) = seen->hashes[i];
	free(seen->hashes);
	seen->hashes = hashes;
	seen->capacity = capacity;
	return true;
}

bool rlock__seen_add(struct rlock__seen *seen, const char *text, size_t len, bool *is_new_out)
{
	uint64_t value, *place;

	if (seen->count * 2 >= seen->capacity && !grow(seen))
		return false;
	value = rlock__hash(seen->seed, text, len);
	place = place_of(seen->hashes, seen->capacity, value);
	*is_new_out = *place == 0;
	seen->count += *place == 0;
	*place = value;
	return true;
}

void rlock__seen_free(struct rlock__seen *seen)
{
	free(seen->hashes);
	*seen = (struct rlock__seen){ 0 };
}
