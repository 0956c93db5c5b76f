/*
 * One file a hold in the runtime directory, "hold-PID-START-HOLDID", lines "key value". It says
 * whose the lock is and how to give it back; the secret to reach the server is not in it. Files of
 * processes that are gone are removed by whoever comes by in the same pid namespace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/number.h"
#include "base/say.h"
#include "options/names.h"
#include "options/usage.h"
#include "process_lock/held.h"
#include "process_lock/runtime.h"
#include "process_lock/session.h"
#include "sys/procs.h"
#include "sys/shortage.h"

#define FILE_PREFIX "hold-"
#define NEW_PREFIX "new-"
#define FILE_NAME_MAX 128
#define FILE_SIZE_MAX (1 << 18)
#define TIME_MAX_MS (INT64_MAX / 4)
/* Longer than an unlock takes at most. */
#define CLAIM_MS 10000
#define CLAIM_LOOK_MS 10

void session_free(struct session *session)
{
	if (session == NULL)
		return;
	for (size_t i = 0; i < session->name_count; i++) {
		free((char *)session->names[i].text);
		free(session->owners[i]);
	}
	free(session->names);
	free(session->owners);
	free(session->server);
	if (session->dir_fd >= 0)
		(void)close(session->dir_fd);
	if (session->claim_fd >= 0)
		(void)close(session->claim_fd);
	free(session);
}

bool session_add_name(struct session *session, const char *name, size_t name_len, const char *owner)
{
	size_t count = session->name_count + 1;
	struct rlock_name *names = realloc(session->names, count * sizeof(*names));
	char **owners, *name_copy, *owner_copy;

	if (names != NULL)
		session->names = names;
	owners = realloc(session->owners, count * sizeof(*owners));
	if (owners != NULL)
		session->owners = owners;
	name_copy = strndup(name, name_len);
	owner_copy = strdup(owner);
	if (names == NULL || owners == NULL || name_copy == NULL || owner_copy == NULL) {
		free(name_copy);
		free(owner_copy);
		return false;
	}
	names[session->name_count] = (struct rlock_name){ name_copy, name_len };
	owners[session->name_count++] = owner_copy;
	return true;
}

static void file_name(const struct session *session, char out[FILE_NAME_MAX])
{
	(void)snprintf(out, FILE_NAME_MAX, FILE_PREFIX "%d-%" PRIu64 "-%s", (int)session->pid,
		       session->start, session->hold_id);
}

/* ---- write ---- */

static int say_unwritable(const struct session *session, const char *file)
{
	int error = errno;

	say_error("cannot write '%s/%s': %s", runtime_path_of(session->dir_fd), file,
		  strerror(error));
	return EXIT_SYSTEM;
}

static void print_session(FILE *file, const struct session *session)
{
	char encoded[3 * RLOCK_NAME_MAX + 1];

	(void)fprintf(file, "server %s\nkind %s\npid_namespace %" PRIu64 "\n", session->server,
		      rlock_kind_name(session->kind), session->pid_namespace);
	(void)fprintf(file, "sent_ms %" PRId64 "\nlease_ms %" PRId64 "\nhad_ms %" PRId64 "\n",
		      session->sent_ms, session->lease_ms, session->had_ms);
	(void)fprintf(file, "fixed %d\nlost %d\ngiven_up %d\nrenewer %d %" PRIu64 "\n",
		      session->is_fixed_lease, session->is_lost, session->is_given_up,
		      (int)session->renewer, session->renewer_start);
	for (size_t i = 0; i < session->name_count; i++) {
		(void)rlock_percent_encode(session->names[i].text, session->names[i].len, "",
					   encoded, sizeof(encoded));
		(void)fprintf(file, "name %s %s\n", encoded, session->owners[i]);
	}
}

/* A new file in the old one's place, so that a reader sees the one or the other whole. */
static bool replace_file(const struct session *session, const char *name)
{
	char new_name[FILE_NAME_MAX + 48];
	FILE *file = NULL;
	bool is_written = false;
	int fd;

	(void)snprintf(new_name, sizeof(new_name), NEW_PREFIX "%" PRIu64 "-%d-%s",
		       session->pid_namespace, (int)getpid(), session->hold_id);
	fd = openat(session->dir_fd, new_name,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	file = fdopen(fd, "w");
	if (file == NULL) {
		(void)close(fd);
	} else {
		print_session(file, session);
		is_written = ferror(file) == 0;
		is_written = fclose(file) == 0 && is_written;
	}
	if (is_written)
		is_written = renameat(session->dir_fd, new_name, session->dir_fd, name) == 0;
	if (!is_written) {
		int error = errno;

		(void)unlinkat(session->dir_fd, new_name, 0);
		errno = error;
	}
	return is_written;
}

int session_save(const struct session *session)
{
	char name[FILE_NAME_MAX];

	file_name(session, name);
	return replace_file(session, name) ? 0 : say_unwritable(session, name);
}

void session_remove(const struct session *session)
{
	char name[FILE_NAME_MAX];

	file_name(session, name);
	(void)unlinkat(session->dir_fd, name, 0);
}

void session_mark_lost(struct session *session)
{
	char name[FILE_NAME_MAX];

	session->is_lost = true;
	file_name(session, name);
	/* Should the disk be full, an unlock still learns it from the server. */
	(void)replace_file(session, name);
}

void session_keep(struct session *session, int64_t sent_ms, int64_t lease_ms)
{
	char name[FILE_NAME_MAX];
	int dir_fd;

	session->sent_ms = sent_ms;
	session->lease_ms = lease_ms;
	file_name(session, name);
	if (utimensat(session->dir_fd, name, NULL, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    replace_file(session, name) || errno != ENOENT)
		return;
	/* The directory has gone, too. */
	dir_fd = runtime_open_for_holds();
	if (dir_fd < 0)
		return;
	(void)close(session->dir_fd);
	session->dir_fd = dir_fd;
	(void)replace_file(session, name);
}

int session_fd(const struct session *session)
{
	return session != NULL ? session->dir_fd : -1;
}

/* ---- read ---- */

/* NULL with errno. */
static char *read_whole(int dir_fd, const char *name)
{
	struct stat stat;
	char *text = NULL;
	ssize_t len = 0;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), error;

	if (fd < 0)
		return NULL;
	/* Another user's may have come here before the directory was closed to others. */
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid() &&
	    stat.st_size <= FILE_SIZE_MAX)
		text = malloc((size_t)stat.st_size + 1);
	if (text != NULL) {
		len = read(fd, text, (size_t)stat.st_size);
		text[len > 0 ? len : 0] = '\0';
	}
	error = errno;
	(void)close(fd);
	if (len < 0) {
		free(text);
		text = NULL;
	}
	errno = error;
	return text;
}

/* "NAME OWNER", the name percent-encoded. */
static bool read_name(struct session *session, char *value)
{
	char *owner = strchr(value, ' ');
	struct rlock_name name = { value, 0 };
	const char *why;
	long len;

	if (owner == NULL)
		return false;
	*owner++ = '\0';
	len = rlock_percent_decode(value, strlen(value));
	if (len < 0)
		return false;
	name.len = (size_t)len;
	return rlock_name_check(&name, &why) == RLOCK_OK &&
	       rlock_owner_check(owner, &why) == RLOCK_OK &&
	       session_add_name(session, name.text, name.len, owner);
}

/* No time of ours is so far away; sums of those that are not fit. */
static bool read_ms(const char *value, int64_t *out_ms)
{
	int64_t ms;

	if (!number_parse(value, &ms) || ms < -TIME_MAX_MS || ms > TIME_MAX_MS)
		return false;
	*out_ms = ms;
	return true;
}

static bool read_inode(const char *value, uint64_t *out)
{
	int64_t number;

	if (!number_parse(value, &number) || number < 0)
		return false;
	*out = (uint64_t)number;
	return true;
}

/* "PID START" */
static bool read_process(const char *value, pid_t *pid, uint64_t *start)
{
	int64_t pid_number, start_number;

	if (!number_read(&value, &pid_number) || !number_read(&value, &start_number) ||
	    *value != '\0' || pid_number < 0 || pid_number > INT_MAX || start_number < 0)
		return false;
	*pid = (pid_t)pid_number;
	*start = (uint64_t)start_number;
	return true;
}

static bool read_line(struct session *session, char *line)
{
	char *value = strchr(line, ' ');

	if (value == NULL)
		return false;
	*value++ = '\0';
	if (strcmp(line, "name") == 0)
		return read_name(session, value);
	if (strcmp(line, "server") == 0) {
		free(session->server);
		session->server = strdup(value);
		return session->server != NULL;
	}
	if (strcmp(line, "kind") == 0)
		return rlock_kind_parse(value, strlen(value), &session->kind);
	if (strcmp(line, "sent_ms") == 0)
		return read_ms(value, &session->sent_ms);
	if (strcmp(line, "lease_ms") == 0)
		return read_ms(value, &session->lease_ms);
	if (strcmp(line, "had_ms") == 0)
		return read_ms(value, &session->had_ms);
	if (strcmp(line, "pid_namespace") == 0)
		return read_inode(value, &session->pid_namespace);
	if (strcmp(line, "renewer") == 0)
		return read_process(value, &session->renewer, &session->renewer_start);
	if (strcmp(line, "fixed") == 0)
		session->is_fixed_lease = value[0] == '1';
	else if (strcmp(line, "lost") == 0)
		session->is_lost = value[0] == '1';
	else if (strcmp(line, "given_up") == 0)
		session->is_given_up = value[0] == '1';
	return true; /* what a later version adds is passed over */
}

static bool is_whole(const struct session *session)
{
	return session->server != NULL && session->name_count > 0 && session->lease_ms > 0;
}

/* Whose file that is, by its name. */
static bool read_file_name(const char *name, struct session *out)
{
	int64_t pid, start;

	if (strncmp(name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
		return false;
	name += strlen(FILE_PREFIX);
	if (!number_read(&name, &pid) || *name++ != '-' || !number_read(&name, &start) ||
	    *name++ != '-' || pid <= 0 || pid > INT_MAX || start < 0)
		return false;
	if (strlen(name) != RLOCK_HOLD_ID_MAX - 1 ||
	    strspn(name, "0123456789abcdef") != RLOCK_HOLD_ID_MAX - 1)
		return false;
	out->pid = (pid_t)pid;
	out->start = (uint64_t)start;
	memcpy(out->hold_id, name, RLOCK_HOLD_ID_MAX);
	return true;
}

/* NULL when the file is not one of ours, or not whole; or, by errno, when it can't be read now. */
static struct session *session_read(int dir_fd, const char *name)
{
	struct session *session = calloc(1, sizeof(*session));
	char *text = NULL, *line, *rest;
	bool is_good = session != NULL;
	int error;

	if (is_good) {
		session->dir_fd = -1;
		session->claim_fd = -1;
		is_good = read_file_name(name, session);
	}
	if (is_good) {
		text = read_whole(dir_fd, name);
		is_good = text != NULL;
	}
	/* What a line fails by, if not by what it says, is memory. */
	if (is_good)
		errno = 0;
	for (line = is_good ? strtok_r(text, "\n", &rest) : NULL; line != NULL && is_good;
	     line = strtok_r(NULL, "\n", &rest))
		is_good = read_line(session, line);
	error = errno;
	free(text);
	if (is_good && is_whole(session)) {
		session->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
		if (session->dir_fd >= 0)
			return session;
		error = errno;
	}
	session_free(session);
	errno = error;
	return NULL;
}

bool session_reload(const struct session *session, int64_t *sent_ms, int64_t *lease_ms)
{
	char name[FILE_NAME_MAX];
	struct session *read;

	file_name(session, name);
	read = session_read(session->dir_fd, name);
	if (read == NULL)
		return false;
	*sent_ms = read->sent_ms;
	*lease_ms = read->lease_ms;
	session_free(read);
	return true;
}

/* ---- claim ---- */

/* The lock is a file's, not a name's: behind the other one's end the name may be another file's, or nobody's. */
static bool is_still_named(const struct session *session, const char *name)
{
	struct stat claimed, named;

	return fstat(session->claim_fd, &claimed) == 0 &&
	       fstatat(session->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       claimed.st_dev == named.st_dev && claimed.st_ino == named.st_ino;
}

/* False when another one has it for too long: stopped, say. Where files can't be locked nobody is kept out. */
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

/* Behind the look that found it another one may have come, and gone again. */
static bool read_again(struct session *session, const char *name)
{
	struct session *read = session_read(session->dir_fd, name);

	if (read == NULL)
		return false;
	session->sent_ms = read->sent_ms;
	session->lease_ms = read->lease_ms;
	session->is_lost = read->is_lost;
	session->is_given_up = read->is_given_up;
	session_free(read);
	return true;
}

int session_claim(struct session *session, bool *is_ours_out)
{
	char name[FILE_NAME_MAX];

	*is_ours_out = false;
	file_name(session, name);
	session->claim_fd = openat(session->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (session->claim_fd < 0 && errno == ENOENT)
		return 0;
	if (session->claim_fd < 0) {
		say_error("cannot open '%s/%s': %s", runtime_path(), name, strerror(errno));
		return EXIT_SYSTEM;
	}
	if (!lock_file(session->claim_fd)) {
		say_error(
			"another unlock has been giving this lock back for %d s, and has not ended",
			CLAIM_MS / 1000);
		return EXIT_SYSTEM;
	}
	*is_ours_out = is_still_named(session, name) && read_again(session, name);
	return 0;
}

/* ---- whose it is ---- */

struct ancestors {
	struct proc *procs; /* from the process itself upwards */
	size_t count, capacity;
};

static bool ancestors_add(struct ancestors *ancestors, const struct proc *proc)
{
	if (ancestors->count == ancestors->capacity) {
		size_t capacity = ancestors->capacity == 0 ? 32 : ancestors->capacity * 2;
		struct proc *procs = realloc(ancestors->procs, capacity * sizeof(*procs));

		if (procs == NULL)
			return false;
		ancestors->procs = procs;
		ancestors->capacity = capacity;
	}
	ancestors->procs[ancestors->count++] = *proc;
	return true;
}

/* 0, or errno when one of them can't be seen now. */
static int ancestors_read(pid_t pid, struct ancestors *out)
{
	uint64_t child_start = UINT64_MAX;
	struct proc proc;

	while (pid > 0) {
		enum proc_sight sight = proc_look(pid, &proc);

		if (sight == PROC_UNSEEN)
			return errno;
		/* A parent is older than its child: this one has got the number of one that has gone. */
		if (sight == PROC_GONE || proc.start > child_start)
			break;
		if (!ancestors_add(out, &proc))
			return ENOMEM;
		pid = proc.parent;
		child_start = proc.start;
	}
	return 0;
}

/* How far above: 0 is the process itself; -1 when it is none of them. */
static int distance(const struct ancestors *ancestors, const struct session *session)
{
	for (size_t i = 0; i < ancestors->count; i++)
		if (ancestors->procs[i].pid == session->pid &&
		    ancestors->procs[i].start == session->start)
			return (int)i;
	return -1;
}

static bool is_among(const struct rlock_name *name, const struct rlock_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].len == name->len && memcmp(names[i].text, name->text, name->len) == 0)
			return true;
	return false;
}

static size_t names_in(const struct session *session, const struct rlock_name *names, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < session->name_count; i++)
		found += is_among(&session->names[i], names, count) ? 1 : 0;
	return found;
}

typedef void (*session_fn)(void *ctx, struct session *session, int distance);

struct visit {
	int dir_fd;
	pid_t pid;
	uint64_t pid_namespace;     /* ours; 0: not known, and nobody is taken for dead */
	struct ancestors ancestors; /* none: not looked up yet */
	session_fn fn;
	void *ctx;
};

/* "new-NAMESPACE-PID-HOLDID": its writer was killed before it could give it its name. */
static bool is_half_written_by_the_dead(const struct visit *visit, const char *name)
{
	int64_t pid, pid_namespace;

	if (strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
		return false;
	name += strlen(NEW_PREFIX);
	return number_read(&name, &pid_namespace) && *name++ == '-' && number_read(&name, &pid) &&
	       *name == '-' && pid > 0 && pid <= INT_MAX && pid_namespace > 0 &&
	       (uint64_t)pid_namespace == visit->pid_namespace && proc_has_ended((pid_t)pid, 0);
}

/* The directory may be shared with containers: a number there is another process's here. */
static bool is_from_elsewhere(const struct visit *visit, const struct session *session)
{
	return session->pid_namespace != 0 && visit->pid_namespace != 0 &&
	       session->pid_namespace != visit->pid_namespace;
}

/* Of a process that is not to be seen: it has ended, or it is elsewhere. */
static void sweep(const struct visit *visit, const char *name)
{
	struct session *session;
	bool is_to_stay;

	if (visit->pid_namespace == 0)
		return;
	session = session_read(visit->dir_fd, name);
	is_to_stay = session != NULL ? is_from_elsewhere(visit, session) : is_shortage(errno);
	session_free(session);
	if (!is_to_stay)
		(void)unlinkat(visit->dir_fd, name, 0);
}

/* 0, or errno when it can't be told now whether the file is one that is looked for. */
static int visit_file(struct visit *visit, const char *name)
{
	struct session by_name = { 0 }, *session;
	int steps, error;

	if (is_half_written_by_the_dead(visit, name))
		(void)unlinkat(visit->dir_fd, name, 0);
	if (!read_file_name(name, &by_name))
		return 0;
	if (proc_has_ended(by_name.pid, by_name.start)) {
		sweep(visit, name);
		return 0;
	}
	error = visit->ancestors.count == 0 ? ancestors_read(visit->pid, &visit->ancestors) : 0;
	if (error != 0)
		return error;
	steps = distance(&visit->ancestors, &by_name);
	if (steps < 0)
		return 0;
	session = session_read(visit->dir_fd, name);
	if (session == NULL)
		return is_shortage(errno) ? errno : 0;
	if (is_from_elsewhere(visit, session)) {
		session_free(session);
		return 0;
	}
	visit->fn(visit->ctx, session, steps);
	return 0;
}

/*
 * Gives each session of pid or a process above it to fn, which owns it then. Sweeps out the dead. Takes
 * dir_fd, and does nothing with -1. 0, or errno when not all could be looked at.
 */
static int for_each(int dir_fd, pid_t pid, session_fn fn, void *ctx)
{
	struct visit visit = { .dir_fd = dir_fd, .pid = pid, .fn = fn, .ctx = ctx };
	struct dirent *entry;
	int error = 0;
	DIR *dir;

	if (dir_fd < 0)
		return 0;
	dir = fdopendir(dir_fd);
	if (dir == NULL) {
		error = errno;
		(void)close(dir_fd);
		return error;
	}
	visit.pid_namespace = proc_namespace();
	while (error == 0) {
		errno = 0;
		entry = readdir(dir);
		error = entry != NULL ? visit_file(&visit, entry->d_name) : errno;
		if (entry == NULL)
			break;
	}
	(void)closedir(dir);
	free(visit.ancestors.procs);
	return error;
}

/* The same in each of the directories. */
static int for_each_in(const int dir_fds[RUNTIME_DIRS], pid_t pid, session_fn fn, void *ctx)
{
	int first_error = 0;

	for (size_t i = 0; i < RUNTIME_DIRS; i++) {
		int error = for_each(dir_fds[i], pid, fn, ctx);

		if (first_error == 0)
			first_error = error;
	}
	return first_error;
}

static int say_unlooked(int error)
{
	say_error("cannot look for locks in '%s': %s", runtime_path(), strerror(error));
	return EXIT_SYSTEM;
}

struct search {
	const struct rlock_name *names;
	size_t name_count;
	const char *server;
	enum rlock_kind mode;
	struct session *exact, *near;
	int exact_distance;
};

static void consider(void *ctx, struct session *session, int steps)
{
	struct search *search = ctx;
	size_t common = names_in(session, search->names, search->name_count);
	struct session **place = NULL;

	if (common == search->name_count && common == session->name_count &&
	    strcmp(session->server, search->server) == 0) {
		bool is_nearest = search->exact == NULL || steps < search->exact_distance ||
				  (steps == search->exact_distance &&
				   session->had_ms >= search->exact->had_ms);

		if (is_nearest && rlock_kind_is(session->kind, search->mode)) {
			place = &search->exact;
			search->exact_distance = steps;
		}
	} else if (common > 0) {
		place = &search->near;
	}
	if (place == NULL) {
		session_free(session);
		return;
	}
	session_free(*place);
	*place = session;
}

struct session *session_find(pid_t pid, const struct rlock_name *names, size_t name_count,
			     const char *server, enum rlock_kind mode, struct session **near_out,
			     int *code_out)
{
	struct search search = { names, name_count, server, mode, NULL, NULL, 0 };
	int dir_fds[RUNTIME_DIRS], error;

	*code_out = runtime_open_existing(dir_fds);
	error = for_each_in(dir_fds, pid, consider, &search);
	if (error != 0)
		*code_out = say_unlooked(error);
	if (search.exact == NULL)
		*near_out = search.near;
	else
		session_free(search.near);
	return search.exact;
}

int session_is_outside(const struct session *session, const char *run_hold_id, bool *out)
{
	enum proc_sight sight =
		session != NULL ? proc_carries_hold(session->pid, run_hold_id) : PROC_GONE;

	if (sight == PROC_UNSEEN) {
		say_error("cannot look at process %d: %s", (int)session->pid, strerror(errno));
		return EXIT_SYSTEM;
	}
	*out = sight == PROC_GONE;
	return 0;
}

void session_say_near(const struct session *near, const struct rlock_name *names, size_t name_count,
		      const char *server, const char *verb)
{
	bool is_elsewhere = strcmp(near->server, server) != 0;
	char asked[NAMES_SHOWN_MAX];
	struct usage_line line;

	usage_begin(&line, verb);
	if (is_elsewhere) {
		usage_add_plain(&line, "--url");
		usage_add(&line, &near->server, 1);
	}
	usage_add_names(&line, near->names, near->name_count);
	say_error("%s: %s: %s", names_show(names, name_count, asked),
		  is_elsewhere ? "held on another server" : "was locked together with others",
		  line.text);
}

struct owner_list {
	const struct rlock_name *names;
	size_t name_count;
	char ***owners;
	size_t *count;
};

static void collect_owner(void *ctx, struct session *session, int steps)
{
	struct owner_list *list = ctx;

	(void)steps; /* at most one of them holds a lock: the order is for nobody */
	for (size_t i = 0; i < session->name_count; i++)
		if (is_among(&session->names[i], list->names, list->name_count))
			owners_add(list->owners, list->count, session->owners[i],
				   strlen(session->owners[i]));
	session_free(session);
}

int session_owners(pid_t pid, const struct rlock_name *names, size_t name_count, char ***owners,
		   size_t *count)
{
	struct owner_list list = { names, name_count, owners, count };
	/* Who runs a command needs no such directory, sound or not. */
	int dir_fds[RUNTIME_DIRS];
	int unopened = runtime_open_all_quietly(dir_fds);
	int error = for_each_in(dir_fds, pid, collect_owner, &list);

	if (error == 0)
		error = unopened;
	/* Who has the lock and does not know it would wait for himself. */
	return error != 0 ? say_unlooked(error) : 0;
}

/* ---- the calling process ---- */

/*
 * A process is born in its caller's session, and leaves it only to lead one of its own. A parent in another
 * one is not the caller, who has ended, but who took us over. That is mostly process 1, which no leader has
 * for a caller without saying so.
 */
static bool is_orphan(pid_t parent)
{
	pid_t session = getsid(0);

	return getsid(parent) != session && (parent == 1 || session != getpid());
}

static int say_unseen_target(pid_t pid, int error)
{
	say_error("cannot watch process %d: %s", (int)pid, strerror(error));
	return EXIT_SYSTEM;
}

static int say_no_target(pid_t pid, bool is_parent)
{
	if (access("/proc/self/stat", R_OK) != 0) {
		say_error("cannot tell which process the lock is for: there is no /proc here");
		return EXIT_SYSTEM;
	}
	if (proc_is_hidden(pid)) {
		say_error("process %d can't be watched: /proc does not show it (hidepid?)",
			  (int)pid);
		return EXIT_SYSTEM;
	}
	if (is_parent && pid == 0)
		say_error(
			"the calling process is outside of this container: say by --pid which process in it "
			"the lock is for");
	else if (is_parent)
		say_error("the calling process is gone: say by --pid whom to hold the lock for");
	else
		say_error("--pid %d: there is no such process", (int)pid);
	return EXIT_USAGE;
}

int session_target(pid_t pid, pid_t *pid_out, uint64_t *start_out, int *code)
{
	bool is_parent = pid == 0;
	enum proc_sight sight;
	struct proc target;
	int fd = -1;

	if (is_parent)
		pid = getppid();
	*code = EXIT_USAGE;
	sight = proc_look(pid, &target);
	if (sight == PROC_UNSEEN) {
		*code = say_unseen_target(pid, errno);
		return -1;
	}
	if (sight == PROC_GONE || target.state == 'Z' || (is_parent && is_orphan(pid))) {
		*code = say_no_target(pid, is_parent);
		return -1;
	}
	fd = proc_open(pid, target.start);
	if (fd < 0) {
		*code = say_unseen_target(pid, errno);
		return -1;
	}
	*pid_out = pid;
	*start_out = target.start;
	*code = 0;
	return fd;
}
