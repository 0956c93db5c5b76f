/*
 * Memory that a process which sleeps for long does not need.
 */
#ifndef SHRINK_H
#define SHRINK_H

/*
 * Give back the pages of program text and constants: they are read again from the files as they are
 * needed. Nothing that the process ever wrote is touched.
 */
void shrink_while_idle(void);

#endif
