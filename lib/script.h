/*
 * The scripts, their arguments, and a call of one.
 */
#ifndef RLOCK_SCRIPT_H
#define RLOCK_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/request.h"
#include "rlock.h"

struct redisReply;
struct rlock__error;
struct rlock__result;

/* ---- arguments ---- */

#define RLOCK__ARGS_HEAD 3 /* EVALSHA, the script, the number of keys */
#define RLOCK__ARGS_TEXT_MAX 128

/*
 * The arguments of one EVALSHA, keys first. Filled by rlock__args_*, freed by rlock__args_free; texts must stay until
 * then, but for what memory holds.
 */
struct rlock__args {
	const char **argv;
	size_t *lengths;
	size_t count;
	size_t key_count;
	bool is_out_of_memory; /* stays set: checked once, when sent */
	bool needs_login;
	bool is_repeated;                   /* not traced, for what is repeated often */
	const struct rlock__behind *behind; /* sent in the same write; NULL: none. It must stay */
	char key_count_text[24];
	size_t text_len;
	char text
		[RLOCK__ARGS_TEXT_MAX]; /* of the numbers; argv points into it: the struct must not move */
	char *memory;                   /* freed with them; NULL: none */
};

void rlock__args_init(struct rlock__args *args);
void rlock__args_free(struct rlock__args *args);
void rlock__args_key(struct rlock__args *args, const char *key, size_t len);
void rlock__args_text(struct rlock__args *args, const char *text, size_t len);
void rlock__args_string(struct rlock__args *args, const char *text);
/* A text that need not stay. It and all numbers have RLOCK__ARGS_TEXT_MAX bytes together, which is for the caller to know. */
__attribute__((format(printf, 2, 3))) void rlock__args_print(struct rlock__args *args,
							     const char *format, ...);
void rlock__args_number(struct rlock__args *args, int64_t number);

/* ---- scripts ---- */

struct rlock__script {
	const char *purpose; /* "acquire (plain)" */
	const char *sha1;
	const char *body;
};

/* A command that locks need, of one of the lists in lua/inc/rights.lua. With so many empty arguments it changes nothing. */
struct rlock__right {
	const char *list;
	const char *command;
	int arguments; /* behind the key */
};

extern const struct rlock__right rlock__rights[]; /* list is NULL behind the last */

/*
 * A run of the script as a command, for a request of several: with its text (EVAL), or for a server that knows it
 * (EVALSHA). It belongs to args, which must have an argument, and not be out of memory.
 */
struct rlock__command rlock__script_command(struct rlock__args *args,
					    const struct rlock__script *script, bool has_text);

/* One run of a script over connection. */
struct rlock__call {
	struct rlock__connection *connection;
	const struct rlock__script *script;
	struct rlock__args *args;
	int64_t deadline_ms;
	bool has_text;            /* the script's text was sent, too */
	enum rlock_status status; /* not RLOCK_OK: it failed before it was sent */
};

/*
 * EVALSHA, and EVAL where the server does not know the script, in steps as those of a request.
 * Several calls may share their args, which must stay until all of them are over or abandoned.
 */
void rlock__script_begin(struct rlock__call *call, struct rlock__connection *connection,
			 const struct rlock__script *script, struct rlock__args *args,
			 int64_t deadline_ms);
/* As rlock__request_advance, but an error reply becomes a status. */
bool rlock__script_advance(struct rlock__call *call, struct rlock__result *out);

/* Begin, and advance to the end. */
enum rlock_status rlock__script_run(struct rlock__connection *connection,
				    const struct rlock__script *script, struct rlock__args *args,
				    int64_t deadline_ms, bool *was_sent, struct redisReply **out);
/* The same with the script's text from the start. */
enum rlock_status rlock__script_run_text(struct rlock__connection *connection,
					 const struct rlock__script *script,
					 struct rlock__args *args, int64_t deadline_ms,
					 bool *was_sent, struct redisReply **out);
/* The reply to the script has no form that it can have. RLOCK_ESERVER. */
enum rlock_status rlock__script_fail_reply(struct rlock__error *error,
					   const struct rlock__script *script);
/* Send it and close, without waiting for the reply. */
void rlock__script_fire_and_forget(struct rlock__connection *connection,
				   const struct rlock__script *script, struct rlock__args *args);

extern const struct rlock__script rlock__script_plain_acquire;
extern const struct rlock__script rlock__script_plain_release;
extern const struct rlock__script rlock__script_plain_leave;
extern const struct rlock__script rlock__script_plain_renew;
extern const struct rlock__script rlock__script_plain_keep_until;
extern const struct rlock__script rlock__script_fair_acquire;
extern const struct rlock__script rlock__script_fair_leave;
extern const struct rlock__script rlock__script_fair_return;
extern const struct rlock__script rlock__script_read_acquire;
extern const struct rlock__script rlock__script_read_renew;
extern const struct rlock__script rlock__script_write_acquire;
extern const struct rlock__script rlock__script_write_leave;
extern const struct rlock__script rlock__script_write_return;
extern const struct rlock__script rlock__script_readwrite_release;
extern const struct rlock__script rlock__script_readwrite_keep_until;
extern const struct rlock__script rlock__script_sem_acquire;
extern const struct rlock__script rlock__script_sem_release;
extern const struct rlock__script rlock__script_sem_leave;
extern const struct rlock__script rlock__script_sem_renew;
extern const struct rlock__script rlock__script_sem_keep_until;
extern const struct rlock__script rlock__script_sem_resize;
extern const struct rlock__script rlock__script_find;
extern const struct rlock__script rlock__script_break;
extern const struct rlock__script rlock__script_inspect;
extern const struct rlock__script rlock__script_stop;

#endif
