#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers of which some need not agree: never held by two, whatever becomes of the servers; which waiter
# is woken, and whose turn it is.

# In single quotes stand whole scripts; VIA is servers.bash's.
# shellcheck disable=SC2016,SC2034

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing
load ../lib/quorum

setup_file() { start_old_servers 6; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- one at a time ----

@test "a majority that is held keeps all out, in whatever order they name the servers, with one gone or not" {
	local order gone
	hold_on_each a
	holder=$PID
	for gone in 0 1 2 3; do
		VIA=()
		[ $gone = 0 ] || is_nowhere $gone
		for order in '1 2 3' '3 1 2' '2 3 1'; do
			# shellcheck disable=SC2086
			RLOCK_CONFIG=$(conf_for $order) run -75 rlock run -n a -- touch ran
			assert_output ''
		done
	done
	VIA=()
	run -75 rlock run --config <(echo) -n -u "$(urls_of 1)" a -- touch ran
	RLOCK_CONFIG=$(conf_for 1 2 3) run -75 rlock run --quorum all -n a -- touch ran
	RLOCK_CONFIG=$(conf_for 1 2 3) run -75 rlock run -w 200ms a -- touch ran
	assert_one_line '^rlock: a: .*held by '
	[ ! -e ran ]
	let_go
	ended_with 0 "$holder"
	on_each no_keys
}

@test "what another owner holds on one of three servers keeps no call out, and is left alone" {
	local number
	for number in 1 2 3; do
		on $number held_by_stranger a
		waits_for_none run -0 rlock run a -- true
		assert_output ''
		[ "$(on $number redis hkeys a)" = 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 ]
		[ "$(on $number redis dbsize)" = 1 ]
		on $number redis del a
		on_each no_keys
	done
}

@test "a waiter is woken by the release of a majority, with one server gone or frozen" {
	local how
	for how in none nowhere frozen; do
		rm -f let-go ran
		case $how in
		nowhere) is_nowhere 2 ;;
		frozen) VIA=() && use_servers 1 2 3 && freeze_server 2 ;;
		esac
		listen_to rlock run -t 9s --connect-timeout 500ms a -- until_let_go
		holder=$PID
		wait_until 5 on 1 is_held a
		wait_until 5 on 3 is_held a
		in_background rlock run --connect-timeout 500ms a -- touch ran
		wait_until 5 on 3 has_waiters a
		let_pass 0.3
		[ ! -e ran ]
		let_go
		# By itself it would look at the end of the lease, of which two thirds are left at least.
		wait_until 5 file_exists ran
		took_less 4 ended_with 0
		ended_with 0 "$holder"
		thaw_server 2
		wait_until 4 on_each no_keys
	done
}

@test "a fair lock is acquired in the order of the calls, though one server is frozen" {
	local number pid pids=()
	freeze_server 2
	in_background rlock run --connect-timeout 500ms a -- until_let_go
	holder=$PID
	wait_until 5 on 1 is_held a
	wait_until 5 on 3 is_held a
	for number in 1 2 3 4; do
		in_background rlock fair --connect-timeout 500ms a -- sh -c 'echo "$0" >>order' $number
		pids+=("$PID")
		wait_until 5 on 1 has_in_queue a $number
		wait_until 5 on 3 has_in_queue a $number
	done
	let_go
	ended_with 0 "$holder"
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(paste -s -d ' ' order)" '1 2 3 4'
	thaw_server 2
	on 1 no_keys
	on 3 no_keys
	# Those that it took for waiting while it stood are dead, and their signs of life run out.
	run -0 rlock fair -u "$(urls_of 2)" --quorum 1 -w 9s a -- true
	wait_until 5 on 2 no_keys
}

# ---- many ----

# takes_turns SHELL TURNS ARG...: a shell that takes so many turns with `rlock ARG...`, and names the servers in
# an order of its own.
takes_turns() {
	local orders=('1 2 3' '3 2 1' '2 3 1' '1 3 2' '3 1 2' '2 1 3')
	# shellcheck disable=SC2086
	in_background env RLOCK_CONFIG="$(conf_for ${orders[$1 % 6]})" bash -c '
		for ((turn = 0; turn < $1; turn++)); do
			rlock "${@:2}" -- shared_turn write || echo "$? in turn $turn" >>wrong
		done' bash "${@:2}"
}

# all_take_turns COUNT TURNS ARG...: so many of them; none may fail, nor meet another.
all_take_turns() {
	local shell pids=()
	for ((shell = 0; shell < $1; shell++)); do
		takes_turns $shell "${@:2}"
		pids+=("$PID")
	done
	took_less 120 wait "${pids[@]}"
	[ ! -e wrong ] || fail "$(head wrong)"
	has_lines turns $(($1 * $2))
}

@test "six shells that need a majority of the servers, in different orders, take their turns one at a time" {
	all_take_turns 6 25 run a
	on_each no_keys
}

# ---- all at once ----

@test "shells take their turns, one at a time, while servers freeze, cut, crash and processes are killed" {
	local seconds=9 end number shell pids=() bad=0
	[ -z "${RLOCK_LONG_TESTS:-}" ] || seconds=300
	take_servers 3
	end=$(($(now_ms) + seconds * 1000))
	for shell in 1 2 3 4 5; do
		mapfile -t SERVERS < <(shuf -e "${SERVERS[@]}")
		in_background env RLOCK_CONFIG="$(conf_for "${SERVERS[@]}")" bash -c '
			while ((${EPOCHREALTIME/./} < $1 * 1000)); do
				status=0
				rlock run -t 3s --connect-timeout 300ms -w 20s a -- shared_turn write || status=$?
				echo "$status" >>statuses
			done' bash "$end"
		pids+=("$PID")
	done
	# One whose rlock is killed again and again, with its command in it.
	in_background bash -c '
		while ((${EPOCHREALTIME/./} < $1 * 1000)); do
			rlock run -t 3s --connect-timeout 300ms -w 20s a -- shared_turn write &
			read -r -t 0.0$((RANDOM % 10)) <> <(:) || :
			kill -KILL $!
			wait
			read -r -t 0.2 <> <(:) || :
		done 2>/dev/null' bash "$end"
	pids+=("$PID")
	while (($(now_ms) < end)); do
		bad=${SERVERS[RANDOM % 3]}
		case $((RANDOM % 4)) in
		0)
			freeze_server "$bad"
			let_pass 0.$((RANDOM % 9 + 1))
			thaw_server "$bad"
			;;
		1)
			on "$bad" redis client kill type normal >/dev/null
			on "$bad" redis client kill type pubsub >/dev/null
			on "$bad" redis script flush >/dev/null
			;;
		2)
			crash_server "$bad"
			let_pass 0.$((RANDOM % 9))
			revive_server "$bad"
			# Another one may lose its data when this one counts again.
			wait_until 8 is_older "$bad" 4
			;;
		3) let_pass 0.3 ;;
		esac
	done
	for number in "${pids[@]}"; do
		wait_until 25 is_gone "$number"
	done
	[ ! -e wrong ] || fail "$(head wrong)"
	sort statuses | uniq -c
	# One may be stopped, or not get in, for what was done to the servers; but not one of five.
	(($(grep -vcx 0 statuses) * 5 <= $(wc -l <statuses)))
	(($(wc -l <turns) > seconds)) || fail "$(wc -l <turns) turns"
	run -0 rlock run -t 1s -w 9s a -- true
	wait_until 20 leaves_nothing
}

# A waiter that was killed, and could not leave a server that was away, is in the queue there until a release comes by.
leaves_nothing() {
	rlock run -t 1s -w 9s a -- true && on_each no_keys
}
