/*
 * Whether this user has local: servers in other directories than this call's, for `rlock check`.
 */
#ifndef CHECK_LOCAL_H
#define CHECK_LOCAL_H

#include "findings.h"

/* dir_fd: the runtime directory of this call. Where it has no such server, none is looked for. */
void check_local(struct findings *findings, int dir_fd);

#endif
