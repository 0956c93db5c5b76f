/*
 * The keys and channels that the library derives from a lock's name, as Redisson spells them, and which names are valid.
 */
#include <stdlib.h>

#include "base/text.h"
#include "kinds.h"
#include "rlock.h"

#include "unit.h"

static struct rlock_name name_of(const char *text)
{
	return (struct rlock_name){ text, strlen(text) };
}

/* wire: Redisson wraps a name in braces unless it has an opening one, closed or not. */
static const struct {
	const char *name, *holds, *counter, *channel;
} names[] = {
	{ "a b", "rlock_holds:{a b}", "redisson_lock_token:{a b}", "redisson_lock__channel:{a b}" },
	{ "a{b", "rlock_holds:a{b", "redisson_lock_token:a{b", "redisson_lock__channel:a{b" },
	{ "{}x", "rlock_holds:{}x", "redisson_lock_token:{}x", "redisson_lock__channel:{}x" },
	{ "a}b", "rlock_holds:{a}b}", "redisson_lock_token:{a}b}", "redisson_lock__channel:{a}b}" },
	{ "%s", "rlock_holds:{%s}", "redisson_lock_token:{%s}", "redisson_lock__channel:{%s}" },
};

static void check_key(enum rlock__key which, struct rlock_name name, const char *want)
{
	struct rlock__keys keys;

	CHECK(rlock__keys_make(&keys, &name) && keys.of[which].len == strlen(want) &&
		      strcmp(keys.of[which].text, want) == 0,
	      "a key of '%.*s' is '%s'", (int)name.len, name.text, want);
	free(keys.memory);
}

static void check_keys(void)
{
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		struct rlock_name name = name_of(names[i].name);

		check_key(RLOCK__KEY_LOCK, name, names[i].name);
		check_key(RLOCK__KEY_HOLDS, name, names[i].holds);
		check_key(RLOCK__KEY_COUNTER, name, names[i].counter);
		check_key(RLOCK__KEY_CHANNEL, name, names[i].channel);
	}
	/* The length of the name counts: a NUL does not end it. */
	check_key(RLOCK__KEY_CHANNEL, (struct rlock_name){ "short{long}", 5 },
		  "redisson_lock__channel:{short}");
}

/* ---- valid names ---- */

static void check_validity(void)
{
	static char longest[RLOCK_NAME_MAX + 1];
	static const struct rlock_name good[] = {
		{ "L", 1 },    { "a b\t{c}:\"'\\*?[", 14 }, { "\xff\xfe", 2 }, { "-a", 2 },
		{ "a\nb", 1 }, { longest, RLOCK_NAME_MAX },
	};
	static const struct rlock_name bad[] = {
		{ "", 0 },     { "\n", 1 },   { "a\n", 2 },
		{ "a\nb", 3 }, { "a\0b", 3 }, { longest, RLOCK_NAME_MAX + 1 },
	};
	const char *unset = "unset", *why = unset;

	memset(longest, 'x', sizeof(longest));
	for (size_t i = 0; i < COUNT_OF(good); i++)
		CHECK(rlock_name_check(&good[i], &why) == RLOCK_OK && why == unset,
		      "row %zu is a valid name", i);
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		why = NULL;
		CHECK(rlock_name_check(&bad[i], &why) == RLOCK_EINVAL && why != NULL,
		      "row %zu is refused with a reason", i);
	}
}

/* ---- two names ---- */

static bool clash(const char *a, const char *b)
{
	const struct rlock_name one = name_of(a), other = name_of(b);
	bool result = rlock_names_clash(&one, &other);

	CHECK(rlock_names_clash(&other, &one) == result,
	      "the order of '%s' and '%s' does not decide whether they share keys", a, b);
	return result;
}

static void check_clashes(void)
{
	static const char *const sharing[][2] = {
		{ "a", "{a}" },
		{ "a", "rlock_holds:{a}" },
		{ "{a}", "rlock_holds:{a}" },
		{ "a{b}c", "rlock_waiters:a{b}c" },
		{ "a", "redisson_lock_timeout:{a}" },
	};
	static const char *const apart[][2] = {
		{ "a", "{a" },
		{ "a", "{a}b" },
		{ "{a}", "{{a}}" },
		{ "a", "rlock_holds:a" },
		{ "b", "rlock_holds:{a}" },
		{ "a", "redisson_lock__channel:{a}" },
	};

	for (size_t i = 0; i < COUNT_OF(sharing); i++)
		CHECK(clash(sharing[i][0], sharing[i][1]), "'%s' and '%s' share a key",
		      sharing[i][0], sharing[i][1]);
	for (size_t i = 0; i < COUNT_OF(apart); i++)
		CHECK(!clash(apart[i][0], apart[i][1]), "'%s' and '%s' share no key", apart[i][0],
		      apart[i][1]);
}

/* A cluster computes the slot from the text between a key's first braces, or from the whole key if there is none. */
static void check_slots(void)
{
	static const char *const whole[] = { "a", "{a}", "a{b}c", "{a}{b}", "a{b}}", "{{a}}" };
	static const char *const split[] = { "a}b", "{}a", "a{}", "{", "}", "a{b" };
	static const struct {
		const char *one, *other;
		bool is_same;
	} pairs[] = {
		{ "{x}a", "{x}b", true }, { "x", "{x}b", true },     { "{a}{b}", "{a}", true },
		{ "a", "b", false },      { "{x}a", "{y}a", false }, { "{a}{b}", "{b}", false },
	};
	/* list can find keys of other clients that are longer than any name may be. */
	static char text[8 * RLOCK_NAME_MAX];
	const struct rlock_name too_long = { memset(text, 'k', sizeof(text)), sizeof(text) };

	for (size_t i = 0; i < COUNT_OF(whole); i++) {
		const struct rlock_name name = name_of(whole[i]);

		CHECK(rlock__key_has_one_slot(&name), "the keys of '%s' are in one slot", whole[i]);
	}
	for (size_t i = 0; i < COUNT_OF(split); i++) {
		const struct rlock_name name = name_of(split[i]);

		CHECK(!rlock__key_has_one_slot(&name), "the keys of '%s' are in two slots",
		      split[i]);
	}
	CHECK(!rlock__key_has_one_slot(&too_long) && !rlock_names_clash(&too_long, &too_long),
	      "a text that is too long for a name has no slot and shares no keys");
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		const struct rlock_name one = name_of(pairs[i].one),
					other = name_of(pairs[i].other);
		int order = rlock__key_compare_slots(&one, &other);
		int back = rlock__key_compare_slots(&other, &one);

		CHECK((order == 0) == pairs[i].is_same && (order < 0) == (back > 0),
		      "'%s' and '%s' are in the same slot, or their slots have a fixed order",
		      pairs[i].one, pairs[i].other);
	}
}

void test_keys(void)
{
	check_keys();
	check_validity();
	check_clashes();
	check_slots();
}
