/*
 * What a server tells of itself: its version, its role, and what may take locks away from it. What that is worth is for
 * the caller.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "net/command.h"
#include "net/connection.h"
#include "rlock.h"

size_t rlock_conn_server_count(const struct rlock_conn *conn)
{
	return conn->server_count;
}

const char *rlock_conn_server(const struct rlock_conn *conn, size_t index)
{
	return rlock_url_server(rlock__connection_url(conn->connections[index]));
}

/* RLOCK_OK: *out is the reply, an error reply too, which the caller frees. Else the error is that of conn. */
static enum rlock_status run_command(struct rlock_conn *conn, size_t index, int argc,
				     const char **argv, redisReply **out)
{
	enum rlock_status status = rlock__command_run(conn->connections[index], argc, argv, out);

	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	return status;
}

/* ---- INFO ---- */

/* Of "NAME:VALUE" on a line of its own: the value, cut at out_size. Empty: there is none. */
static void read_text(const char *info, const char *name, char *out, size_t out_size)
{
	size_t name_len = strlen(name), len;
	const char *line = info;

	out[0] = '\0';
	while (line != NULL) {
		if (strncmp(line, name, name_len) == 0 && line[name_len] == ':') {
			line += name_len + 1;
			len = strcspn(line, "\r\n");
			(void)rlock_escape(line, len, out, out_size);
			return;
		}
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
}

/* -1: there is none. */
static int64_t read_number(const char *info, const char *name)
{
	char text[RLOCK_FACT_MAX];
	int64_t number = -1;

	read_text(info, name, text, sizeof(text));
	return rlock__decimal_parse(text, strlen(text), &number) && number >= 0 ? number : -1;
}

static void read_info(const char *info, struct rlock_server_info *out)
{
	char mode[RLOCK_FACT_MAX];

	read_text(info, "valkey_version", out->version, sizeof(out->version));
	out->is_valkey = out->version[0] != '\0';
	if (!out->is_valkey)
		read_text(info, "redis_version", out->version, sizeof(out->version));
	read_text(info, "role", out->role, sizeof(out->role));
	read_text(info, "redis_mode", mode, sizeof(mode));
	out->is_cluster = strcmp(mode, "cluster") == 0 || read_number(info, "cluster_enabled") == 1;
	out->uptime_s = read_number(info, "uptime_in_seconds");
	out->replicas = read_number(info, "connected_slaves");
	read_text(info, "maxmemory_policy", out->eviction_policy, sizeof(out->eviction_policy));
	out->memory_max = read_number(info, "maxmemory");
	out->has_append_file = read_number(info, "aof_enabled");
}

/* "CONFIG GET save": "" without snapshots. 1, 0, or -1 where the user or the service does not allow to ask. */
static enum rlock_status ask_snapshots(struct rlock_conn *conn, size_t index, int64_t *out)
{
	const char *argv[] = { "CONFIG", "GET", "save" };
	redisReply *reply = NULL;
	enum rlock_status status = run_command(conn, index, 3, argv, &reply);

	*out = -1;
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    reply->element[1]->type == REDIS_REPLY_STRING)
		*out = reply->element[1]->len > 0 ? 1 : 0;
	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

enum rlock_status rlock_conn_server_info(struct rlock_conn *conn, size_t index,
					 struct rlock_server_info *out)
{
	const char *argv[] = { "INFO" };
	redisReply *reply = NULL;
	enum rlock_status status = run_command(conn, index, 1, argv, &reply);

	if (status != RLOCK_OK)
		return status;
	memset(out, 0, sizeof(*out));
	read_info(reply->type == REDIS_REPLY_STRING ? reply->str : "", out);
	freeReplyObject(reply);
	return ask_snapshots(conn, index, &out->has_snapshots);
}

/* ---- time ---- */

enum rlock_status rlock_conn_round_trip(struct rlock_conn *conn, size_t index, int64_t *us_out)
{
	int64_t begin_us = rlock__now_us();
	enum rlock_status status = rlock__command_ping(conn->connections[index]);

	*us_out = rlock__now_us() - begin_us;
	/* A denied PING took as long. */
	if (status == RLOCK_EACL)
		return RLOCK_OK;
	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	return status;
}

static bool is_number(const redisReply *reply, int64_t *out)
{
	return reply->type == REDIS_REPLY_STRING &&
	       rlock__decimal_parse(reply->str, reply->len, out) && *out >= 0;
}

enum rlock_status rlock_conn_look_at_clock(struct rlock_conn *conn, size_t index,
					   struct rlock_clock_look *out)
{
	const char *argv[] = { "TIME" };
	int64_t begin_us = rlock__now_us(), seconds, us;
	redisReply *reply = NULL;
	enum rlock_status status = run_command(conn, index, 1, argv, &reply);

	if (status != RLOCK_OK)
		return status;
	*out = (struct rlock_clock_look){ -1, begin_us, rlock__now_us() };
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    is_number(reply->element[0], &seconds) && is_number(reply->element[1], &us) &&
	    seconds < INT64_MAX / 1000000 - 1 && us < 1000000)
		out->server_us = seconds * 1000000 + us;
	freeReplyObject(reply);
	return RLOCK_OK;
}
