#!/usr/bin/env bats
# bats file_tags=long
# Many waiters in the queue of a fair lock: their order, and what they cost the server.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/clocks

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what the tests share ----

# How many commands clients have sent, but for those of redis-cli here; what scripts do is not counted.
client_commands() {
	redis info commandstats | awk -F '[:=,]' '
		/^cmdstat_(eval|evalsha|script|subscribe|unsubscribe|client|hello|auth|select|ping)/ { sum += $3 }
		END { print sum + 0 }'
}

# many LONG SHORT: so many where the long tests are wanted, else the other number; few under a sanitizer.
many() {
	if [ -n "${TESTS_UNDER:-}" ]; then
		echo 20
	elif [ -n "${RLOCK_LONG_TESTS:-}" ]; then
		echo "$1"
	else
		echo "$2"
	fi
}

# ---- many ----

# queue_many COUNT: they come one behind the other, a fifth of them is killed while they wait, some of those
# while the others have their turns. With WRONG_CLOCK set their clocks differ by two hours.
queue_many() {
	local count=$1 number party
	local -a all=() dead=() living=()
	start_holder r0 fair a
	for ((number = 1; number <= count; number++)); do
		if [ -n "${WRONG_CLOCK:-}" ]; then
			case $((number % 3)) in
			0) clock_is_off ;;
			1) clock_is_off 3600 ;;
			2) clock_is_off -3600 ;;
			esac
		fi
		queue_passer "r$number" a
		all+=("r$number")
		if ((number % 5 == 3)); then dead+=("r$number"); else living+=("r$number"); fi
	done
	assert_equal "$(queue_names a)" "${all[*]}"
	for party in "${dead[@]::${#dead[@]}/2}"; do
		kill_with_renewers "${PIDS[$party]}"
	done
	# What is taken for dead is so by now.
	let_pass 4.5
	let_leave r0
	for party in "${dead[@]:${#dead[@]}/2}"; do
		kill_with_renewers "${PIDS[$party]}"
	done
	for party in "${living[@]}"; do
		ended_with 0 "${PIDS[$party]}"
	done
	# One that was to be killed may have been quicker.
	assert_equal "$(grep -vxF "$(printf '%s\n' "${dead[@]}")" order | tr '\n' ' ')" "${living[*]} "
	run -0 sort -c -t r -k 2n order
	nothing_is_left
}

@test "of many in the queue, a fifth of them killed, none is left out, and all get in in their order" {
	queue_many "$(many 200 60)"
}

@test "many waiters whose clocks differ by two hours get in in their order, a fifth of them killed" {
	need_wrong_clocks
	queue_many "$(many 200 60)"
}

@test "a lock with many waiters is passed on with four commands a turn" {
	local count start before commands took number
	local -a all=()
	count=$(many 200 50)
	start_holder r0 fair a
	for ((number = 1; number <= count; number++)); do
		queue_passer "r$number" a
		all+=("r$number")
	done
	before=$(client_commands) start=$(now_ms)
	touch out-r0
	wait_until 60 has_lines order "$count"
	took=$(($(now_ms) - start))
	commands=$(($(client_commands) - before))
	for party in "${all[@]}"; do
		ended_with 0 "${PIDS[$party]}"
	done
	# A waiter may look once in two seconds, see below; on average they waited for half the time.
	echo "$commands commands for $count turns in $took ms"
	((commands <= 4 * count + count * took / 4000))
	assert_equal "$(tr '\n' ' ' <order)" "${all[*]} "
	nothing_is_left
}

@test "a waiter costs the server one command in two seconds, be it one or twenty" {
	local number start took before commands looks
	start_holder r0 fair a
	start_holder other fair b
	queue_waiter r1 b
	for number in {2..21}; do
		queue_waiter "r$number" a
	done
	start=$(now_ms) before=$(client_commands) looks=$(grep -c 'asking to' said-r1)
	let_pass 10
	commands=$(($(client_commands) - before)) looks=$(($(grep -c 'asking to' said-r1) - looks))
	took=$(($(now_ms) - start))
	echo "$commands commands of 21 in $took ms, $looks of the one"
	# One more for each where that time begins and ends, on average half of that; and two renewals in ten seconds.
	((commands <= 21 * took / 2000 + 21 / 2 + 4 * took / 10000))
	((commands >= 21 * 3 * took / 10000))
	((looks >= 3 * took / 10000 && looks <= 1 + took / 2000))
	let_all_leave r0 other
	for number in {1..21}; do
		ended_with 0 "${PIDS["r$number"]}"
	done
	nothing_is_left
}
