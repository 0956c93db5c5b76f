/*
 * A hold as an object, and what the requests about it have in common.
 * Each request is in a file of its name: acquire.c, renew.c, release.c, find.c, break.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "broadcast.h"
#include "base/clock.h"
#include "base/error.h"
#include "conn.h"
#include "hold.h"
#include "net/connection.h"
#include "redis/kind.h"
#include "rlock.h"
#include "route.h"

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000

/* ---- the object ---- */

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

enum rlock_status rlock_hold_set_acquired(struct rlock_hold *hold, const char *owner,
					  int64_t sent_ms, int64_t lease_ms)
{
	const char *why;

	if (owner != NULL && rlock_owner_check(owner, &why) != RLOCK_OK)
		return RLOCK_EINVAL;
	for (size_t i = 0; owner != NULL && i < hold->name_count; i++)
		memcpy(hold->acquired[i].owner, owner, strlen(owner) + 1);
	hold->sent_ms = sent_ms;
	hold->lease_ms = lease_ms;
	return RLOCK_OK;
}

int64_t rlock_hold_lease_ms(const struct rlock_hold *hold)
{
	return hold->lease_ms;
}

int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold)
{
	return hold->ttl_ms;
}

/* ---- helpers ---- */

enum rlock_status rlock__pause(struct rlock_conn *conn, int64_t *pause_ms, int64_t deadline_ms)
{
	int64_t now_ms = rlock_now_ms(), until_ms;
	struct pollfd cancel = { conn->cancel_fd, POLLIN, 0 };

	if (*pause_ms < PAUSE_MIN_MS)
		*pause_ms = PAUSE_MIN_MS;
	until_ms = now_ms + *pause_ms + rlock__jitter_ms(*pause_ms / 2);
	if (until_ms > deadline_ms)
		until_ms = deadline_ms;
	*pause_ms *= 2;
	if (*pause_ms > PAUSE_MAX_MS)
		*pause_ms = PAUSE_MAX_MS;
	if (rlock_poll(&cancel, 1, until_ms) < 0)
		return rlock__fail(&conn->error, RLOCK_ESYS, "cannot wait: %s", strerror(errno));
	return cancel.revents != 0 ? RLOCK_CANCELLED : RLOCK_OK;
}

enum rlock_status rlock__hold_routes(const struct rlock_hold *hold, struct rlock_conn *conn,
				     struct rlock__routes *out)
{
	return rlock__routes_init(out, conn, hold->names, hold->name_count);
}

void rlock__close_failed(struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->routes->count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		/* With RLOCK_ENET the stream is closed, but after a reply whose login failed: at a replica, say. */
		if (answer->is_over && answer->status < 0 &&
		    (answer->status != RLOCK_ENET || answer->result.reply != NULL))
			rlock__connection_close(rlock__routes_connection(broadcast->routes, i));
	}
}
