/*
 * Servers that a test plays itself, with a connection to each: several requests are under way at a time.
 */
#ifndef PARTIES_H
#define PARTIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/connection.h"
#include "rlock.h"
#include "request.h"

#define PARTIES 3

/* A server, and a connection to it with what is under way there. */
struct party {
	int listener, stream; /* -1: none */
	char heard[4096];
	size_t heard_len;
	char path[108];
	struct rlock__connection *connection;
	struct rlock__call call; /* without a script: a plain command is under way */
	bool is_under_way;
	struct rlock__result result;
};

extern struct party parties[PARTIES];

/* For what must come. */
extern int64_t patience_ms;

/* Around all tests of a file. */
void begin_parties(void);
void end_parties(void);

/* ---- the servers ---- */

void listen_unix(struct party *party, int backlog);
/* The port. */
int listen_tcp(struct party *party);
/* A connection to that URL, to be opened by the first request. */
void set_conn(struct party *party, const char *text);
/* A server listens, and a connection to it is set. options come after the path: "", "?db=1". */
void start_unix(size_t index, const char *options);
void start_tcp(size_t index, const char *user, const char *host);
/* Such a server of unix has heard the command by which a request began there. */
void start_asked(size_t index, const char *verb, int64_t deadline_ms);
/* The server closes its end. */
void forget_stream(struct party *party);
void stop_all(void);
void says(size_t index, const char *text);

/* ---- the requests ---- */

/* A command of one word. */
void begin(size_t index, const char *verb, bool needs_login, int64_t deadline_ms);
void fire_and_forget(size_t index, const char *verb);
/* Whether what is under way there is over. */
bool advance(struct party *party);
/* How many are not. */
size_t advance_all(void);
/* All that is under way, until only so many are left. */
void drive(size_t left);

/* ---- what has come of them ---- */

/* Whether the client connects anew. */
bool is_called(size_t index);
/* Whether the server of that connection is told so, sooner or later. */
bool hears(size_t index, const char *text);
/* The server says so, and the request ends with that; the status is one of that reply. */
bool ends_with(size_t index, const char *text);
bool has_failed(size_t index, enum rlock_status status, const char *text);

#endif
