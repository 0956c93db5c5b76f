#!/usr/bin/env bats
# bats file_tags=long
# Several names in one call: all of them are acquired, or none; renewed, lost and released together; and waited for, in the
# queues of fair locks too, in whatever order they stand.

# PIDS is queue.bash's.
# shellcheck disable=SC2034,SC2154

load ../lib/usual
load ../lib/queue
load ../lib/names

@test "where the default user may not delete a key none is acquired, and nothing is left" {
	redis acl setuser default -del >/dev/null
	run rlock run -n a b -- touch ran
	redis acl setuser default +del >/dev/null
	assert_equal "$status" 77
	assert_output --partial +del
	no_keys
}

@test "of several names all are acquired or none, whichever of them is held, for each kind of lock" {
	local pair verb other taken=c
	for pair in "${PAIRS[@]}"; do
		read -r verb other <<<"$pair"
		rm -f in-* out-*
		start_holder h "$other" "$taken" --note 'the holder'
		run -75 rlock "$verb" -n a b c -- touch ran
		assert_output ''
		run -75 rlock "$verb" -w 30ms a b c -- touch ran
		assert_one_line "^rlock: $taken: timed out after 30ms: held by the holder \("
		for name in a b c; do
			[ "$name" = "$taken" ] || is_untouched "$name"
		done
		has_no_queue "$taken"
		let_leave h
		wait_until 5 no_keys
		# Each kind with another name.
		case $taken in a) taken=c ;; b) taken=a ;; c) taken=b ;; esac
	done
	[ ! -e ran ]
}

@test "a kind that turns up while the others are waited for ends the wait, and all lines are left" {
	start_holder h fair a
	queue_waiter r1 a b
	redis del "$(deadlines_key b)" "$(queue_key b)" >/dev/null
	redis set b x >/dev/null
	ended_with 78 "${PIDS[r1]}"
	grep -q '^rlock: b: ' said-r1
	assert_equal "$(queue_names a)" ''
	let_leave h
	redis del b >/dev/null
	nothing_is_left
}

@test "of several names those that are held above are re-entered, and the others acquired" {
	for verb in run fair wlock; do
		run -0 timeout 10 rlock "$verb" a -- sh -c '
			rlock '"$verb"' -n a b -- sh -c "$REDIS exists a b; $REDIS hlen \"rlock_holds:{a}\""
			$REDIS exists a b; $REDIS hlen "rlock_holds:{a}"'
		assert_output "2
2
1
1"
		no_keys
	done
}

@test "one that is lost is lost: the command is stopped, the message says which one, and the others are released" {
	local verb
	for verb in run fair wlock rlock; do
		rm -f in-* out-* said-*
		start_waiter_of "$verb" h -t 2s a b c
		await_entry h
		redis del b >/dev/null
		ended_with 76 "${PIDS[h]}"
		has_lines said-h 1
		grep -q "^rlock: b: lock lost at .*: terminating the command: before you run it again, look at what is half done\$" said-h
		is_free a
		is_free c
		wait_until 6 no_keys
	done
}

@test "a script releases several locks by one unlock, in any order, and a waiter for one of them is woken" {
	in_background bash -c 'rlock lock --pid $$ a b; inside held; rlock unlock b a; inside after'
	PIDS[script]=$PID
	await_entry held
	start_waiter_of run w -v b
	wait_until 5 listeners_are 1
	touch out-held
	is_inside_woken w
	is_free a
	let_leave w
	touch out-after
	ended_with 0 "${PIDS[script]}"
	nothing_is_left
	no_hold_files
}

# ---- waiting ----

@test "a waiter for two names is woken by the release of the last, and keeps neither from others meanwhile" {
	start_holder x run a
	start_holder y run b
	start_waiter_of run w -v a b
	wait_until 5 listeners_are 1
	let_leave x
	run -0 rlock run -n a -- true
	is_waiting w
	let_leave y
	is_inside_woken w
	let_leave w
	nothing_is_left
}

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
	assert_equal "$(queue_names a)" 'r1 r2 r3'
	assert_equal "$(queue_names b)" 'r1 r2 r4'
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
	let_all_leave r3 r4
	nothing_is_left
}

# ---- again and again ----

# Two shells that lock "a b", and two that lock "b a"; none may give up. A turn is counted in the file "number".
@test "plain and fair locks of two names, again and again in either order: none starves, or waits too long" {
	local each=25 loop verb
	[ -z "${RLOCK_LONG_TESTS:-}" ] || each=1000
	[ -z "${TESTS_UNDER:-}" ] || each=10
	echo 0 >number
	loop='i=0
		while [ $i -lt "$0" ]; do
			rlock "$1" -w '$((10 * SLOWNESS))'s "$2" "$3" -- sh -c "read -r n <number; echo \$((n + 1)) >number" || echo "$* $?" >>failed
			i=$((i + 1))
		done'
	for verb in run fair; do
		in_background sh -c "$loop" "$each" "$verb" a b
		in_background sh -c "$loop" "$each" "$verb" b a
	done
	all_ended_with 0
	[ ! -e failed ] || fail "not all of them had their turns: $(cat failed)"
	assert_equal "$(cat number)" "$((4 * each))"
	nothing_is_left
}
