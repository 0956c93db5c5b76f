#!/usr/bin/env bats
# bats file_tags=long
# Several names in one call that waits: which release wakes it, its positions in the queues of fair locks, and turns
# again and again, in whatever order the names stand.

# In single quotes stand whole scripts. BACKGROUND is of the helpers.
# shellcheck disable=SC2016,SC2034

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/names

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- waiting ----

@test "the wait time is for all names together" {
	not_under_valgrind 'rlock begins too late to tell'
	local start
	for verb in run fair wlock; do
		rm -f in-* out-*
		start_holder x "$verb" a
		start_holder y "$verb" b
		start=$(now_ms)
		start_waiter_of "$verb" w -w 6s a b
		let_pass 4
		let_leave x
		ended_with 75 "${PIDS[w]}"
		(($(now_ms) - start >= 6000 && $(now_ms) - start < 9900)) || fail "after $(($(now_ms) - start)) ms"
		grep -q '^rlock: b: timed out after 6s: ' said-w
		is_untouched a
		let_leave y
		nothing_is_left
	done
}

@test "a waiter for two names is woken by the release of either, in any order" {
	for pair in "${PAIRS[@]}"; do
		read -r verb other <<<"$pair"
		for order in 'x y' 'y x'; do
			read -r first second <<<"$order"
			rm -f in-* out-*
			start_holder x "$other" a
			start_holder y "$other" b
			start_waiter_of "$verb" w -v a b
			wait_until 5 listeners_are 1
			let_leave "$first"
			# A waiter that looks by itself does so now; the next time is two seconds away.
			[ "$verb" != fair ] || wait_until 5 has_just_looked a w
			is_waiting w
			let_leave "$second"
			is_inside_woken w
			let_leave w
			nothing_is_left
		done
	done
}

@test "a waiter for two plain names keeps neither from others" {
	start_holder h run b
	start_waiter_of run w a b
	wait_until 5 listeners_are 1
	run -0 rlock run -n a -- true
	start_holder x run a
	let_leave h
	stays 0.3 is_waiting w
	let_leave x
	wait_until 5 is_inside w
	let_leave w
	nothing_is_left
}

# ---- in every queue ----

@test "a waiter for several fair locks is in the queue of each, and leaves all of them when it has them" {
	local owner
	start_holder h fair b
	queue_waiter r1 a b c
	owner=$(owner_in_queue b r1)
	for name in a b c; do
		assert_equal "$(queue_owners "$name")" "$owner"
		assert_equal "$(redis zrange "$(deadlines_key "$name")" 0 -1)" "$owner"
		assert_equal "$(redis hexists "$(waiters_key "$name")" "$owner")" 1
	done
	is_free a
	is_free c
	is_woken_by b r1 let_leave h
	for name in a b c; do
		assert_equal "$(redis hkeys "$name")" "$owner"
		has_no_queue "$name"
	done
	let_leave r1
	nothing_is_left
}

@test "a free lock is kept for the waiter that came first and waits for another one beside it" {
	start_holder h fair b
	queue_waiter r1 --note 'the first' a b
	run -75 rlock fair -n a -- true
	run -75 rlock fair -w 50ms a -- true
	assert_one_line '^rlock: a: timed out after 50ms: kept for the next waiter, the first \('
	queue_waiter r2 a
	stays 0.5 is_waiting r2
	let_leave h
	await_entry r1
	is_waiting r2
	is_woken_by a r2 let_leave r1
	let_leave r2
	nothing_is_left
}

@test "those that name the locks in different orders have their turns in one order" {
	start_holder h fair b
	queue_waiter r1 a b
	queue_waiter r2 b a
	queue_waiter r3 a
	queue_waiter r4 b
	queue_waiter r5 b a
	assert_equal "$(queue_names a)" 'r1 r2 r3 r5'
	assert_equal "$(queue_names b)" 'r1 r2 r4 r5'
	let_leave h
	await_entry r1
	is_waiting r2
	let_leave r1
	await_entry r2
	is_waiting r3
	is_waiting r4
	let_leave r2
	await_entry r3
	await_entry r4
	is_waiting r5
	let_leave r3
	stays 0.3 is_waiting r5
	is_woken_by b r5 let_leave r4
	let_leave r5
	nothing_is_left
}

# ---- again and again ----

# cross VERB OTHER [COMMAND]: two shells that lock "a b" by VERB, and two that lock "b a" by OTHER, each so
# often; none may give up, and one that was not woken would. A turn of two that exclude each other is counted in
# the file "number", unless the first two run COMMAND instead.
cross() {
	local each=50 counting=4 turn='read -r n <number; echo $((n + 1)) >number' loop
	[ -z "${RLOCK_LONG_TESTS:-}" ] || each=1000
	[ -z "${TESTS_UNDER:-}" ] || each=15
	[ -z "${3:-}" ] || counting=2
	echo 0 >number
	loop='i=0
		while [ $i -lt "$0" ]; do
			rlock "$1" -w '$((10 * SLOWNESS))'s "$2" "$3" -- sh -c "$4" || echo "$* $?" >>failed
			i=$((i + 1))
		done'
	BACKGROUND=()
	in_background sh -c "$loop" "$each" "$1" a b "${3:-$turn}"
	in_background sh -c "$loop" "$each" "$2" b a "$turn"
	in_background sh -c "$loop" "$each" "$1" a b "${3:-$turn}"
	in_background sh -c "$loop" "$each" "$2" b a "$turn"
	all_ended_with 0
	if [ -e failed ]; then
		cat failed
		fail 'not all of them had their turns'
	fi
	assert_equal "$(cat number)" "$((counting * each))"
	nothing_is_left
}

@test "plain locks of two names, again and again in either order: none starves, or waits too long" {
	cross run run
}

@test "plain and fair locks of two names, again and again in either order: none starves, or waits too long" {
	cross run fair
}
