#!/usr/bin/env bats
# bats file_tags=computes
# Random steps on one lock of each kind, straight on the library, and on servers of their own, to which much happens.
# After each step no two holds exclude each other, each hold that a client relies on is there, and each request has answered
# as it ought to: tests/property/. MODEL_SEED repeats a failure, which prints its seed; MODEL_STEPS is how many steps there are.

load ../lib/helpers

# All at a time, since they wait for most of theirs.
setup_file() {
	local topology steps kinds kind
	while read -r topology steps kinds; do
		[ "${TESTS_UNDER:-}" != valgrind ] || steps=$((steps / 5))
		for kind in $kinds; do
			{
				TMPDIR=$BATS_FILE_TMPDIR "${RLOCK_BIN%/*}/property/model" "$kind" "$topology" "${MODEL_STEPS:-$steps}" \
					"${MODEL_SEED-}" && echo 'all steps went well'
			} >"$BATS_FILE_TMPDIR/$topology-$kind" 2>&1 3>&- &
		done
	done <<-END
		single   1200 plain fair readwrite sem
		several  120  plain fair readwrite
		sentinel 300  plain fair readwrite sem
		cluster  300  plain fair readwrite sem
	END
	wait
}

# keeps_promises TOPOLOGY COUNT: so many kinds of locks do; else it prints what the steps were, what differs, and the seed.
keeps_promises() {
	local said went_well=0
	for said in "$BATS_FILE_TMPDIR/$1"-*; do
		if grep -qx 'all steps went well' "$said"; then
			went_well=$((went_well + 1))
		else
			cat "$said"
		fi
	done
	assert_equal "$went_well" "$2"
}

@test "locks keep their promises while rights are missing, memory is short, and requests are late, cut off, and come again" {
	keeps_promises single 4
}

@test "locks on several servers keep their promises while one after the other is killed, and comes back empty" {
	keeps_promises several 3
}

@test "locks keep their promises while a replica takes over from its master" {
	keeps_promises sentinel 4
}

@test "locks keep their promises while their slot moves to another node of a cluster" {
	keeps_promises cluster 4
}
