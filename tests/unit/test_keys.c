/*
 * What the library makes of a lock's name: its keys and channels, as Redisson spells them, if it may be a name at all.
 */
#include <stdlib.h>

#include "base/text.h"
#include "kinds.h"
#include "rlock.h"

#include "unit.h"

/* wire: Redisson wraps a name in braces unless it has an opening one, closed or not. */
static const struct {
	const char *name, *holds, *counter, *channel;
} names[] = {
	{ "L", "rlock_holds:{L}", "redisson_lock_token:{L}", "redisson_lock__channel:{L}" },
	{ "a b", "rlock_holds:{a b}", "redisson_lock_token:{a b}", "redisson_lock__channel:{a b}" },
	{ "a{b}c", "rlock_holds:a{b}c", "redisson_lock_token:a{b}c",
	  "redisson_lock__channel:a{b}c" },
	{ "{b}", "rlock_holds:{b}", "redisson_lock_token:{b}", "redisson_lock__channel:{b}" },
	{ "a{b", "rlock_holds:a{b", "redisson_lock_token:a{b", "redisson_lock__channel:a{b" },
	{ "{}x", "rlock_holds:{}x", "redisson_lock_token:{}x", "redisson_lock__channel:{}x" },
	{ "a}b", "rlock_holds:{a}b}", "redisson_lock_token:{a}b}", "redisson_lock__channel:{a}b}" },
	{ "}", "rlock_holds:{}}", "redisson_lock_token:{}}", "redisson_lock__channel:{}}" },
	{ "%s", "rlock_holds:{%s}", "redisson_lock_token:{%s}", "redisson_lock__channel:{%s}" },
	{ "\xc3\xa4", "rlock_holds:{\xc3\xa4}", "redisson_lock_token:{\xc3\xa4}",
	  "redisson_lock__channel:{\xc3\xa4}" },
};

static void check_key(enum rlock__key which, const struct rlock_name *name, const char *want,
		      const char *what)
{
	struct rlock__keys keys;

	CHECK(rlock__keys_make(&keys, name) && keys.of[which].len == strlen(want) &&
		      strcmp(keys.of[which].text, want) == 0,
	      "the %s of '%.*s' is '%s'", what, (int)name->len, name->text, want);
	free(keys.memory);
}

static void check_names(void)
{
	size_t i;

	for (i = 0; i < COUNT_OF(names); i++) {
		struct rlock_name name = { names[i].name, strlen(names[i].name) };

		check_key(RLOCK__KEY_LOCK, &name, names[i].name, "lock");
		check_key(RLOCK__KEY_HOLDS, &name, names[i].holds, "holds hash");
		check_key(RLOCK__KEY_COUNTER, &name, names[i].counter, "fencing counter");
		check_key(RLOCK__KEY_CHANNEL, &name, names[i].channel, "channel");
	}
}

/* The name ends where its length says. */
static void check_length(void)
{
	struct rlock_name name = { "short{long}", 5 };

	check_key(RLOCK__KEY_LOCK, &name, "short", "lock");
	check_key(RLOCK__KEY_CHANNEL, &name, "redisson_lock__channel:{short}", "channel");
}

static enum rlock_status check_name(const char *text, size_t len, const char **why)
{
	struct rlock_name name = { text, len };

	return rlock_name_check(&name, why);
}

static void check_valid_names(void)
{
	static char long_name[RLOCK_NAME_MAX + 1];
	const char *unset = "unset", *why = unset;

	memset(long_name, 'x', sizeof(long_name));
	CHECK(check_name("L", 1, &why) == RLOCK_OK, "one letter is a name");
	CHECK(check_name("a b\t{c}:\"'\\*?[", 14, &why) == RLOCK_OK,
	      "odd characters are no matter");
	CHECK(check_name("\xff\xfe", 2, &why) == RLOCK_OK, "a name need not be UTF-8");
	CHECK(check_name("a-", 2, &why) == RLOCK_OK, "a '-' may stand inside a name");
	CHECK(check_name("a\nb", 1, &why) == RLOCK_OK, "a newline behind the name is none in it");
	CHECK(check_name(long_name, RLOCK_NAME_MAX, &why) == RLOCK_OK, "512 bytes are a name");
	CHECK(why == unset, "a good name leaves the reason as it was");
	CHECK(check_name(long_name, RLOCK_NAME_MAX + 1, &why) == RLOCK_EINVAL,
	      "513 bytes are too many");
	CHECK(why != unset && why != NULL && *why != '\0', "a bad name has a reason");
}

static void check_bad_names(void)
{
	static const struct {
		const char *text;
		size_t len;
		const char *what;
	} bad[] = {
		{ "", 0, "an empty name" },
		{ "\n", 1, "a newline" },
		{ "a\n", 2, "a newline at the end" },
		{ "a\nb", 3, "a newline inside" },
		{ "\0", 1, "a NUL" },
		{ "a\0b", 3, "a NUL inside" },
	};
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		const char *why = NULL;

		CHECK(check_name(bad[i].text, bad[i].len, &why) == RLOCK_EINVAL && why != NULL,
		      "%s is refused with a reason", bad[i].what);
	}
}

static bool clash(const char *a, const char *b)
{
	const struct rlock_name one = { a, strlen(a) }, other = { b, strlen(b) };

	return rlock_names_clash(&one, &other);
}

/* Two names that share a key. */
static void check_clashes(void)
{
	static const char *const sharing[][2] = { { "a", "a" },
						  { "a", "{a}" },
						  { "a", "rlock_holds:{a}" },
						  { "{a}", "rlock_holds:{a}" },
						  { "a{b}c", "rlock_waiters:a{b}c" },
						  { "a", "redisson_lock_token:{a}" },
						  { "a", "redisson_lock_queue:{a}" },
						  { "a", "redisson_lock_timeout:{a}" },
						  { "a", "rlock_writer:{a}" } };
	static const char *const apart[][2] = { { "a", "b" },
						{ "a", "a}" },
						{ "a", "{a" },
						{ "a", "{a}b" },
						{ "{a}", "{{a}}" },
						{ "a", "rlock_holds:a" },
						{ "b", "rlock_holds:{a}" },
						{ "a", "redisson_lock__channel:{a}" } };

	for (size_t i = 0; i < COUNT_OF(sharing); i++)
		CHECK(clash(sharing[i][0], sharing[i][1]) && clash(sharing[i][1], sharing[i][0]),
		      "'%s' and '%s' share a key", sharing[i][0], sharing[i][1]);
	for (size_t i = 0; i < COUNT_OF(apart); i++)
		CHECK(!clash(apart[i][0], apart[i][1]) && !clash(apart[i][1], apart[i][0]),
		      "'%s' and '%s' share none", apart[i][0], apart[i][1]);
}

/* The slot of a cluster is that of the part between a key's first braces, if there is one, else of the whole key. */
static void check_slots(void)
{
	static const char *const whole[] = {
		"a", "{a}", "a{b}c", "{a}{b}", "a{b}}", "{{a}}", "a:b"
	};
	static const char *const split[] = { "a}b", "{}a", "a{}", "{", "}", "a{b", "{a", "{}" };
	static const struct {
		const char *one, *other;
		bool is_same;
	} pairs[] = {
		{ "a", "a", true },        { "{x}a", "{x}b", true },  { "x", "{x}b", true },
		{ "a", "b", false },       { "{x}a", "{y}a", false }, { "{a}{b}", "{b}", false },
		{ "{a}{b}", "{a}", true },
	};

	for (size_t i = 0; i < COUNT_OF(whole); i++) {
		const struct rlock_name name = { whole[i], strlen(whole[i]) };

		CHECK(rlock__key_has_one_slot(&name), "the keys of '%s' are in one slot", whole[i]);
	}
	for (size_t i = 0; i < COUNT_OF(split); i++) {
		const struct rlock_name name = { split[i], strlen(split[i]) };

		CHECK(!rlock__key_has_one_slot(&name), "the keys of '%s' are in two slots",
		      split[i]);
	}
	{
		/* As a key of another client may be called, which list finds. */
		static char text[8 * RLOCK_NAME_MAX];
		const struct rlock_name name = { memset(text, 'k', sizeof(text)), sizeof(text) };

		CHECK(!rlock__key_has_one_slot(&name), "what is too long to be a name has no slot");
		CHECK(!rlock_names_clash(&name, &name),
		      "what is too long to be a name clashes with none");
	}
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		const struct rlock_name one = { pairs[i].one, strlen(pairs[i].one) };
		const struct rlock_name other = { pairs[i].other, strlen(pairs[i].other) };

		CHECK((rlock__key_compare_slots(&one, &other) == 0) == pairs[i].is_same,
		      "'%s' and '%s': whether they are in one slot", pairs[i].one, pairs[i].other);
		CHECK((rlock__key_compare_slots(&one, &other) < 0) ==
			      (rlock__key_compare_slots(&other, &one) > 0),
		      "'%s' and '%s': one order of their slots", pairs[i].one, pairs[i].other);
	}
}

void test_keys(void)
{
	check_names();
	check_clashes();
	check_slots();
	check_length();
	check_valid_names();
	check_bad_names();
}
