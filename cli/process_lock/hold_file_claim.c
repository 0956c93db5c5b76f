/*
 * Lets one unlock at a time release by a hold file: a second unlock would report a lock as lost that the first one has
 * released meanwhile. hold_file.c knows what is in the file, and cmd_unlock.c releases the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "process_lock/hold_file_claim.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"

/* Longer than an unlock has its claim: RELEASE_MS of finish.c, 5 s, bounds its request. */
#define CLAIM_MS 10000
#define CLAIM_LOOK_MS 10

/*
 * False when another unlock locks the file for too long, since it is stopped, say. Where files cannot be locked, no
 * unlock is kept out.
 */
static bool lock_file(int fd)
{
	int64_t end_ms = rlock_now_ms() + CLAIM_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
		if (rlock_now_ms() >= end_ms)
			return false;
		(void)poll(NULL, 0, CLAIM_LOOK_MS);
	}
	return true;
}

/* Another unlock may have come and gone after the search that found the file. */
static bool read_again(struct hold_file *file, const char *name)
{
	struct hold_file *read = hold_file_read(file->dir_fd, name);

	if (read == NULL)
		return false;
	file->sent_ms = read->sent_ms;
	file->lease_ms = read->lease_ms;
	file->is_lost = read->is_lost;
	file->is_abandoned = read->is_abandoned;
	hold_file_free(read);
	return true;
}

int hold_file_claim(struct hold_file *file, bool *is_ours_out)
{
	char name[HOLD_FILE_NAME_MAX];

	*is_ours_out = false;
	hold_file_name(file, name);
	file->claim_fd = openat(file->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file->claim_fd < 0 && errno == ENOENT)
		return 0;
	if (file->claim_fd < 0) {
		message_error("cannot open '%s/%s': %s", runtime_dir_path(), name, strerror(errno));
		return EXIT_SYSTEM;
	}
	if (!lock_file(file->claim_fd)) {
		message_error(
			"another unlock of this lock has not ended within %d s: try again, or terminate it",
			CLAIM_MS / 1000);
		return EXIT_SYSTEM;
	}
	/* flock locks the file, not its name: after another unlock the name may be another file's, or no file's. */
	*is_ours_out = file_is_named(file->claim_fd, file->dir_fd, name) && read_again(file, name);
	return 0;
}
