#!/usr/bin/env bats
# bats file_tags=long
# Waiters for a fair lock are woken by the releases of plain locks too, by a lock broken by force, and by the end of a lease
# or of --at-least. By the release of a fair lock: fair_order.bats.

# Each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- woken by other locks' releases ----

@test "a plain release wakes the head of the queue, be it of a command or of a script" {
	start_holder p0 run a
	queue_waiter r1 a
	queue_waiter r2 a
	is_woken_by a r1 let_leave p0
	let_leave r1
	await_entry r2
	let_leave r2
	rm -f in-* out-*
	in_background bash -c 'rlock lock --pid $$ a; inside held; rlock unlock a'
	PIDS[script]=$PID
	await_entry held
	queue_waiter r1 a
	is_woken_by a r1 touch out-held
	let_leave r1
	ended_with 0 "${PIDS[script]}"
	nothing_is_left
}

@test "unlock --force wakes the head of the queue, of a plain lock and of a fair one" {
	for verb in run fair; do
		rm -f in-* out-*
		start_holder r0 "$verb" a
		queue_waiter r1 a
		queue_waiter r2 a
		is_woken_by a r1 rlock unlock --force a
		is_waiting r2
		let_leave r1
		await_entry r2
		let_leave r2
		let_go
		ended_with 76 "${PIDS[r0]}"
		rm -f let-go
		nothing_is_left
	done
}

@test "a fair release wakes plain waiters too" {
	start_holder r0 fair a
	in_background rlock run a -- inside p1
	PIDS[p1]=$PID
	wait_until 5 has_waiters a
	let_leave r0
	wait_until 8 is_inside p1
	let_leave p1
	nothing_is_left
}

@test "a plain lock's end without a word lets the head in, and then the next one" {
	redis hset a somebody:1 1 >/dev/null
	redis pexpire a 5000 >/dev/null
	queue_waiter r1 a
	queue_waiter r2 a
	await_entry r1 12
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

# ---- at least ----

@test "the head waits until a lock's least time is over, and then gets in promptly" {
	local end late best
	for verb in fair run; do
		best=10000
		for _ in 1 2 3; do
			rm -f in-* out-*
			run -0 rlock "$verb" --at-least 5s a -- true
			queue_waiter r1 a
			queue_waiter r2 a
			end=$(lease_end_ms a)
			await_entry r1 12
			late=$(($(cut -c 1-13 in-r1) - end))
			((late > -50)) || fail "entered $late ms after the lock's end"
			is_waiting r2
			let_leave r1
			await_entry r2
			let_leave r2
			nothing_is_left
			((late > best)) || best=$late
			# Another try where the machine itself was busy.
			((best >= 700)) || break
		done
		((best < 700)) || fail "entered $best ms after the lock's end"
	done
}
