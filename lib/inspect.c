/*
 * Queries each server for what it has of a name, by one request that changes nothing.
 * The reply is read by inspection.c; what it means for a person is for the caller.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "base/error.h"
#include "conn.h"
#include "inspection.h"
#include "net/connection.h"
#include "request.h"
#include "rlock.h"
#include "script.h"

/* At most these are listed, and the number of all. A screen has less room. */
#define HOLDERS_MAX 100
#define WAITERS_MAX 100

struct inspecting {
	struct rlock_conn *conn;
	const struct rlock_name *name;
	struct rlock_inspection *inspections;
};

const char *rlock_client_name(enum rlock_client client)
{
	switch (client) {
	case RLOCK_CLIENT_RLOCK:
		return "rlock";
	case RLOCK_CLIENT_REDISSON:
		return "redisson";
	case RLOCK_CLIENT_OTHER:
		return "other";
	case RLOCK_CLIENT_UNKNOWN:
		break;
	}
	return "unknown";
}

static const struct rlock__script *make_inspect(const void *ctx, size_t index,
						struct rlock__args *args)
{
	const struct inspecting *inspecting = ctx;

	(void)index;
	rlock__inspection_args(inspecting->name, HOLDERS_MAX, WAITERS_MAX,
			       inspecting->conn->has_cluster, args);
	return &rlock__script_inspect;
}

/* The node, of a cluster, or the master that sentinels name. */
static const char *server_of(const struct inspecting *inspecting, size_t index)
{
	return rlock_url_server(rlock__connection_server(inspecting->conn->connections[index]));
}

static enum rlock_status read_inspection(void *ctx, size_t index, redisReply *reply)
{
	struct inspecting *inspecting = ctx;

	return rlock__inspection_read(reply, inspecting->name, server_of(inspecting, index),
				      rlock__connection_error(inspecting->conn->connections[index]),
				      &inspecting->inspections[index]);
}

static enum rlock_status fill_failed(struct inspecting *inspecting,
				     const struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < inspecting->conn->server_count; i++) {
		const struct rlock__error *error =
			rlock__connection_error(inspecting->conn->connections[i]);
		enum rlock_status status = broadcast->answers[i].status;

		if (inspecting->inspections[i].memory == NULL &&
		    rlock__inspection_fail(inspecting->name, server_of(inspecting, i), status,
					   error->text,
					   &inspecting->inspections[i]) == RLOCK_ENOMEM)
			return rlock__fail_memory(&inspecting->conn->error);
	}
	return RLOCK_OK;
}

static enum rlock_status inspect_all(struct inspecting *inspecting,
				     const struct rlock__places *places)
{
	struct rlock__broadcast broadcast;
	enum rlock_status status;

	rlock__broadcast_init(&broadcast, places, read_inspection, inspecting);
	/* In the wrong database the lock of that name is another one. */
	broadcast.needs_login = true;
	rlock__broadcast_begin_all(&broadcast, make_inspect, inspecting, INT64_MAX);
	status = rlock__broadcast_await(&broadcast, 0, INT64_MAX);
	if (status == RLOCK_OK && rlock__broadcast_count(&broadcast, RLOCK_OK) == 0) {
		status = broadcast.answers[0].status;
		rlock__conn_copy_error(inspecting->conn, 0);
	}
	if (status == RLOCK_OK)
		status = fill_failed(inspecting, &broadcast);
	rlock__broadcast_free(&broadcast);
	return status;
}

enum rlock_status rlock_inspect(struct rlock_conn *conn, const struct rlock_name *name,
				struct rlock_inspection **out, size_t *count_out)
{
	struct inspecting inspecting = { conn, name, NULL };
	enum rlock_status status = rlock__conn_check_names(conn, name, 1);
	struct rlock__places places;

	if (status != RLOCK_OK)
		return status;
	rlock__places_of_name(&places, conn);
	inspecting.inspections = calloc(conn->server_count, sizeof(*inspecting.inspections));
	status = inspecting.inspections != NULL ? inspect_all(&inspecting, &places)
						: rlock__fail_memory(&conn->error);
	if (status == RLOCK_OK) {
		*out = inspecting.inspections;
		*count_out = conn->server_count;
	} else if (inspecting.inspections != NULL) {
		rlock_inspections_free(inspecting.inspections, conn->server_count);
	}
	return status;
}

void rlock_inspections_free(struct rlock_inspection *inspections, size_t count)
{
	for (size_t i = 0; inspections != NULL && i < count; i++)
		rlock__inspection_clear(&inspections[i]);
	free(inspections);
}
