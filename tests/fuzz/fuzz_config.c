/*
 * cli/options/config.c and the options in it: the input is the configuration file of a call without options. Either the whole file is
 * accepted, or the exit code is the one for a wrong configuration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "options/opts.h"
#include "options/load.h"

#include "fuzz.h"

static const struct verb verb = { .name = "run", .set = VERBS_ACQUIRE, .command = COMMAND_NEEDED };

static void write_config(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[32];

	if (fd < 0) {
		fd = memfd_create("rlock.conf", MFD_CLOEXEC);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		/* Set the mode 600, since a file that others may write would be refused before it is read. */
		ALWAYS(fd >= 0 && fchmod(fd, 0600) == 0 && setenv("RLOCK_CONFIG", path, 1) == 0);
		ALWAYS(unsetenv("RLOCK_URL") == 0 && unsetenv("REDISCLI_AUTH") == 0);
	}
	ALWAYS(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
}

static void check_opts(const struct opts *opts)
{
	ALWAYS(opts->url_count > 0 && opts->server != NULL);
	ALWAYS(fuzz_is_shown_safely(opts->server));
	ALWAYS(opts->quorum > opts->url_count / 2 && opts->quorum <= opts->url_count);
	ALWAYS(opts->lease_ms >= 1000 && opts->wait_ms >= -1 && opts->connect_timeout_ms > 0);
	ALWAYS(opts->at_least_ms >= 0 && opts->max_run_ms >= 0 && opts->grace_ms >= 0);
	ALWAYS(opts->conflict_exit_code >= 0 && opts->conflict_exit_code <= 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char program[] = "rlock", run[] = "run", name[] = "name", end[] = "--", command[] = "true";
	char *argv[] = { program, run, name, end, command, NULL };
	struct opts opts;
	bool is_done = false;
	int code;

	write_config(data, size);
	code = load_opts(&verb, 5, argv, &opts, &is_done);
	ALWAYS(!is_done && (code == 0 || code == EXIT_CONFIG));
	if (code != 0)
		return 0;
	check_opts(&opts);
	load_free(&opts);
	return 0;
}
