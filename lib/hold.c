/*
 * A hold: one acquisition, as an object.
 * Each request about it is in a file of its name: acquire.c, renew.c, release.c, find.c, break.c.
 */
#include <stdlib.h>
#include <string.h>

#include "hold.h"
#include "kinds.h"
#include "rlock.h"
#include "routes.h"

void rlock_hold_free(struct rlock_hold *hold)
{
	if (hold == NULL)
		return;
	if (hold->names != NULL)
		for (size_t i = 0; i < hold->name_count; i++)
			free((char *)hold->names[i].text);
	free(hold->names);
	free(hold->acquired);
	free(hold);
}

enum rlock_status rlock_hold_new(enum rlock_kind kind, const struct rlock_name *names,
				 size_t name_count, const char *id, int64_t sent_ms,
				 int64_t lease_ms, struct rlock_hold **out)
{
	const struct rlock__kind *row = rlock__kind(kind);
	struct rlock_hold *hold;

	if (row == NULL || name_count == 0 || strlen(id) >= RLOCK_HOLD_ID_MAX)
		return RLOCK_EINVAL;
	hold = calloc(1, sizeof(*hold));
	if (hold == NULL)
		return RLOCK_ENOMEM;
	hold->kind = kind;
	hold->row = row;
	hold->sent_ms = sent_ms;
	hold->lease_ms = lease_ms;
	memcpy(hold->id, id, strlen(id) + 1);
	hold->names = calloc(name_count, sizeof(*hold->names));
	hold->acquired = calloc(name_count, sizeof(*hold->acquired));
	if (hold->names == NULL || hold->acquired == NULL)
		goto no_memory;
	for (size_t i = 0; i < name_count; i++) {
		char *text = malloc(names[i].len + 1);

		if (text == NULL)
			goto no_memory;
		memcpy(text, names[i].text, names[i].len);
		text[names[i].len] = '\0';
		hold->names[i] = (struct rlock_name){ text, names[i].len };
		hold->name_count++;
	}
	*out = hold;
	return RLOCK_OK;
no_memory:
	rlock_hold_free(hold);
	return RLOCK_ENOMEM;
}

const char *rlock_hold_id(const struct rlock_hold *hold)
{
	return hold->id;
}

const char *rlock_hold_owner(const struct rlock_hold *hold, size_t index)
{
	return hold->acquired[index].owner;
}

int64_t rlock_hold_count(const struct rlock_hold *hold, size_t index)
{
	return hold->acquired[index].count;
}

int64_t rlock_hold_token(const struct rlock_hold *hold, size_t index)
{
	return hold->acquired[index].token;
}

int64_t rlock_hold_sent_ms(const struct rlock_hold *hold)
{
	return hold->sent_ms;
}

void rlock_hold_set_sent_ms(struct rlock_hold *hold, int64_t sent_ms)
{
	hold->sent_ms = sent_ms;
}

static enum rlock_status copy_owner(char out[RLOCK_OWNER_MAX], const char *owner)
{
	const char *why;
	enum rlock_status status = rlock_owner_check(owner, &why);

	if (status == RLOCK_OK)
		memcpy(out, owner, strlen(owner) + 1);
	return status;
}

enum rlock_status rlock_hold_set_owner(struct rlock_hold *hold, size_t index, const char *owner)
{
	return copy_owner(hold->acquired[index].owner, owner);
}

enum rlock_status rlock_hold_set_queued(struct rlock_hold *hold, const char *owner)
{
	return copy_owner(hold->queued_owner, owner);
}

int64_t rlock_hold_lease_ms(const struct rlock_hold *hold)
{
	return hold->lease_ms;
}

int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold)
{
	return hold->ttl_ms;
}

enum rlock_status rlock__hold_routes(const struct rlock_hold *hold, struct rlock_conn *conn,
				     struct rlock__routes *out)
{
	return rlock__routes_init(out, conn, hold->names, hold->name_count);
}
