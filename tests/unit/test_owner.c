/*
 * hold.c: what may be an owner, and what stands for something else beside owners.
 */
#include "rlock.h"

#include "unit.h"

static void check_good(void)
{
	static const char *const good[] = {
		"job-1:0",
		"x",
		"modes",
		"mode:0",
		"write",
		"x:writer",
		"x:lingering",
		"0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e:57",
		"0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e:57:00f1",
	};
	const char *unset = "unset", *why = unset;
	char fresh[RLOCK_OWNER_MAX], longest[RLOCK_OWNER_MAX];

	for (size_t i = 0; i < COUNT_OF(good); i++)
		CHECK(rlock_owner_check(good[i], &why) == RLOCK_OK, "'%s' is an owner", good[i]);
	CHECK(rlock_owner_new(1, fresh) == RLOCK_OK && rlock_owner_check(fresh, &why) == RLOCK_OK,
	      "what is made here is an owner");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CHECK(rlock_owner_check(longest, &why) == RLOCK_OK, "255 bytes are an owner");
	CHECK(why == unset, "a good owner leaves the reason as it was");
}

static void check_bad(void)
{
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
		"a\t:1",
		"\xc3\xa4:1",
		"a/b",
		"a:lingering:",
	};
	char too_long[RLOCK_OWNER_MAX + 1];
	const char *why;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		why = NULL;
		CHECK(rlock_owner_check(bad[i], &why) == RLOCK_EINVAL && why != NULL,
		      "the %zuth is refused with a reason", i + 1);
	}
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	CHECK(rlock_owner_check(too_long, &why) == RLOCK_EINVAL, "256 bytes are too many");
}

void test_owner(void)
{
	check_good();
	check_bad();
	CHECK(rlock_owner_kept_until_ms("a:1", 3) == -1, "a process holds the lock");
	CHECK(rlock_owner_kept_until_ms("a:1:lingering:1795754068571", 27) == 1795754068571,
	      "it is kept until then");
	CHECK(rlock_owner_kept_until_ms("a:1:lingering:", 14) == -1, "without a time");
	CHECK(rlock_owner_kept_until_ms("a:1:lingering:12x", 17) == -1, "that is no time");
	CHECK(rlock_owner_kept_until_ms("a:1:lingering:99999999999999999999", 34) == -1,
	      "nor is what no number holds");
}
