#!/usr/bin/env bats
# bats file_tags=long
# Servers that are frozen, restarted, busy, full, or a replica; networks that cut, delay and corrupt connections, and lose requests and
# replies; locks that are lost, and keys of other types. tests/chaos/network.bats tries each fault with each request of each command.

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying

setup_file() { start_warm_server run; }

teardown() { common_teardown; }

freeze() {
	kill -s STOP "$SERVER_PID"
}

unfreeze() {
	kill -s CONT "$SERVER_PID"
}

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
		hold_with_family a -t 9s
		wait_until 10 is_renewed a 9000
		case $how in
		deleted) redis del a ;;
		empty) kill_server && start_own_server ;;
		replica) redis replicaof 127.0.0.1 1 ;;
		esac
		# rlock must notice the loss at its next renewal, which comes after a third of the lease. Not if the server is a
		# replica: that may become a master again until the lease ends.
		[ "$how" = replica ] || becomes_true_within 6 is_gone "$(family_member leader)"
		takes_less_than 15 ended_with 76
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

# owner_has_nothing OWNER: whether the lock "a" has no hold record of this owner.
owner_has_nothing() {
	! redis hvals 'rlock_holds:{a}' | grep -q "^$1:"
}

@test "when the server is down at the start, rlock exits with 69 immediately; with --wait it retries until that time is over" {
	local start
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/server/redis.sock
	takes_less_than 4 run -69 rlock run a -- touch ran
	assert_one_line "$BATS_TEST_TMPDIR/server/redis.sock"
	start=$(now_ms)
	takes_less_than 10 run_timed_out 69 rlock run -w 1s a -- touch ran
	(($(now_ms) - start >= 900))
	[ ! -e ran ]
	in_background rlock run -w 10s a -- touch ran
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
	# rlock kills a renewer that gets no processor for a second at the end of the wait.
	find_renewer "$PID"
	run_in_real_time "$PID"
	run_in_real_time "$RENEWER"
	freeze
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
	proxy delay 500
	run -69 rlock run -n -t 1s a -- touch ran
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
	record_stderr rlock run -t 6s a -- sh -c ': >runs; run_until_ended; exit 7'
	wait_until 5 file_exists runs
	freeze
	end_commands
	takes_less_than 9 ended_with 7
	stderr_is_one_line '^rlock: a: release failed: '
	unfreeze
	wait_until 8 no_keys
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

# ---- lost requests and replies ----

# run_counted [OPTION...]: runs a command under the lock "a". It must run once, and find a hold count of 1. rlock must exit with
# the command's status, and leave no key.
run_counted() {
	counted "$@" || :
	assert_counted
}

# counted [OPTION...]: runs rlock; whether its exit status is that of the command.
counted() {
	run --separate-stderr rlock run "$@" a -- sh -c 'echo >>ran; ask_redis "$SERVER_SOCKET" hvals a; exit 7'
	[ "$status" = 7 ]
}

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
		run_counted -w 10s
	done
	# rlock must repeat the request also with -n. The first request only asks whether the lock is busy. The lost reply is asked for
	# within a second, in which rlock may get no processor on a busy machine.
	for try in {1..5}; do
		proxy pass
		proxy spare "$ACQUIRE"
		proxy drop-reply "$ACQUIRE"
		! counted -n --connect-timeout 1m || break
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
	rlock lock --owner ci --lease 60s a
	# The lost replies are asked for within a second, in which rlock may get no processor on a busy machine.
	for try in {1..5}; do
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
	hold_and_listen a -t 7s
	proxy drop-reply "$RENEW" 3
	wait_until 5 faults_happened
	wait_until 5 is_renewed a 7000
	[ "$(hold_count a)" = 1 ]
	end_without_messages "$PID"
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
		in_background rlock $verb --ttl 10m --at-least 10s a -- run_until_ended
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
		wait_until 11 eval '(($(now_ms) - held_ms >= 10100))'
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

# ---- what a server refuses ----

@test "a full server grants no lock, which the message says, and releases one of two holds of an owner" {
	start_own_server
	redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	[ ! -e ran ]
	no_keys
	redis config set maxmemory 0
	run -0 rlock run a -- sh -c '
		rlock run a -- ask_redis "$SERVER_SOCKET" config set maxmemory 1
		ask_redis "$SERVER_SOCKET" hvals a'
	assert_output $'OK\n1'
	no_keys
}

@test "a held lock on a full server is busy for fair -n, also with a queue" {
	local verb
	start_own_server
	hold_in_background a
	in_background rlock fair -w 60s a -- true
	wait_until 5 has_queue_length a 1
	redis config set maxmemory 1
	for verb in run fair; do
		run -75 rlock "$verb" -n a -- touch ran
		assert_output ''
	done
	redis config set maxmemory 0
	end_commands
	ended_with 0
	[ ! -e ran ]
}

# subscriptions: one line with the client id of each subscription.
subscriptions() { redis client list type pubsub | sed -nE 's/^id=([0-9]+) .*/\1/p'; }

is_subscribed() { [ -n "$(subscriptions)" ]; }

# was_denied FILE: whether the rlock that writes to FILE has been denied three times because the memory is full.
was_denied() { [ "$(grep -c 'memory is full' "$1")" -ge 3 ]; }

# wait_with FILE VERB: an rlock waits for the lock a; it writes what it does to FILE. Its pid is added to PIDS.
wait_with() {
	in_background sh -c 'exec rlock "$2" -vv -w 60s a -- true 2>"$1"' sh "$@"
	PIDS+=("$PID")
}

end_all() {
	local pid
	end_commands
	for pid in "${PIDS[@]}"; do
		ended_with 0 "$pid"
	done
}

@test "a fair waiter stays subscribed while the server's memory is full, so that no other waiter takes it for dead" {
	local before
	local -a PIDS=()
	start_own_server
	hold_in_background a
	wait_with first fair
	wait_until 5 has_queue_length a 1
	wait_until 5 is_subscribed
	before=$(subscriptions)
	redis config set maxmemory 1
	end_commands
	wait_until 20 was_denied first
	assert_equal "$(subscriptions)" "$before"
	redis config set maxmemory 0
	end_all
}

# heartbeats_are_over: whether all waiters for the fair lock a would be taken for dead.
heartbeats_are_over() {
	local value
	while read -r value; do
		((${value%% *} < $(server_ms))) || return
	done < <(redis hvals 'rlock_waiters:{a}')
}

@test "while the server's memory is full nobody joins the queue of a fair lock, and its waiters stay in it" {
	local before waiter
	local -a PIDS=()
	start_own_server
	hold_in_background a -t 60s
	for waiter in 1 2; do
		wait_with "$waiter" fair
		wait_until 5 has_queue_length a "$waiter"
	done
	before=$(redis lrange 'redisson_lock_queue:{a}' 0 -1)
	redis config set maxmemory 1
	wait_with 3 fair
	wait_until 10 file_contains 3 'waiting for'
	wait_until 10 heartbeats_are_over
	run -75 rlock fair -n a -- true
	assert_equal "$(redis lrange 'redisson_lock_queue:{a}' 0 -1)" "$before"
	redis config set maxmemory 0
	wait_until 10 has_queue_length a 3
	assert_equal "$(redis lrange 'redisson_lock_queue:{a}' 0 1)" "$before"
	end_all
}

has_tried_again() { [ "$(calls_of evalsha)" -ge 1 ]; }

@test "a waiter for any lock but a fair one stays in the wake queue while the server's memory is full" {
	local before
	local -a PIDS=()
	start_own_server
	hold_in_background a -t 60s
	wait_with first run
	wait_until 5 has_waiters a
	wait_with second run
	wait_until 5 has_waiters a 2
	before=$(redis zrange 'rlock_queue:{a}' 0 -1)
	redis config set maxmemory 1
	redis config resetstat
	# The second waiter tries again after 3 s.
	wait_until 15 has_tried_again
	assert_equal "$(redis zrange 'rlock_queue:{a}' 0 -1)" "$before"
	redis config set maxmemory 0
	end_all
}

@test "a waiter for a semaphore does not join the wake queue while the server's memory is full" {
	local -a PIDS=()
	start_own_server
	in_background rlock sem --permits 1 a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	redis config set maxmemory 1
	in_background sh -c 'exec rlock sem --permits 1 -v -w 60s a -- true 2>waiter'
	PIDS+=("$PID")
	wait_until 5 file_contains waiter 'waiting for'
	redis_says 0 zcard 'rlock_queue:{a}'
	redis config set maxmemory 0
	end_all
}

@test "a writer that finds readers on a full server waits" {
	local -a PIDS=()
	start_own_server
	in_background rlock read a -- run_until_ended
	wait_until 5 is_held a
	redis config set maxmemory 1
	wait_with writer write
	wait_until 5 file_contains writer 'waiting for'
	redis config set maxmemory 0
	end_all
}

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
	# The server may be late on a busy machine, and then the message is another one.
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
