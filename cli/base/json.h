/*
 * Writes a JSON document, without keeping any of it. What it says is left to the callers.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool needs_comma;
};

/* Each takes the name of a member; NULL: an element of an array, or the document itself. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_number(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool is_true);
void json_null(struct json *json, const char *key);
/* A text of ours; empty is written as null. */
void json_text(struct json *json, const char *key, const char *text);
/*
 * Any bytes. One that is no UTF-8 becomes the text \xNN, and then a member with "_base64" after the key has all of them.
 * What a terminal would obey is escaped in either case.
 */
void json_bytes(struct json *json, const char *key, const char *bytes, size_t len);

#endif
