/*
 * The error text of a call, and its trace lines. A failure is also traced.
 */
#ifndef RLOCK_BASE_ERROR_H
#define RLOCK_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__error {
	enum rlock_status status; /* status of the last failure */
	const char *server;       /* the server that the text is about; belongs to its connection */
	/*
	 * peer: the server that the session connects to; NULL: none. origin: the member of the session's address.
	 * rlock__fail_peer uses both.
	 */
	const char *peer, *origin;
	/* Where the text has WHY, after rlock__fail_peer; 0: the text is another one, or was cut before WHY. */
	size_t why_at;
	rlock_trace_fn trace; /* NULL: none */
	void *trace_ctx;
	size_t name_index; /* the name in the request that the text is about */
	bool heals_itself; /* The cluster mends the cause by itself: a moving slot, a failed node. */
	bool is_of_master; /* Only a master sends such an error, and it remains the master: its memory or disk is full. */
	bool is_about_channel; /* after RLOCK_EACL: the user may not use the channel of the lock */
	struct rlock_failure failure;
	char text[RLOCK_ERROR_MAX];
};

/*
 * Set the text, and trace it. The text is about the first name of the request, unless the caller changes name_index afterwards.
 * Returns status, so that a caller can fail by one return statement.
 */
__attribute__((format(printf, 3, 4))) enum rlock_status
rlock__fail(struct rlock__error *error, enum rlock_status status, const char *format, ...);
enum rlock_status rlock__fail_memory(struct rlock__error *error);
/*
 * As rlock__fail, but about the connection to the peer. The text is "cannot reach PEER: WHY" for RLOCK_ENET, else
 * "cannot connect to PEER: WHY".
 */
__attribute__((format(printf, 3, 4))) enum rlock_status
rlock__fail_peer(struct rlock__error *error, enum rlock_status status, const char *format, ...);
/* Record that the text ends with reply, the server's own words. Nothing is recorded if the text was cut. */
void rlock__error_set_reply(struct rlock__error *error, const char *reply);
/* The server's own words at the end of the text; empty: none. */
const char *rlock__error_reply(const struct rlock__error *error);
__attribute__((format(printf, 2, 3))) void rlock__trace(const struct rlock__error *error,
							const char *format, ...);

#endif
