#!/usr/bin/env bats
# bats file_tags=long
# Several names in one call: all of them are acquired, or none; renewed, lost and released together. Waited for:
# several_names_waiting.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/queue
load ../lib/names

setup_file() {
	start_server
	# From here on the server knows the scripts: a request whose reply gets lost has been carried out.
	rlock fair warm -- rlock run -n other -- true
}

teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

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

# ---- held, lost, released ----

@test "several locks are renewed together" {
	for verb in run fair wlock; do
		rm -f in-* out-*
		start_waiter_of "$verb" h -t 3s a b
		await_entry h
		stays 3.5 is_held a
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
			grep -q "^rlock: $lost: lock lost at .*: terminating the command: before you run it again, look at what is half done\$" said-h
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
		no_hold_files
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
