#!/usr/bin/env bats
# bats file_tags=long
# Networks that lose requests and replies: each request is repeated, and has the effect of one; and locks that are lost meanwhile.
# tests/chaos/network.bats tries each fault with each request of each command.

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying

setup_file() { start_warm_server run; }

teardown() { common_teardown; }

# run_counting [OPTION...]: runs a command under the lock "a", which counts its runs and its holds.
run_counting() {
	run --separate-stderr rlock run "$@" a -- sh -c 'echo >>ran; ask_redis "$SERVER_SOCKET" hvals a; exit 7'
}

# assert_counted: the command of run_counting has run once, and found a hold count of 1. rlock has exited with the command's status, and
# left no key.
assert_counted() {
	assert_equal "$status|$output|$stderr" '7|1|'
	has_line_count ran 1
	no_keys
	faults_happened
	rm ran
}

@test "renew and unlock of an owner, unlock --force and stop retry after a cut connection, a lost reply, or a short outage" {
	local verb fault
	start_realtime_proxy
	for verb in 'renew --owner ci' 'unlock --owner ci' 'unlock --force' stop; do
		# Load the script into the server.
		# shellcheck disable=SC2086
		run -1 rlock $verb a
		for fault in "cut-before $RENEW" "drop-reply $RENEW" 'refuse on'; do
			if [ "$verb" = stop ]; then
				RLOCK_URL=unix://$SERVER_SOCKET hold_in_background a -t 4s
			else
				rlock lock --owner ci --lease 1m a
			fi
			# shellcheck disable=SC2086
			proxy $fault
			# shellcheck disable=SC2086
			in_background rlock $verb a
			if [ "$fault" = 'refuse on' ]; then
				pause_for 1.5
				is_running "$PID"
				proxy refuse off
			fi
			takes_less_than 15 ended_with 0 "$PID"
			faults_happened
			[[ $verb != renew* ]] || rlock unlock --owner ci a
			wait_until 5 no_keys
		done
	done
}

# owner_has_nothing OWNER: whether the lock "a" has no hold record of this owner.
owner_has_nothing() {
	! redis hvals 'rlock_holds:{a}' | grep -q "^$1:"
}

# break_with_lost_reply: starts unlock --force of the lock "a" in the background. The reply is lost, and the repeated request takes
# half a second to arrive.
break_with_lost_reply() {
	proxy spare look
	# The proxy closes the connection 300 ms after the request, instead of forwarding the reply.
	proxy stall-reply "$RENEW"
	record_stderr rlock unlock --force a
	wait_until 5 owner_has_nothing ci
	proxy far 500
}

@test "a repeated unlock --force that arrives late does not break the lock of an owner that has acquired it since" {
	local kind
	start_realtime_proxy
	run -1 rlock unlock --force a
	for kind in lock rlock wlock 'sem --permits 2'; do
		# shellcheck disable=SC2086
		rlock $kind --owner ci --lease 1m a
		break_with_lost_reply
		# shellcheck disable=SC2086
		RLOCK_URL=unix://$SERVER_SOCKET rlock $kind --owner another --lease 1m a
		ended_with 0 "$PID"
		faults_happened
		proxy pass
		RLOCK_URL=unix://$SERVER_SOCKET run -0 rlock unlock --owner another a
	done
}

@test "a repeated unlock --force does not break the lock of a Java service that has acquired it since" {
	start_realtime_proxy
	rlock lock --owner ci --lease 1m a
	break_with_lost_reply
	hold_by_foreign_client a
	ended_with 0 "$PID"
	faults_happened
	is_held a
}

@test "when an acquire, a release or a reply is lost, the command runs once, its status is kept, and no key is left" {
	local fault try
	start_realtime_proxy
	for fault in "drop-reply $ACQUIRE" "cut-before $ACQUIRE" "drop-reply $ACQUIRE 3" "drop-reply $RELEASE 3" "cut-before $RELEASE"; do
		# shellcheck disable=SC2086
		proxy $fault
		run_counting -w 10s
		assert_counted
	done
	# rlock must repeat the request also with -n. Let the first request pass, which only asks whether the lock is busy. Try again if
	# a busy machine gave rlock no processor in the second in which it repeats a request.
	for try in {1..5}; do
		proxy pass
		proxy spare "$ACQUIRE"
		proxy drop-reply "$ACQUIRE"
		run_counting -n --connect-timeout 1m
		[ "$status" != 7 ] || break
	done
	assert_counted
	proxy drop-reply "$ACQUIRE" 1000
	run_timed_out 69 rlock run -w 300ms -t 1s a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
	wait_until 5 no_keys
}

@test "when the reply to a retry is lost, the request is repeated even after the end of the wait, as for a first attempt" {
	start_realtime_proxy
	local try
	rlock lock --owner ci --lease 10m a
	# Try again if a busy machine gave rlock no processor within the short wait, or in the second in which it repeats a request.
	for try in {1..40}; do
		proxy pass
		proxy spare "$ACQUIRE"
		proxy cut-before subscribe
		proxy drop-reply "$ACQUIRE" 2
		run rlock run -w 100ms a -- touch ran
		[[ $status = 69 || $output = *'was killed, or did not run'* ]] || ! faults_happened || break
	done
	faults_happened
	assert_equal "$status" 75
	assert_one_line '^rlock: a: timed out after 100ms: held by '
}

@test "a lock stays held by one hold when the replies to three renewals are lost" {
	start_realtime_proxy
	record_stderr rlock run -t 7s a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	proxy drop-reply "$RENEW" 3
	wait_until 5 faults_happened
	wait_until 5 is_renewed a 7000
	[ "$(hold_count a)" = 1 ]
	end_commands
	ended_with 0
	stderr_is_empty
	wait_until 5 no_keys
}

@test "with lost replies each hold of nested commands of one owner is counted once" {
	export CONTROL=$BATS_TEST_TMPDIR/control ACQUIRE RELEASE
	start_realtime_proxy
	run -0 rlock run a -- sh -c '
		ask_redis "$CONTROL" drop-reply "$ACQUIRE" 2
		ask_redis "$CONTROL" drop-reply "$RELEASE" 2
		rlock run -w 20s a -- ask_redis "$SERVER_SOCKET" hvals a
		ask_redis "$SERVER_SOCKET" hvals a
		ask_redis "$CONTROL" state'
	assert_output --regexp $'^ok\nok\n2\n1\n.* rules=0$'
	no_keys
}

@test "a lock kept by --at-least is not reported as lost when it expires before a release with a lost reply is repeated" {
	local verb
	export CONTROL=$BATS_TEST_TMPDIR/control
	start_realtime_proxy
	for verb in run fair rlock wlock 'sem --permits 5'; do
		# Load the script into the server.
		# shellcheck disable=SC2086
		rlock $verb --at-least 1s b -- true
		# shellcheck disable=SC2086
		run -0 rlock $verb a -- rlock $verb --at-least 200ms a -- ask_redis "$CONTROL" stall-reply '*'
		assert_output ok
		faults_happened
		redis flushdb
	done
}

@test "a lock that is lost together with its connection is reported as lost, although the command ends before the next renewal" {
	local verb
	for verb in run fair rlock wlock 'sem --permits 5'; do
		rm -f end-commands
		# shellcheck disable=SC2086
		record_stderr rlock $verb -t 1h a -- run_until_ended
		wait_until 5 has_child "$PID" run_until_ended
		redis flushdb
		redis client kill type normal skipme yes
		end_commands
		ended_with 76
		stderr_is_one_line '^rlock: a: lock lost before the command ended, '
	done
} >/dev/null

# A write to a TCP connection that the other side has closed succeeds, unlike one to a unix socket.
@test "a lock whose loss the last renewal shows after the end of the command is reported in one line, which says so" {
	start_own_server
	local holder
	record_stderr rlock run -t 21s a -- run_until_ended
	holder=$PID
	wait_until 5 has_child "$holder" run_until_ended
	wait_until 10 is_renewed a 21000
	freeze
	in_background ask_redis "$SERVER_SOCKET" del a
	# The next renewal is sent.
	pause_for 7.5
	end_commands
	wait_until 5 has_no_child "$holder" run_until_ended
	unfreeze
	ended_with 76 "$holder"
	stderr_is_one_line '^rlock: a: lock lost before the command ended, noticed at '
}

@test "a lock that is lost together with its TCP connection is reported as lost as well" {
	start_proxy tcp:127.0.0.1:0
	record_stderr rlock run -u "redis://127.0.0.1:$PROXY_PORT" -t 1h a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	redis flushdb >/dev/null
	proxy cut
	end_commands
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost before the command ended, '
}

@test "when a release was refused after it had kept the lock, its repetition after that time frees the lock and wakes a waiter" {
	local verb request holder held_ms
	for verb in run wlock; do
		rm -f ran end-commands
		in_background rlock $verb --ttl 10m --at-least 15s a -- run_until_ended
		holder=$PID
		wait_until 5 has_child "$holder" run_until_ended
		held_ms=$(now_ms)
		in_background rlock $verb a -- touch ran
		wait_until 5 has_waiters a
		record_requests
		redis acl setuser default -pexpire >/dev/null
		end_commands
		wait_until 10 is_gone "$holder"
		redis acl setuser default +pexpire >/dev/null
		# The argument after the hold id is how long a release keeps the lock, in ms.
		mapfile -t request < <(last_request 'string.match(request[5 + request[3]] or "", "^[1-9]%d*$")')
		refute file_exists ran
		wait_until 16 eval '(($(now_ms) - held_ms >= 15100))'
		redis "${request[@]}" >/dev/null
		wait_until 10 file_exists ran
		wait_until 5 no_keys
	done
}

# lock_behind_proxy [OPTION...]: a process acquires "a" through the proxy; sets PID.
lock_behind_proxy() {
	start_realtime_proxy
	in_background bash -c 'rlock lock "$@" --pid $$ a && touch locked && run_until_ended' bash "$@"
	wait_until 5 file_exists locked
}

@test "a signal during the release by unlock ends unlock only after the release" {
	lock_behind_proxy
	proxy blackhole on up
	in_background rlock unlock --connect-timeout 30s --pid "$PID" a
	# Wait until the renewer has ended: if unlock died now, nothing would release the lock before its lease ends.
	wait_until 5 eval '[ -z "$(renewers)" ]'
	kill -s TERM "$PID"
	proxy cut
	proxy blackhole off
	wait_until 5 no_keys
	wait_until 5 is_gone "$PID"
}

@test "unlock of a lock that expired without its renewer never exits with 0, whatever is lost" {
	lock_behind_proxy -t 3s
	find_only_renewer
	kill -KILL "$RENEWER"
	wait_until 5 no_keys
	proxy cut-before "$RELEASE"
	run -69 rlock unlock --pid "$PID" a
	faults_happened
	run -76 rlock unlock --pid "$PID" a
	assert_one_line '^rlock: a: .*lost.*$'
}

# proxy_counts WHAT: prints a counter of the proxy: connections, requests, replies, dropped or writes_up.
proxy_counts() {
	proxy count | tr ' ' '\n' | sed -n "s/^$1=//p"
}

@test "an undisturbed run makes two round trips, also with user, password and database" {
	local url trips
	start_own_server
	rlock run -u "unix://$SERVER_SOCKET?db=2" warm -- true
	redis acl setuser somebody on '>secret' '~*' '&*' +@all
	start_realtime_proxy tcp:127.0.0.1:0
	for url in "redis://127.0.0.1:$PROXY_PORT" "redis://somebody:secret@127.0.0.1:$PROXY_PORT/2"; do
		# A busy machine can disturb a run: a request that has no reply after a second is repeated.
		for _ in 1 2 3; do
			proxy reset-count
			run -0 rlock run -u "$url" --note there a -- true
			trips=$(proxy_counts writes_up)
			[ "$trips" != 2 ] || break
		done
		assert_equal "$trips" 2
		assert_equal "$(proxy_counts connections)" 1
	done
}
