/*
 * The table of verbs. `rlock help` and the messages about verbs are made from it. options/table.c decides which options
 * a verb takes.
 */
#include <string.h>

#include "verbs.h"

#define RUN_EXAMPLES                                                                               \
	"  One deployment at a time; the others wait, for 15 minutes at most:\n"                   \
	"      rlock run --wait 15m deploy -- ./deploy.sh\n"                                       \
	"  A line of a crontab that all machines have; one of them does the work:\n"               \
	"      rlock run -n -E 0 --at-least 1m nightly -- ./backup.sh\n"                           \
	"  Two locks, all or none, for a line of shell:\n"                                         \
	"      rlock run web database -- sh -c './migrate.sh && ./restart.sh'\n"
#define SEM_EXAMPLES                                                                               \
	"  Three imports at a time, on all machines; the others wait:\n"                           \
	"      rlock sem --permits 3 imports -- ./import.sh\n"                                     \
	"  A job that needs two of five licences at once:\n"                                       \
	"      rlock sem --permits 5 --take 2 licences -- ./simulate.sh\n"                         \
	"  There are eight of them from now on:\n"                                                 \
	"      rlock sem --permits 8 --resize licences\n"
#define READ_SUMMARY "acquire a read lock, which other readers share"
#define READ_DESCRIPTION                                                                            \
	"As lock, but shared: any number of readers hold the lock together, while no writer does. " \
	"The holder of the write lock may acquire the read lock, too. read and rlock are the same."
#define WRITE_SUMMARY "acquire a write lock, which excludes readers and writers"
#define WRITE_DESCRIPTION                                                                            \
	"As lock, but exclusive: no other reader or writer of that NAME holds the lock. Readers of " \
	"rlock that come later wait until the writer has released it. A read lock cannot be "        \
	"upgraded: for its holder the write lock would be a deadlock, and fails with 64. write "     \
	"and wlock are the same."

const struct verb verbs[] = {
	{ "run", cmd_lock, RLOCK_PLAIN, VERBS_LOCK, COMMAND_NEEDED, NULL,
	  "hold a lock while a command runs",
	  .description =
		  "Waits for the lock, runs COMMAND, and releases the lock when COMMAND ends. "
		  "The exit code is COMMAND's; 75 when the lock was not acquired in time, 76 "
		  "when it was lost. Of several NAMEs either all are acquired or none.",
	  .examples = RUN_EXAMPLES },
	{ "lock", cmd_lock, RLOCK_PLAIN, VERBS_LOCK, COMMAND_OPTIONAL, NULL,
	  "acquire a lock, for a command or for a process",
	  .description =
		  "With a COMMAND the same as run. Without one the lock belongs to the process of "
		  "--pid, in a script: rlock lock --pid $$ NAME, and is held until 'rlock unlock', "
		  "or until that process ends; or to the ID of --owner." },
	{ "fair", cmd_lock, RLOCK_FAIR, VERBS_LOCK, COMMAND_OPTIONAL, NULL,
	  "acquire a lock first come, first served, from a queue",
	  .description =
		  "As lock, but waiters acquire the lock in the order of a queue, which they "
		  "share with Redisson's fair locks. With several NAMEs a waiter joins the queue "
		  "of each." },
	{ "read", cmd_lock, RLOCK_READ, VERBS_LOCK, COMMAND_OPTIONAL, NULL, READ_SUMMARY,
	  .description = READ_DESCRIPTION },
	{ "write", cmd_lock, RLOCK_WRITE, VERBS_LOCK, COMMAND_OPTIONAL, NULL, WRITE_SUMMARY,
	  .description = WRITE_DESCRIPTION },
	{ "rlock", cmd_lock, RLOCK_READ, VERBS_LOCK, COMMAND_OPTIONAL, "read", READ_SUMMARY,
	  .description = READ_DESCRIPTION },
	{ "wlock", cmd_lock, RLOCK_WRITE, VERBS_LOCK, COMMAND_OPTIONAL, "write", WRITE_SUMMARY,
	  .description = WRITE_DESCRIPTION },
	{ "sem", cmd_sem, RLOCK_SEMAPHORE, VERBS_SEM, COMMAND_OPTIONAL, NULL,
	  "acquire a permit of a semaphore, for N holders at a time",
	  .description =
		  "As lock, but at most --permits N holders have a permit at a time, on all "
		  "machines, Redisson's RPermitExpirableSemaphore and RSemaphore included. A "
		  "call inside COMMAND acquires a permit of its own. A total that others have "
		  "set is kept, with a warning; --resize changes it.",
	  .examples = SEM_EXAMPLES },
	{ "unlock", NULL, RLOCK_PLAIN, VERBS_UNLOCK, COMMAND_NONE, NULL, "release a lock",
	  .act = cmd_unlock,
	  .description =
		  "Releases the latest lock that the caller acquired under that NAME. The exit "
		  "code is 0; 1 when the caller holds no such lock, 76 when it was lost." },
	{ "renew", NULL, RLOCK_PLAIN, VERBS_RENEW, COMMAND_NONE, NULL,
	  "renew a lock once, and print its TTL", .act = cmd_renew,
	  .description =
		  "Renews the caller's lock of that NAME, and prints how long its lease lasts "
		  "from now. The exit code is 0; 1 when the caller holds no such lock, 76 when "
		  "it was lost." },
	{ "stop", NULL, RLOCK_PLAIN, VERBS_STOP, COMMAND_NONE, NULL,
	  "ask a lock's holder to end its command and to release it", .act = cmd_stop,
	  .description =
		  "The safe way to break a lock: each holder's rlock reads the request with its next "
		  "renewal, a third of its --ttl later at most, terminates its COMMAND as --max-run "
		  "does, releases the lock, and exits with 124. A process of --pid gets SIGTERM. stop "
		  "waits until the lock is released; the request stays in effect after the wait. "
		  "The exit code is 0 when the lock is released, 75 when it is still held, or a holder "
		  "cannot be asked, 1 when it was not held." },
	{ "status", NULL, RLOCK_PLAIN, VERBS_STATUS, COMMAND_NONE_MAYBE_NAMES, NULL,
	  "show the holders of a lock, its TTL and its queue", .act = cmd_status,
	  .description =
		  "Prints what each NAME is: the kind of the lock, its holders, since when and "
		  "how much longer, and the waiters. It changes nothing. The exit code is 0 when "
		  "all of them are held, 1 when one is not. Without a NAME it is list." },
	{ "list", NULL, RLOCK_PLAIN, VERBS_LIST, COMMAND_NONE_BUT_PATTERN, NULL,
	  "list the locks that are held", .act = cmd_list,
	  .description =
		  "Prints each lock that is held on the server, or those whose name fits "
		  "PATTERN, in which * and ? stand for any characters. All keys are scanned, a "
		  "few at a time, and nothing is changed." },
	{ "check", cmd_check, RLOCK_PLAIN, VERBS_CHECK, COMMAND_NONE_BUT_PATTERN, NULL,
	  "find out whether locks can be relied on here",
	  .description =
		  "Connects as a lock would, and checks each server and this machine: "
		  "whether the server can grant locks and keep them, how long it takes to reply, "
		  "whether the user has all rights. A user that has rights to some names only "
		  "gives their PATTERN, like nightly*. Of a semaphore's NAME it also says how many "
		  "permits have no record of a holder. The exit code is 0 when all is sound, 69 when a "
		  "server cannot be reached, 77 when a right to locks is missing, 78 when something "
		  "else is not sound." },
};

const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);

const struct verb *verbs_find(const char *name)
{
	for (size_t i = 0; i < verb_count; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}
