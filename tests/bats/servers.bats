#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that must all agree: its keys on each of them, who is excluded and woken, passwords and databases, and what
# happens when one server is down, frozen, or denies. quorum.bats covers smaller quorums, unit/test_usage.c which servers may be combined.

load ../lib/usual
load ../lib/quorum
load ../lib/proxying

# take_servers gives tests servers from number 4 on.
setup_file() { start_warm_servers 12; }

# ---- what the servers store ----

@test "a lock of each kind is the same hash with the same owner on each server, and leaves no key" {
	local verb fields
	while read -r verb fields; do
		rm -f owner end-commands
		in_background rlock "$verb" a -- sh -c 'echo "$RLOCK_OWNER" >owner; exec run_until_ended'
		wait_until 5 has_line_count owner 1
		assert_equal "$(same_reply_on_all hgetall a)" "$(tr ' ' '\n' <<<"${fields/OWNER/$(<owner)}" | LC_ALL=C sort)"
		assert_equal "$(same_reply_on_all hkeys 'rlock_holds:{a}' | wc -l)" 1
		on_each ttl_between 15000 a 30000
		end_commands
		ended_with 0
		on_each no_keys
	done <<-'END'
		run OWNER 1
		fair OWNER 1
		rlock OWNER 1 mode read
		wlock OWNER:write 1 mode write
	END
}

# names_all_servers COMMAND...: COMMAND, an rlock call, must lock "a" on all servers.
names_all_servers() {
	run -0 "$@" a -- sh -c "${runs_once%exit 7}"
	assert_output $'1\n1\n1'
	on_each no_keys
}

@test "one server under two names, or with two databases, is refused for a majority with 78, also by check, and no lock is left" {
	local port other how quorum
	start_realtime_proxy tcp:127.0.0.1:0
	port=$PROXY_PORT
	other=$(urls_of 2)
	while read -r quorum how; do
		run -78 rlock run -u "$how" --quorum "$quorum" -t 1s -w 20s a -- touch ran
		assert_one_line '^rlock: a: redis://127.0.0.1:[0-9/]+ and redis://[0-9a-z.:/]+ are the same server; name each server once$'
		run -78 rlock check -u "$how" --quorum "$quorum"
		assert_output --regexp "BAD +identity +the same server as redis://127.0.0.1:$port"
		assert_line --regexp '^NOT SOUND: .* identity'
	done <<-END
		all redis://127.0.0.1:$port redis://localhost:$port
		majority redis://127.0.0.1:$port redis://localhost:$port redis://127.0.0.1:$port/1
		majority redis://127.0.0.1:$port/1 redis://127.0.0.1:$port/2 redis://127.0.0.1:$port/3
	END
	run -0 rlock check -u "redis://127.0.0.1:$port/1 redis://127.0.0.1:$port/2"
	assert_output --regexp 'note +identity +another database of the server of redis://127.0.0.1:'
	run -0 rlock check -u "redis://127.0.0.1:$port $other"
	refute_output --partial identity
	[ ! -e ran ]
	on_each no_keys
	assert_equal "$(redis info keyspace | grep -c ^db)" 0
}

@test "several -u, one -u, RLOCK_URL and the file can name several servers, and --db applies to each" {
	local a b c
	a=$(urls_of 1) b=$(urls_of 2) c=$(urls_of 3)
	names_all_servers env -u RLOCK_URL rlock run -u "$a $b" --url "$c"
	names_all_servers env RLOCK_URL="  $a   $b $c " rlock run
	# "fence" in the file is ignored with several servers.
	printf '%s\n' 'fence = yes' "url = $a" "url = $b $c" >conf
	names_all_servers env -u RLOCK_URL rlock run --config conf
	run -0 rlock run --db 3 a -- sh -c '
		for number in 1 2 3; do redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" -n 3 exists a; done'
	assert_output $'1\n1\n1'
	# Two databases of one server must count as two servers here.
	run -0 rlock run -u "$a?db=1" -u "$a?db=2" a -- sh -c 'for db in 1 2; do redis-cli -s "$SERVER_SOCKET" -n $db exists a; done'
	assert_output $'1\n1'
}

@test "unlock with the servers in another order shows the right line" {
	run -0 bash -c '
		rlock lock --pid $$ a
		said=$(rlock unlock --pid $$ -u "$3" -u "$1" -u "$2" a 2>&1) && exit
		eval "${said##*: }"' bash "$(urls_of 1)" "$(urls_of 2)" "$(urls_of 3)"
	on_each no_keys
}

@test "unlock --force breaks a lock on all servers, also if only one has it, and its holder ends with 76" {
	hold_on_each a -t 9s
	wait_until 5 has_child "$PID" run_until_ended
	run -0 rlock unlock --force a
	on_each is_free a
	ended_with 76
	wait_until 5 on_each no_keys
	on 2 hold_by_foreign_client a
	run -0 rlock unlock --force a
	on_each no_keys
	run -1 rlock unlock --force a
}

# ---- exclusion ----

@test "callers that name the same servers in another order, or only one of them, exclude each other" {
	local order number
	hold_on_each a
	for order in '3 1 2' '2 3 1' 1 2 3; do
		# shellcheck disable=SC2086
		RLOCK_URL=$(urls_of $order) run -75 rlock run -n a -- touch ran
	done
	end_commands
	ended_with 0
	for number in 1 2 3; do
		on $number hold_by_foreign_client a
		run_timed_out 75 rlock run -w 1s a -- touch ran
		assert_one_line '^rlock: a: .*held by 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1'
		on $number redis del a >/dev/null
		on_each no_keys
	done
	run -64 rlock run -u "$(urls_of 1)" a -- env -u RLOCK_HELD rlock run -n a -- touch ran
	[ ! -e ran ]
}

@test "waiters acquire a fair lock in the order of the calls, and any lock after the release of a holder on only one server" {
	local number holder
	# Without a message the waiters would try again only at the end of the lease.
	hold_on_each a
	holder=$PID
	for number in 1 2 3; do
		in_background rlock fair a -- sh -c 'echo "$0" >>order' $number
		wait_until 5 on_each has_queue_length a $number
	done
	end_commands
	ended_with 0 "$holder"
	wait_until 10 has_line_count order 3
	assert_equal "$(paste -s -d ' ' order)" '1 2 3'
	all_ended_with 0
	on 3 hold_by_foreign_client b
	in_background rlock run b -- touch ran
	wait_until 5 on 3 has_waiters b
	[ ! -e ran ]
	on 3 release_by_foreign_client b
	wait_until 8 file_exists ran
	ended_with 0
	on_each no_keys
}

@test "a waiter that a signal or its wait time ends leaves nothing on any server" {
	local holder
	hold_on_each a
	holder=$PID
	in_background rlock fair a b -- touch ran
	wait_until 5 on_each has_queue_length a 1
	kill -s TERM "$PID"
	ended_with 143
	run_timed_out 75 rlock fair -w 1s a b -- touch ran
	on_each is_free b
	end_commands
	ended_with 0 "$holder"
	on_each no_keys
	[ ! -e ran ]
}

@test "a stop request is written to all servers, or to none if one denies it" {
	hold_on_each a -t 9s
	on 3 redis acl setuser default -hset >/dev/null
	run rlock stop -w 1s a
	on 3 redis acl setuser default +hset >/dev/null
	assert_equal "$status" 77
	run -0 on 1 redis hkeys 'rlock_holds:{a}'
	refute_output --partial stop
	run -0 rlock stop a
	ended_with 124
	on_each no_keys
	# The message must name the hold only once, although it is on three servers.
	run -0 rlock run --at-least 60s a -- true
	run -75 rlock stop a
	assert_one_line 'cannot be asked: --at-least keeps it'
}

# ---- passwords ----

@test "a password file and REDISCLI_AUTH apply to each server whose URL has no password, and no password is shown" {
	local address
	take_servers 3
	start_proxy_to "${SERVERS[1]}" tcp:127.0.0.1:0
	address=$(sed -n 's/^listen tcp://p' "proxy-output-${SERVERS[1]}")
	on_each redis config set requirepass s3cr3t
	REDISCLI_AUTH=s3cr3t on "${SERVERS[1]}" redis config set requirepass w0rd
	VIA[SERVERS[1]]=redis://:w0rd@$address
	use_servers "${SERVERS[@]}"
	echo s3cr3t >file
	chmod 600 file
	run -0 rlock run --password-file file a -- printenv RLOCK_HELD
	refute_output --partial w0rd
	export REDISCLI_AUTH=s3cr3t
	run -0 rlock lock --pid $$ a
	run grep -r w0rd "$RLOCK_RUNTIME_DIR"
	assert_output ''
	run -0 rlock unlock --pid $$ a
	VIA[SERVERS[1]]=redis://$address
	use_servers "${SERVERS[@]}"
	run -77 rlock run a -- true
	refute_output --partial s3cr3t
	on "${SERVERS[0]}" no_keys
	on "${SERVERS[2]}" no_keys
}

# ---- acquired while one server fails ----

@test "with one server down rlock exits with 69 immediately, in one line, and leaves nothing on the others" {
	VIA[2]=unix://$PWD/nobody.sock
	use_servers 1 2 3
	takes_less_than 10 run_counting_all 69 '2 of 3 servers' rlock run a -- touch ran
	assert_one_line '^rlock: a: .*2 of 3 servers .*nobody.sock'
	takes_less_than 10 run -69 rlock fair -n a b -- touch ran
	on_each no_keys
	[ ! -e ran ]
}

@test "with one server full, a replica, or with another password rlock exits with 69 or 77 in one line, and leaves nothing on the others" {
	local code text begin end
	take_servers 3
	while IFS='|' read -r code text begin end; do
		# shellcheck disable=SC2086
		on "${SERVERS[1]}" redis $begin
		run "-$code" rlock run a -- touch ran
		assert_one_line "^rlock: a: .*$text"
		has_keys_only_on "${SERVERS[1]}"
		# shellcheck disable=SC2086
		on "${SERVERS[1]}" redis $end
	done <<-'END'
		69|memory|config set maxmemory 1|config set maxmemory 0
		69|is a replica|replicaof 127.0.0.1 1|replicaof no one
		77|password|config set requirepass s3cr3t|ping
	END
	[ ! -e ran ]
}

@test "with one server frozen rlock exits with 69 at --connect-timeout; with --wait it acquires the lock when the server continues" {
	freeze_server 2
	run_counting_all 69 '2 of 3 servers' rlock run --connect-timeout 500ms a -- touch ran
	assert_one_line '^rlock: a: '
	has_keys_only_on 2
	[ ! -e ran ]
	in_background rlock run -w 20s --connect-timeout 500ms a -- touch ran
	stays_true_for 1.2 is_running "$PID"
	thaw_server 2
	ended_with 0
	[ -e ran ]
	wait_until 5 on_each no_keys
}

# ---- held and released while one server fails ----

crash_at_known_end() {
	end=$(for number in "${SERVERS[@]}"; do on "$number" lease_end_ms a; done | sort -n | head -n 1)
	crash_server "${SERVERS[1]}"
}

@test "when one server is killed, the command is terminated before the lease ends, 76" {
	take_servers 3
	hold_with_family a -t 9s
	wait_until 10 on_each is_renewed a 9000
	without_renewal "$PID" crash_at_known_end
	watch_family 15
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+m?s: .+; terminating the command; '
	wait_until 5 on "${SERVERS[0]}" no_keys
	wait_until 5 on "${SERVERS[2]}" no_keys
}

@test "a release that one frozen server does not answer is a warning, and rlock exits with the command's status" {
	record_stderr rlock run a -- sh -c 'run_until_ended; exit 7'
	wait_until 5 has_child "$PID" sh
	freeze_server 2
	end_commands
	takes_less_than 12 ended_with 7
	stderr_is_one_line '^rlock: a: release failed: '
	has_keys_only_on 2
	thaw_server 2
	wait_until 5 on_each no_keys
}

# Server 3 grants each attempt of the waiter, but no reply of it arrives.
@test "a waiter does not keep the lock on a server whose reply is late" {
	local count
	start_proxy_to 3
	on 1 hold_by_foreign_client a
	count=$(on 3 calls_of evalsha)
	proxy_to 3 hold-reply "$ACQUIRE" 1000
	in_background rlock run -t 10m -w 60s a -- touch ran
	wait_until 10 eval '[ "$(on 3 calls_of evalsha)" -gt "$count" ]'
	wait_until 5 on 3 is_free a
	kill "$PID"
	ended_with 143
	[ ! -e ran ]
}

@test "a release that a slow server carries out while another one is down is not reported as a loss" {
	start_proxy_to 1
	start_proxy_to 2
	proxy_to 2 delay 150
	record_stderr rlock run a -- sh -c 'run_until_ended; exit 7'
	wait_until 5 has_child "$PID" sh
	proxy_to 1 refuse on
	proxy_to 1 cut
	end_commands
	wait_until 5 on 2 is_free a
	pause_for 0.4
	proxy_to 1 refuse off
	takes_less_than 10 ended_with 7
	stderr_is_empty
	on_each no_keys
}

# keeps_lock_after_late_undo: the rlock PID acquires the lock "a". Then the proxy delivers what it has held. The lock must stay held on
# each server until the command ends.
keeps_lock_after_late_undo() {
	wait_until 20 has_child "$PID" run_until_ended
	on_each is_held a
	proxy_to 1 release
	stays_true_for 0.5 on_each is_held a
	is_running "$PID"
	end_commands
	ended_with 0
}

@test "the late undo of an attempt does not release what the next attempt has acquired, and nothing is left" {
	local verb
	start_proxy_to 1
	for verb in run fair read write; do
		# The first request, and the undo behind it, reach server 1 only when the next attempt has acquired the lock.
		proxy_to 1 hold-request '{a}!subscribe' 1
		in_background rlock "$verb" --connect-timeout 500ms -w 30s a -- run_until_ended
		keeps_lock_after_late_undo
		rm end-commands
		wait_until 5 on_each no_keys
	done
}

@test "the late undo of an attempt of a killed renewer does not release what the next renewer has acquired" {
	start_proxy_to 1
	on 2 hold_by_foreign_client a
	proxy_to 1 hold-request '{a}!subscribe' 1
	in_background rlock run --connect-timeout 500ms -w 60s a -- run_until_ended
	# After the first attempt, and its undo, the waiter connects to server 1 again.
	wait_until 20 eval '[ "$(proxy_to 1 count | sed -n "s/.*connections=\([0-9]*\).*/\1/p")" -ge 2 ]'
	wait_until 10 on 2 has_waiters a
	find_renewer "$PID"
	kill -KILL "$RENEWER"
	wait_until 10 has_other_renewer "$PID" "$RENEWER"
	on 2 redis del a >/dev/null
	on 2 redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	keeps_lock_after_late_undo
	wait_until 5 on_each no_keys
}

@test "an undo whose stream was cut before it was sent is sent over another stream at the end of the wait" {
	start_proxy_to 1
	start_proxy_to 3
	on 2 hold_by_foreign_client a
	proxy_to 1 hold-reply ' undo ' 1
	proxy_to 3 hold-reply "$ACQUIRE" 1
	in_background rlock run -t 10m --connect-timeout 20s -w 60s a -- touch begun
	wait_until 10 faults_happened_at 3
	# Now rlock waits for the reply to the undo at server 1, and then sends the one to server 3.
	wait_until 10 faults_happened_at 1
	proxy_to 3 cut
	kill -s TERM "$PID"
	ended_with 143
	wait_until 5 on 3 is_free a
	wait_until 5 on 1 is_free a
	refute file_exists begun
}

# wait_for_fair_lock_at_2: the fair lock "a" is held on server 2 only, until end_commands, and the waiter PID wants it on all servers, on
# server 1 through a proxy. Sets HOLDER.
wait_for_fair_lock_at_2() {
	start_proxy_to 1
	proxy_to 1 log requests
	in_background rlock fair -u "$(urls_of 2)" a -- run_until_ended
	HOLDER=$PID
	wait_until 10 has_child "$PID" run_until_ended
	in_background rlock fair -t 60s --connect-timeout 20s -w 60s a -- touch begun
}

@test "a fair waiter leaves the queue of a server although the network holds its last attempt" {
	wait_for_fair_lock_at_2
	wait_until 10 on_each has_queue_length a 1
	proxy_to 1 hold-request "$ACQUIRE! undo " 1
	wait_until 20 faults_happened_at 1
	kill "$PID"
	ended_with 143
	wait_until 5 on 1 no_keys
	end_commands
	ended_with 0 "$HOLDER"
	wait_until 5 on_each no_keys
	refute file_exists begun
}

# hold_second_attempt NUMBER...: starts the waiter PID for the lock "a". Its first attempt is granted by all servers. Its second one, with
# another hold id, is held by the proxies of these servers. Sets RENEWER.
hold_second_attempt() {
	local number
	for number; do start_proxy_to "$number"; done
	proxy_to "$1" log requests
	on 2 hold_by_foreign_client a
	in_background rlock run -t 60s --connect-timeout 20s -w 60s a -- sh -c 'touch begun; exec run_until_ended'
	wait_until 10 on 2 has_waiters a
	on 2 replace_renewer
	find_renewer "$PID"
	stop_waiters "$PID"
	find_other_attempt requests
	for number; do proxy_to "$number" hold-request "$OTHER_ATTEMPT" 1; done
	on 2 release_by_foreign_client a
	continue_waiters "$PID"
	for number; do wait_until 10 faults_happened_at "$number"; done
}

@test "a second attempt without a reply is undone together with the first one, over the same stream" {
	hold_second_attempt 1
	# Now server 1 can be reached over this stream only.
	proxy_to 1 refuse on
	run_waiter_in_real_time "$PID"
	kill "$PID"
	ended_with 143
	on 1 is_held a
	proxy_to 1 release
	wait_until 5 on_each no_keys
	refute file_exists begun
}

@test "a fair waiter whose second attempt got no reply leaves the queue that the undo of the first one has joined again" {
	wait_for_fair_lock_at_2
	wait_until 10 on 2 has_queue_length a 1
	on 2 replace_renewer
	stop_waiters "$PID"
	find_other_attempt requests
	proxy_to 1 hold-request "$OTHER_ATTEMPT" 1
	end_commands
	ended_with 0 "$HOLDER"
	continue_waiters "$PID"
	wait_until 10 faults_happened_at 1
	kill "$PID"
	ended_with 143
	wait_until 5 on_each no_keys
	refute file_exists begun
}

@test "the earlier hold of a killed renewer is undone by the next one, also after the hold id was changed" {
	hold_second_attempt 1
	wait_until 5 on 2 has_hold_count a 2
	kill -KILL "$RENEWER"
	wait_until 20 has_child "$PID" run_until_ended
	end_commands
	ended_with 0
	wait_until 5 on_each no_keys
}

@test "what a killed renewer was granted goes to the next one, and to no other waiter in between" {
	local number waiter
	hold_second_attempt 1 2 3
	waiter=$PID
	in_background rlock run -u "$(urls_of 1)" -u "$(urls_of 2)" -u "$(urls_of 3)" -w 60s a -- touch between
	wait_until 10 on 2 has_waiters a
	pause_for 0.5
	# The other waiter is faster.
	for number in 1 2 3; do proxy_to "$number" delay 200; done
	find_renewer "$waiter"
	kill -KILL "$RENEWER"
	wait_until 20 has_child "$waiter" run_until_ended
	refute file_exists between
	end_commands
	ended_with 0 "$waiter"
	ended_with 0
	wait_until 5 on_each no_keys
}

@test "the earlier hold of a killed renewer is undone by rlock on two servers although the third one is frozen" {
	hold_second_attempt 1
	wait_until 5 on 2 has_hold_count a 2
	kill -STOP "$PID"
	kill -KILL "$RENEWER"
	freeze_server 1
	kill -TERM "$PID"
	kill -CONT "$PID"
	ended_with 143
	on 2 no_keys
	on 3 no_keys
	thaw_server 1
	wait_until 5 on 1 no_keys
}

@test "the earlier hold of a killed renewer is undone by rlock when a signal has ended the wait" {
	hold_second_attempt 1
	wait_until 5 on 2 has_hold_count a 2
	kill -STOP "$PID"
	kill -KILL "$RENEWER"
	kill -TERM "$PID"
	kill -CONT "$PID"
	ended_with 143
	wait_until 5 on_each no_keys
}
