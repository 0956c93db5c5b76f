/*
 * lib's text.c: what counts as a number in a reply of a server.
 */
#include <string.h>

#include "base/text.h"

#include "unit.h"

static const struct {
	const char *text;
	bool is_number;
	int64_t number;
} numbers[] = {
	{ "0", true, 0 },
	{ "42", true, 42 },
	{ "-1", true, -1 },
	{ "007", true, 7 },
	{ "9223372036854775807", true, INT64_MAX },
	{ "-9223372036854775808", true, INT64_MIN },
	{ "9223372036854775808", false, 0 },
	{ "-9223372036854775809", false, 0 },
	{ "", false, 0 },
	{ "-", false, 0 },
	{ "--1", false, 0 },
	{ "+1", false, 0 },
	{ " 1", false, 0 },
	{ "1 ", false, 0 },
	{ "1x", false, 0 },
	{ "x", false, 0 },
	{ "0x10", false, 0 },
	{ "1.5", false, 0 },
};

void test_decimal(void)
{
	int64_t number = 5;

	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		const char *text = numbers[i].text;
		bool is_number = rlock__decimal_parse(text, strlen(text), &number);

		CHECK(is_number == numbers[i].is_number, "'%s' is a number, or none", text);
		if (is_number)
			CHECK_NUMBER(number, numbers[i].number, "'%s' has its value", text);
	}
	number = 5;
	CHECK(!rlock__decimal_parse("1\0002", 3, &number),
	      "a number ends with its text, not with a NUL");
	CHECK_NUMBER(number, 5, "a text that is no number changes nothing");
}
