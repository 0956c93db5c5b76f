/*
 * hold.c: what a hold consists of, the text of its record, which owners are valid, and which texts are reserved.
 */
#include <stdlib.h>

#include "hold.h"
#include "rlock.h"

#include "unit.h"

static const struct rlock_record record = { RLOCK_PURPOSE_COMMAND,
					    1,
					    true,
					    { 0x0123456789abcdef, 4026531836, 4711, 88122 },
					    RLOCK_FAIR },
				 unknown = { .kind = RLOCK_ANY };

static bool reads(const char *owner, const char *text, const struct rlock_record *expected,
		  const char *note)
{
	struct rlock_record found = { RLOCK_PURPOSE_OWNER, 1, true, { 1, 1, 1, 1 }, RLOCK_WRITE };
	struct rlock_name rest =
		rlock__record_read((struct rlock_name){ owner, strlen(owner) },
				   (struct rlock_name){ text, strlen(text) }, &found);

	return rest.len == strlen(note) && memcmp(rest.text, note, rest.len) == 0 &&
	       found.purpose == expected->purpose && found.name_count == expected->name_count &&
	       found.reads_requests == expected->reads_requests &&
	       found.process.boot == expected->process.boot &&
	       found.process.pid_namespace == expected->process.pid_namespace &&
	       found.process.pid == expected->process.pid &&
	       found.process.start == expected->process.start && found.kind == expected->kind;
}

static const struct rlock_name names[] = { { "L", 1 }, { "M", 1 } }, name = { "L", 1 };

/* The text of the record that a hold with count names writes. */
static const char *text_of(const struct rlock_record *of, const char *note, size_t count,
			   char out[RLOCK__RECORD_TEXT_MAX])
{
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_hold *hold = NULL;

	spec.kind = of != NULL ? of->kind : RLOCK_PLAIN;
	spec.names = names;
	spec.name_count = count;
	spec.record = of;
	spec.note = note;
	if (rlock_hold_new(&spec, &hold) != RLOCK_OK)
		abort();
	memcpy(out, hold->record_text, RLOCK__RECORD_TEXT_MAX);
	rlock_hold_free(hold);
	return out;
}

static void check_records(void)
{
	static const struct rlock_record longest_record = { RLOCK_PURPOSE_PROCESS,
							    100000000,
							    false,
							    { UINT64_MAX, UINT64_MAX, INT32_MAX,
							      UINT64_MAX },
							    RLOCK_WRITE },
					 owners = { .purpose = RLOCK_PURPOSE_OWNER,
						    .name_count = 2 },
					 kept = { .purpose = RLOCK_PURPOSE_KEPT,
						  .name_count = 1,
						  .kind = RLOCK_FAIR };
	/* Notes can contain anything. */
	static const char *const notes[] = {
		"",
		"command.plain.1.0123456789abcdef.1.2.3 x",
		"command.plain.1.0123456789abcdef.1.2.3+x",
		"command.plain.1.0123456789abcdef.1.2.3* x",
		"command.plain.1.0123456789abcdef.1.-2.3+ x",
		"command.plain.1.0123456789abcdef.1.2+ x",
		"command.plain.1.0123456789abcdef.1.2.-3+ x",
		"command.plain.1.0123456789abcdef. 1.2.3+ x",
		"command.plain.1.0123456789abcdef..2.3+ x",
		"command.plain.1.0123456789ABCDEF.1.2.3+ x",
		"command.plain.1.0123456789abcde.1.2.3+ x",
		"command.plain.1.0123456789abcdef0.1.2.3+ x",
		"command.plain.-1.0123456789abcdef.1.2.3+ x",
		"command.plain..0123456789abcdef.1.2.3+ x",
		"0123456789abcdef.1.2.3+ x",
		"command.1.0123456789abcdef.1.2.3+ x",
	};
	char text[RLOCK__RECORD_TEXT_MAX], longest[RLOCK_NOTE_MAX];

	CHECK_STRING(text_of(&record, "me@here x", 1, text),
		     "command.fair.1.0123456789abcdef.4026531836.4711.88122+ me@here x",
		     "a record says what the hold is for, before the note");
	CHECK(reads("o:1", text, &record, "me@here x"), "the note and the purpose are read back");
	CHECK(reads("o:1:lingering:99", text, &kept, "me@here x") &&
		      reads("o:1:write:lingering:99", text, &kept, "me@here x"),
	      "a kept hold has no process");
	CHECK(reads("o:1", text_of(&record, NULL, 1, text), &record, ""),
	      "a record without a note is read back");
	CHECK(reads("o:1", text_of(NULL, "me", 2, text), &owners, "me"),
	      "a hold without a record belongs to its owner, and has the names of the spec");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CHECK(reads("o:1", text_of(&longest_record, longest, 1, text), &longest_record, longest),
	      "the longest note and process are read back: %s", text);
	(void)text_of(NULL, "command.plain.1.0123456789abcdef.1.2.3+ x", 2, text);
	CHECK(reads("o:1", text, &owners, "command.plain.1.0123456789abcdef.1.2.3+ x"),
	      "a note that looks like a record is read back as a note: %s", text);
	CHECK(reads("o:1", "newer.newest.3.0123456789abcdef.0.0.0- x",
		    &(struct rlock_record){ .name_count = 3, .kind = RLOCK_ANY }, "x"),
	      "a purpose and a kind of a later version are read as unknown");
	for (size_t i = 0; i < COUNT_OF(notes); i++)
		CHECK(reads("o:1", notes[i], &unknown, notes[i]), "the note '%s' is read back",
		      notes[i]);
}

/* ---- members of a hold ---- */

#define ID "0123456789abcdef0123456789abcdef"
#define OWNER "owner:1"

static enum rlock_status make(const struct rlock_hold_spec *spec, struct rlock_hold **out)
{
	*out = NULL;
	return rlock_hold_new(spec, out);
}

static void check_specs(void)
{
	static const char *const owners[] = { OWNER }, *const bad_owners[] = { "a b" };
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT, bad;
	struct rlock_hold *hold, *other;

	CHECK_NUMBER(make(&spec, &hold), RLOCK_EINVAL, "a hold without names is refused");
	spec.names = &name;
	spec.name_count = 1;
	if (make(&spec, &hold) != RLOCK_OK || make(&spec, &other) != RLOCK_OK)
		abort();
	CHECK(strlen(rlock_hold_id(hold)) == RLOCK_HOLD_ID_MAX - 1 &&
		      strcmp(rlock_hold_id(hold), rlock_hold_id(other)) != 0,
	      "without an id each hold gets a new id");
	CHECK(hold->owner[0] != '\0' && strcmp(hold->owner, other->owner) != 0,
	      "without an owner each hold gets a new owner");
	CHECK_STRING(rlock_hold_owner(hold, 0), "", "a name has no owner before it is acquired");
	rlock_hold_free(hold);
	rlock_hold_free(other);
	spec.id = ID;
	spec.owners = owners;
	if (make(&spec, &hold) != RLOCK_OK)
		abort();
	CHECK_STRING(rlock_hold_id(hold), ID, "the hold has the id of the spec");
	CHECK_STRING(rlock_hold_owner(hold, 0), OWNER,
		     "an acquired name has the owner of the spec");
	rlock_hold_free(hold);
	bad = spec;
	bad.id = "0123456789abcdef0123456789ABCDEF";
	CHECK_NUMBER(make(&bad, &hold), RLOCK_EINVAL, "an id with capital letters is refused");
	bad.id = "0123456789abcdef";
	CHECK_NUMBER(make(&bad, &hold), RLOCK_EINVAL, "an id with fewer than 32 digits is refused");
	bad = spec;
	bad.owner = bad_owners[0];
	CHECK_NUMBER(make(&bad, &hold), RLOCK_EINVAL, "an invalid owner is refused");
	bad = spec;
	bad.owners = bad_owners;
	CHECK_NUMBER(make(&bad, &hold), RLOCK_EINVAL,
		     "an invalid owner of an acquired name is refused");
	bad = spec;
	bad.kind = RLOCK_ANY;
	CHECK_NUMBER(make(&bad, &hold), RLOCK_EINVAL, "RLOCK_ANY is not the kind of a hold");
}

/* ---- owners ---- */

static void check_owners(void)
{
	static const char *const good[] = {
		"x",        "modes",
		"mode:0",   "write",
		"x:writer", "x:lingering",
		"job-1:0",  "0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e:57:00f1",
	};
	static const char *const bad[] = {
		"",
		"mode",
		"seen",
		"x:write",
		":write",
		"x:lingering:1",
		"x:write:lingering:1",
		"a b:1",
		"a\n:1",
		"\xc3\xa4:1",
		"a/b",
		"a:lingering:",
	};
	char fresh[RLOCK_OWNER_MAX], longest[RLOCK_OWNER_MAX + 1];
	const char *unset = "unset", *why = unset;

	for (size_t i = 0; i < COUNT_OF(good); i++)
		CHECK(rlock_owner_check(good[i], &why) == RLOCK_OK, "'%s' is a valid owner",
		      good[i]);
	CHECK(rlock_owner_new(1, fresh) == RLOCK_OK && rlock_owner_check(fresh, &why) == RLOCK_OK,
	      "a generated owner is valid");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CHECK(rlock_owner_check(longest + 1, &why) == RLOCK_OK, "an owner may have 255 bytes");
	CHECK(why == unset, "for a valid owner the reason is unchanged");
	CHECK(rlock_owner_check(longest, &why) == RLOCK_EINVAL, "an owner of 256 bytes is refused");
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		why = NULL;
		CHECK(rlock_owner_check(bad[i], &why) == RLOCK_EINVAL && why != NULL,
		      "row %zu is refused with a reason", i);
	}
}

static void check_kept(void)
{
	static const struct {
		const char *owner;
		int64_t until_ms;
	} owners[] = {
		{ "a:1", -1 },
		{ "a:1:lingering:1795754068571", 1795754068571 },
		{ "a:1:lingering:", -1 },
		{ "a:1:lingering:12x", -1 },
		{ "a:1:lingering:99999999999999999999", -1 },
	};

	for (size_t i = 0; i < COUNT_OF(owners); i++)
		CHECK_NUMBER(rlock_owner_kept_until_ms(owners[i].owner, strlen(owners[i].owner)),
			     owners[i].until_ms, "until when '%s' is kept", owners[i].owner);
}

void test_hold(void)
{
	check_records();
	check_specs();
	check_owners();
	check_kept();
}
