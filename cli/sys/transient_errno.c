/*
 * Tells passing errors from lasting ones. A file that cannot be opened for lack of descriptors may exist all
 * the same: if rlock took it for missing, it would miss a lock that is held.
 */
#include <errno.h>

#include "sys/transient_errno.h"

bool is_transient_errno(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ||
	       error == EINTR || error == EIO;
}
