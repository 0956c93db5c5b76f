/*
 * Names the user by the environment alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/user.h"

const char *user_name(char out[USER_UID_MAX])
{
	const char *user = getenv("LOGNAME");

	if (user == NULL || user[0] == '\0')
		user = getenv("USER");
	if (user != NULL && user[0] != '\0')
		return user;
	if (geteuid() == 0)
		return "root";
	(void)snprintf(out, USER_UID_MAX, "uid%u", (unsigned)getuid());
	return out;
}
