/*
 * Finds the configuration file: the one that the user named, else the user's own, else that of the machine. config.c
 * reads what is in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/config_find.h"
#include "options/merge.h"
#include "options/usage.h"
#include "sys/file_read.h"

#define CONFIG_SIZE_MAX (1 << 18)
#define MACHINE_FILE "/etc/rlock.conf"

struct candidate {
	char path[PATH_MAX + 1]; /* a longer one is cut where the kernel still calls it too long */
	const char *origin;      /* what named it, for messages */
	bool is_named;           /* and so must exist, unlike the default files */
	bool is_foreign;         /* below another user's home directory */
};

static int report_unreadable(const struct candidate *candidate, int err)
{
	char shown[USAGE_SHOWN_MAX];

	if (err == ENOMEM)
		return message_out_of_memory();
	message_error("cannot read '%s'%s: %s", usage_show(candidate->path, shown),
		      candidate->origin, strerror(err));
	return is_transient_errno(err) ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* The owner of the file decides which server the locks are on, and which password it gets. */
static int check_owner(const struct candidate *candidate, const struct stat *stat)
{
	char shown[USAGE_SHOWN_MAX];

	if (stat->st_uid == 0 || stat->st_uid == geteuid())
		return 0;
	message_error(
		"configuration file '%s'%s: belongs to user %lu, not to root or to the caller: "
		"check what is in it, then chown it",
		usage_show(candidate->path, shown), candidate->origin, (unsigned long)stat->st_uid);
	return EXIT_CONFIG;
}

/* After su or sudo, HOME may still be that of the user before. */
static bool is_of_other_user(const char *dir)
{
	struct stat st;

	return stat(dir, &st) != 0 || st.st_uid != geteuid();
}

/*
 * A file that exists may name the server. Where no other source does, rlock can't go on without the file: locks would
 * be on the default server, and exclude nothing.
 */
static bool can_be_skipped(const struct option_merge *merge, const struct candidate *candidate,
			   int err)
{
	if (candidate->is_named)
		return false;
	if (err == ENOENT || err == ENOTDIR)
		return true;
	if (is_transient_errno(err))
		return false;
	return merge->given[OPT_URL] != SOURCE_DEFAULT || (candidate->is_foreign && err == EACCES);
}

/* --config is recorded with the other options. */
static bool record(struct option_merge *merge, const struct candidate *candidate)
{
	struct settings *settings = &merge->opts->settings;
	bool is_by_option = merge->opts->config != NULL;

	(void)usage_show(candidate->path, settings->config);
	if (!settings_add_variable(settings, "RLOCK_CONFIG", "config", false))
		return false;
	if (is_by_option)
		settings_ignore(settings, "RLOCK_CONFIG", "--config takes precedence");
	return candidate->is_named ||
	       settings_add(settings,
			    &(struct setting){ .option = "config", .value = settings->config });
}

static bool record_skipped(struct settings *settings, const struct candidate *candidate)
{
	struct setting setting = { .option = "config", .value = settings->skipped };

	(void)usage_show(candidate->path, settings->skipped);
	(void)snprintf(setting.ignored, sizeof(setting.ignored),
		       "it can't be read, and is not needed");
	return settings_add(settings, &setting);
}

/* True if no other file counts: then this one's text is in *text_out, or the exit code in *code_out. */
static bool try_candidate(struct option_merge *merge, const struct candidate *candidate,
			  char **text_out, size_t *len_out, int *code_out)
{
	struct settings *settings = &merge->opts->settings;
	struct stat stat;
	int err;

	*text_out =
		file_read_all(AT_FDCWD, candidate->path, O_NOCTTY, CONFIG_SIZE_MAX, &stat, len_out);
	if (*text_out != NULL) {
		*code_out = record(merge, candidate) ? check_owner(candidate, &stat)
						     : message_out_of_memory();
		return true;
	}
	err = errno;
	if (!can_be_skipped(merge, candidate, err)) {
		*code_out = report_unreadable(candidate, err);
		return true;
	}
	if (err == ENOENT || err == ENOTDIR || record_skipped(settings, candidate))
		return false;
	*code_out = message_out_of_memory();
	return true;
}

static bool named_candidate(const struct option_merge *merge, struct candidate *out)
{
	const char *named = merge->opts->config;

	*out = (struct candidate){ .origin = " (--config)", .is_named = true };
	if (named == NULL) {
		named = getenv("RLOCK_CONFIG");
		out->origin = " (RLOCK_CONFIG)";
	}
	if (named == NULL || *named == '\0')
		return false;
	(void)snprintf(out->path, sizeof(out->path), "%s", named);
	return true;
}

/* The user's own file; false when there can't be one. */
static bool user_candidate(struct candidate *out)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	const char *dir = NULL, *below = "";

	if (config != NULL && *config == '/') {
		dir = config;
	} else if (home != NULL && *home == '/') {
		dir = home;
		below = "/.config";
	}
	if (dir == NULL)
		return false;
	*out = (struct candidate){ .origin = "", .is_foreign = is_of_other_user(dir) };
	return snprintf(out->path, sizeof(out->path), "%s%s/rlock.conf", dir, below) < PATH_MAX;
}

/* Record that /etc/rlock.conf is not read since another file comes first: a user may expect its options to count. */
static int record_unread(struct option_merge *merge)
{
	struct setting setting = { .option = "config", .value = MACHINE_FILE };
	struct settings *settings = &merge->opts->settings;

	if (strcmp(settings->config, MACHINE_FILE) == 0 || access(MACHINE_FILE, F_OK) != 0)
		return 0;
	(void)snprintf(setting.ignored, sizeof(setting.ignored),
		       "one file is read, and that is %.99s", settings->config);
	return settings_add(settings, &setting) ? 0 : message_out_of_memory();
}

static int find(struct option_merge *merge, char **text_out, size_t *len_out)
{
	struct candidate candidate;
	int code = 0;

	if (named_candidate(merge, &candidate)) {
		(void)try_candidate(merge, &candidate, text_out, len_out, &code);
		return code;
	}
	if (user_candidate(&candidate) &&
	    try_candidate(merge, &candidate, text_out, len_out, &code))
		return code;
	candidate = (struct candidate){ .path = MACHINE_FILE, .origin = "" };
	(void)try_candidate(merge, &candidate, text_out, len_out, &code);
	return code;
}

int config_find(struct option_merge *merge, char **text_out, size_t *len_out)
{
	int code = find(merge, text_out, len_out);

	/* Only `rlock check` prints it. */
	if (code != 0 || *text_out == NULL || merge->verb->set != VERBS_CHECK)
		return code;
	return record_unread(merge);
}
