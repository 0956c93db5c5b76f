#!/usr/bin/env bats
# bats file_tags=long
# What a hold has to endure when several things come together: a lock that is lost while its command is
# stopped, a server that is replaced, a stream that falls silent, a clean-up that outlasts the lease.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/replicas

setup_file() { start_warm_server run; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what the tests share ----

# has_connected COUNT: so many connections to the proxy there were at least.
has_connected() {
	[ "$(proxy count | sed 's/^connections=\([0-9]*\) .*/\1/')" -ge "$1" ]
}

# says TEXT: among the messages.
says() {
	grep -qsF -e "$1" said
}

# A command that ignores SIGTERM, and has its pid in the file "pid".
ignores_term='trap "" TERM; echo $$ >pid.new; mv pid.new pid; exec until_let_go'

# ---- lost, and too long ----

@test "a command that runs on without its lock is stopped all the same when it has run too long" {
	listen_to rlock run -t 1s --on-lost ignore --max-run 6s a -- sh -c 'echo $$ >pid; exec until_let_go'
	wait_until 5 is_held a
	wait_until 5 test -s pid
	redis del a
	wait_until 4 says 'lock lost'
	is_running "$PID"
	within 12 is_gone "$(cat pid)"
	ended_with 76
	says 'the command ran for 6s'
}

@test "a command that ignores the SIGTERM for its lost lock is killed all the same when it has run too long" {
	listen_to rlock run -t 1s --on-lost term --max-run 5s --grace 200ms a -- sh -c "$ignores_term"
	wait_until 5 file_exists pid
	redis del a
	wait_until 4 says 'lock lost'
	is_running "$PID"
	within 12 is_gone "$(cat pid)"
	ended_with 76
}

@test "a command that has run too long is killed after the grace time though its lock gets lost meanwhile" {
	local start grace_ms=$((8000 * SLOWNESS))
	start=$(now_ms)
	listen_to rlock run -t 3s --on-lost ignore --max-run 3s --grace "${grace_ms}ms" a -- sh -c "$ignores_term"
	wait_until 10 says 'the command ran for 3s'
	redis del a
	wait_until 7 says 'lock lost'
	is_running "$(cat pid)"
	within 20 is_gone "$(cat pid)"
	(($(now_ms) - start >= 3000 + grace_ms)) || fail "killed after $(($(now_ms) - start)) ms"
	ended_with 76
}

# ---- a command that takes its time to end ----

@test "a clean-up that takes longer than the lease keeps the lock, though the server is far away" {
	start_prompt_proxy
	# Longer than the pause between two looks at the processes that are to end.
	proxy delay 230
	listen_to rlock run -t 3s --max-run 3s --grace 30s a -- sh -c '
		trap "sleep 2.9; touch cleaned; exit 0" TERM
		until_let_go & wait'
	wait_until 10 says 'the command ran for 3s'
	wait_until 5 ttl_between 1 a 2500
	wait_until 5 is_renewed a 3000
	took_less 8 ended_with 124
	[ -e cleaned ]
	wait_until 2 no_keys
}

@test "a clean-up hears no second SIGTERM" {
	run -124 rlock run --max-run 3s --grace 20s a -- bash -c '
		trap "echo TERM >>terms" TERM
		pause() { read -r -t 0.02 <> <(:) || :; }
		until [ -e terms ]; do pause; done
		end=$((${EPOCHREALTIME/./} + 1000000))
		while ((${EPOCHREALTIME/./} < end)); do pause; done
		touch cleaned'
	[ -e cleaned ]
	has_lines terms 1
}

# used_by PID: what a process has cost so far: "SWITCHES CPU_US".
used_by() {
	local key value switches=0 ns
	while IFS=$':\t ' read -r key value _; do
		[[ $key != *_ctxt_switches ]] || ((switches += value))
	done <"/proc/$1/status" && read -r ns _ <"/proc/$1/schedstat" || return
	echo "$switches $((ns / 1000))"
}

@test "rlock rests while it waits for a command to end whose lease ends as well" {
	local start took=0 pid used switches_before us_before switches us
	local -A first=() last=()
	listen_to rlock run -l 15s --max-run 3s --grace 60s a -- sh -c "$ignores_term"
	wait_until 10 says 'the command ran for 3s'
	# A command with such a lease alone would hear SIGTERM now. SIGKILL comes 1.5 s before the end, or up to
	# 2.5 s where the machine is busy.
	wait_until 15 ttl_between 2900 a 3980
	start=$(now_ms)
	for pid in "$PID" "$(renewer_of "$PID")"; do
		first[$pid]=$(used_by "$pid")
	done
	while ttl_between 2520 a 3980; do
		for pid in "${!first[@]}"; do
			# It may have come to its end since that look.
			used=$(used_by "$pid") || break 2
			last[$pid]=$used
		done
		took=$(($(now_ms) - start))
		let_pass 0.05
	done
	((took > 100)) || fail "watched for $took ms only"
	for pid in "${!first[@]}"; do
		read -r switches_before us_before <<<"${first[$pid]}"
		read -r switches us <<<"${last[$pid]}"
		switches=$((switches - switches_before)) us=$((us - us_before))
		echo "$switches switches, $us us of the processor, in $took ms"
		((switches * 1000 < 50 * took)) || fail "spins"
		((us < 100 * took)) || fail "spins"
	done
	ended_with 124
}

# has_dropped PID KB: so much of the most that it had in memory.
has_dropped() {
	local key value most=0 now=0
	while read -r key value _; do
		case $key in
		VmHWM:) most=$value ;;
		VmRSS:) now=$value ;;
		esac
	done <"/proc/$1/status"
	((most - now > $2))
}

@test "a waiter and its renewer drop memory that they do not need once they have waited for a second" {
	hold_in_background a
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	wait_until 10 has_dropped "$PID" 800
	wait_until 10 has_dropped "$(renewer_of "$PID")" 800
	let_go
	ended_with 0
}

# has_dropped_pages RECORD NAME: a process of that name has told the kernel so.
has_dropped_pages() {
	[ -e "$1" ] && grep -q "^madvise .* $2 " "$1"
}

@test "signals that wake a holder all the time do not have it drop its memory each time" {
	local began_us lines added took i
	needs_refuse
	in_background refuse dropped rlock madvise EIO 1+ rlock run a -- until_let_go
	wait_until 10 has_dropped_pages dropped rlock
	wait_until 10 has_dropped_pages dropped rlock-renewer
	find_ours rlock
	lines=$(wc -l <dropped)
	began_us=${EPOCHREALTIME/./}
	for ((i = 0; i < 100; i++)); do
		kill -WINCH "${OURS[0]}"
		wait_until 5 has_taken_signals "${OURS[0]}"
	done
	took=$(((${EPOCHREALTIME/./} - began_us) / 1000000 + 1))
	added=$(($(wc -l <dropped) - lines))
	((added <= lines * (took + 2))) || fail "$lines times in a second, and then $added times in $took"
	let_go
	ended_with 0
}

# ---- another master ----

is_renewed_at() {
	[ "$(redis_at "$1" pttl "$2")" -gt $(($3 * 9 / 10)) ]
}

is_not_renewed_at() {
	! is_renewed_at "$@"
}

has_waiters_at() {
	[ "$(redis_at "$1" pubsub numsub "redisson_lock__channel:{$2}" | tail -n 1)" = "$3" ]
}

# The replica is the master now, and the master a replica of another; streams to it stay open.
fail_over() {
	promote_replica
	redis_at one replicaof 127.0.0.1 1 >/dev/null
}

@test "a holder whose master turns into a replica keeps its lock at the new master, and a waiter gets it there" {
	local holder
	replicated_servers
	listen_to rlock run -t 2s a -- until_let_go
	holder=$PID
	wait_until 5 is_held_at two a
	in_background rlock run -w 20s a -- sh -c 'ask_redis two/redis.sock exists a >waiter-saw'
	wait_until 5 has_waiters_at one a 1
	fail_over
	wait_until 3 is_not_renewed_at two a 2000
	wait_until 5 is_renewed_at two a 2000
	let_go
	ended_with 0 "$holder"
	said_nothing
	ended_with 0
	file_says waiter-saw 1
	[ "$(redis_at two dbsize)" = 0 ]
}

# has_expired_at DIRECTORY NAME: by now, though its key may stay until the master says so.
has_expired_at() {
	! is_held_at "$@"
}

@test "a release finds the new master, where the old one's lease has ended" {
	replicated_servers
	listen_to rlock run -t 3s a -- until_let_go
	wait_until 5 is_held_at two a
	# The one stream of the hold stays at the old master.
	fail_over
	wait_until 8 has_expired_at one a
	stays 1 is_held_at two a
	let_go
	ended_with 0
	said_nothing
	[ "$(redis_at two dbsize)" = 0 ]
}

@test "a replica cannot say that a lock is not held: unlock and renew give 69" {
	local verb
	replicated_servers
	for verb in "unlock --owner ci-1" "renew --owner ci-1" "unlock --force"; do
		# shellcheck disable=SC2086
		run -69 rlock $verb -u "unix://$PWD/two/redis.sock" a
		assert_output --partial 'is a replica: it can grant no lock: name its master'
	done
}

# ---- a stream that falls silent ----

@test "a lock whose stream falls silent is renewed on another one" {
	start_prompt_proxy
	listen_to rlock run -t 4s --connect-timeout 1s a -- until_let_go
	wait_until 5 is_renewed a 4000
	has_connected 1
	run ! has_connected 2
	proxy silence
	wait_until 5 has_connected 2
	wait_until 5 is_renewed a 4000
	let_go
	ended_with 0
	cat said
	said_nothing
	wait_until 2 no_keys
}

@test "a waiter whose subscription is cut each time tries less and less often, and ends with 75" {
	hold_in_background a
	start_prompt_proxy
	proxy log "$PWD/requests"
	proxy cut-before subscribe 1000
	run -75 rlock run -w 2s a -- touch ran
	[ ! -e ran ]
	tries=$(grep -c 'redisson_lock_token:{a}' requests)
	((tries > 2 && tries <= 20)) || fail "$tries tries"
}

# ---- no longer than was asked for ----

# The body of lua/NAME.lua, as it is sent.
script_body() {
	local lua=$BATS_TEST_DIRNAME/../../lua
	awk -f "$lua/expand.awk" "$lua/$1.lua" "$lua"/inc/*.lua
}

@test "a renewal that arrives behind the end of its command leaves the least time as it is" {
	local hold
	rlock run --at-least 30s -t 90s a -- true
	hold=$(redis hkeys rlock_holds:'{a}')
	[ -n "$hold" ]
	ttl_between 1 a 30000
	run -0 redis eval "$(script_body plain_renew)" 2 a rlock_holds:'{a}' 90000 "$hold"
	# As for a hold that was released.
	assert_output 1
	ttl_between 1 a 30000
	[ "$(redis pttl rlock_holds:'{a}')" -le 30000 ]
}

@test "a nested command with a long lease leaves the outer one with its short one" {
	run -0 rlock run -t 2s a -- sh -c '
		rlock run -t 1h a -- ask_redis "$SERVER_SOCKET" pttl a
		ask_redis "$SERVER_SOCKET" pttl a
		ask_redis "$SERVER_SOCKET" pttl "rlock_holds:{a}"'
	[ "${lines[0]}" -gt 2000 ]
	assert_between 1 "${lines[1]}" 2000
	assert_between 1 "${lines[2]}" 2000
	no_keys
}

@test "when the counter of one name is no number, none of the names is locked" {
	redis set 'redisson_lock_token:{c2}' abc >/dev/null
	run ! rlock run c1 c2 -- touch ran
	[ -n "$output" ]
	[ ! -e ran ]
	is_free c1
	is_free c2
	is_free 'rlock_holds:{c1}'
}

@test "a verbose caller is told again each minute for which holder it waits" {
	run -0 rlock lock --owner job-1 --lease 5m --note 'nightly backup' a
	run -75 rlock run -v -w 65s a -- true
	assert_equal "$(grep -c 'a: waiting for nightly backup' <<<"$output")" 2
	# Counted by the clock of the server, and of rlock: one may be a little behind.
	assert_line --regexp 'waiting for nightly backup, held for 1m0[0-5]s$'
	rlock unlock --owner job-1 a
}
