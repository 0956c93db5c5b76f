#!/usr/bin/env bats
# bats file_tags=computes
# Random steps on one lock of each kind by the library (tests/property/), with faults of servers and connections. After each step no two
# holds may exclude each other, each hold that a client relies on must exist, and each request must have had the expected result.
# A failure prints its seed: MODEL_SEED repeats it. MODEL_STEPS is the number of steps.

load ../lib/helpers

# Run all models at the same time, as they mostly wait.
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

# keeps_promises TOPOLOGY COUNT: all COUNT kinds of locks must have kept their promises there; else prints the last steps, the
# difference, and the seed.
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

@test "locks keep their promises while rights are missing, memory is full, and requests are late, cut off or repeated" {
	keeps_promises single 4
}

@test "locks on several servers keep their promises while one server after the other restarts empty" {
	keeps_promises several 3
}

@test "locks keep their promises while a replica takes over from its master" {
	keeps_promises sentinel 4
}

@test "locks keep their promises while their slot migrates to another node of a cluster" {
	keeps_promises cluster 4
}
