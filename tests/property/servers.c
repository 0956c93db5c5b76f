/*
 * The servers of the model, each at a port: their processes, raw commands, and the requests that the library sends them.
 */
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#define SERVICE "mymaster"

/* Lines of the servers' configuration files. */
#define COMMON "bind 127.0.0.1\nlogfile log\nuser root on >root ~* &* +@all\n"
#define OF_SERVERS                                                                                 \
	"save \"\"\nappendonly no\nrepl-diskless-sync yes\nrepl-diskless-sync-delay 0\n"           \
	"user limited on >secret ~* &* +@all\nuser waiting on >secret ~* &* +@all\n"               \
	"user steady on >secret ~* &* +@all\n"
#define OF_CLUSTERS "cluster-enabled yes\ncluster-config-file nodes.conf\n"

struct server servers[SERVERS_MAX];
size_t server_count;

static struct server sentinel;

/* ---- processes ---- */

/*
 * Choose a free port below those that the kernel gives to clients. Do not derive it from the seed: another run on this machine
 * may have the same seed.
 */
static int free_port(void)
{
	static unsigned next;

	if (next == 0)
		next = (unsigned)getpid() * 7 + (unsigned)time(NULL);
	for (;;) {
		struct sockaddr_in address = { .sin_family = AF_INET };
		int port = 30000 + (int)(next++ % 2700), fd = socket(AF_INET, SOCK_STREAM, 0),
		    error;

		address.sin_port = htons((uint16_t)port);
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		error = bind(fd, (struct sockaddr *)&address, sizeof(address));
		(void)close(fd);
		if (error == 0)
			return port;
	}
}

static void become_server(const struct server *server)
{
	struct sched_param priority = { .sched_priority = 1 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Run the server at real-time priority if permitted, so that a busy machine does not delay its replies. */
	(void)sched_setscheduler(0, SCHED_RR, &priority);
	if (chdir(server->dir) == 0)
		(void)execlp("redis-server", "redis-server", "conf",
			     server == &sentinel ? "--sentinel" : (char *)NULL, (char *)NULL);
	_exit(127);
}

static redisContext *connect_as_root(const struct server *server)
{
	redisContext *context = redisConnect("127.0.0.1", server->port);
	redisReply *reply;

	if (context != NULL && context->err == 0) {
		reply = redisCommand(context, "AUTH root root");
		if (reply != NULL && reply->type == REDIS_REPLY_STATUS) {
			freeReplyObject(reply);
			return context;
		}
		freeReplyObject(reply);
	}
	if (context != NULL)
		redisFree(context);
	return NULL;
}

/* Whether the server's INFO contains this text. */
static bool info_contains(struct server *server, const char *text)
{
	redisReply *reply = server_reply(server, "INFO");
	bool is_found = strstr(reply->str, text) != NULL;

	freeReplyObject(reply);
	return is_found;
}

/* Whether the server answers and is the one that we started: a server of another run may have taken the port. */
static bool has_begun(struct server *server)
{
	char text[64];

	server->context = connect_as_root(server);
	if (server->context == NULL)
		return false;
	(void)snprintf(text, sizeof(text), "process_id:%d\r", (int)server->pid);
	if (info_contains(server, text))
		return true;
	redisFree(server->context);
	server->context = NULL;
	return false;
}

/* Start the server. False: its port was taken. */
static bool try_to_start(struct server *server)
{
	int64_t limit_ms = deadline_of_wait();

	server->pid = fork();
	if (server->pid == 0)
		become_server(server);
	while (!has_begun(server)) {
		if (waitpid(server->pid, NULL, WNOHANG) != 0)
			return false;
		pause_for(limit_ms, "for a server to begin");
	}
	return true;
}

static void write_conf(struct server *server, const char *lines)
{
	const char *tmp = getenv("TMPDIR");
	char path[192];
	FILE *conf;

	if (server->dir[0] == '\0') {
		(void)snprintf(server->dir, sizeof(server->dir), "%s/model-XXXXXX",
			       tmp != NULL ? tmp : "/tmp");
		if (mkdtemp(server->dir) == NULL)
			fail("no directory '%s'", server->dir);
	}
	(void)snprintf(path, sizeof(path), "%s/conf", server->dir);
	conf = fopen(path, "w");
	if (conf == NULL)
		fail("no file '%s'", path);
	(void)fprintf(conf, "port %d\n" COMMON "%s", server->port, lines);
	(void)fclose(conf);
}

/* Start the server, at the port that it had before, if any. */
static void start(struct server *server, const char *lines)
{
	for (int tries = 0;; tries++) {
		bool is_new = server->port == 0;

		if (is_new)
			server->port = free_port();
		write_conf(server, lines);
		if (try_to_start(server))
			return;
		if (!is_new || tries == 10)
			fail("no server begins: see %s/log", server->dir);
		server->port = 0;
	}
}

void server_start(struct server *server)
{
	start(server, topology == CLUSTER ? OF_SERVERS OF_CLUSTERS : OF_SERVERS);
	server->began_ms = rlock_now_ms();
	server->subscriber = connect_as_root(server);
	server->monitor = connect_as_root(server);
	if (server->subscriber == NULL || server->monitor == NULL)
		fail("a server takes no connection");
	freeReplyObject(redisCommand(server->monitor, "MONITOR"));
}

static void disconnect(struct server *server)
{
	redisContext **all[] = { &server->context, &server->subscriber, &server->monitor };

	for (size_t i = 0; i < COUNT_OF(all); i++) {
		if (*all[i] != NULL)
			redisFree(*all[i]);
		*all[i] = NULL;
	}
}

void server_kill(struct server *server)
{
	disconnect(server);
	if (server->pid > 0) {
		(void)kill(server->pid, SIGKILL);
		(void)waitpid(server->pid, NULL, 0);
	}
	server->pid = 0;
}

static void remove_dir(const struct server *server)
{
	static const char *const files[] = { "log", "conf", "nodes.conf", "dump.rdb" };
	char path[192];

	for (size_t i = 0; i < COUNT_OF(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", server->dir, files[i]);
		(void)unlink(path);
	}
	(void)rmdir(server->dir);
}

void servers_end(void)
{
	for (size_t i = 0; i < server_count; i++) {
		server_kill(&servers[i]);
		remove_dir(&servers[i]);
	}
	server_kill(&sentinel);
	if (sentinel.dir[0] != '\0')
		remove_dir(&sentinel);
}

int sentinel_start(void)
{
	char line[96];

	(void)snprintf(line, sizeof(line), "sentinel monitor " SERVICE " 127.0.0.1 %d 1\n",
		       servers[0].port);
	start(&sentinel, line);
	return sentinel.port;
}

/* Send both commands in one write: a client must hardly ever find the sentinel without the service. */
void sentinel_name_master(const struct server *server)
{
	redisAppendCommand(sentinel.context, "SENTINEL REMOVE " SERVICE);
	redisAppendCommand(sentinel.context, "SENTINEL MONITOR " SERVICE " 127.0.0.1 %d 1",
			   server->port);
	for (int i = 0; i < 2; i++) {
		redisReply *reply = NULL;

		if (redisGetReply(sentinel.context, (void **)&reply) != REDIS_OK ||
		    reply->type == REDIS_REPLY_ERROR)
			fail("the sentinel names no other master");
		freeReplyObject(reply);
	}
}

/* ---- commands ---- */

static redisReply *run(struct server *server, const char *format, va_list args)
{
	redisReply *reply = redisvCommand(server->context, format, args);

	if (reply == NULL)
		fail("the server does not answer: %s", server->context->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		fail("'%s': %s", format, reply->str);
	return reply;
}

void server_do(struct server *server, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	freeReplyObject(run(server, format, args));
	va_end(args);
}

long long server_number(struct server *server, const char *format, ...)
{
	redisReply *reply;
	long long number;
	va_list args;

	va_start(args, format);
	reply = run(server, format, args);
	va_end(args);
	number = reply->integer;
	freeReplyObject(reply);
	return number;
}

redisReply *server_reply(struct server *server, const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = run(server, format, args);
	va_end(args);
	return reply;
}

void server_subscribe(struct server *server, bool is_on, const char *channel)
{
	const char *command = is_on ? "subscribe" : "unsubscribe";
	redisReply *reply = redisCommand(server->subscriber, "%s %s", command, channel);
	bool is_done = false;

	/* Skip messages of the channels, which may come before the reply. */
	while (!is_done) {
		if (reply == NULL || reply->type != REDIS_REPLY_ARRAY)
			fail("the server does not %s: %s", command,
			     reply != NULL ? reply->str : server->subscriber->errstr);
		is_done = strcmp(reply->element[0]->str, command) == 0;
		freeReplyObject(reply);
		reply = NULL;
		if (!is_done && redisGetReply(server->subscriber, (void **)&reply) != REDIS_OK)
			reply = NULL;
	}
}

/* ---- the requests of others ---- */

void server_command_free(struct server_command *command)
{
	for (size_t i = 0; i < command->count; i++)
		free(command->args[i]);
	free(command->args);
	free(command->lens);
	*command = (struct server_command){ 0 };
}

static char unescaped(const char **cursor)
{
	static const char letters[] = "nrtab", bytes[] = "\n\r\t\a\b";
	char digits[3] = "";
	char c = *(*cursor)++;
	const char *letter;

	if (c != '\\')
		return c;
	c = *(*cursor)++;
	letter = strchr(letters, c);
	if (letter != NULL)
		return bytes[letter - letters];
	if (c != 'x')
		return c;
	memcpy(digits, *cursor, 2);
	*cursor += 2;
	return (char)strtol(digits, NULL, 16);
}

static void add_word(struct server_command *command, const char *text, size_t len)
{
	command->args = reallocarray(command->args, command->count + 1, sizeof(*command->args));
	command->lens = reallocarray(command->lens, command->count + 1, sizeof(*command->lens));
	if (command->args == NULL || command->lens == NULL)
		fail("out of memory");
	command->args[command->count] = calloc(1, len + 1);
	if (command->args[command->count] == NULL)
		fail("out of memory");
	memcpy(command->args[command->count], text, len);
	command->lens[command->count++] = len;
}

/* Parse a line of MONITOR: 'TIME [DB ADDRESS] "COMMAND" "ARG"...'. */
static void parse_line(const char *line, struct server_command *out)
{
	const char *cursor = strstr(line, "] \"");
	char *text = malloc(strlen(line) + 1);

	if (text == NULL)
		fail("out of memory");
	for (cursor = cursor != NULL ? cursor + 2 : ""; *cursor == '"';) {
		size_t len = 0;

		cursor++;
		while (*cursor != '"')
			text[len++] = unescaped(&cursor);
		add_word(out, text, len);
		cursor += cursor[1] == ' ' ? 2 : 1;
	}
	free(text);
}

bool server_next_request(struct server *server, struct server_command *out)
{
	static unsigned long marks;
	static char mark[32];
	redisReply *reply;

	/*
	 * Send a mark, which MONITOR shows as well: all lines before the mark are of commands that the server received before
	 * this call.
	 */
	if (mark[0] == '\0') {
		(void)snprintf(mark, sizeof(mark), "mark-%lu", ++marks);
		server_do(server, "ECHO %s", mark);
	}
	while (redisGetReply(server->monitor, (void **)&reply) == REDIS_OK) {
		struct server_command command = { 0 };

		/* Skip the commands that scripts have called. */
		if (strstr(reply->str, " lua] ") == NULL)
			parse_line(reply->str, &command);
		freeReplyObject(reply);
		if (command.count > 2 && strcasecmp(command.args[0], "evalsha") == 0) {
			*out = command;
			return true;
		}
		if (command.count == 2 && strcmp(command.args[1], mark) == 0) {
			server_command_free(&command);
			mark[0] = '\0';
			return false;
		}
		server_command_free(&command);
	}
	fail("the server ends MONITOR");
}

void server_send(struct server *server, const struct server_command *command)
{
	redisReply *reply = redisCommandArgv(server->context, (int)command->count,
					     (const char **)command->args, command->lens);

	if (reply == NULL)
		fail("the server does not answer: %s", server->context->errstr);
	freeReplyObject(reply);
}
