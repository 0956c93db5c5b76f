/*
 * The user that rlock runs for, by name.
 */
#ifndef USER_H
#define USER_H

#define USER_UID_MAX 24

/*
 * The user's name is taken from the environment, because looking it up opens half a dozen files: for people, and no
 * proof. Where the environment has none it is "root", or "uid" with the number, in out.
 */
const char *user_name(char out[USER_UID_MAX]);

#endif
