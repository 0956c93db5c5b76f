/*
 * From a status of the library to the exit code that scripts see.
 * What a command's own status becomes is decided where the command is watched.
 */
#include "base/exits.h"

int exit_code_of(enum rlock_status status)
{
	/* No default: the compiler says when a status has no code yet. */
	switch (status) {
	case RLOCK_OK:
	case RLOCK_NOT_NOTIFIED: /* it was done; that no waiter was notified is a warning */
		return 0;
	case RLOCK_BUSY:
		return EXIT_CONFLICT;
	case RLOCK_NOT_HELD:
		return EXIT_LOST;
	case RLOCK_ENET:
		return EXIT_UNREACHABLE;
	case RLOCK_EAUTH:
	case RLOCK_EACL:
		return EXIT_DENIED;
	case RLOCK_EKIND:
	case RLOCK_EUNSUPPORTED:
		return EXIT_CONFIG;
	case RLOCK_EDEADLOCK:
	case RLOCK_EINVAL:
		return EXIT_USAGE;
	case RLOCK_ENOMEM:
	case RLOCK_ESYS:
		return EXIT_SYSTEM;
	case RLOCK_ESERVER:
	case RLOCK_CANCELLED: /* rlock ends by a signal then: a caller that asks for a code is at fault */
		return EXIT_FAULT;
	}
	return EXIT_FAULT;
}
