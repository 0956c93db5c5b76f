#!/usr/bin/env bats
# rlock stop: asks a holder to end its command and to release the lock, and waits for that. Which holders cannot be asked, what happens
# to a request when a process or the server dies, and which rights a request needs.

load ../lib/usual
load ../lib/contenders
load ../lib/hold_processes
load ../lib/inspecting
load ../lib/logging
load ../lib/rights

setup_file() { start_server_at_port; }

KINDS=(run fair read write 'sem --permits 3')

# hold_as VERB NAME [OPTION...]: holds the lock until end_commands, with a lease of 9 s or LEASE. Sets PID.
hold_as() {
	# shellcheck disable=SC2086
	in_background rlock $1 -t "${LEASE:-9s}" "${@:3}" "$2" -- run_until_ended
	wait_until 10 has_child "$PID" run_until_ended
}

# requester: prints the sender that stop requests of this test have: USER@HOST.
requester() {
	local name
	# In a container the user may have no name.
	name=$(id -un 2>/dev/null) || name=uid$(id -u)
	echo "$name@$(uname -n)"
}

# has_requests NAME COUNT: whether the server has COUNT stop requests for the lock.
has_requests() {
	[ "$(redis hkeys "rlock_holds:{$1}" | grep -c ':stop$')" = "$2" ]
}

# ---- the holder ----

# hold_kinds OPTION...: holds a lock of each of KINDS until end_commands, each by an rlock with these options. Sets NAMES, their names.
hold_kinds() {
	local kind
	NAMES=()
	for kind in "${KINDS[@]}"; do
		NAMES+=("n${#NAMES[@]}")
		hold_as "$kind" "${NAMES[-1]}" "$@"
	done
}

# none_held: none of NAMES has an owner, no stop request is stored for one, and no timeout key of a reader or a queue is left.
none_held() {
	local name
	run -1 rlock status "${NAMES[@]}"
	refute_output --partial ' pid '
	for name in "${NAMES[@]}"; do has_requests "$name" 0; done
	assert_equal "$(redis keys '*timeout*')" ''
}

@test "stop terminates the command and releases the lock immediately; the holder exits with 124, for each kind, --at-least and --on-lost" {
	hold_kinds --at-least 1h --on-lost ignore
	run -0 rlock stop "${NAMES[@]}"
	assert_output ''
	all_ended_with 124
	none_held
}

@test "stop also ends --at-least when the command ends before the holder has read the request" {
	LEASE=10m hold_kinds --at-least 1h
	in_background rlock stop "${NAMES[@]}"
	for name in "${NAMES[@]}"; do
		wait_until 5 has_requests "$name" 1
	done
	end_commands
	all_ended_with 0
	none_held
}

@test "the holder names the sender of the request, and both sides log it" {
	in_background sh -c 'exec rlock run -t 9s --log log a -- run_until_ended 2>stderr'
	wait_until 10 has_child "$PID" run_until_ended
	wait_until 10 has_event acquired
	run -0 rlock stop --log log -v a
	assert_line --regexp "^rlock: a: asked .* pid $PID run_until_ended \([^ ]+:$PID\) to stop$"
	assert_line 'rlock: a: stopped'
	ended_with 124
	assert_equal "$(<stderr)" "rlock: a: $(requester) asked to stop: terminating the command"
	wait_until 5 has_event released
	# Both processes log to the same file, in any order.
	assert_equal "$(events | tr , '\n' | sort | paste -sd ,)" 'acquired a,asked a,released a'
	assert_equal "$(field reason released)" "\"stopped by $(requester)\""
	assert_equal "$(field reason asked)" "$(requester)"
	assert_regex "$(field owner asked)" ":$PID\$"
}

@test "when the renewer was killed after the request, rlock itself terminates the command and all leftover processes" {
	in_background rlock run -t 30s --wait-all a -- sh -c 'run_until_ended & echo $! >leftover'
	wait_until 10 test -s leftover
	wait_until 5 has_no_child "$PID" sh
	# Stop rlock too, so that it does not replace the stopped renewer before it is killed.
	stop_waiters "$PID"
	in_background rlock stop a
	wait_until 5 has_requests a 1
	kill -KILL "${RENEWERS[@]}"
	kill -CONT "${BACKGROUND[0]}"
	ended_with 0
	ended_with 124 "${BACKGROUND[0]}"
	is_gone "$(<leftover)"
	no_keys
}

# ---- a process of --pid ----

@test "a process of --pid gets SIGTERM, and its lock is renewed until it has ended; with --on-lost kill it gets SIGKILL after --grace" {
	in_background sh -c 'trap "touch told" TERM; rlock lock -t 8s --pid $$ a && touch held; while [ ! -e end-commands ]; do sleep 0.1; done'
	wait_until 10 file_exists held
	in_background rlock stop a
	wait_until 10 file_exists told
	await_renewal a 8000
	end_commands
	ended_with 0
	no_keys
	in_background sh -c 'trap "" TERM; rlock lock -t 6s --on-lost kill --grace 200ms --pid $$ b && touch held-b; while :; do sleep 0.1; done'
	wait_until 10 file_exists held-b
	run -0 rlock stop b
	ended_with 137
}

# ---- several holders and names ----

@test "all holders of a read lock or a semaphore are asked, with --holder only one" {
	local kind owner
	for kind in read 'sem --permits 3'; do
		hold_as "$kind" a
		hold_as "$kind" a
		owner=$(rlock status a | grep -oE "$UUID:$PID")
		run -1 rlock stop --holder "${owner}1" a
		assert_output "rlock: a: not held by owner '${owner}1'"
		rlock stop --holder "$owner" a
		ended_with 124
		is_running "${BACKGROUND[-2]}"
		hold_as "$kind" a
		run -0 rlock stop a
		ended_with 124
		ended_with 124 "${BACKGROUND[-3]}"
		redis flushall >/dev/null
	done
}

@test "several names are stopped in one call, and the exit code is the worst one" {
	hold_as run a
	in_background rlock run -t 9s b c -- run_until_ended
	wait_until 10 has_child "$PID" run_until_ended
	run -1 rlock stop a free b
	assert_output "rlock: free: not held; 'rlock list' shows what is held"
	all_ended_with 124
	no_keys
}

@test "the next holder is not asked while the caller waits for another one" {
	hold_as read a
	# The command of this holder ignores SIGTERM, and takes long to end.
	in_background rlock read -t 9s --grace 60s a -- sh -c 'trap "" TERM; run_until_ended; run_until_ended'
	wait_until 10 has_child "$PID" sh
	in_background rlock stop a
	ended_with 124 "${BACKGROUND[0]}"
	hold_as read a
	stays_true_for 4 is_running "$PID"
	end_commands
	ended_with 0
	ended_with 0 "${BACKGROUND[2]}"
	ended_with 124 "${BACKGROUND[1]}"
}

# ---- the caller ----

@test "stop exits with 75 when the lock is still held after --wait, and the request remains, as status shows" {
	local asked='lock["holders"][0]["asked_by"], (lock["holders"][0]["asked_ms"] or 0) // 60000'
	LEASE=10m hold_as run a
	run -0 rlock status --json a
	assert_equal "$(json "$asked")" "('', 0)"
	run -75 rlock stop -w 100ms a
	assert_output --regexp "^rlock: a: still held, and asked to stop: .* pid $PID run_until_ended \([^ ]+\); its next renewal is within a third of its --ttl, (9m[0-9]+s|10m00s) at the latest; if its machine is dead, try: rlock unlock --force --holder [^ ]+ a$"
	run -75 env CI=true rlock stop -w 6s a
	assert_line --regexp "^rlock: a: asked to stop, waiting for: .* \([^ ]+\); its next renewal is within a third of its --ttl, (9m[0-9]+s|10m00s) at the latest$"
	run -75 rlock stop -v -w 1s a
	assert_equal "$(grep -c 'asking to stop' <<<"$output")" 1
	run -75 rlock stop -w 0 -q a
	assert_output ''
	has_requests a 1
	run -0 rlock status a
	assert_line --regexp "^  asked to stop by $(requester), [0-9.]+s ago$"
	run -0 rlock status --json a
	assert_equal "$(json "$asked")" "('$(requester)', 0)"
	is_running "$PID"
}

# cannot_be_asked NAME REGEXP: rlock stop must exit with 75 immediately, and its message must match.
cannot_be_asked() {
	run -75 rlock stop "$1"
	assert_output --regexp "^rlock: $1: .*cannot be asked: $2"
	has_requests "$1" 0
}

# stops_with STATUS NAME: rlock stop -w 0 must exit with STATUS.
stops_with() {
	run rlock stop -w 0 "$2"
	[ "$status" = "$1" ] && [[ $output != *'still held'* ]]
}

@test "a holder that cannot be asked is named immediately, with what to do instead" {
	local force='try: rlock unlock --force'
	rlock lock --owner ci-7 --lease 60s a
	cannot_be_asked a "no process belongs to it \(--owner\); its lease ends within [1-5][0-9]s; end it there, then $force --holder ci-7:0 a$"
	hold_for_script "$REPORT_PID_AND_RUN" b -l 60s
	cannot_be_asked b 'it has a fixed lease'
	rlock lock --on-lost ignore --pid "$PID" i
	cannot_be_asked i 'it has a fixed lease \(--lease\), or is a process of --pid with --on-lost ignore'
	rlock run --at-least 60s c -- true
	cannot_be_asked c "--at-least keeps it after its job, until [-0-9T:. +]+; $force --holder [^ ]+:lingering:[0-9]+ c$"
	redis hset d "$JAVA" 1 >/dev/null
	cannot_be_asked d "it is not rlock, but for example a Java client; end it there, then $force --holder $JAVA d$"
	redis set e 0 >/dev/null
	redis set 'rlock_total:{e}' 1 >/dev/null
	cannot_be_asked e "it is not rlock, but for example a Java client; end it there, then break all permits; $force e$"
	# If one holder of a lock cannot be asked, the others must still be asked.
	rlock read --owner ci-7 --lease 60s g
	hold_as read g
	run -75 rlock stop g
	assert_output --partial '(ci-7:0) cannot be asked'
	ended_with 124
	# Kill the holder's processes, and remove the TTL of its lock.
	hold_as run f
	stop_waiters "$PID"
	redis persist f >/dev/null
	redis persist 'rlock_holds:{f}' >/dev/null
	kill_with_renewers "$PID"
	wait_until 30 stops_with 75 f
	assert_output --partial "cannot be asked: its lease has ended, and the key has lost its TTL; end it there, then $force"
}

# ---- rights, and keys that were overwritten ----

# changes_nothing STATUS NAME [OPTION...]: rlock stop must exit with STATUS. No holder may be asked, and the holder's command must
# continue.
changes_nothing() {
	run "-$1" rlock stop "${@:3}" "$2"
	has_requests "$2" 0
	is_running "$PID"
}

@test "a user with the rights of the manual can stop a holder; without one of them rlock stop exits with 77 and asks no holder" {
	local kind right number=0
	create_limited_user
	for kind in read 'sem --permits 3'; do
		hold_as "$kind" "nightly$((number += 1))"
		# Add a Java client as another reader.
		[ "$kind" != read ] || redis hset nightly1 "$JAVA" 1 >/dev/null
		for right in hset hdel time "$([ "$kind" = read ] && echo pttl || echo get)"; do
			redis acl setuser ci "-$right" >/dev/null
			changes_nothing 77 "nightly$number" -u "$CI_URL"
			assert_output --partial "'$right'"
			redis acl setuser ci "+$right" >/dev/null
		done
		run -0 rlock stop -u "$CI_URL" --holder "$(rlock status "nightly$number" | grep -oE "$UUID:$PID")" "nightly$number"
		ended_with 124
	done
}

@test "when a key was overwritten no holder is asked, and no false client is named" {
	local verb name key
	while read -r verb name key; do
		LEASE=60s hold_as "${verb/:/ --permits }" "$name"
		redis del "$key" >/dev/null
		redis lpush "$key" element >/dev/null
		changes_nothing 78 "$name"
		refute_output --partial Java
	done <<-'END'
		sem:3 a rlock_total:{a}
		sem:3 b b
		run c rlock_holds:{c}
	END
}
