/*
 * What `rlock check` looks at on this machine.
 */
#ifndef CHECK_MACHINE_H
#define CHECK_MACHINE_H

#include "findings.h"

void check_machine(struct findings *findings);

#endif
