#!/usr/bin/env bats
# bats file_tags=computes
# Random steps on one lock, straight on the library, and compared after each of them with a plain model of what
# ought to be. MODEL_SEED repeats a failure, which prints its seed; MODEL_STEPS is how many steps there are.

load ../lib/helpers

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() { common_setup; }
teardown() { common_teardown; }

# goes_as_the_model KIND: prints what the steps were, or what differs, and the seed.
goes_as_the_model() {
	local steps=10000
	[ "${TESTS_UNDER:-}" != valgrind ] || steps=2000
	run -0 "${RLOCK_BIN%/*}/property/model" "$1" "$SERVER_SOCKET" "${MODEL_STEPS:-$steps}" "${MODEL_SEED-}"
}

@test "a read/write lock does what its model does, whatever its owners do" {
	goes_as_the_model readwrite
}

@test "a fair lock does what its model does, whatever comes, goes, and gives up" {
	goes_as_the_model fair
}

@test "a semaphore does what its model does, whatever its holders and Java's do" {
	goes_as_the_model semaphore
}

@test "rights that are missing, a full server and requests that come again do a plain lock no harm" {
	goes_as_the_model disturbed-plain
}

@test "rights that are missing, a full server and requests that come again do a fair lock no harm" {
	goes_as_the_model disturbed-fair
}

@test "rights that are missing, a full server and requests that come again do a read/write lock no harm" {
	goes_as_the_model disturbed-readwrite
}

@test "rights that are missing, a full server and requests that come again do a semaphore no harm" {
	goes_as_the_model disturbed-semaphore
}
