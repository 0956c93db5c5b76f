/*
 * The arguments of a release, which a waiter that leaves needs, too.
 */
#ifndef RLOCK_RELEASE_H
#define RLOCK_RELEASE_H

struct rlock__args;
struct rlock__script;
struct rlock_conn;
struct rlock_hold;

/* The arguments that release hold on conn and leave every queue; returns the script for them. */
const struct rlock__script *rlock__release_args(const struct rlock_conn *conn,
						const struct rlock_hold *hold,
						struct rlock__args *args);

#endif
