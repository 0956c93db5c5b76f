/*
 * units.c: valid and invalid durations, rounding, the limit, and durations as text. notation.c: the notations of other
 * programs.
 */
#include "base/units.h"
#include "options/notation.h"

#include "unit.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define LONGEST_MS (10000 * DAY_MS)

static const struct {
	const char *text;
	int64_t ms;
} good[] = {
	{ "007", 7 * SECOND_MS },
	{ "1500ms", 1500 },
	{ "2m", 2 * MINUTE_MS },
	{ "0d", 0 },
	{ "1d2h3m4s5ms", DAY_MS + 2 * HOUR_MS + 3 * MINUTE_MS + 4 * SECOND_MS + 5 },
	{ "1h0.5m", HOUR_MS + 30 * SECOND_MS },
	/* fractions */
	{ "0.25d", 6 * HOUR_MS },
	{ ".5", 500 },
	{ "5.s", 5 * SECOND_MS },
	{ "1.50000000000000000000000000000000000000000000000000s", 1500 },
	{ "1.001d", DAY_MS + 86400 },
	/* rounded up to the next millisecond */
	{ "0.0009", 1 },
	{ "0.0010", 1 },
	{ "0.0011", 2 },
	{ "1.2ms", 2 },
	{ "0.00000000000000000000000000000000000000000000000001s", 1 },
	{ "0.00000000000000000000000000000000000000000000000000s", 0 },
	{ "0.99999999999999999999999999999999999999999999999999s", SECOND_MS },
	{ "0.33333333333333333333d", 28800000 },
	/* the limit */
	{ "10000.000d", LONGEST_MS },
	{ "9999d24h", LONGEST_MS },
	{ "864000000", LONGEST_MS },
	{ "863999999999.5ms", LONGEST_MS },
	{ "00000000000000000000000000000000000001s", SECOND_MS },
};

static const char *const bad[] = {
	"",
	".",
	"s",
	".s",
	"-1",
	"+5",
	" 5",
	"5 ",
	"5 s",
	"5\n",
	"5S",
	"5min",
	"5w",
	"5us",
	"5s5",
	"30s1m",
	"1m1m",
	"1m30",
	"1m-30s",
	"1:30",
	"1e3",
	"0x10",
	"1,5s",
	"1.5.5",
	"1..5",
	"1_000",
	"inf",
	"nan",
	"five",
	"\xd9\xa5",
	"5\xc2\xb5s",
	/* too long */
	"10000d1ms",
	"10000d10000d",
	"10000.0000000001d",
	"240001h",
	"864000000.0001",
	"864000000000.1ms",
	"9223372036854775807ms",
	"9223372036854775808ms",
	"18446744073709551617ms",
	"106751991168d",
	"213503982335d",
	"99999999999999999999999999999999999999999999999999999999d",
};

static const struct {
	int64_t ms;
	const char *text;
} printed[] = {
	{ 0, "0s" },
	{ 999, "999ms" },
	{ 1001, "1.001s" },
	{ 1100, "1.1s" },
	{ 60000, "1m" },
	{ 60500, "60.5s" },
	{ 100 * MINUTE_MS, "100m" },
	{ 36 * HOUR_MS, "36h" },
	{ DAY_MS + 1, "86400.001s" },
	{ LONGEST_MS, "10000d" },
	{ INT64_MAX, "9223372036854775.807s" },
};

static const struct {
	int64_t ms;
	const char *text;
} rough[] = {
	{ -1, "-" },
	{ 499, "0.4s" },
	{ 1000, "1s" },
	{ 59999, "59s" },
	{ MINUTE_MS, "1m00s" },
	{ 125 * MINUTE_MS, "2h05m" },
	{ DAY_MS - 1, "23h59m" },
	{ 4 * DAY_MS + 7 * HOUR_MS, "4d07h" },
	{ INT64_MAX, "106751991167d07h" },
};

static const char *const translated[][2] = {
	{ "2h30", "2h30m" },
	{ "1d12", "1d12h" },
	{ "10min", "10m" },
	{ "5mins", "5m" },
	{ "1hour", "1h" },
	{ "1h 30m", "1h30m" },
	{ " 1 hour 30 minutes ", "1h30m" },
	{ "5 s", "5s" },
	{ "00:05:00", "5m" },
	{ "1:00:30", "1h30s" },
	{ "00:00:00", "0s" },
	{ "PT5M", "5m" },
	{ "P1DT2H3M4S", "1d2h3m4s" },
	{ "PT0.5S", "0.5s" },
	{ "P2W", "14d" },
	{ "1w", "7d" },
	{ "5M", "5m" },
	{ "500MS", "500ms" },
	{ "1_000", "1000" },
	{ "1_500ms", "1500ms" },
	{ "1,5h", "1.5h" },
	{ "10sec", "10s" },
};

/* Durations in our notation, other texts, and durations that may have several meanings. */
static const char *const untranslated[] = {
	"",
	"30s",
	"1h30m",
	"5",
	"1:30",
	"P1M",
	"P1Y",
	"PT",
	"P",
	"1,000",
	"1,000s",
	"5s5",
	"1_2",
	"1_0000",
	"30s1m",
	"m",
	"5x",
	"-5m",
	"5m-",
	"5 5",
	"1h 30 5",
	"00:99:00",
	"1:2:3:4",
	"1::2",
	"1:2:",
	":1:2",
	"1:2:3s",
	"1.5w",
	"10001 days",
	"p1d",
	"0x10",
	"1e3",
	"1m30s x",
	"9_999_999_999",
	"111111111111111111111111111111111111111111111111111111111111111111111111111111 min",
	"1111111111111111111111111111111 min",
};

static void check_notations(void)
{
	char text[DURATION_TEXT_MAX];

	for (size_t i = 0; i < COUNT_OF(translated); i++) {
		(void)strcpy(text, "none");
		(void)notation_translate(translated[i][0], text);
		CHECK_STRING(text, translated[i][1], "the translation of '%s'", translated[i][0]);
	}
	for (size_t i = 0; i < COUNT_OF(untranslated); i++)
		CHECK(!notation_translate(untranslated[i], text), "'%s' is not translated",
		      untranslated[i]);
}

static bool comes_back(int64_t ms)
{
	char text[DURATION_TEXT_MAX];
	int64_t back = -1;

	return duration_parse(duration_print(ms, text), &back) && back == ms;
}

static void check_way_back(void)
{
	int64_t lost = -1;

	for (int64_t ms = 0; ms <= LONGEST_MS && lost < 0; ms += ms < 200000 ? 1 : ms / 7)
		if (!comes_back(ms))
			lost = ms;
	CHECK_NUMBER(lost, -1, "what is printed is read as the same duration");
}

void test_duration(void)
{
	char text[DURATION_TEXT_MAX];

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		int64_t ms = -1;

		(void)duration_parse(good[i].text, &ms);
		CHECK_NUMBER(ms, good[i].ms, "'%s' is a duration", good[i].text);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		int64_t ms = 42;

		CHECK(!duration_parse(bad[i], &ms) && ms == 42,
		      "'%s' is refused, and the result is unchanged", unit_shown(bad[i]));
	}
	for (size_t i = 0; i < COUNT_OF(printed); i++)
		CHECK_STRING(duration_print(printed[i].ms, text), printed[i].text,
			     "%" PRId64 " ms is printed exactly", printed[i].ms);
	for (size_t i = 0; i < COUNT_OF(rough); i++)
		CHECK_STRING(duration_print_rough(rough[i].ms, text), rough[i].text,
			     "%" PRId64 " ms is printed roughly", rough[i].ms);
	check_way_back();
	check_notations();
}
