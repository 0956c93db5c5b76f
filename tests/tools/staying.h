/*
 * A command that runs until its test says so. In C, since a test starts several, and a shell takes longer to begin than rlock.
 * For programs of one file.
 */
#ifndef STAYING_H
#define STAYING_H

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STAYING_S 60
#define STAYING_LOOK_MS 20
#define STAYING_EXIT 71

/* Where the test has its files. */
static const char *go_to_test(void)
{
	const char *directory = getenv("BATS_TEST_TMPDIR");

	if (directory == NULL || access(directory, X_OK) != 0) {
		(void)fprintf(stderr, "BATS_TEST_TMPDIR is no directory\n");
		exit(STAYING_EXIT);
	}
	return directory;
}

static bool is_there(const char *file)
{
	return access(file, F_OK) == 0;
}

/* Until one of the files is there, or the test is over; 60 s at most. */
static void stay_until(const char *directory, const char *file, const char *other)
{
	struct timespec now;
	time_t end;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + STAYING_S;
	while (!is_there(file) && !is_there(other) && is_there(directory) && now.tv_sec <= end) {
		(void)poll(NULL, 0, STAYING_LOOK_MS);
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	}
}

#endif
