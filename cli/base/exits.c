/*
 * What the exit codes mean, and which status of the library becomes which of them.
 * What a command's own status becomes is decided where the command is watched.
 */
#include "base/exits.h"

const struct exit_text exit_texts[] = {
	{ 0, "done; status: all names are held" },
	{ EXIT_NOT_HELD,
	  "unlock, renew: the caller holds no such lock; status: a name is not held" },
	{ EXIT_USAGE, "usage: a bad option, value or name, or a deadlock" },
	{ EXIT_UNREACHABLE, "no server that can grant a lock was reached in time" },
	{ EXIT_FAULT, "a fault in rlock, or an unexpected reply of the server" },
	{ EXIT_SYSTEM, "a system call failed, or /proc is missing: processes, memory, runtime "
		       "directory" },
	{ EXIT_CONFLICT, "the lock was not acquired in time: another owner holds it" },
	{ EXIT_LOST, "the lock was lost" },
	{ EXIT_DENIED, "denied by the server: password or rights" },
	{ EXIT_CONFIG, "configuration: a bad file or certificate, an unsupported server, a key of "
		       "another kind" },
	{ EXIT_ENDED, "--max-run or --lease ended COMMAND" },
	{ EXIT_CANNOT_RUN, "COMMAND cannot be executed" },
	{ EXIT_NOT_FOUND, "COMMAND was not found" },
};

const size_t exit_text_count = sizeof(exit_texts) / sizeof(exit_texts[0]);

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
