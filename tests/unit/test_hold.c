/*
 * hold.c: the note and the process in the record of a hold.
 */
#include "hold.h"
#include "rlock.h"

#include "unit.h"

static const struct rlock_process process = { 0x0123456789abcdef, 4026531836, 4711, true };

static struct rlock_name text(const char *bytes)
{
	return (struct rlock_name){ bytes, strlen(bytes) };
}

static bool reads(const char *owner, const char *record, const struct rlock_process *expected,
		  const char *note)
{
	struct rlock_process found = { 1, 1, 1, true };
	struct rlock_name rest = rlock__hold_note_read(text(owner), text(record), &found);

	return rest.len == strlen(note) && memcmp(rest.text, note, rest.len) == 0 &&
	       found.boot == expected->boot && found.pid_namespace == expected->pid_namespace &&
	       found.pid == expected->pid && found.reads_requests == expected->reads_requests;
}

static void check_both_ways(void)
{
	static const struct rlock_process most = { UINT64_MAX, UINT64_MAX, INT32_MAX, false };
	static const struct rlock_process none;
	char record[RLOCK__RECORD_NOTE_MAX], longest[RLOCK_NOTE_MAX];

	rlock__hold_note_make(&process, "me@here pid 4711 x", record);
	CHECK(strcmp(record, "0123456789abcdef.4026531836.4711+ me@here pid 4711 x") == 0,
	      "a record has the process in front of the note: %s", record);
	CHECK(reads("o:1", record, &process, "me@here pid 4711 x"), "both are read again");
	rlock__hold_note_make(&process, NULL, record);
	CHECK(reads("o:1", record, &process, ""), "a process without a note is read again");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	rlock__hold_note_make(&most, longest, record);
	CHECK(reads("o:1", record, &most, longest), "the longest ones are read again: %s", record);
	rlock__hold_note_make(NULL, "0123456789abcdef.1.2+ x", record);
	CHECK(reads("o:1", record, &none, "0123456789abcdef.1.2+ x"),
	      "a note that looks like a process is no process: %s", record);
	rlock__hold_note_make(&process, "x", record);
	CHECK(reads("o:1:lingering:99", record, &none, "x") &&
		      reads("o:1:write:lingering:99", record, &none, "x"),
	      "no process has a kept hold");
}

static void check_old(void)
{
	static const char *const notes[] = {
		"",
		"x",
		"me@here pid 4711 x",
		"0123456789abcdef",
		"0123456789abcdef.1",
		"0123456789abcdef.1.2",
		"0123456789abcdef.1.2 x",
		"0123456789abcdef.1.2+",
		"0123456789abcdef.1.2+x",
		"0123456789abcdef.1.2* x",
		"0123456789abcdef.1.-2+ x",
		"0123456789abcdef. 1.2+ x",
		"0123456789abcdef..2+ x",
		"0123456789ABCDEF.1.2+ x",
		"0123456789abcde.1.2+ x",
		"0123456789abcdef0.1.2+ x",
	};
	static const struct rlock_process none;

	for (size_t i = 0; i < COUNT_OF(notes); i++)
		CHECK(reads("o:1", notes[i], &none, notes[i]), "'%s' is a note", notes[i]);
}

void test_hold(void)
{
	check_both_ways();
	check_old();
}
