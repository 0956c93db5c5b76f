#!/usr/bin/env bats
# bats file_tags=long
# Servers that are frozen, restarted, busy or a replica; connections that are cut or slow; locks that are lost, and keys of other types.
# (lost_replies.bats: networks that lose requests and replies. full_server.bats: a server whose memory is full.)

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying

setup_file() { start_warm_server run; }

teardown() { common_teardown; }

# hold_and_listen NAME [OPTION...]: as hold_in_background, with standard error in the file "stderr".
hold_and_listen() {
	record_stderr rlock run "${@:2}" "$1" -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
}

# wait_for_lock NAME [OPTION...]: starts a waiter whose command creates the file "ran", with standard error in the file "stderr".
# Sets PID. Returns when the waiter is queued.
wait_for_lock() {
	record_stderr rlock run "${@:2}" "$1" -- touch ran
	wait_until 5 has_waiters "$1"
}

# end_without_messages PID...: ends the commands. Each of these rlocks must exit with 0 and without a message, and no key may be
# left.
end_without_messages() {
	local pid
	end_commands
	for pid; do
		ended_with 0 "$pid"
	done
	stderr_is_empty
	wait_until 5 no_keys
}

# ---- while a lock is held ----

@test "on a frozen server all of the command's processes have ended before the lease expires" {
	hold_with_family a -t 9s
	wait_until 10 is_renewed a 9000
	without_renewal "$PID" with_lease_end freeze
	watch_family 15
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease: ${SEEN[*]:0:8}"
	unfreeze
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[-+][0-9]{2}:[0-9]{2}: not renewed for [0-9.]+m?s: .+; terminating the command; before you run it again, check what is half done$'
	wait_until 5 no_keys
	wait_until 5 no_rlock_runs
}

@test "a lock stays held while its server is frozen during a renewal, replies BUSY, or is full for a moment" {
	start_own_server --lua-time-limit 50
	hold_and_listen a -t 24s
	local holder=$PID looped_ms
	wait_until 12 is_renewed a 24000
	freeze
	pause_for 8.4
	unfreeze
	wait_until 12 is_renewed a 24000
	# Take the server's real-time priority away: an endless loop in it would leave no processor time to others.
	chrt --other --pid 0 "$SERVER_PID" 2>/dev/null || :
	# A renewal is due within eight seconds. Count them from before the loop, as on a busy machine its start takes long.
	looped_ms=$(now_ms)
	in_background ask_redis "$SERVER_SOCKET" eval 'while true do end' 0
	wait_until 10 eval 'redis ping 2>&1 | grep -q BUSY'
	wait_until 10 eval '(($(now_ms) - looped_ms >= 8400))'
	is_running "$holder"
	redis_says OK script kill
	wait_until 12 is_renewed a 24000
	redis config set maxmemory 1
	wait_until 5 ttl_is_below a 21500
	wait_until 12 is_renewed a 24000
	end_without_messages "$holder"
}

@test "a lock stays held, and its waiter waits on, when connections are cut and the server loses its scripts" {
	start_realtime_proxy
	hold_in_background a -t 6s
	local holder=$PID
	wait_for_lock a
	for _ in 1 2 3; do
		proxy cut
		redis script flush
		stays_true_for 0.9 is_held a
		wait_until 5 is_renewed a 6000
		wait_until 5 has_waiters a
	done
	redis script flush
	end_without_messages "$holder" "$PID"
	[ -e ran ]
}

@test "a lock is lost when it is deleted, or its server restarts empty or becomes a replica: the command is terminated, 76" {
	local how why
	while read -r how why; do
		start_own_server
		rm -f family
		hold_with_family a -t 18s
		wait_until 10 is_renewed a 18000
		case $how in
		deleted) redis del a ;;
		empty) kill_server && start_own_server ;;
		replica) redis replicaof 127.0.0.1 1 ;;
		esac
		# rlock must notice the loss at its next renewal, which comes after a third of the lease. Not if the server is a
		# replica: that may become a master again until the lease ends.
		[ "$how" = replica ] || becomes_true_within 10 is_gone "$(family_member leader)"
		takes_less_than 30 ended_with 76
		family_is_gone
		stderr_is_one_line "^rlock: a: lock lost at .*$why.*; terminating the command; "
		kill_server
	done <<-'END'
		deleted it expired or was deleted on the server
		empty it expired or was deleted on the server
		replica READONLY
	END
}

@test "a lock that another owner has acquired after ours was lost is not touched, whichever lease is longer" {
	local ms
	for ms in 60000 5000; do
		hold_and_listen a -t 6s
		redis del a
		redis hset a somebody 1
		redis pexpire a $ms
		ended_with 76
		stderr_is_one_line '^rlock: a: lock lost at '
		assert_ttl -2 "$(redis pttl a)" "$ms"
		# Do not check the key of the shorter lease, which may have expired by now.
		[ "$ms" = 5000 ] || assert_equal "$(redis hgetall a)" $'somebody\n1'
		redis del a
	done
	hold_and_listen a
	redis del a
	end_commands
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost before the command ended'
}

# lose_while_logging ARG...: deletes the lock while the command logs the signals that it gets. rlock must report the loss.
lose_while_logging() {
	rm -f signals end-commands
	record_stderr rlock run -t 6s "$@" a -- log_signals
	wait_until 5 file_has_line signals ready
	redis del a
	wait_until 10 stderr_is_one_line '^rlock: a: lock lost at '
}

@test "--on-lost term sends SIGTERM or --signal only; --on-lost ignore lets the command run until --max-run; both end with 76" {
	lose_while_logging --on-lost term --grace 100ms
	wait_until 6 file_has_line signals TERM
	stays_true_for 1 is_running "$PID"
	end_commands
	ended_with 76
	[ "$(grep -c TERM signals)" = 1 ]
	lose_while_logging --on-lost term --signal USR1
	wait_until 6 file_has_line signals USR1
	stderr_is_one_line '^rlock: a: lock lost at .*; the command was sent SIGUSR1; '
	end_commands
	ended_with 76
	refute grep -q TERM signals
	lose_while_logging --on-lost ignore -q --max-run 12s --grace 5s
	stays_true_for 1 has_line_count signals 1
	# The command ignores SIGTERM, so it must be killed after --max-run, also although the lock is lost. It logs SIGTERM before.
	ended_with 76
	file_has_line signals TERM
	file_contains stderr 'the command ran for 12s'
}

# ---- while a lock is acquired, waited for, or released ----

@test "when the server is down at the start, rlock exits with 69 immediately; with --wait it retries until that time is over" {
	local start
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/server/redis.sock
	takes_less_than 4 run -69 rlock run a -- touch ran
	assert_one_line "$BATS_TEST_TMPDIR/server/redis.sock"
	start=$(now_ms)
	takes_less_than 10 run_timed_out 69 rlock run -w 1s a -- touch ran
	(($(now_ms) - start >= 900))
	[ ! -e ran ]
	in_background rlock run -w 60s a -- touch ran
	pause_for 0.3
	is_running "$PID"
	start_own_server
	takes_less_than 15 ended_with 0
	[ -e ran ]
}

@test "a waiter survives a restart of its server; on a frozen server it ends with 69 when its wait time is over" {
	start_own_server
	hold_in_background a -t 30s
	wait_for_lock a
	kill_server
	pause_for 0.5
	is_running "$PID"
	start_own_server
	wait_until 5 file_exists ran
	ended_with 0
	rm ran
	# At the end of its wait time the waiter asks the server once more who holds the lock.
	hold_in_background b -t 30s
	wait_for_lock b -w 10s
	freeze
	run_waiter_in_real_time "$PID"
	takes_less_than 17 ended_with 69
	stderr_is_one_line '^rlock: b: '
	[ ! -e ran ]
}

@test "a waiter acquires the lock after its connections got no replies for a while, or SUBSCRIBE got none" {
	local holder
	hold_in_background a
	holder=$PID
	start_realtime_proxy
	proxy drop-reply SUBSCRIBE
	wait_for_lock a
	wait_until 5 faults_happened
	proxy blackhole on
	end_commands
	ended_with 0 "$holder"
	pause_for 0.5
	proxy blackhole off
	proxy cut
	takes_less_than 15 ended_with 0
	[ -e ran ]
	wait_until 5 no_keys
}

@test "a connection without a reply ends at --connect-timeout, and replies that take half of the lease are too slow: 69" {
	start_realtime_proxy
	proxy blackhole on
	takes_less_than 6 run -69 rlock run --connect-timeout 500ms a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	proxy blackhole off
	proxy delay 1000
	run -69 rlock run -n -t 2s a -- touch ran
	assert_output --partial 'answers too slowly for this lease; give a longer one'
	[ ! -e ran ]
	wait_until 5 no_keys
}

@test "the late release of a grant whose replies were too slow does not release what the next attempt has acquired" {
	start_proxy
	proxy delay 2100
	# The release that gives up the grant, and what follows on its connection, reach the server only at the end of this test.
	proxy hold-request "$RELEASE" 1
	in_background rlock run -t 6s -w 60s a -- run_until_ended
	wait_until 40 faults_happened
	proxy delay 0
	wait_until 30 has_child "$PID" run_until_ended
	proxy release
	stays_true_for 0.5 is_held a
	is_running "$PID"
	end_commands
	ended_with 0
	wait_until 5 no_keys
}

@test "a release that cannot be delivered is a warning, and rlock keeps the command's status" {
	start_own_server
	record_stderr rlock run -t 15s a -- sh -c ': >runs; run_until_ended; exit 7'
	wait_until 5 file_exists runs
	freeze
	end_commands
	takes_less_than 9 ended_with 7
	stderr_is_one_line '^rlock: a: release failed: '
	unfreeze
	wait_until 15 no_keys
}

@test "a lock without a command is released after an outage longer than its first lease" {
	start_realtime_proxy
	in_background bash -c 'rlock lock -l 24s --pid $$ a && touch had; run_until_ended'
	wait_until 5 file_exists had
	wait_until 24 ttl_is_below a 14000
	rlock renew --pid "$PID" a
	wait_until 20 ttl_is_below a 11000
	proxy refuse on
	proxy cut
	end_commands
	wait "$PID" || :
	pause_for 1.5
	proxy refuse off
	# Without a release the lease would end more than 5 s after this.
	wait_until 5 is_free a
}

# ---- what a server refuses ----

@test "a key that is a string, a list, a set or a read/write lock is refused with 78 and not changed" {
	local command before
	for command in 'set a value' 'rpush a value' 'sadd a value' 'hset a mode read somebody 1'; do
		# shellcheck disable=SC2086
		redis $command
		before=$(redis dump a)
		run -78 rlock run a -- touch ran
		assert_one_line '^rlock: a: '
		[ "$(redis dump a)" = "$before" ]
		redis_says -1 pttl a
		redis_says 1 dbsize
		[ ! -e ran ]
		redis del a
	done
}

@test "a replica is refused with 69 and its address, whether the lock is free, held, or of another type" {
	local verb command
	start_own_server
	for command in 'ping' 'hset a somebody:1 1' 'set a value'; do
		redis replicaof no one
		redis del a
		# shellcheck disable=SC2086
		redis $command
		redis replicaof 127.0.0.1 1
		for verb in run rlock; do
			run -69 timeout 20 rlock "$verb" a -- touch ran
			assert_output "rlock: a: $RLOCK_URL?db=0 is a replica: it can grant no lock; name its master, or its sentinels: READONLY You can't write against a read only replica."
		done
	done
	# Let the replica, which has lost its master, serve no data.
	redis config set replica-serve-stale-data no
	run -69 rlock run a -- touch ran
	assert_one_line "^rlock: a: .* is a replica: it can grant no lock"
	[ ! -e ran ]
}

@test "list and status on a replica without locks exit with 69, and say that it can grant none" {
	start_own_server
	redis acl setuser reader on '>secret' '~app:*' '&*' +@all
	redis replicaof 127.0.0.1 1
	for command in list 'list app:*' status; do
		# shellcheck disable=SC2086
		run -69 timeout 20 rlock $command
		assert_one_line '^rlock: .* is a replica: it can grant no lock; name its master'
	done
	start_realtime_proxy tcp:127.0.0.1:0
	run -69 timeout 20 rlock list -u "redis://reader:secret@127.0.0.1:$PROXY_PORT" 'app:*'
	assert_one_line '^rlock: .* is a replica: it can grant no lock; name its master'
	redis replicaof no one
	run -0 rlock list
	no_keys
}

# start_closing WORDS COMMANDS: starts a server on PORT that sends WORDS to each new client, replies +OK to COMMANDS commands, and then
# closes the connection.
start_closing() {
	choose_port
	in_background python3 -IS -c '
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    stream = listener.accept()[0]
    stream.sendall(sys.argv[2].encode())
    if not sys.argv[2]:
        stream.recv(10000)
        stream.sendall(b"+OK\r\n" * int(sys.argv[3]))
    stream.close()
' "$PORT" "$@"
	wait_until 5 is_listened_on "$PORT"
}

@test "the message about a busy server proposes --wait only if the verb has it and it was not given" {
	start_own_server --lua-time-limit 50
	# Its loop must leave processor time to others.
	chrt --other --pid 0 "$SERVER_PID" 2>/dev/null || :
	in_background ask_redis "$SERVER_SOCKET" eval 'while true do end' 0
	wait_until 10 eval 'redis ping 2>&1 | grep -q BUSY'
	run -69 rlock run -n a -- touch ran
	assert_one_line '^rlock: a: denied by the server: a script keeps it busy; see its SLOWLOG; give --wait: BUSY '
	# Try again if a busy machine delays the server: then rlock reports that there was no answer.
	local try
	for try in {1..5}; do
		run_timed_out 69 rlock run -w 500ms a -- touch ran
		[[ $output != *BUSY* ]] || break
	done
	assert_one_line '^rlock: a: .*a script keeps it busy; see its SLOWLOG: BUSY '
	run -69 rlock status a
	refute_output --partial 'give --wait'
	[ ! -e ran ]
	redis script kill
}

@test "a server that closes connections after it has replied without TLS is not reported as a TLS port" {
	start_realtime_proxy tcp:127.0.0.1:0
	record_stderr rlock run -u "redis://127.0.0.1:$PROXY_PORT" -t 4s a -- sleep 60
	wait_until 5 is_held a
	wait_until 5 has_child "$PID" sleep
	proxy refuse on
	proxy cut
	takes_less_than 15 ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at .*: not renewed for .*: cannot reach redis://127.0.0.1:'
	run -1 grep TLS stderr
}

@test "the message about a server that closes a new connection quotes it, or names the command at which it did" {
	local words commands login text
	while IFS='|' read -r words commands login text; do
		start_closing "${words:+$words$'\r\n'}" "$commands"
		run -69 rlock run -n -u "redis://${login}127.0.0.1:$PORT" a -- touch begun
		assert_one_line "^rlock: a: ${text/PLACE/cannot reach redis://127.0.0.1:$PORT/0: the server closed the connection}$"
		assert [ ! -e begun ]
	done <<-'END'
		-ERR max number of clients reached|0||denied by the server: too many clients are connected; raise its maxclients, a waiter takes two, a holder one: ERR max number of clients reached
		-ERR max number of clients reached|0|:secret@|denied by the server: too many clients are connected; raise its maxclients, a waiter takes two, a holder one: ERR max number of clients reached
		-ERR the proxy is going down|0||PLACE: ERR the proxy is going down
		|0||PLACE at CLIENT SETNAME; if this is a TLS port, its URL begins with rediss://
		|1|:secret@|PLACE at CLIENT SETNAME
		|1||PLACE at EVALSHA
	END
}
