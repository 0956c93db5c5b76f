/*
 * The servers of a call, with their databases, passwords and certificates.
 */
#ifndef SERVERS_H
#define SERVERS_H

#include "options/opts.h"

/*
 * Set database, TLS, password and quorum of the URLs, and check them together. Returns 0, or the exit code after one
 * line by message_error.
 */
int servers_set(struct opts *opts);

#define ORIGIN_MAX 1024

/*
 * Print which source named the servers, for the message of a failure. servers_password_origin: which source gave their
 * passwords. Empty: nothing to say. Returns out.
 */
char *servers_origin(const struct opts *opts, char out[ORIGIN_MAX]);
char *servers_password_origin(const struct opts *opts, char out[ORIGIN_MAX]);
/*
 * Print which TLS option of the file does not count, because a higher source names the servers. Empty: none, or the
 * first server has no TLS. Returns out.
 */
char *servers_tls_origin(const struct opts *opts, char out[ORIGIN_MAX]);

/* Why an option has no effect on these URLs; empty: it has one. */
const char *servers_reason(const struct opts *opts, enum opt_id id);
/* Why a variable of the environment has no effect on these URLs; empty: it has one. */
const char *servers_variable_reason(const struct opts *opts, const char *variable);

#endif
