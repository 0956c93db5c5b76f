/*
 * What the kernel must be able to do for a lock to be held at all.
 */
#ifndef KERNEL_H
#define KERNEL_H

/*
 * Whether processes can be watched and signalled by descriptor (pidfds). 0, or the exit code after one line by
 * message_error that names the kernel or the sandbox.
 */
int kernel_check(void);

#endif
