/*
 * What a reply of inspect.lua has to look like: a server may give any.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "inspect_form.h"
#include "rlock.h"

/* The form of a list's elements: 's' a string, 'i' an integer, 'a' an array. */
#define FORM_ALL "ssiisiaiaiiiaasiii"
#define FORM_OTHER "ss"
#define FORM_HOLDER "siiiiiss"
#define FORM_QUEUED "siiis"
#define FORM_WRITER "sis"
#define FORM_UNSEEN "ss"

static bool has_form(const redisReply *reply, const char *form)
{
	size_t count = strlen(form);

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		int type = form[i] == 's'   ? REDIS_REPLY_STRING
			   : form[i] == 'i' ? REDIS_REPLY_INTEGER
					    : REDIS_REPLY_ARRAY;

		if (reply->element[i]->type != type)
			return false;
	}
	return true;
}

static bool are_all(const redisReply *list, const char *form)
{
	for (size_t i = 0; i < list->elements; i++)
		if (!has_form(list->element[i], form))
			return false;
	return true;
}

static bool is_known_state(const redisReply *state)
{
	enum rlock_kind kind;

	return strcmp(state->str, "free") == 0 ||
	       (rlock_kind_parse(state->str, state->len, &kind) && kind != RLOCK_FAIR);
}

bool rlock__inspect_form_is_lock(const redisReply *reply)
{
	return has_form(reply, FORM_ALL) && is_known_state(reply->element[RLOCK__PART_STATE]) &&
	       are_all(reply->element[RLOCK__PART_HOLDERS], FORM_HOLDER) &&
	       are_all(reply->element[RLOCK__PART_QUEUE], FORM_QUEUED) &&
	       are_all(reply->element[RLOCK__PART_UNSEEN], FORM_UNSEEN) &&
	       (reply->element[RLOCK__PART_WRITER]->elements == 0 ||
		has_form(reply->element[RLOCK__PART_WRITER], FORM_WRITER));
}

bool rlock__inspect_form_is_other(const redisReply *reply)
{
	return has_form(reply, FORM_OTHER) &&
	       strcmp(reply->element[RLOCK__PART_STATE]->str, "other") == 0;
}
