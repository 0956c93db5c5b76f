/* Write a JSON document piece by piece, without storing it. The callers decide what it contains. */
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

/* key: the member's name; NULL: an element of an array, or the document itself. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_number(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool is_true);
void json_null(struct json *json, const char *key);
/* Write a text that rlock has made; an empty text becomes null. */
void json_text(struct json *json, const char *key, const char *text);
/*
 * Write any bytes as text. If some bytes are not UTF-8, they become the text \xNN, and a second member, KEY_base64, has
 * all bytes. Control characters are always escaped.
 */
void json_bytes(struct json *json, const char *key, const char *bytes, size_t len);

#endif
