/*
 * The name of each status, for logs and traces.
 * What happened in a particular case is told by error.c; the exit code is for cli/.
 */
#include "rlock.h"

const char *rlock_status_name(enum rlock_status status)
{
	switch (status) {
	case RLOCK_OK:
		return "ok";
	case RLOCK_BUSY:
		return "busy";
	case RLOCK_NOT_HELD:
		return "not_held";
	case RLOCK_CANCELLED:
		return "cancelled";
	case RLOCK_NOT_NOTIFIED:
		return "not_notified";
	case RLOCK_ENET:
		return "enet";
	case RLOCK_EAUTH:
		return "eauth";
	case RLOCK_EACL:
		return "eacl";
	case RLOCK_EKIND:
		return "ekind";
	case RLOCK_EDEADLOCK:
		return "edeadlock";
	case RLOCK_EUNSUPPORTED:
		return "eunsupported";
	case RLOCK_EINVAL:
		return "einval";
	case RLOCK_ENOMEM:
		return "enomem";
	case RLOCK_ESYS:
		return "esys";
	case RLOCK_ESERVER:
		return "eserver";
	}
	return "unknown";
}
