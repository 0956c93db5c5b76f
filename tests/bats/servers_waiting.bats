#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree: which caller is kept out, which waiter is woken, whose
# turn it is, and what a wait that ends leaves.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing

setup_file() { start_warm_servers 3; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- what the tests share ----

# all_take_turns VERB COUNT TURNS NAME [OPTION...]: so many shells take so many turns each, every one with
# the servers in another order. None may fail, nor meet another.
all_take_turns() {
	local shell orders=('1 2 3' '3 2 1' '2 3 1' '1 3 2' '3 1 2' '2 1 3') pids=()
	for ((shell = 0; shell < $2; shell++)); do
		# shellcheck disable=SC2086
		in_background env RLOCK_URL="$(urls_of ${orders[shell % 6]})" bash -c '
			for ((turn = 0; turn < $1; turn++)); do
				rlock "${@:2}" -- shared_turn write || echo "$? in turn $turn" >>wrong
			done' bash "$3" "$1" "${@:5}" "$4"
		pids+=("$PID")
	done
	took_less 120 wait "${pids[@]}"
	[ ! -e wrong ] || fail "$(head wrong)"
	has_lines turns $(($2 * $3))
	on_each no_keys
	nothing_runs
}

# ---- one at a time ----

@test "a caller that names the same servers is kept out, in whatever order" {
	hold_on_each a
	for order in '1 2 3' '1 3 2' '2 1 3' '2 3 1' '3 1 2' '3 2 1'; do
		# shellcheck disable=SC2086
		RLOCK_URL=$(urls_of $order) run -75 rlock run -n a -- touch ran
		assert_output ''
	done
	[ ! -e ran ]
	let_go
	ended_with 0
	on_each no_keys
}

@test "a caller that names one of the servers is kept out, and keeps those out that name all" {
	local number
	hold_on_each a
	for number in 1 2 3; do
		run -75 rlock run -n -u "$(urls_of $number)" a -- touch ran
	done
	let_go
	ended_with 0
	for number in 1 2 3; do
		run -64 rlock run -u "$(urls_of $number)" a -- env -u RLOCK_HELD rlock run -n a -- touch ran
	done
	[ ! -e ran ]
	on_each no_keys
}

@test "what Java holds on one server keeps all out, which say by which owner, and nothing is left on the others" {
	local number
	for number in 1 2 3; do
		on $number held_by_stranger a
		run -75 rlock run -n a -- touch ran
		assert_output ''
		run -75 rlock run -w 200ms a -- touch ran
		assert_one_line '^rlock: a: .*held by 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1'
		on $number redis del a >/dev/null
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "a waiter is woken by the release on all servers, long before the lease would end" {
	hold_on_each a
	holder=$PID
	wait_for a
	let_go
	took_less 8 wait_until 8 file_exists ran
	ended_with 0
	ended_with 0 "$holder"
	on_each no_keys
}

@test "a waiter is woken by the holder of the lock on one of the servers only" {
	local number
	for number in 1 3; do
		rm -f ran
		on $number held_by_stranger a
		listen_to rlock run a -- touch ran
		let_pass 0.7
		[ ! -e ran ]
		on $number stranger_leaves a
		took_less 8 wait_until 8 file_exists ran
		ended_with 0
	done
	on_each no_keys
}

@test "a fair lock is acquired in the order of the calls, on several servers" {
	local number pid pids=()
	hold_on_each f
	holder=$PID
	for number in 1 2 3 4 5; do
		in_background rlock fair f -- sh -c 'echo "$0" >>order' $number
		pids+=("$PID")
		wait_until 5 on_each has_in_queue f $number
	done
	let_go
	ended_with 0 "$holder"
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(paste -s -d ' ' order)" '1 2 3 4 5'
	wait_until 5 on_each no_keys
}

# ---- many ----

@test "six shells that name the servers in different orders take their turns, one at a time" {
	all_take_turns run 6 25 a
}

# ---- the end of a wait ----

@test "a signal that ends a wait leaves nothing on any server" {
	local verb signal
	for verb in run fair wlock; do
		rm -f let-go
		in_background rlock $verb a -- until_let_go
		holder=$PID
		wait_until 5 on_each is_held a
		for signal in TERM $([ $verb != run ] || echo INT); do
			in_background rlock $verb a b -- touch ran
			let_pass 0.2
			kill -s "$signal" "$PID"
			took_less 4 ended_with $((128 + $(kill -l "$signal")))
			on_each is_free b
		done
		let_go
		ended_with 0 "$holder"
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "the end of a wait time leaves nothing on any server, and no line" {
	local verb
	for verb in run fair rlock; do
		rm -f let-go
		in_background rlock "${verb/rlock/wlock}" a -- until_let_go
		wait_until 5 on_each is_held a
		run -75 rlock $verb -w 300ms a b -- touch ran
		on_each is_free b
		let_go
		ended_with 0
		on_each no_keys
	done
	[ ! -e ran ]
}
