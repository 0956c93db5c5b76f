/*
 * The form of the ids by which a server tells holders apart.
 */
#ifndef RLOCK_OWNER_H
#define RLOCK_OWNER_H

#include "rlock.h"

struct rlock__error;

/* rlock_owner_check, with the reason in the text of error. */
enum rlock_status rlock__owner_check(struct rlock__error *error, const char *owner);
/* RLOCK_EINVAL, with its text: id is none that rlock_hold_id_new makes. */
enum rlock_status rlock__hold_id_check(struct rlock__error *error, const char *id);

#endif
