/*
 * A file that can't be opened for want of descriptors may be there all the same: who takes it for missing
 * forgets a lock that is held.
 */
#include <errno.h>

#include "sys/transient_errno.h"

bool is_transient_errno(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ||
	       error == EINTR || error == EIO;
}
