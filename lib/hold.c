/*
 * struct rlock_hold, the form of a hold's record, and the owners and hold ids that identify holders on a server. held.c,
 * acquire.c and find.c send the requests.
 */
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "hold.h"
#include "kinds.h"
#include "rlock.h"

/* ---- the record: only this file knows the form of the client's part ---- */

static const char *const purposes[] = { [RLOCK_PURPOSE_UNKNOWN] = "unknown",
					[RLOCK_PURPOSE_COMMAND] = "command",
					[RLOCK_PURPOSE_PROCESS] = "process",
					[RLOCK_PURPOSE_OWNER] = "owner",
					[RLOCK_PURPOSE_KEPT] = "kept" };

const char *rlock__purpose_word(enum rlock_purpose purpose)
{
	return purpose != RLOCK_PURPOSE_UNKNOWN ? purposes[purpose] : "";
}

static void write_record(struct rlock_hold *hold, const struct rlock_hold_spec *spec)
{
	const struct rlock_process *process = &hold->record.process;

	hold->record.purpose = RLOCK_PURPOSE_OWNER;
	if (spec->record != NULL)
		hold->record = *spec->record;
	hold->record.kind = spec->kind;
	if (hold->record.name_count == 0)
		hold->record.name_count = spec->name_count;
	(void)snprintf(hold->record_text, sizeof(hold->record_text),
		       "%s.%s.%zu.%016" PRIx64 ".%" PRIu64 ".%" PRId64 ".%" PRIu64 "%c %.*s",
		       purposes[hold->record.purpose], rlock_kind_name(spec->kind),
		       hold->record.name_count, process->boot, process->pid_namespace, process->pid,
		       process->start, hold->record.reads_requests ? '+' : '-', RLOCK_NOTE_MAX - 1,
		       spec->note != NULL ? spec->note : "");
}

#define BOOT_DIGITS 16
/* More than the length of the longest HOLDER and the blank after it. */
#define HOLDER_MAX 160

/*
 * Read the HOLDER of a record. Returns its length with the blank after it. 0: text does not begin with a HOLDER, and *out is
 * unchanged.
 */
static size_t read_holder(struct rlock_name text, struct rlock_record *out)
{
	char word[HOLDER_MAX], purpose[16], kind[16], names[10], boot[17], pid_namespace[21];
	char pid[21], start[21], sign[2];
	struct rlock_record record = { .kind = RLOCK_ANY };
	int len = 0;

	(void)snprintf(word, sizeof(word), "%.*s", (int)text.len, text.text);
	if (sscanf(word,
		   "%15[a-z].%15[a-z].%9[0-9].%16[0-9a-f].%20[0-9].%20[0-9].%20[0-9]%1[-+]%*1[ ]%n",
		   purpose, kind, names, boot, pid_namespace, pid, start, sign, &len) != 8 ||
	    len == 0 || strlen(boot) != BOOT_DIGITS)
		return 0;
	for (size_t i = 0; i < sizeof(purposes) / sizeof(purposes[0]); i++)
		if (strcmp(purpose, purposes[i]) == 0)
			record.purpose = (enum rlock_purpose)i;
	(void)rlock_kind_parse(kind, strlen(kind), &record.kind);
	record.name_count = strtoul(names, NULL, 10);
	record.reads_requests = sign[0] == '+';
	record.process.boot = strtoull(boot, NULL, 16);
	record.process.pid_namespace = strtoull(pid_namespace, NULL, 10);
	record.process.pid = strtoll(pid, NULL, 10);
	record.process.start = strtoull(start, NULL, 10);
	if (record.process.pid == 0 || record.process.pid > INT_MAX)
		record.process = (struct rlock_process){ 0 };
	*out = record;
	return (size_t)len;
}

struct rlock_name rlock__record_read(struct rlock_name owner, struct rlock_name text,
				     struct rlock_record *record_out)
{
	struct rlock_record record = { .kind = RLOCK_ANY };
	size_t len = read_holder(text, &record);

	/*
	 * The record of a kept hold still has the HOLDER of the hold before it, whose job has ended. So drop that process:
	 * only the owner shows that the hold is kept.
	 */
	if (rlock_owner_kept_until_ms(owner.text, owner.len) >= 0)
		record = (struct rlock_record){ .purpose = RLOCK_PURPOSE_KEPT,
						.name_count = record.name_count,
						.kind = record.kind };
	*record_out = record;
	return (struct rlock_name){ text.text + len, text.len - len };
}

enum rlock_kind rlock__record_kind(const struct rlock_record *record, enum rlock_kind kind)
{
	return kind == RLOCK_PLAIN && record->kind == RLOCK_FAIR ? RLOCK_FAIR : kind;
}

/* ---- the object ---- */

void rlock_hold_free(struct rlock_hold *hold)
{
	if (hold == NULL)
		return;
	for (size_t i = 0; i < hold->name_count; i++) {
		free(hold->keys[i].memory);
		free(hold->acquired[i].slots);
	}
	free(hold->keys);
	free(hold->in_order);
	free(hold->by_slot);
	free(hold->exists_checks.text);
	free(hold->acquired);
	free(hold);
}

static int compare_slots(const void *a, const void *b, void *all)
{
	const struct rlock__keys *keys = all;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	int order = rlock__key_compare_slots(&keys[i].of[RLOCK__KEY_LOCK],
					     &keys[k].of[RLOCK__KEY_LOCK]);

	/* Names in the same slot keep the caller's order. */
	return order != 0 ? order : (i > k) - (i < k);
}

/* Set in_order, by_slot and slot_count. False: out of memory. */
static bool order_names(struct rlock_hold *hold)
{
	hold->in_order = calloc(hold->name_count, sizeof(*hold->in_order));
	hold->by_slot = calloc(hold->name_count, sizeof(*hold->by_slot));
	if (hold->in_order == NULL || hold->by_slot == NULL)
		return false;
	for (size_t i = 0; i < hold->name_count; i++)
		hold->in_order[i] = hold->by_slot[i] = i;
	qsort_r(hold->by_slot, hold->name_count, sizeof(size_t), compare_slots, hold->keys);
	for (size_t i = 0; i < hold->name_count; i++)
		hold->slot_count += rlock__hold_is_new_slot(hold, i);
	return true;
}

bool rlock__hold_is_new_slot(const struct rlock_hold *hold, size_t nth)
{
	const struct rlock__keys *keys = hold->keys;

	return nth == 0 ||
	       rlock__key_compare_slots(&keys[hold->by_slot[nth - 1]].of[RLOCK__KEY_LOCK],
					&keys[hold->by_slot[nth]].of[RLOCK__KEY_LOCK]) != 0;
}

/* Make the EXISTS commands for several names (exists_checks). False: out of memory. */
static bool make_exists_checks(struct rlock_hold *hold)
{
	struct rlock__pipelined *checks = &hold->exists_checks;
	FILE *stream;

	if (hold->name_count < 2)
		return true;
	stream = open_memstream(&checks->text, &checks->len);
	if (stream == NULL)
		return false;
	for (; checks->count < hold->name_count; checks->count++) {
		const struct rlock_name *name = &hold->keys[checks->count].of[RLOCK__KEY_LOCK];

		(void)fprintf(stream, "*2\r\n$6\r\nEXISTS\r\n$%zu\r\n%s\r\n", name->len,
			      name->text);
	}
	return fclose(stream) == 0;
}

static enum rlock_status copy_owner(char out[RLOCK_OWNER_MAX], const char *owner)
{
	const char *why;
	enum rlock_status status = rlock_owner_check(owner, &why);

	if (status == RLOCK_OK)
		memcpy(out, owner, strlen(owner) + 1);
	return status;
}

enum rlock_status rlock_hold_set_id(struct rlock_hold *hold, const char *id)
{
	enum rlock_status status = RLOCK_OK;

	if (id == NULL)
		status = rlock_hold_id_new(hold->id);
	else if (rlock_hold_id_is_valid(id))
		memcpy(hold->id, id, RLOCK_HOLD_ID_MAX);
	else
		status = RLOCK_EINVAL;
	memcpy(hold->released_id, hold->id, RLOCK_HOLD_ID_MAX);
	return status;
}

static enum rlock_status set_owners(struct rlock_hold *hold, const struct rlock_hold_spec *spec)
{
	enum rlock_status status = RLOCK_OK;

	for (size_t i = 0; spec->owners != NULL && i < hold->name_count && status == RLOCK_OK; i++)
		status = copy_owner(hold->acquired[i].owner, spec->owners[i]);
	if (status != RLOCK_OK)
		return status;
	if (spec->owner != NULL)
		return copy_owner(hold->owner, spec->owner);
	if (spec->owners != NULL)
		return copy_owner(hold->owner, spec->owners[0]);
	return rlock_owner_new((unsigned long)getpid(), hold->owner);
}

/* Set the names, their keys and their orders. False: out of memory. */
static bool set_names(struct rlock_hold *hold, const struct rlock_hold_spec *spec)
{
	hold->keys = calloc(spec->name_count, sizeof(*hold->keys));
	hold->acquired = calloc(spec->name_count, sizeof(*hold->acquired));
	if (hold->keys == NULL || hold->acquired == NULL)
		return false;
	for (size_t i = 0; i < spec->name_count; i++) {
		if (!rlock__keys_make(&hold->keys[i], &spec->names[i]))
			return false;
		hold->name_count++;
	}
	return order_names(hold) && make_exists_checks(hold);
}

enum rlock_status rlock_hold_new(const struct rlock_hold_spec *spec, struct rlock_hold **out)
{
	const struct rlock__kind *row = rlock__kind(spec->kind);
	enum rlock_status status;
	struct rlock_hold *hold;

	if (row == NULL || spec->name_count == 0)
		return RLOCK_EINVAL;
	hold = calloc(1, sizeof(*hold));
	if (hold == NULL)
		return RLOCK_ENOMEM;
	hold->kind = spec->kind;
	hold->row = row;
	hold->sent_ms = spec->sent_ms;
	hold->lease_ms = spec->lease_ms;
	hold->remember_ms = spec->remember_ms;
	hold->permits = spec->permits;
	hold->take = spec->take;
	write_record(hold, spec);
	status = set_names(hold, spec) ? rlock_hold_set_id(hold, spec->id) : RLOCK_ENOMEM;
	if (status == RLOCK_OK)
		status = set_owners(hold, spec);
	if (status == RLOCK_OK)
		*out = hold;
	else
		rlock_hold_free(hold);
	return status;
}

const char *rlock_hold_id(const struct rlock_hold *hold)
{
	return hold->id;
}

const char *rlock_hold_owner(const struct rlock_hold *hold, size_t index)
{
	return hold->acquired[index].owner;
}

const struct rlock_record *rlock_hold_record(const struct rlock_hold *hold)
{
	return &hold->record;
}

int64_t rlock_hold_count(const struct rlock_hold *hold, size_t index)
{
	return hold->acquired[index].count;
}

int64_t rlock_hold_token(const struct rlock_hold *hold, size_t index)
{
	return hold->acquired[index].token;
}

const char *rlock_hold_slots(const struct rlock_hold *hold, size_t index)
{
	const char *slots = hold->acquired[index].slots;

	return slots != NULL ? slots : "";
}

bool rlock__hold_are_slots(const char *text)
{
	return strspn(text, "0123456789 ") == strlen(text);
}

bool rlock__hold_set_slots(struct rlock_hold *hold, size_t index, const char *text)
{
	char *slots = strdup(text);

	if (slots == NULL)
		return false;
	for (char *at = strchr(slots, ','); at != NULL; at = strchr(at, ','))
		*at = ' ';
	free(hold->acquired[index].slots);
	hold->acquired[index].slots = slots;
	return rlock__hold_are_slots(slots);
}

int64_t rlock_hold_sent_ms(const struct rlock_hold *hold)
{
	return hold->sent_ms;
}

void rlock_hold_set_sent_ms(struct rlock_hold *hold, int64_t sent_ms)
{
	hold->sent_ms = sent_ms;
}

enum rlock_status rlock_hold_set_owner(struct rlock_hold *hold, size_t index, const char *owner)
{
	return copy_owner(hold->acquired[index].owner, owner);
}

void rlock_hold_set_queued(struct rlock_hold *hold)
{
	for (size_t i = 0; i < RLOCK_SERVERS_MAX; i++)
		hold->may_be_queued[i] = true;
}

void rlock_hold_set_remember(struct rlock_hold *hold, int64_t ttl_ms)
{
	hold->remember_ms = ttl_ms;
}

void rlock_hold_set_end(struct rlock_hold *hold, const struct rlock_end *end)
{
	const char *how = end->signal > 0 ? "signal" : end->status >= 0 ? "exit" : "-";
	int64_t number = end->signal > 0 ? end->signal : end->status >= 0 ? end->status : 0;

	if (hold->remember_ms <= 0)
		return;
	(void)snprintf(hold->released_id, sizeof(hold->released_id),
		       "%s %" PRId64 " %s %s %" PRId64 " %s", hold->id, hold->remember_ms,
		       rlock_kind_name(hold->kind), how, number,
		       end->reason != NULL ? end->reason : "");
}

int64_t rlock_hold_lease_ms(const struct rlock_hold *hold)
{
	return hold->lease_ms;
}

int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold)
{
	return hold->ttl_ms;
}

const char *rlock_hold_stop_requested_by(const struct rlock_hold *hold, size_t *name_index_out)
{
	if (!hold->is_stop_requested)
		return NULL;
	*name_index_out = hold->stop_name_index;
	return hold->stop_requested_by;
}

int64_t rlock_owner_kept_until_ms(const char *owner, size_t len)
{
	const char *found = memmem(owner, len, RLOCK__KEPT, strlen(RLOCK__KEPT));
	int64_t until_ms = 0;

	if (found == NULL || found + strlen(RLOCK__KEPT) == owner + len)
		return -1;
	for (found += strlen(RLOCK__KEPT); found < owner + len; found++) {
		if (*found < '0' || *found > '9' || until_ms > INT64_MAX / 10 - 1)
			return -1;
		until_ms = until_ms * 10 + (*found - '0');
	}
	return until_ms;
}

/* ---- owners and hold ids ---- */

#define OWNER_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:"

/* wire: "UUID:NUMBER", as Redisson makes it of ServiceManager.id and the thread's number. */
enum rlock_status rlock_owner_new(unsigned long number, char out[RLOCK_OWNER_MAX])
{
	unsigned char id[16];
	int len;

	if (getentropy(id, sizeof(id)) < 0)
		return RLOCK_ESYS;
	id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); /* version 4: random */
	id[8] = (unsigned char)((id[8] & 0x3f) | 0x80); /* variant 1 */
	len = snprintf(out, RLOCK_OWNER_MAX,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x:%lu",
		       id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10],
		       id[11], id[12], id[13], id[14], id[15], number);
	assert(len > 0 && len < RLOCK_OWNER_MAX);
	(void)len;
	return RLOCK_OK;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/*
 * Whether owner would be confused with another field in a hash of owners. The hash of a read/write lock also has the mode, and
 * fields for writers and kept holds. The hash of waiters also has the time when the queue was last read ("seen").
 */
static bool is_reserved(const char *owner)
{
	return strcmp(owner, "mode") == 0 || strcmp(owner, "seen") == 0 ||
	       ends_with(owner, ":write") || strstr(owner, RLOCK__KEPT) != NULL;
}

enum rlock_status rlock_owner_check(const char *owner, const char **why)
{
	size_t len = strlen(owner);
	const char *reason = NULL;

	if (len == 0)
		reason = "an owner has at least one byte";
	else if (len >= RLOCK_OWNER_MAX)
		reason = "an owner has at most 255 bytes";
	else if (strspn(owner, OWNER_BYTES) != len)
		reason = "an owner has only letters, digits, '.', '_', '-' and ':'";
	else if (is_reserved(owner))
		reason =
			"an owner can't be 'mode' or 'seen', end in ':write', or contain '" RLOCK__KEPT
			"'";
	if (reason == NULL)
		return RLOCK_OK;
	*why = reason;
	return RLOCK_EINVAL;
}

#define HOLD_ID_DIGITS "0123456789abcdef"

bool rlock_hold_id_is_valid(const char *id)
{
	return strlen(id) == RLOCK_HOLD_ID_MAX - 1 &&
	       strspn(id, HOLD_ID_DIGITS) == RLOCK_HOLD_ID_MAX - 1;
}

enum rlock_status rlock_hold_id_new(char out[RLOCK_HOLD_ID_MAX])
{
	static const char digits[] = HOLD_ID_DIGITS;
	unsigned char id[(RLOCK_HOLD_ID_MAX - 1) / 2];

	if (getentropy(id, sizeof(id)) < 0)
		return RLOCK_ESYS;
	for (size_t i = 0; i < sizeof(id); i++) {
		out[2 * i] = digits[id[i] >> 4];
		out[2 * i + 1] = digits[id[i] & 0x0f];
	}
	out[RLOCK_HOLD_ID_MAX - 1] = '\0';
	return RLOCK_OK;
}

enum rlock_status rlock__owner_check(struct rlock__error *error, const char *owner)
{
	const char *why;
	char shown[RLOCK_OWNER_MAX];

	if (rlock_owner_check(owner, &why) == RLOCK_OK)
		return RLOCK_OK;
	return rlock__fail(error, RLOCK_EINVAL, "owner '%s': %s",
			   rlock_escape(owner, strlen(owner), shown, sizeof(shown)), why);
}
