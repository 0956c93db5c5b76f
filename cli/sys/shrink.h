/*
 * Memory that a process does not need while it sleeps.
 */
#ifndef SHRINK_H
#define SHRINK_H

/*
 * Release the pages of program text and constants: the kernel reads them from the files again when they are needed.
 * Pages that the process has written stay.
 */
void shrink_while_idle(void);

#endif
