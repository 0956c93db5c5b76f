/*
 * What the replies to several requests have in common: integers, which name an element is about, and the failures that
 * they tell of. What else a reply says is for the file of its request.
 */
#include <hiredis/hiredis.h>

#include "base/error.h"
#include "net/connection.h"
#include "reply.h"
#include "rlock.h"
#include "routes.h"
#include "script.h"

bool rlock__reply_has_integers(const struct redisReply *reply, size_t count)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER)
			return false;
	return true;
}

bool rlock__reply_read_index(const struct rlock__routes *routes, size_t index,
			     const struct redisReply *element, size_t *name_index_out)
{
	if (element->type != REDIS_REPLY_INTEGER || element->integer < 1 ||
	    (unsigned long long)element->integer > rlock__routes_name_count(routes, index))
		return false;
	*name_index_out = rlock__routes_name(routes, index, (size_t)element->integer - 1);
	return true;
}

enum rlock_status rlock__reply_fail(struct rlock__connection *connection,
				    const struct rlock__script *script)
{
	return rlock__script_fail_reply(rlock__connection_error(connection), script);
}

enum rlock_status rlock__reply_fail_held(struct rlock__error *error, const char *how,
					 const char *note, const char *owner)
{
	bool has_note = note[0] != '\0';

	return rlock__fail(error, RLOCK_BUSY, "%s %s%s%s%s", how, note, has_note ? " (" : "", owner,
			   has_note ? ")" : "");
}

#define TYPE_SHOWN_MAX 256 /* with a side key, maybe */

static const char *show_type(const struct redisReply *type, char shown[TYPE_SHOWN_MAX])
{
	return type->type == REDIS_REPLY_STRING
		       ? rlock_escape(type->str, type->len, shown, TYPE_SHOWN_MAX)
		       : "value of another kind";
}

enum rlock_status rlock__reply_fail_lost(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index)
{
	char shown[TYPE_SHOWN_MAX];

	if (type != NULL)
		(void)rlock__fail(rlock__connection_error(connection), RLOCK_NOT_HELD,
				  "its key was overwritten with another type (%s)",
				  show_type(type, shown));
	else
		(void)rlock__fail(rlock__connection_error(connection), RLOCK_NOT_HELD,
				  "it expired or was deleted on the server");
	rlock__connection_error(connection)->name_index = name_index;
	return RLOCK_NOT_HELD;
}

enum rlock_status rlock__reply_fail_kind(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index)
{
	char shown[TYPE_SHOWN_MAX];

	(void)rlock__fail(rlock__connection_error(connection), RLOCK_EKIND,
			  "not a lock of this kind: the key holds a %s", show_type(type, shown));
	rlock__connection_error(connection)->name_index = name_index;
	return RLOCK_EKIND;
}
