/*
 * An operating system that refuses: runs a command, and when it or one of its processes makes the N-th call of
 * some system calls, that call fails, without having been made. The kernel asks (seccomp's user notifications),
 * a supervisor of its own answers: nothing is traced, so that signals, parents and exit statuses are as ever.
 */
#include <limits.h>

#include "supervised.h"

static const char usage[] =
	"usage: refuse RECORD PROGRAM CALL[,CALL...] ERROR FIRST[+] COMMAND [ARG...]\n"
	"The FIRST call of these fails with ERROR, a name as EMFILE; with a + that one and all behind it.\n"
	"With STOP for an ERROR it is made, but by a process that has been stopped before, each process once; with KILL it is\n"
	"not made, since the process has been killed, and its parent stands behind the line.\n"
	"Only those count that are made by a process whose name begins with PROGRAM, and not by the\n"
	"dynamic linker. RECORD gets a line for each of them: \"CALL NUMBER NAME PID\". Ends by 73\n"
	"when the kernel can't do this.\n";

#define CALLS_MAX SUPERVISED_CALLS_MAX
/* Processes that are stopped. */
#define STOPPED_MAX 64

struct call {
	const char *name;
	long number;
};

static const struct call known_calls[] = {
#ifdef SYS_open
	{ "open", SYS_open },
	{ "fork", SYS_fork },
	{ "vfork", SYS_vfork },
	{ "poll", SYS_poll },
	{ "pipe", SYS_pipe },
	{ "mkdir", SYS_mkdir },
	{ "epoll_wait", SYS_epoll_wait },
#endif
	{ "openat", SYS_openat },
	{ "clone", SYS_clone },
	{ "clone3", SYS_clone3 },
	{ "execve", SYS_execve },
	{ "socket", SYS_socket },
	{ "socketpair", SYS_socketpair },
	{ "connect", SYS_connect },
	{ "pipe2", SYS_pipe2 },
	{ "sched_setscheduler", SYS_sched_setscheduler },
	{ "dup", SYS_dup },
	{ "fcntl", SYS_fcntl },
	{ "eventfd2", SYS_eventfd2 },
	{ "epoll_create1", SYS_epoll_create1 },
	{ "epoll_ctl", SYS_epoll_ctl },
	{ "epoll_pwait", SYS_epoll_pwait },
	{ "timerfd_create", SYS_timerfd_create },
	{ "timerfd_settime", SYS_timerfd_settime },
	{ "signalfd4", SYS_signalfd4 },
	{ "pidfd_open", SYS_pidfd_open },
	{ "pidfd_send_signal", SYS_pidfd_send_signal },
	{ "kill", SYS_kill },
	{ "kcmp", SYS_kcmp },
	{ "mmap", SYS_mmap },
	{ "ppoll", SYS_ppoll },
	{ "waitid", SYS_waitid },
	{ "read", SYS_read },
	{ "write", SYS_write },
	{ "recvfrom", SYS_recvfrom },
	{ "recvmsg", SYS_recvmsg },
	{ "sendto", SYS_sendto },
	{ "sendmsg", SYS_sendmsg },
	{ "exit_group", SYS_exit_group },
	{ "setpgid", SYS_setpgid },
	{ "getrandom", SYS_getrandom },
	{ "getdents64", SYS_getdents64 },
	{ "setsid", SYS_setsid },
	{ "prctl", SYS_prctl },
	{ "rt_sigprocmask", SYS_rt_sigprocmask },
	/* The first call of a process that becomes the command. */
	{ "getpid", SYS_getpid },
};

static const struct {
	const char *name;
	int number;
} errors[] = {
	{ "EAGAIN", EAGAIN }, { "EINTR", EINTR },   { "EIO", EIO },
	{ "EMFILE", EMFILE }, { "ENFILE", ENFILE }, { "ENOMEM", ENOMEM },
	{ "ENOSPC", ENOSPC }, { "EROFS", EROFS },   { "ENOSYS", ENOSYS },
	{ "EPERM", EPERM },   { "EINVAL", EINVAL }, { "ECONNREFUSED", ECONNREFUSED },
};

struct wish {
	const char *record, *program;
	const struct call *calls[CALLS_MAX];
	size_t call_count;
	int error;  /* 0: a signal for the caller */
	int signal; /* SIGSTOP or SIGKILL */
	long first;
	bool for_good;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what is wanted ---- */

static bool add_call(struct wish *wish, const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(known_calls); i++) {
		if (strlen(known_calls[i].name) != len ||
		    memcmp(known_calls[i].name, name, len) != 0)
			continue;
		if (wish->call_count == CALLS_MAX)
			return false;
		wish->calls[wish->call_count++] = &known_calls[i];
		return true;
	}
	/* One that this machine has not: no program makes it. */
	return true;
}

static bool read_wish(char **argv, struct wish *wish)
{
	const char *calls = argv[3];
	char *end;

	wish->record = argv[1];
	wish->program = argv[2];
	while (*calls != '\0') {
		size_t len = strcspn(calls, ",");

		if (!add_call(wish, calls, len))
			return false;
		calls += len + (calls[len] == ',' ? 1 : 0);
	}
	for (size_t i = 0; i < COUNT(errors); i++)
		if (strcmp(errors[i].name, argv[4]) == 0)
			wish->error = errors[i].number;
	if (strcmp(argv[4], "STOP") == 0)
		wish->signal = SIGSTOP;
	else if (strcmp(argv[4], "KILL") == 0)
		wish->signal = SIGKILL;
	wish->first = strtol(argv[5], &end, 10);
	wish->for_good = *end == '+';
	return wish->call_count > 0 && wish->first > 0 && (wish->error != 0 || wish->signal != 0);
}

/* ---- the supervisor ---- */

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512] = "", *end;
	int parent = 0;
	FILE *stat;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "re");
	if (stat != NULL && fgets(line, sizeof(line), stat) != NULL) {
		end = strrchr(line, ')');
		if (end != NULL)
			parent = (int)strtol(end + sizeof(") S"), NULL, 10);
	}
	if (stat != NULL)
		(void)fclose(stat);
	return parent;
}

/* Before main() it is the linker's business to say what is wrong. */
static bool is_of_linker(pid_t pid, uint64_t address)
{
	char path[64], line[PATH_MAX + 128];
	bool is_linker = false;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		char *end;
		uint64_t from = strtoull(line, &end, 16), to = strtoull(end + 1, NULL, 16);

		if (address >= from && address < to)
			is_linker = strstr(line, "/ld") != NULL;
	}
	if (maps != NULL)
		(void)fclose(maps);
	return is_linker;
}

static const char *call_name(const struct wish *wish, int number)
{
	for (size_t i = 0; i < wish->call_count; i++)
		if (wish->calls[i]->number == number)
			return wish->calls[i]->name;
	return "?";
}

/* Looked for until the first call that is the program's own: by then all is loaded. */
static bool counts(const struct wish *wish, const struct seccomp_notif *notif, char name[32])
{
	static pid_t loaded;
	pid_t pid = (pid_t)notif->pid;

	if (!supervised_is_named(pid, wish->program, name))
		return false;
	if (pid != loaded && is_of_linker(pid, notif->data.instruction_pointer))
		return false;
	loaded = pid;
	return true;
}

/* A process that is stopped before it has its answer retries when it goes on. */
static bool was_stopped_before(pid_t pid)
{
	static pid_t stopped[STOPPED_MAX];
	static size_t count;

	for (size_t i = 0; i < count; i++)
		if (stopped[i] == pid)
			return true;
	if (count < STOPPED_MAX)
		stopped[count++] = pid;
	return false;
}

static bool is_wished(const struct wish *wish, const struct seccomp_notif *notif, long *number,
		      int record_fd)
{
	char name[32], line[128], parent[32] = "";
	int len;

	if (!counts(wish, notif, name))
		return false;
	++*number;
	if (*number != wish->first && !(wish->for_good && *number > wish->first))
		return false;
	if (wish->signal == SIGSTOP && was_stopped_before((pid_t)notif->pid))
		return false;
	if (wish->signal == SIGKILL)
		(void)snprintf(parent, sizeof(parent), " %d", (int)parent_of((pid_t)notif->pid));
	len = snprintf(line, sizeof(line), "%s %ld %s %d%s\n", call_name(wish, notif->data.nr),
		       *number, name, (int)notif->pid, parent);
	(void)!write(record_fd, line, (size_t)len);
	if (wish->signal != 0)
		(void)kill((pid_t)notif->pid, wish->signal);
	return true;
}

static int decide(const void *wish_of, const struct seccomp_notif *notif)
{
	static int record_fd = -1;
	static long number;
	const struct wish *wish = wish_of;

	if (record_fd < 0)
		record_fd = open(wish->record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	return is_wished(wish, notif, &number, record_fd) ? -wish->error : CALL_IS_MADE;
}

/* ---- the command ---- */

int main(int argc, char **argv)
{
	struct wish wish = { 0 };
	long numbers[CALLS_MAX];

	if (argc < 7 || !read_wish(argv, &wish)) {
		(void)fputs(usage, stderr);
		return 64;
	}
	for (size_t i = 0; i < wish.call_count; i++)
		numbers[i] = wish.calls[i]->number;
	run_supervised(
		&(struct supervision){ "refuse", numbers, wish.call_count, &wish, decide, NULL },
		argv + 6);
}
