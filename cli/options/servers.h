/*
 * The servers of a call, with their databases, passwords and certificates.
 */
#ifndef SERVERS_H
#define SERVERS_H

#include "options/opts.h"

/*
 * Set database, TLS, password and quorum of the URLs, and check that they go together. 0, or the exit code after one line
 * by message_error.
 */
int servers_set(struct opts *opts);

#define ORIGIN_MAX 1024

/* From which source the servers, and their passwords, are, for a call that fails; empty: nothing to say. Returns out. */
char *servers_origin(const struct opts *opts, char out[ORIGIN_MAX]);
char *servers_password_origin(const struct opts *opts, char out[ORIGIN_MAX]);
/* The option of the file that would have said how to trust the servers, where a higher source names them. Empty: none. */
char *servers_tls_origin(const struct opts *opts, char out[ORIGIN_MAX]);

/* Why an option that counts is not used after all, since the URLs say it; empty: it is used. */
const char *servers_reason(const struct opts *opts, enum opt_id id);
/* The same for a variable of the environment. */
const char *servers_variable_reason(const struct opts *opts, const char *variable);

#endif
