#!/usr/bin/env bats
# bats file_tags=computes
# Random steps on one lock of each kind, straight on the library, and on servers of their own, to which much happens.
# After each step no two holds exclude each other, each hold that a client relies on is there, and each request has answered
# as it ought to: tests/property/. MODEL_SEED repeats a failure, which prints its seed; MODEL_STEPS is how many steps there are.

load ../lib/helpers

# keeps_promises TOPOLOGY STEPS KIND...: prints what the steps were, or what differs, and the seed.
keeps_promises() {
	local steps=$2
	[ "${TESTS_UNDER:-}" != valgrind ] || steps=$((steps / 5))
	TMPDIR=$BATS_TEST_TMPDIR run -0 xargs -P 4 -I KIND \
		"${RLOCK_BIN%/*}/property/model" KIND "$1" "${MODEL_STEPS:-$steps}" "${MODEL_SEED-}" <<<"$(printf '%s\n' "${@:3}")"
}

@test "locks keep their promises while rights are missing, memory is short, and requests are late, cut off, and come again" {
	keeps_promises single 2000 plain fair readwrite sem
}

@test "locks on several servers keep their promises while one after the other is killed, and comes back empty" {
	keeps_promises several 200 plain fair readwrite
}

@test "locks keep their promises while a replica takes over from its master" {
	keeps_promises sentinel 600 plain fair readwrite sem
}

@test "locks keep their promises while their slot moves to another node of a cluster" {
	keeps_promises cluster 500 plain fair readwrite sem
}
