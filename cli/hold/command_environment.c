/*
 * Builds the environment of the command. It leaves the format of RLOCK_HELD to inherited.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hold/command_environment.h"
#include "process_lock/held.h"

#define TOKEN_TEXT_MAX 24
#define OWN_VARIABLES_MAX 5

/* "VARIABLE=value", malloc'ed. */
static char *assignment(const char *variable, const char *value)
{
	char *text = NULL;

	if (value == NULL || asprintf(&text, "%s=%s", variable, value) < 0)
		return NULL;
	return text;
}

/* One a line. */
static char *join_lines(const struct rlock_name *lines, size_t count)
{
	size_t size = 1;
	char *text, *end;

	for (size_t i = 0; i < count; i++)
		size += lines[i].len + 1;
	text = malloc(size);
	if (text == NULL)
		return NULL;
	end = text;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			*end++ = '\n';
		end = mempcpy(end, lines[i].text, lines[i].len);
	}
	*end = '\0';
	return text;
}

/* One for each name: a name that was re-entered has another owner than one that was acquired anew. */
static char *join_owners(const struct rlock_hold *hold, size_t count)
{
	struct rlock_name *owners = calloc(count, sizeof(*owners));
	char *text;

	if (owners == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *owner = rlock_hold_owner(hold, i);

		owners[i] = (struct rlock_name){ owner, strlen(owner) };
	}
	text = join_lines(owners, count);
	free(owners);
	return text;
}

static bool is_replaced(const char *entry)
{
	static const char *const variables[] = { "RLOCK_NAME", "RLOCK_OWNER", "RLOCK_MODE",
						 "RLOCK_TOKEN", INHERITED_VARIABLE };
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (strlen(variables[i]) == len && strncmp(entry, variables[i], len) == 0)
			return true;
	return false;
}

/* One for each name, one a line. */
static char *join_tokens(const struct rlock_hold *hold, size_t count)
{
	char *text = malloc(count * TOKEN_TEXT_MAX + 1);
	size_t at = 0;

	for (size_t i = 0; text != NULL && i < count; i++)
		at += (size_t)snprintf(text + at, TOKEN_TEXT_MAX, "%s%" PRId64, i > 0 ? "\n" : "",
				       rlock_hold_token(hold, i));
	return text;
}

/* The server says so; in doubt the hold is not over. */
static bool is_hold_over(void *ctx, const struct rlock_name *name, const char *owner)
{
	struct rlock_hold *hold = NULL;
	enum rlock_status status = rlock_find(ctx, name, owner, RLOCK_ANY, &hold);

	rlock_hold_free(hold);
	return status == RLOCK_NOT_HELD;
}

/*
 * Programs that start one another, each under a lock, may hand down many holds that are over. exec takes no variable
 * that is longer than 32 pages with its NUL.
 */
static char *extend_inherited(const struct opts *opts, enum rlock_kind kind,
			      struct rlock_conn *conn, const struct rlock_hold *hold)
{
	size_t max = 32 * (size_t)sysconf(_SC_PAGESIZE) - sizeof(INHERITED_VARIABLE "=");
	char *inherited = inherited_extend(getenv(INHERITED_VARIABLE), opts->server, kind,
					   opts->names, opts->name_count, hold);
	char *pruned;

	if (inherited == NULL || strlen(inherited) <= max)
		return inherited;
	pruned = inherited_prune(inherited, opts->server, max, is_hold_over, conn);
	free(inherited);
	return pruned;
}

/* Our variables come first. Only they are freed: the others belong to environ. */
char **command_environment(const struct opts *opts, enum rlock_kind kind, struct rlock_conn *conn,
			   const struct rlock_hold *hold)
{
	char *names = join_lines(opts->names, opts->name_count);
	char *owners = join_owners(hold, opts->name_count);
	char *inherited = extend_inherited(opts, kind, conn, hold);
	char *tokens = opts->fence ? join_tokens(hold, opts->name_count) : NULL;
	const struct {
		const char *variable, *value;
	} own[OWN_VARIABLES_MAX] = {
		{ "RLOCK_NAME", names },
		{ "RLOCK_OWNER", owners },
		{ "RLOCK_MODE", rlock_kind_name(kind) },
		{ INHERITED_VARIABLE, inherited },
		{ "RLOCK_TOKEN", tokens },
	};
	size_t own_count = opts->fence ? OWN_VARIABLES_MAX : OWN_VARIABLES_MAX - 1;
	size_t count = 0, at = 0;
	char **list;

	while (environ[count] != NULL)
		count++;
	list = calloc(count + OWN_VARIABLES_MAX + 1, sizeof(*list));
	while (list != NULL && at < own_count) {
		list[at] = assignment(own[at].variable, own[at].value);
		if (list[at++] != NULL)
			continue;
		command_environment_free(list);
		list = NULL;
	}
	for (size_t i = 0; list != NULL && i < count; i++)
		if (!is_replaced(environ[i]))
			list[at++] = environ[i];
	free(names);
	free(owners);
	free(inherited);
	free(tokens);
	return list;
}

void command_environment_free(char **environment)
{
	if (environment == NULL)
		return;
	/* The caller's variables of these names are not in it. */
	for (size_t i = 0; environment[i] != NULL && is_replaced(environment[i]); i++)
		free(environment[i]);
	free(environment);
}
