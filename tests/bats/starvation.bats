#!/usr/bin/env bats
# bats file_tags=long
# Which has its turn when readers and writers come all the time: no writer is kept out by readers that come and go,
# no reader by a writer that waits and died, and never is a reader in with a writer, or two writers.

load ../lib/usual
load ../lib/sharing

# ---- a writer that waits ----

@test "a reader that comes after a waiting writer lets it go first" {
	admit_guest r1 rlock a
	queue_guest w wlock a
	queue_guest r2 rlock a -v
	stays_outside 0.3 r2
	let_guest_out r1
	wait_until 5 is_inside w
	stays_outside 0.3 r2
	let_guest_out w
	enters_woken r2
	let_guest_out r2
	ended_with 0
	no_keys
}

@test "a reader that comes after a waiting writer is told that readers hold the lock, and which writer is next" {
	local writer
	admit_guest r rlock a
	queue_guest w wlock a --note 'nightly import'
	writer=$PID
	run -75 rlock rlock -n a -- touch ran
	assert_output ''
	run -75 rlock rlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by readers, and next is nightly import \([0-9a-f-]{36}:$writer\): give a longer --wait\$"
	refute file_exists ran
	run -75 rlock rlock -v -w 1.2s a -- touch ran
	assert_line --regexp '^rlock: .*a: waiting for nightly import'
}

@test "a script that has the read lock re-enters it while a writer waits" {
	in_background bash -c 'rlock rlock --pid $$ a; inside r; rlock rlock --pid $$ a; rlock unlock a; inside again'
	wait_until 5 is_inside r
	queue_guest w wlock a
	let_guest_out r
	wait_until 5 is_inside again
	is_outside w
	let_guest_out again
	wait_until 5 is_inside w
}

# readers_wait_behind_a_writer: one reader is in, and one behind a writer; sets WRITER.
readers_wait_behind_a_writer() {
	admit_guest r1 rlock a
	queue_guest w wlock a
	WRITER=$PID
	queue_guest r2 rlock a -v
}

@test "a writer that is ended while it waits lets the readers in at once" {
	readers_wait_behind_a_writer
	kill "$WRITER"
	enters_woken r2
	is_free 'rlock_writer:{a}'
	ended_with 143 "$WRITER"
	let_guest_out r1 r2
	wait_until 5 no_keys
}

@test "a writer that is killed while it waits holds readers up for five seconds at most" {
	readers_wait_behind_a_writer
	kill_with_renewers "$WRITER"
	start_guest r3 rlock a
	wait_until 15 all_are_inside r2 r3
	is_free 'rlock_writer:{a}'
}

# come_and_go VERB COUNT SECONDS: so many shells, each in the lock again and again for so long, until the file
# "enough" is there. Each turn is a line in the file "had-VERB".
come_and_go() {
	local number
	for ((number = 0; number < $2; number++)); do
		in_background sh -c 'until [ -e enough ]; do
			rlock "$1" a -- sh -c "echo >>had-\$0; sleep \$1" "$1" "$2" || exit
		done' sh "$1" "$3"
	done
	wait_until 10 test -e "had-$1"
}

# has_more VERB COUNT
has_more() {
	local lines
	mapfile lines <"had-$1"
	((${#lines[@]} > $2))
}

@test "readers that come and go all the time do not keep a writer out" {
	not_under_valgrind 'its waiters are not there in time'
	come_and_go rlock 5 1
	# By themselves they would: one or another is always in.
	wait_until 20 has_more rlock 10
	wait_until 20 stays 1.5 is_held a
	admit_guest w wlock a -w 20s
	assert_equal "$(redis hlen a)" 2
	let_guest_out w
	ended_with 0
	run -0 rlock wlock -w 20s a -- true
	touch enough
	all_ended_with 0
	no_keys
}

@test "writers that come and go all the time do not keep a reader out" {
	come_and_go wlock 3 0.05
	wait_until 10 has_more wlock 5
	for _ in 1 2 3; do
		run -0 rlock rlock -w 20s a -- true
	done
	touch enough
	all_ended_with 0
	no_keys
}

@test "forty processes take read and write locks in all forms: never a reader with a writer, or two writers" {
	local each=2 number pid turns=0
	[ -z "${RLOCK_LONG_TESTS:-}" ] || each=50
	[ -z "${TESTS_UNDER:-}" ] || each=1
	# A writer that goes on as a reader: its part as the writer is over before.
	cat >goes_on <<-'EOS'
		#!/usr/bin/env bash
		shared_turn write || exit
		rm -f "inner-$1"
		rlock rlock a -- sh -c ': >"$0"; exec shared_turn read' "inner-$1" >/dev/null 3>&- &
		until [ -e "inner-$1" ]; do read -r -t 0.005 <> <(:) || :; done
	EOS
	cat >worker <<-'EOS'
		#!/usr/bin/env bash
		# worker NUMBER TURNS
		for ((turn = 0; turn < $2; turn++)); do
			case $((($1 + turn) % 10)) in
			0 | 1 | 2) rlock rlock a -- shared_turn read ;;
			3 | 4) rlock wlock a -- shared_turn write ;;
			5) rlock rlock a -- rlock rlock a -- shared_turn read ;;
			6) rlock wlock a -- rlock wlock a -- shared_turn write ;;
			7) rlock wlock a -- rlock rlock a -- shared_turn write ;;
			8) rlock wlock a -- ./goes_on "$1" ;;
			9) rlock rlock --pid $$ a && shared_turn read && rlock unlock a ;;
			esac || { echo "form $((($1 + turn) % 10)): $?" >>wrong; }
		done
	EOS
	chmod +x goes_on worker
	for number in {1..40}; do
		in_background ./worker "$number" "$each"
	done
	for pid in "${BACKGROUND[@]}"; do
		wait_until 300 is_gone "$pid"
	done
	wait_until 10 no_keys
	[ ! -e wrong ] || fail "$(cat wrong)"
	# That of a writer that goes on is two.
	turns=$((40 * each + 4 * each))
	[ "$(wc -l <turns)" = "$turns" ] || fail "$(wc -l <turns) turns, not $turns"
	[ "$(grep -c write turns)" = $((20 * each)) ] || fail "$(grep -c write turns) writes"
	assert_equal "$(redis pubsub channels)" ''
	nothing_runs
}
