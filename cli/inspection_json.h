/*
 * What a server says of a name, as JSON.
 */
#ifndef INSPECTION_JSON_H
#define INSPECTION_JSON_H

#include "base/json.h"
#include "lib/rlock.h"

/* The members of an object that the caller has opened; rlock-output(5) lists them. */
void inspection_json(struct json *json, const struct rlock_inspection *inspection);

#endif
