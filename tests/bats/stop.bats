#!/usr/bin/env bats
# rlock stop: a holder is asked to end its command and to release the lock, and the caller waits until it has. Which holders
# cannot be asked, what becomes of a request when a process or the server dies, and which rights it takes.

# shellcheck disable=SC2154

load ../lib/usual
load ../lib/sharing
load ../lib/holding
load ../lib/inspecting
load ../lib/logging
load ../lib/rights
load ../lib/proxying

setup_file() { start_server_at_port; }

KINDS=(run fair read write 'sem --permits 3')

# hold_as VERB NAME [OPTION...]: until let_go, with a lease of 1 s, or of LEASE. Sets PID.
hold_as() {
	# shellcheck disable=SC2086
	in_background rlock $1 -t "${LEASE:-1s}" "${@:3}" "$2" -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
}

# by: whose request it is.
by() {
	echo "$(id -un)@$(uname -n)"
}

# requests NAME: how many stand on the server.
requests() {
	redis hkeys "rlock_holds:{$1}" | grep -c ':stop$'
}
has_requests() {
	[ "$(requests "$1")" = "$2" ]
}

# is_unheld NAME: no owner has it, whatever its kind.
is_unheld() {
	! rlock status --name "$1" >/dev/null
}

# ---- the holder ----

@test "a command is terminated whole, its lock released, and its rlock ends with 124, whatever the kind of the lock" {
	local pid
	hold_kinds -t 1s
	run -0 rlock stop "${NAMES[@]}"
	assert_output ''
	for pid in "${BACKGROUND[@]}"; do
		ended_with 124 "$pid"
	done
	none_held
}

# hold_kinds OPTION...: NAMES are held, each by an rlock of another kind.
hold_kinds() {
	local kind
	NAMES=()
	for kind in "${KINDS[@]}"; do
		NAMES+=("n${#NAMES[@]}")
		# shellcheck disable=SC2086
		in_background rlock $kind "$@" "${NAMES[-1]}" -- until_let_go
	done
	for kind in "${BACKGROUND[@]}"; do
		wait_until 10 is_above "$kind" until_let_go
	done
}

# none_held: none of NAMES has an owner, and no request is left.
none_held() {
	local name
	for name in "${NAMES[@]}"; do
		is_unheld "$name"
	done
	assert_equal "$(list_keys '*stop*')" ''
	assert_equal "$(list_keys '*timeout*')" ''
}

@test "the holder says whose request it is, and the log of both sides has it" {
	in_background sh -c 'exec rlock run -t 1s --log log a -- until_let_go 2>said'
	wait_until 10 is_above "$PID" until_let_go
	wait_until 10 has_event acquired
	run -0 rlock stop --log log -v a
	assert_line --regexp "^rlock: a: asked .* pid $PID until_let_go \([^ ]+:$PID\) to stop$"
	assert_line 'rlock: a: stopped'
	ended_with 124
	run -0 cat said
	assert_output "rlock: a: $(by) asked to stop: terminating the command"
	assert_equal "$(events)" 'acquired a,asked a,released a'
	assert_equal "$(field reason released)" "\"stopped by $(by)\""
	assert_equal "$(field reason asked)" "$(by)"
	assert_regex "$(field owner asked)" ":$PID\$"
}

@test "what a command has left running, for which --wait-all keeps the lock, is terminated with it" {
	in_background rlock run -t 1s --wait-all a -- sh -c 'until_let_go & echo $! >leftover'
	wait_until 10 test -s leftover
	wait_until 5 has_no_child "$PID" sh
	rlock stop a
	ended_with 124
	is_gone "$(<leftover)"
}

@test "--at-least ends with the holder that was asked, whether it has read the request or not" {
	local pid
	hold_kinds -t 1s --at-least 1h
	run -0 rlock stop "${NAMES[@]}"
	none_held
	# The next renewal is far away: the command ends first.
	BACKGROUND=()
	hold_kinds -t 10m --at-least 1h
	in_background rlock stop "${NAMES[@]}"
	for name in "${NAMES[@]}"; do
		wait_until 5 has_requests "$name" 1
	done
	let_go
	for pid in "${BACKGROUND[@]}"; do
		ended_with 0 "$pid"
	done
	none_held
}

@test "the renewer is killed after the request was written: rlock stops the command itself" {
	hold_and_know a -t 3s
	in_background rlock stop a
	wait_until 5 has_requests a 1
	kill -KILL "$RENEWER"
	ended_with 0
	ended_with 124 "${BACKGROUND[0]}"
	no_keys
}

# ---- a process of --pid ----

@test "a process of --pid gets SIGTERM, and its lock is renewed until it has ended" {
	in_background sh -c 'trap "touch told" TERM; rlock lock -t 1s --pid $$ a && touch held; while [ ! -e let-go ]; do sleep 0.1; done'
	wait_until 10 file_exists held
	in_background rlock stop a
	wait_until 10 file_exists told
	stays 1.5 is_held a
	let_go
	ended_with 0
	no_keys
}

@test "with --on-lost kill such a process gets SIGKILL after --grace, and with ignore it cannot be asked" {
	in_background sh -c 'trap "" TERM; rlock lock -t 1s --on-lost kill --grace 200ms --pid $$ a && touch held; while :; do sleep 0.1; done'
	wait_until 10 file_exists held
	run -0 rlock stop a
	ended_with 137
	in_background sh -c 'rlock lock -t 1s --on-lost ignore --pid $$ a && touch ignores; until_let_go'
	wait_until 10 file_exists ignores
	run -75 rlock stop a
	assert_output --partial 'cannot be asked: it has a fixed lease (--lease), or is a process of --pid with --on-lost ignore'
	let_go
}

# ---- several holders and names ----

@test "of several readers, or permits, all are asked, and with --holder one alone" {
	local kind owner other rest
	for kind in read 'sem --permits 3'; do
		hold_as "$kind" a
		rest=$PID
		hold_as "$kind" a
		other=$PID
		hold_as "$kind" a
		owner=$(rlock status a | grep -oE "$UUID:$PID")
		run -1 rlock stop --holder "${owner}1" a
		assert_output "rlock: a: not held by owner '${owner}1'"
		rlock stop --holder "$owner" a
		ended_with 124
		is_running "$rest" && is_running "$other"
		run -0 rlock stop a
		ended_with 124 "$rest"
		ended_with 124 "$other"
		redis flushall >/dev/null
	done
}

@test "several names are stopped at once, and the exit code is the worst" {
	hold_as run a
	hold_as fair b
	run -1 rlock stop a free b
	assert_output 'rlock: free: not held'
	ended_with 124 "${BACKGROUND[0]}"
	ended_with 124 "${BACKGROUND[1]}"
	# One call that holds several names.
	in_background rlock run -t 1s a b -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	run -0 rlock stop b
	ended_with 124
	no_keys
}

@test "the next holder is not asked, though the caller waits for another" {
	in_background rlock read -t 1s a -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	# It takes its time to end.
	in_background rlock read -t 1s --grace 60s a -- sh -c 'trap "" TERM; until_let_go; until_let_go'
	wait_until 10 is_above "$PID" sh
	in_background rlock stop a
	ended_with 124 "${BACKGROUND[0]}"
	hold_as read a
	stays 1 is_running "$PID"
	let_go
	ended_with 0
	ended_with 0 "${BACKGROUND[2]}"
	ended_with 124 "${BACKGROUND[1]}"
}

# ---- the caller ----

@test "with --wait it is 75 when the lock is still held, and the request stands" {
	in_background rlock run -t 10m a -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	run -0 rlock status --json a
	assert_equal "$(json 'lock["holders"][0]["asked_by"], lock["holders"][0]["asked_ms"]')" "('', None)"
	run -75 rlock stop -w 100ms a
	assert_output --regexp "^rlock: a: still held, and asked to stop: .* pid $PID until_let_go \([^ ]+\)$"
	has_requests a 1
	run -75 rlock stop -v -w 1s a
	assert_equal "$(grep -c 'asking to stop' <<<"$output")" 1
	run -75 rlock stop -w 0 -q a
	assert_output ''
	run -0 rlock status a
	assert_line --regexp "^  asked to stop by $(by), [0-9.]+s ago$"
	run -0 rlock status --json a
	assert_equal "$(json 'lock["holders"][0]["asked_by"], 0 <= lock["holders"][0]["asked_ms"] < 60000')" "('$(by)', True)"
	run -0 redis hvals 'rlock_holds:{a}'
	assert_line --regexp "^ [0-9]{13} $(by)$"
	is_running "$PID"
	kill -TERM "$PID"
	ended_with 143
	no_keys
}

@test "a caller that is killed leaves its request, and another one waits for the same holds" {
	hold_and_know a -t 3s
	kill -STOP "$RENEWER"
	in_background rlock stop a
	wait_until 5 has_requests a 1
	kill -KILL "$PID"
	in_background rlock stop a
	kill -CONT "$RENEWER"
	ended_with 0
	has_requests a 0
	ended_with 124 "${BACKGROUND[0]}"
}

# stops_with STATUS NAME: it does not wait.
stops_with() {
	run rlock stop -w 0 "$2"
	[ "$status" = "$1" ] && [[ $output != *'still held'* ]]
}

@test "a holder that cannot be asked is named at once, with what to do instead" {
	local client
	rlock lock --owner ci-7 --lease 60s a
	run -75 rlock stop a
	assert_output --regexp '^rlock: a: .* \(ci-7:0\) cannot be asked: no process belongs to it \(--owner\), for another 5[0-9]s: end it there, then try: rlock unlock --force --holder ci-7:0 a$'
	in_background rlock run --lease 60s b -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	run -75 rlock stop b
	assert_output --partial 'cannot be asked: it has a fixed lease'
	rlock run --at-least 60s c -- true
	run -75 rlock stop c
	assert_output --regexp 'cannot be asked: --at-least keeps it after its job, until [-0-9T:. +]+: try: rlock unlock --force --holder [^ ]+:lingering:[0-9]+ c$'
	redis hset d "$JAVA" 1 >/dev/null
	redis pexpire d 30000 >/dev/null
	run -75 rlock stop d
	assert_output "rlock: d: $JAVA cannot be asked: it is no rlock, but a Java client, say: end it there, then try: rlock unlock --force --holder $JAVA d"
	redis set e 0 >/dev/null
	redis set 'rlock_total:{e}' 1 >/dev/null
	run -75 rlock stop e
	assert_output 'rlock: e: a client without a record cannot be asked: it is no rlock, but a Java client, say: end it there, then break all permits: try: rlock unlock --force e'
	# Its processes are dead, and a user has removed the TTL.
	in_background rlock run -t 4s f -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	stop_waiters "$PID"
	redis persist f >/dev/null
	redis persist 'rlock_holds:{f}' >/dev/null
	kill_with_renewers "$PID"
	wait_until 30 stops_with 75 f
	assert_output --partial 'cannot be asked: its lease has ended, and the key has lost its TTL: end it there, then try: rlock unlock --force'
	for client in a b c d; do
		run -0 redis hkeys "rlock_holds:{$client}"
		refute_output --partial stop
	done
}

@test "beside a holder that cannot be asked the others are asked, and the exit code is 75" {
	rlock read --owner ci-7 --lease 60s a
	hold_as read a
	run -75 rlock stop a
	assert_output --partial '(ci-7:0) cannot be asked'
	ended_with 124
}

@test "a Redis that loses its data, and the requests with them, leaves no caller waiting" {
	hold_and_know a -t 15s
	kill -STOP "$RENEWER"
	in_background rlock stop a
	wait_until 5 has_requests a 1
	redis flushall >/dev/null
	ended_with 0
	kill -CONT "$RENEWER"
	ended_with 76 "${BACKGROUND[0]}"
}

# has_lost_reply: to a request that went through the proxy.
has_lost_reply() {
	[[ $(proxy count) == *' dropped=1 '* ]]
}

@test "when the reply to its request is lost, the caller stops the holder that it found, and not the next one" {
	local first second direct=$RLOCK_URL
	# The server knows the script.
	run -1 rlock stop free
	start_proxy
	RLOCK_URL=$direct
	hold_as run a
	first=$PID
	in_background rlock run -t 1s a -- sh -c 'touch entered; until_let_go'
	second=$PID
	wait_until 10 has_waiters a
	# Its first request looks for holders.
	proxy spare "$(by)" 1
	proxy drop-reply "$(by)"
	proxy cut-before "$(by)" 1000000
	in_background env RLOCK_URL="unix://$BATS_TEST_TMPDIR/proxy.sock" rlock stop -w 60s a
	wait_until 10 has_lost_reply
	ended_with 124 "$first"
	wait_until 10 file_exists entered
	proxy pass
	ended_with 0
	stays 1 is_running "$second"
	has_requests a 0
	let_go
	ended_with 0 "$second"
}

# ---- rights, and keys that were overwritten ----

# changes_nothing STATUS NAME [OPTION...]: rlock stop ends with that, has asked no one, and the holder's command runs on.
changes_nothing() {
	run "-$1" rlock stop "${@:3}" "$2"
	has_requests "$2" 0
	is_running "$PID"
}

@test "a user with the rights of the manual can stop; where one is missing in the middle it is 77, and no holder is asked" {
	local kind right number=0
	least_rights
	for kind in read 'sem --permits 3'; do
		hold_as "$kind" "nightly$((number += 1))"
		# Beside a Java client.
		[ "$kind" != read ] || redis hset nightly1 "$JAVA" 1 >/dev/null
		right=pttl
		[ "$kind" = read ] || right='get'
		for right in hset hdel time "$right"; do
			redis acl setuser ci "-$right" >/dev/null
			changes_nothing 77 "nightly$number" -u "$CI_URL"
			assert_output --partial "'$right'"
			redis acl setuser ci "+$right" >/dev/null
		done
		run -0 rlock stop -u "$CI_URL" --holder "$(rlock status "nightly$number" | grep -oE "$UUID:$PID")" "nightly$number"
		ended_with 124
	done
}

@test "where something has overwritten a key no holder is asked, and no client is named that is none" {
	LEASE=60s hold_as 'sem --permits 3' a
	redis del 'rlock_total:{a}' >/dev/null
	redis lpush 'rlock_total:{a}' element >/dev/null
	changes_nothing 78 a
	LEASE=60s hold_as 'sem --permits 3' c
	redis del c >/dev/null
	redis lpush c element >/dev/null
	changes_nothing 78 c
	LEASE=60s hold_as run d
	redis set 'rlock_holds:{d}' text >/dev/null
	run -78 rlock stop d
	refute_output --partial Java
	hold_as 'sem --permits 3' e
	redis del e >/dev/null
	run -0 rlock stop e
	assert_output ''
}

# ---- usage ----
