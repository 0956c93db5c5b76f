/*
 * What the files of faultproxy share. base.c has what any program has, wire.c what Redis' protocol is, conn.c what is on its way,
 * exchange.c and transfer.c what becomes of it, and commands.c what tests want.
 */
#ifndef FAULTPROXY_H
#define FAULTPROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct pollfd;

/* ---- the end of the program ---- */

_Noreturn void die(const char *what, const char *why);

/* Returns memory; ends the program if it is NULL. */
void *die_if_null(void *memory);

/* ---- the time in microseconds, since a round trip may take one millisecond ---- */

#define MS_US INT64_C(1000)
#define NEVER_US INT64_MAX /* a time that doesn't come */

int64_t clock_now_us(void);

/* ---- small pieces of text ---- */

/* The length of the line at bytes with its end, 0 when that hasn't come yet. */
size_t parse_line_len(const char *bytes, size_t len);

/* The whole text is a number, of 0 or more. */
bool parse_number(const char *text, long *out);

bool parse_switch(const char *text, bool *out);

/* ---- bytes that grow at the end and are taken from the front ---- */

/* All zero: empty. The owner frees bytes. */
struct buffer {
	char *bytes;
	size_t len, room;
};

void buffer_add(struct buffer *buffer, const char *bytes, size_t len);
void buffer_add_text(struct buffer *buffer, const char *text);
void buffer_take(struct buffer *buffer, size_t len);

/* One read(2) into buffer; its result. */
ssize_t buffer_read(struct buffer *buffer, int fd);

/* Whether a read or write that failed with that errno can be tried again. */
bool buffer_may_try_again(int err);

/* ---- addresses, as texts "unix:PATH" and "tcp:ADDRESS:PORT", and sockets there; what fails is the end of the program ---- */

struct endpoint {
	struct sockaddr_storage addr;
	socklen_t len;
};

/* These are the end of the program when they fail. */

void endpoint_parse(struct endpoint *endpoint, const char *text);
/* A socket that listens there, and does not block; one that an earlier proxy has left at a path is replaced. */
int endpoint_listen(const char *text);
/* A socket that is connected to it. */
int endpoint_connect(const char *text);

/* Where that socket listens, as a line: text, but with the port that was picked. */
void endpoint_print(const char *text, int listener);
/* Remove the file of a socket. */
void endpoint_remove(const char *text);

/* ---- Redis' protocol: where a request or reply ends, and its words ---- */

/*
 * The length of the whole value at bytes (RESP2 or RESP3; streamed ones aside), 0 when a part of it
 * hasn't come yet, -1 when it is no value.
 */
long resp_value_len(const char *bytes, size_t len);
/* The same of a request, which may be a bare line. */
long resp_request_len(const char *bytes, size_t len);

/* The words of a request or reply, one after the other. */
struct resp_words {
	const char *pos, *end;
	bool is_inline;
};

struct resp_words resp_request_words(const char *request, size_t len);
/* Of a request or reply that is an array, or of a push. */
struct resp_words resp_array_words(const char *array, size_t len);
/* The next word, which stays in the request; false behind the last one. */
bool resp_next_word(struct resp_words *words, const char **text_out, size_t *len_out);

/* Upper and lower case are the same. */
bool resp_word_is(const char *text, size_t len, const char *word);
bool resp_word_ends_with(const char *text, size_t len, const char *end);

/* ---- the rules that tests give: which requests, or the replies to them, are to have which fault ---- */

enum fault {
	FAULT_NONE,
	FAULT_CUT,
	FAULT_DROP,
	FAULT_HOLD,
	FAULT_STALL,
	FAULT_END,
	FAULT_GARBAGE,
};

/* For so many requests that match; the text is copied. Older rules come first. */
void rules_add(enum fault fault, const char *match, long times);
void rules_clear(void);
/* How many are not used up. */
size_t rules_count(void);

/* What is to happen to a request: the oldest rule that matches it, which is good for one request less
 * then. */
enum fault rules_apply(const char *request, size_t len);

/* ---- the file in which requests are written down ---- */

/* From now on append to that file. NULL, or why it cannot be opened: the one before stays then. */
const char *request_log_open(const char *path);
void request_log_close(void);

/* A line with its words, escaped; nothing when there is no file. */
void request_log_add(const char *request, size_t len);

/* ---- what the network is like at the moment, for every connection, and what is to happen to the next one ---- */

/* What becomes of one byte of a connection, whatever the protocol is. */
enum spoil {
	SPOIL_NONE,
	SPOIL_CUT,
	SPOIL_FLIP,
	SPOIL_STOP,
	SPOIL_LATE,
};

struct spoiler {
	enum spoil spoil;
	bool is_up;
	size_t position;
};

struct conditions {
	int64_t delay_us; /* of each piece to a client */
	int64_t stall_us; /* how late is what is late */
	bool is_far;      /* a new connection waits for a handshake, too */
	bool trickles;
	bool refuses;
	bool holes_up, holes_down; /* nothing passes to the server, or from it */
	struct spoiler spoiler;    /* of the next connection */
};

extern struct conditions conditions;

/* All is well again; stall_us stays. */
void conditions_clear(void);

/* ---- what has passed since the start, or since the counts were reset ---- */

struct counts {
	unsigned long connections, requests, replies, dropped, writes_up, spoiled, bytes_up,
		bytes_down;
};

extern struct counts counts;

/* As the command "count" prints them. */
void counts_print(struct buffer *out);
void counts_reset(void);

/* ---- what is on its way to a client: pieces, each of which has a time before which it does not go ---- */

struct piece {
	struct piece *next;
	int64_t due_us; /* NEVER_US: it is held */
	size_t len, sent;
	char bytes[];
};

struct pieces {
	struct piece *first, **end;
};

void pieces_init(struct pieces *pieces);
void pieces_free(struct pieces *pieces);

/* A copy of the bytes goes to the end. */
void pieces_add(struct pieces *pieces, const char *bytes, size_t len, int64_t due_us);
void pieces_drop_first(struct pieces *pieces);

size_t pieces_count_held(const struct pieces *pieces);
void pieces_release_held(struct pieces *pieces);

/* ---- a client's connection, with the one to the server that belongs to it ---- */

/* A request that was forwarded and not answered yet. */
struct request {
	struct request *next;
	enum fault fault;
	size_t replies_left; /* SUBSCRIBE has one for each channel */
};

struct conn {
	struct conn *next;
	int client, server;
	bool is_connecting;    /* to the server */
	bool has_no_more_up;   /* the client sends no more */
	bool has_no_more_down; /* the server sends no more */
	bool is_up_shut;       /* and has been told so */
	bool is_half_closed;   /* the client gets no more */
	bool is_silent;        /* nothing is read or written any more */
	bool is_opaque;        /* not Redis' protocol */
	bool is_subscriber;    /* messages arrive that answer no request */
	bool is_ending;        /* to be closed when the requests in front are answered */
	bool is_dead;          /* to be closed and freed now */
	size_t channels[3];    /* subscribed to: plain, by pattern, sharded */
	struct buffer up_in, up_out, down_in;
	struct request *requests, **requests_end;
	struct pieces pieces;
	int64_t next_byte_us; /* when it trickles */
	struct spoiler spoiler;
	size_t up_count, down_count;      /* bytes read from either side */
	int64_t up_from_us, down_from_us; /* nothing goes to that side before */
};

/* Takes over client; connects to target without waiting, and what is to happen to the next connection befalls this one. */
void conn_open(int client, const struct endpoint *target);

/* The first one of all; the newest comes first. */
struct conn *conn_first(void);
/* Free those that are dead. */
void conn_sweep(void);
/* At once, on both sides; they are dead then. */
void conn_cut_all(void);

/* The client sees an end, and is still heard. */
void conn_half_close(struct conn *conn);

void conn_add_request(struct conn *conn, enum fault fault, size_t replies);
void conn_drop_request(struct conn *conn);
void conn_drop_requests(struct conn *conn);

/* ---- requests and the replies to them: what was read is forwarded whole, with the faults that the rules say ---- */

/* What has come from the client, or from the server, as far as it is whole. */
void exchange_take_up(struct conn *conn);
void exchange_take_down(struct conn *conn);

/* Whether nothing that the server still says is for the client. */
bool exchange_is_over(const struct conn *conn);

/* ---- the bytes of a connection, in both directions: when they may pass, and that they do ---- */

/* What to poll either side for; 0: nothing. */
short transfer_client_events(const struct conn *conn, int64_t now_us);
short transfer_server_events(const struct conn *conn, int64_t now_us);
/* The next time after now_us at which there is more to poll for; NEVER_US: none is known. */
int64_t transfer_next_us(const struct conn *conn, int64_t now_us);

/* Read and write what can be, by what was found when polling. */
void transfer_serve(struct conn *conn, const struct pollfd *client, const struct pollfd *server);
/* What follows from all that was read and written. */
void transfer_settle(struct conn *conn);

/* ---- the commands by which a test sets faults, and asks what has happened ---- */

/* Carry out one line, which is taken to pieces. NULL, or what is wrong; what is put into answer takes the place of "ok". */
const char *commands_run(char *line, struct buffer *answer);

/* Whether "quit" was among them. */
bool commands_want_end(void);

/* ---- clients of the control socket ---- */

struct control {
	struct control *next;
	int fd;
	bool is_dead; /* to be closed and freed now */
	struct buffer in;
};

/* Takes over fd. */
void control_open(int fd);
/* The first one of all; the newest comes first. */
struct control *control_first(void);

/* Read what has come, and answer each whole line. */
void control_read(struct control *control);

/* Free those that are dead. */
void control_sweep(void);
void control_end_all(void);

#endif
