#!/usr/bin/env bats
# bats file_tags=long
# Several names in one call: all of them are acquired, or none; waited for, renewed, lost and released together.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is line.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/line

setup_file() {
	start_server
	# From here on the server knows the scripts: a request whose reply gets lost has been carried out.
	rlock fair warm -- rlock run -n other -- true
}

teardown_file() { stop_server; }

setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# ---- what the tests share ----

# What excludes what: the verb that wants the lock, and one that holds it meanwhile.
PAIRS=('run run' 'fair fair' 'run fair' 'fair run' 'wlock wlock' 'wlock rlock' 'rlock wlock')

# start_waiter_of VERB NAME [OPTION...] LOCK...: as start_waiter, for other kinds of locks.
start_waiter_of() {
	in_background sh -c 'who=$0; exec "$@" inside "$who" 2>"$BATS_TEST_TMPDIR/said-$who"' "$2" rlock "$1" "${@:3}" --
	PIDS[$2]=$PID
}

# Waits that were told where to listen, for whatever kind of lock.
listeners_are() {
	[ "$(redis info clients | sed -n 's/^pubsub_clients:\([0-9]*\).*/\1/p')" = "$1" ] ||
		[ "$(redis client list type pubsub | grep -c .)" = "$1" ]
}

# Of this name nothing is held, and its queue is empty.
is_untouched() {
	redis_says 0 exists "$1" "$(beside rlock_holds "$1")" "$(beside rlock_writer "$1")" && has_no_queue "$1"
}

# ---- all or none ----

@test "of several names all are acquired or none, whichever of them is held, for each kind of lock" {
	for pair in "${PAIRS[@]}"; do
		read -r verb other <<<"$pair"
		for taken in a b c; do
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
		done
	done
	[ ! -e ran ]
}

@test "several names of each kind are held together, and nothing of them is left" {
	for verb in run fair wlock rlock; do
		run -0 rlock "$verb" a b c -- sh -c '$REDIS exists a b c; echo "$RLOCK_NAME"'
		assert_output "3
a
b
c"
		no_keys
	done
}

@test "when one of several names is no lock, none of them is acquired or queued for" {
	redis set b x >/dev/null
	for verb in run fair wlock rlock; do
		run -78 rlock "$verb" a b c -- true
		assert_one_line '^rlock: b: .+$'
		run -78 rlock "$verb" -n c b a -- true
		assert_equal "$(redis keys '*')" b
	done
}

@test "when one of several names is another kind of lock, none of them is acquired or queued for" {
	start_holder h wlock b
	for verb in run fair; do
		run -78 rlock "$verb" a b -- true
		assert_one_line '^rlock: b: .+$'
		is_untouched a
	done
	let_leave h
	rm -f in-h out-h
	start_holder h fair b
	for verb in rlock wlock; do
		run -78 rlock "$verb" a b -- true
		assert_one_line '^rlock: b: .+$'
		is_untouched a
	done
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

@test "when one is held above and the other by another owner, nothing is re-entered" {
	start_holder h fair b
	for verb in run fair; do
		run -75 rlock "$verb" a -- sh -c 'rlock '"$verb"' -n a b -- true; status=$?
			$REDIS hvals a; $REDIS hlen "rlock_holds:{a}"; exit $status'
		assert_output "1
1"
		run -75 rlock "$verb" a -- sh -c 'rlock '"$verb"' -q -w 50ms a b -- true; status=$?
			$REDIS hvals a; exit $status'
		assert_output 1
		has_no_queue a
		has_no_queue b
	done
}

@test "the answer to the request that acquired several locks is lost: each is acquired once" {
	start_proxy
	for verb in run fair; do
		proxy drop-reply 'redisson_lock_token:{a}'
		run -0 rlock "$verb" a b -- sh -c '$REDIS hvals a; $REDIS hvals b'
		assert_output "1
1"
		faults_happened
		no_keys
	done
}

# ---- waiting ----

@test "the wait time is for all names together" {
	not_under_valgrind 'rlock begins too late to tell'
	local start
	for verb in run fair wlock; do
		rm -f in-* out-*
		start_holder x "$verb" a
		start_holder y "$verb" b
		start=$(now_ms)
		start_waiter_of "$verb" w -w 3s a b
		let_pass 2
		let_leave x
		ended_with 75 "${PIDS[w]}"
		(($(now_ms) - start >= 3000 && $(now_ms) - start < 4900)) || fail "after $(($(now_ms) - start)) ms"
		grep -q '^rlock: b: timed out after 3s: ' said-w
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
			start_waiter_of "$verb" w a b
			wait_until 5 listeners_are 1
			let_leave "$first"
			# A waiter that looks by itself does so now; the next time is two seconds away.
			[ "$verb" != fair ] || wait_until 5 has_just_looked a w
			is_waiting w
			let_leave "$second"
			within "$(wake_limit)" is_inside w
			let_leave w
			nothing_is_left
		done
	done
}

@test "a waiter for one of two plain names that are held together is woken by their release" {
	for name in a b; do
		rm -f in-* out-*
		start_waiter_of run h a b
		await_entry h
		start_waiter_of run w "$name"
		wait_until 5 listeners_are 1
		let_leave h
		within "$(wake_limit)" is_inside w
		let_leave w
		nothing_is_left
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
	within "$(wake_limit)" is_inside w
	let_leave w
	nothing_is_left
}

# ---- in every line ----

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

@test "a waiter that gives up, or is told to end, leaves every queue, and those after it go on" {
	for how in TERM time; do
		rm -f in-* out-*
		start_holder h fair b
		if [ "$how" = time ]; then queue_waiter r1 -w "$((4 * SLOWNESS))s" a b c; else queue_waiter r1 a b c; fi
		queue_waiter r2 a
		queue_waiter r3 c
		[ "$how" = time ] || kill -TERM "${PIDS[r1]}"
		wait_until 8 is_gone "${PIDS[r1]}"
		within 2.5 is_inside r2
		within 2.5 is_inside r3
		has_no_queue b
		let_all_leave h r2 r3
		rm -f let-go
		nothing_is_left
	done
}

@test "a waiter that is killed holds up every queue for five seconds at most" {
	start_holder h fair b
	queue_waiter r1 a b c
	queue_waiter r2 a
	queue_waiter r3 c
	queue_waiter r4 b
	kill_waiter r1
	within 8 is_inside r2
	within 1 is_inside r3
	is_woken_by b r4 let_leave h
	let_all_leave r2 r3 r4
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

@test "all that stood still has its places again, in every line" {
	start_holder h fair b
	queue_waiter r1 a b
	queue_waiter r2 b a
	queue_waiter r3 a b
	kill -STOP "${PIDS[r1]}" "${PIDS[r2]}"
	queue_becomes 7 b r3
	queue_becomes 3 a r3
	kill -CONT "${PIDS[r2]}" "${PIDS[r1]}"
	queue_becomes 5 a r1 r2 r3
	queue_becomes 5 b r1 r2 r3
	let_leave h
	take_turns r1 r2 r3
	nothing_is_left
}

# ---- held, lost, released ----

@test "several locks are renewed together" {
	for verb in run fair wlock; do
		rm -f in-* out-*
		start_waiter_of "$verb" h -t 1s a b
		await_entry h
		stays 1.5 is_held a
		is_held b
		let_leave h
		no_keys
	done
}

@test "one that is lost is lost: the command is stopped, the message says which one, and nothing is left" {
	for verb in run fair wlock rlock; do
		for lost in a b c; do
			rm -f in-* out-* said-*
			start_waiter_of "$verb" h -t 2s a b c
			await_entry h
			redis del "$lost" >/dev/null
			ended_with 76 "${PIDS[h]}"
			has_lines said-h 1
			grep -q "^rlock: $lost: lock lost at .*: terminating the command\$" said-h
			wait_until 6 no_keys
		done
	done
}

@test "when one is lost the others are released as soon as the command was stopped, and do not last for their lease" {
	for verb in run fair wlock rlock; do
		rm -f in-* out-* said-*
		start_waiter_of "$verb" h -t 3s a b c
		await_entry h
		redis del b >/dev/null
		ended_with 76 "${PIDS[h]}"
		is_free a
		is_free c
	done
}

@test "one that was lost just before the command ended is said, and the others are released" {
	for verb in run fair; do
		rm -f in-* out-*
		start_waiter_of "$verb" h a b
		await_entry h
		redis del b >/dev/null
		touch out-h
		ended_with 76 "${PIDS[h]}"
		grep -q '^rlock: b: lock lost before the command ended' said-h
		is_free a
	done
}

@test "a script releases several locks by one unlock, in any order, and a waiter for one of them is woken" {
	for verb in lock fair wlock; do
		rm -f in-* out-*
		in_background bash -c 'rlock "$0" --pid $$ a b; inside held; rlock unlock b a; inside after' "$verb"
		PIDS[script]=$PID
		await_entry held
		start_waiter_of "$verb" w b
		wait_until 5 listeners_are 1
		touch out-held
		await_entry w 2
		is_free a
		let_leave w
		touch out-after
		ended_with 0 "${PIDS[script]}"
		nothing_is_left
		no_state_files
	done
}

@test "a script that has lost one of several locks is told by unlock which, and the others are released" {
	for verb in lock fair; do
		run -76 bash -c 'rlock "$0" --pid $$ a b; $REDIS del b >/dev/null; rlock unlock a b; exit' "$verb"
		assert_one_line '^rlock: b: .*lost.*$'
		is_free a
		wait_until 3 nothing_runs
	done
}

@test "renew renews several locks of a script, and says which one was lost" {
	run -0 bash -c 'rlock fair --pid $$ a b
		$REDIS pexpire a 5000 >/dev/null; $REDIS pexpire b 6000 >/dev/null
		rlock renew a b >/dev/null; $REDIS pttl a; $REDIS pttl b; rlock unlock a b; exit'
	((lines[0] > 25000 && lines[1] > 25000))
	run -76 bash -c 'rlock fair --pid $$ a b; $REDIS del b >/dev/null; rlock renew a b; exit'
	assert_one_line '^rlock: b: .*$'
	wait_until 3 nothing_runs
}

@test "a command whose rlock is killed keeps all of its locks until it ends" {
	start_waiter_of fair h a b
	await_entry h
	wait_until 5 has_renewer "${PIDS[h]}"
	kill -KILL "${PIDS[h]}"
	stays 0.5 is_held a
	is_held b
	touch out-h
	wait_until 3 no_keys
}

# ---- again and again ----

# cross VERB OTHER [COMMAND]: two shells that lock "a b" by VERB, and two that lock "b a" by OTHER, each so
# often; none may give up, and one that was forgotten would. A turn of two that exclude each other is counted in
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
	wait "${BACKGROUND[@]}"
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

@test "fair locks of two names, again and again in either order: none starves, or waits too long" {
	cross fair fair
}

@test "write locks of two names, again and again in either order: none starves, or waits too long" {
	cross wlock wlock
}

@test "read and write locks of two names, again and again in either order: none starves, or waits too long" {
	cross rlock wlock :
}

@test "plain and fair locks of two names, again and again in either order: none starves, or waits too long" {
	cross run fair
}
