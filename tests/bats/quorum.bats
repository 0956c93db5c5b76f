#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers, some of which need not agree (--quorum): acquired, waited for, re-entered, renewed and released while a
# minority of them is down, frozen, empty or denies; lost with a majority; never held by two; and recently restarted servers, which do
# not count. servers.bats covers locks that all servers must grant.

load ../lib/usual
load ../lib/quorum
load ../lib/clocks
load ../lib/proxying

# A server that has run for a shorter time than the lease does not count. So let the servers become 10 s old, and use leases of 9
# s or less. take_servers gives tests servers from number 4 on.
setup_file() {
	local number
	start_warm_servers 28
	for number in {1..28}; do wait_until 20 is_older "$number" 10; done
}

# conf_for NUMBER...: writes a configuration file with these servers and quorum = majority, and prints its path. That quorum
# applies only to the servers in the file.
conf_for() {
	local file="$BATS_TEST_TMPDIR/conf-$*"
	printf '%s\n' "url = $(urls_of "$@")" 'quorum = majority' 'ttl = 9s' 'connect-timeout = 20s' >"$file"
	echo "$file"
}

# use_servers NUMBER...: replaces that of servers.bash, and names the servers in a configuration file.
use_servers() {
	SERVERS=("$@")
	RLOCK_CONFIG=$(conf_for "$@")
	export RLOCK_CONFIG
	unset RLOCK_URL
}

# make_unreachable NUMBER: from now on the URL of this server leads to a socket that does not exist.
make_unreachable() {
	VIA[$1]=unix://$BATS_TEST_TMPDIR/nobody-$1.sock
	use_servers "${SERVERS[@]}"
}

# waits_for_none COMMAND [ARG...]: COMMAND must not wait for a server that does not answer. That would take 20 s.
waits_for_none() {
	takes_less_than 15 "$@"
}

# ---- acquired under contention ----

# has_evaluated_more NUMBER COUNT: whether that server has evaluated more than COUNT scripts.
has_evaluated_more() {
	[ "$(on "$1" calls_of evalsha)" -gt "$2" ]
}

# A command for sh: ends when the server at this socket has evaluated another script.
UNTIL_NEXT_SCRIPT='calls() { ask_redis "$0" info commandstats | sed -n "s/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p"; }
	before=$(calls)
	touch waits
	while [ "$(calls)" = "$before" ]; do sleep 0.01; done'

# has_one_hold: whether each server has one hold, and it is the same on all.
has_one_hold() {
	[[ $(for number in "${SERVERS[@]}"; do on "$number" redis --raw hkeys 'rlock_holds:{a}'; done | uniq -c) =~ ^\ *3\ [0-9a-f]+$ ]]
}

# Another caller holds the lock only on the third server. Our caller must begin within a second after that, and the other one must end
# within a quarter of a second after the third server has refused our caller: then our caller still asks it again. So each starts or ends
# as soon as it sees the other one, with real-time priority if possible. On a busy machine that may need several tries.
@test "a lock that a majority granted is soon acquired on the server where another caller was faster" {
	local verb completed other ours real_time=()
	! chrt --rr 1 true 2>/dev/null || real_time=(chrt --rr 1)
	for verb in run fair wlock; do
		completed=0
		for _ in {1..20}; do
			# With a lease of 30 s the first renewal comes only after 10 s. It would also acquire the lock on the third
			# server.
			in_background "${real_time[@]}" sh -c 'until [ -e waits ]; do sleep 0.01; done; exec "$@"' sh \
				rlock "$verb" -t 30s a -- wait_until_true test -e end-ours
			ours=$PID
			in_background "${real_time[@]}" env -u RLOCK_CONFIG "RLOCK_URL=$(urls_of 3)" rlock "$verb" -t 30s a -- \
				sh -c "$UNTIL_NEXT_SCRIPT" "$(socket_of 3)"
			other=$PID
			ended_with 0 "$other"
			! BUSY_FACTOR=1 wait_until 4 has_one_hold || completed=1
			touch end-ours
			ended_with 0 "$ours"
			rm end-ours waits
			[ "$completed" = 0 ] || break
		done
		assert_equal "$completed" 1
	done
}

# ---- acquired while a minority is down or denies ----

@test "one server of three that is down or frozen delays no call" {
	make_unreachable 2
	waits_for_none run -0 rlock run a b -- ask_redis "$SERVER_SOCKET" exists a b
	assert_output 2
	has_keys_only_on 2
	VIA=()
	use_servers 1 2 3
	freeze_server 2
	waits_for_none run -7 rlock fair -n a -- sh -c 'exit 7'
	# -v must call the last request a release, although rlock may also be queued on the frozen server.
	waits_for_none run -0 rlock run -v a -- true
	assert_line --regexp ': asking to release'
	has_keys_only_on 2
	thaw_server 2
	# When the frozen server continues, nothing of the lock may be left there.
	wait_until 5 on_each no_keys
}

# keep_beside_silent_server VERB: the command ends immediately, and --at-least keeps the lock, while server 2 is silent. Server 2
# carries out the requests only after that.
keep_beside_silent_server() {
	local evaluated
	evaluated=$(on 2 calls_of evalsha)
	freeze_server 2
	run -0 rlock "$1" --at-least 1h a -- true
	thaw_server 2
	wait_until 10 has_evaluated_more 2 $((evaluated + 1))
}

@test "--at-least leaves the caller in no fair queue of a server that was silent, and where another owner has the lock" {
	RLOCK_CONFIG=$(conf_for 2) rlock lock --owner other -l 60s a
	RLOCK_CONFIG=$(conf_for 2) run_timed_out 75 rlock fair -w 1s a -- true
	keep_beside_silent_server fair
	wait_until 5 on 2 redis_says 0 exists 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}' 'rlock_waiters:{a}'
	on 1 is_kept a
	on 3 is_kept a
}

@test "--at-least also keeps the lock on a server that was silent, and where the lock was free" {
	local verb
	for verb in run fair read write; do
		on_each redis flushall >/dev/null
		# This loads the scripts of the verb into all servers.
		rlock "$verb" --quorum all a -- true
		keep_beside_silent_server "$verb"
		wait_until 5 on_each is_kept a
	done
}

# is_kept NAME: whether the lock has a TTL of about an hour.
is_kept() {
	(($(redis pttl "$1") > 3500000))
}

@test "servers whose memory is full count as servers that answered" {
	local number
	take_servers 3
	for number in "${SERVERS[@]}"; do on "$number" redis config set maxmemory 1; done
	run_counting_all 69 '3 of 3 servers' rlock run a -- touch ran
	assert_one_line '^rlock: a: quorum not reached: 3 of 3 servers answered, of which 3 denied the request, and 2 are needed; .*memory is full'
	for number in "${SERVERS[@]}"; do on "$number" redis config set maxmemory 0; done
	[ ! -e ran ]
}

@test "with fewer servers than the quorum rlock exits with 69, immediately or at the end of --wait, and leaves nothing" {
	take_servers 4
	make_unreachable "${SERVERS[0]}"
	waits_for_none run -0 rlock run --quorum 3 a -- true
	run_counting_all 69 '3 of 4 servers' rlock run --quorum 4 a -- touch ran
	assert_one_line '^rlock: a: quorum not reached: 3 of 4 servers answered, and 4 are needed; '
	make_unreachable "${SERVERS[1]}"
	waits_for_none run_counting_all 69 '2 of 4 servers' rlock run a -- touch ran
	assert_one_line '^rlock: a: quorum not reached: 2 of 4 servers answered, and 3 are needed; '
	run_timed_out 69 rlock fair -w 1s a -- touch ran
	on "${SERVERS[2]}" no_keys
	on "${SERVERS[3]}" no_keys
	[ ! -e ran ]
}

@test "one server with another password is ignored; with two of them rlock exits with 77" {
	take_servers 3
	on "${SERVERS[1]}" redis config set requirepass s3cr3t
	run -0 rlock run -t 9s a -- sleep 7
	assert_output ''
	on "${SERVERS[0]}" redis config set requirepass s3cr3t
	run -77 rlock run a -- touch ran
	assert_one_line "^rlock: a: unix://$(socket_of "${SERVERS[0]}")[^ ]*: .*password"
	[ ! -e ran ]
	REDISCLI_AUTH=s3cr3t on_each no_keys 2>/dev/null
}

# ---- exclusion ----

@test "a lock held on a majority excludes callers that name the servers in any order, also with one server down" {
	local gone
	hold_on_each a
	for gone in 0 1 3; do
		VIA=()
		[ $gone = 0 ] || make_unreachable $gone
		RLOCK_CONFIG=$(conf_for 3 1 2) run_counting_all 75 '' rlock run -n a -- touch ran
	done
	VIA=()
	run -75 rlock run --config <(echo) -n -u "$(urls_of 1)" a -- touch ran
	RLOCK_CONFIG=$(conf_for 1 2 3) run_timed_out 75 rlock run --quorum all -w 1s a -- touch ran
	assert_one_line '^rlock: a: .*held by '
	[ ! -e ran ]
	end_commands
	ended_with 0
	on_each no_keys
}

@test "a lock that another owner holds on one server of three excludes nobody, and is not touched" {
	on 2 hold_by_foreign_client a
	waits_for_none run -0 rlock run a -- true
	[ "$(on 2 redis hkeys a)" = 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 ]
	[ "$(on 2 redis dbsize)" = 1 ]
	on 2 redis del a
	on_each no_keys
}

# A server that answers 0.1 s later than the majority is left only at the release: then try again.
@test "a fair waiter that a majority grants the lock leaves the queue of the server where another owner holds it" {
	local tries has_left=no
	for ((tries = 5; tries > 0; tries--)); do
		on 2 hold_by_foreign_client a
		rlock lock --owner x --lease 9s a
		in_background rlock fair -w 60s a -- run_until_ended
		wait_until 5 on 2 redis_says 1 exists 'redisson_lock_queue:{a}'
		rlock unlock --owner x a
		wait_until 10 has_child "$PID" run_until_ended
		! BUSY_FACTOR=1 wait_until 3 on 2 redis_says 0 exists 'redisson_lock_queue:{a}' || has_left=yes
		end_commands
		ended_with 0
		wait_until 5 on 2 redis_says 0 exists 'redisson_lock_queue:{a}'
		[ "$has_left" = no ] || break
		rm end-commands
	done
	assert_equal "$has_left" yes
}

# late_at_third first|second: starts an rlock PID whose renewer acquires the lock with two attempts, as it has replaced another one. The
# first two servers grant both attempts. The proxy keeps the first or the second one from the third server until both have ended.
late_at_third() {
	start_proxy_to 3
	proxy_to 3 log requests
	on_each hold_by_foreign_client a
	in_background rlock run -t 9s -w 60s a -- run_until_ended
	wait_until 20 on_each has_waiters a
	on 3 replace_renewer
	# Let the first attempt find the lock free on all servers.
	stop_waiters "$PID"
	find_other_attempt requests
	case $1 in
	first) proxy_to 3 hold-request "$ACQUIRE! undo " 1 ;;
	second) proxy_to 3 hold-request "$OTHER_ATTEMPT" 1 ;;
	esac
	on_each redis del a >/dev/null
	on_each redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	continue_waiters "$PID"
	wait_until 20 has_child "$PID" run_until_ended
	faults_happened_at 3
	proxy_to 3 release
}

# The time limits do not grow on a busy machine, since after a lease the hold would be gone anyway.
@test "a grant that was made again with another hold id leaves nothing of the first one on a server that gets that one late" {
	late_at_third first
	end_commands
	ended_with 0
	BUSY_FACTOR=1 wait_until 5 on_each no_keys
}

@test "a grant that was made again with another hold id leaves nothing of the first one on a server that gets the second one late" {
	late_at_third second
	BUSY_FACTOR=1 wait_until 5 on 3 has_hold_count a 1
	end_commands
	ended_with 0
	wait_until 5 on_each no_keys
}

@test "a release that a frozen server does not answer causes no delay, wakes a waiter, and reaches that server later" {
	local holder
	record_stderr rlock run -t 9s --connect-timeout 500ms a -- sh -c 'run_until_ended; exit 7'
	holder=$PID
	wait_until 5 on_each is_held a
	freeze_server 2
	in_background rlock run -w 60s --connect-timeout 500ms a -- touch ran
	wait_until 5 on 3 has_waiters a
	pause_for 0.3
	[ ! -e ran ]
	end_commands
	waits_for_none ended_with 7 "$holder"
	stderr_is_empty
	# Without a message the waiter would try again only at the end of the lease, of which at least two thirds are left.
	wait_until 5 file_exists ran
	ended_with 0
	has_keys_only_on 2
	thaw_server 2
	wait_until 5 on_each no_keys
}

# ---- locks without a command, and nested calls ----

@test "with one server down a script locks, renews and unlocks, its command re-enters the lock, and rlock stop works" {
	local counts='for number in 1 2; do redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" hvals a; done'
	make_unreachable 3
	run -0 bash -c 'rlock lock --pid $$ a && rlock renew --pid $$ a && rlock unlock --pid $$ a && ask_redis "$SERVER_SOCKET" exists a'
	assert_line -n -1 0
	run -0 bash -c 'rlock lock --pid $$ a; exit'
	wait_until 5 has_keys_only_on 3
	run -0 rlock run a -- sh -c "rlock run -n a -- sh -c '$counts'; $counts"
	assert_output $'2\n2\n1\n1'
	has_keys_only_on 3
	hold_in_background a
	run -0 rlock stop a
	ended_with 124
	has_keys_only_on 3
	# The server that was down comes back, empty.
	VIA=()
	use_servers 1 2 3
	run -0 rlock run a -- sh -c '
		redis-cli -s "$BATS_FILE_TMPDIR/3/server/redis.sock" flushall >/dev/null
		rlock run -n a -- rlock run -n a -- sh -c "$1"
		eval "$1"' sh "$counts"
	assert_output $'3\n3\n1\n1'
	on_each no_keys
}

@test "with one server of three frozen renew and unlock of an owner, unlock --force and stop work without delay" {
	rlock lock --owner ci --lease 60s a b
	rlock lock --owner ci --lease 60s c
	hold_in_background d -t 9s
	wait_until 5 on_each is_held d
	freeze_server 2
	waits_for_none run -0 rlock renew --owner ci --lease 60s c
	waits_for_none run -0 rlock unlock --owner ci a b
	waits_for_none run -1 rlock unlock --owner ci a
	waits_for_none run -1 rlock renew --owner another c
	assert_one_line "^rlock: c: not held by owner 'another': held by ci"
	waits_for_none run -0 rlock unlock --force c
	waits_for_none run -1 rlock unlock --force c
	waits_for_none run -0 rlock stop d
	ended_with 124
	has_keys_only_on 2
	thaw_server 2
}

@test "run --owner re-enters the lock that an owner holds on a quorum, and the owner holds it afterwards, with one of three servers frozen" {
	rlock lock --owner ci --lease 1m a
	freeze_server 2
	in_background rlock run -n --owner ci -t 9s a -- run_until_ended
	wait_until 10 has_child "$PID" run_until_ended
	on 1 has_hold_count a 2
	run -0 rlock renew --owner ci --lease 5m a
	run -0 rlock unlock --owner ci a
	on 1 has_hold_count a 1
	run -1 rlock unlock --owner ci a
	rlock lock --owner ci --lease 1m a
	end_commands
	ended_with 0
	on 1 has_hold_count a 1
	on 1 ttl_is_above a 30000
	run -0 rlock unlock --owner ci a
	has_keys_only_on 2
	thaw_server 2
}

@test "a message about a missing quorum says how many of the servers that answered had lost the lock, or are busy" {
	rlock lock --owner ci --lease 9s a
	on 1 redis del a 'rlock_holds:{a}'
	make_unreachable 2
	run_counting_all 69 '2 of 3 servers' rlock renew --owner ci --lease 9s a
	assert_one_line '^rlock: a: quorum not reached: 2 of 3 servers answered, of which 1 had lost the lock, and 2 are needed; '
	on 1 hold_by_foreign_client b
	make_unreachable 3
	run_counting_all 69 '1 of 3 servers' rlock run -n b -- touch ran
	assert_one_line '^rlock: b: quorum not reached: 1 of 3 servers answered, of which 1 is busy, and 2 are needed; '
	[ ! -e ran ]
}

@test "the message names the server of several that denies a right" {
	take_servers 3
	on "${SERVERS[2]}" redis acl setuser default -evalsha -eval
	RLOCK_CONFIG=/dev/null RLOCK_URL=$(urls_of "${SERVERS[@]}") run -77 rlock run a -- touch ran
	assert_one_line "^rlock: a: unix://$(socket_of "${SERVERS[2]}")[^ ]*: .*evalsha"
	[ ! -e ran ]
	on "${SERVERS[2]}" redis acl setuser default +evalsha +eval
}

@test "unlock --force of a lock that one server has lost breaks it on the others, also where all must agree" {
	# First all must agree, which loads the script into each of them.
	rlock lock --owner ci --lease 9s a
	on 1 redis del a 'rlock_holds:{a}'
	RLOCK_CONFIG=/dev/null RLOCK_URL=$(urls_of 1 2 3) run -0 rlock unlock --force a
	on_each no_keys
	# rlock ends 0.1 s after the majority has answered, and the third server may not have got the request by then: try again.
	for _ in 1 2 3; do
		on_each ask_server flushall
		rlock lock --owner ci --lease 9s a
		on 1 redis del a 'rlock_holds:{a}'
		run -0 rlock unlock --force a
		! on_each no_keys || break
	done
	on_each no_keys
}

@test "unlock --force --holder waits for the server that decides when another owner holds the lock on one of the others" {
	rlock lock --owner ci --lease 9s a
	on 2 redis del a 'rlock_holds:{a}'
	on 2 hold_by_foreign_client a
	freeze_server 3
	record_stderr rlock unlock --force --holder ci:0 a
	stays_true_for 0.5 is_running "$PID"
	thaw_server 3
	ended_with 0
	on 1 no_keys
	on 3 no_keys
	on 2 is_held a
}

# ---- held while servers freeze, restart or lose data ----

@test "a lock stays held while one server is frozen, and is acquired again on that one and on a server that lost it" {
	local evaluated number
	# A server that has run for a shorter time than the lease does not count.
	for number in 1 2 3; do wait_until 20 is_older "$number" 16; done
	hold_on_each a -t 15s
	freeze_server 2
	# Without a renewal the command would be terminated after 11 s.
	stays_true_for 12.5 is_running "$PID"
	on 1 ttl_between 1 a 15000
	thaw_server 2
	wait_until 10 on_each is_renewed a 15000
	evaluated=$(on 1 calls_of evalsha)
	freeze_server 3
	on 2 redis del a
	# Keep the third server frozen during a whole attempt to renew, which lasts 1.7 s. Only the first server grants it, and the lock is
	# lost 5 s after its beginning.
	wait_until 10 has_evaluated_more 1 "$evaluated"
	pause_for 1.8
	thaw_server 3
	wait_until 15 on_each is_renewed a 12500
	end_commands
	ended_with 0
	stderr_is_empty
	on_each no_keys
}

@test "all servers can restart one after the other: held locks are acquired again there, and no one else acquires them" {
	local number name
	take_servers 3
	record_stderr rlock wlock -t 9s a b -- run_until_ended
	wait_until 5 on_each is_held b
	for number in "${SERVERS[@]}"; do
		crash_server "$number"
		run_counting_all 75 '' rlock wlock -n -t 2s a -- touch ran
		revive_server "$number"
		run -75 rlock wlock -n -t 1s a -- touch ran
		wait_until 10 on "$number" is_held a
		for name in a b; do
			same_reply_on_all hgetall $name
			same_reply_on_all hkeys "rlock_holds:{$name}"
		done
	done
	run_timed_out 75 rlock wlock -w 1s -t 1s a -- touch ran
	[ ! -e ran ]
	end_commands
	ended_with 0
	stderr_is_empty
	# These servers do not know the script yet. The end of the hold waits for two of them.
	wait_until 15 on_each no_keys
}

@test "a majority with a recently restarted server is not granted until that server has run for the lease" {
	local a b c holder
	take_servers 3
	a=${SERVERS[0]} b=${SERVERS[1]} c=${SERVERS[2]}
	# Let the holder acquire the lock only on a and b: c cannot be reached.
	start_proxy_to "$c"
	proxy_to "$c" refuse on
	in_background rlock run -t 9s a -- run_until_ended
	holder=$PID
	wait_until 5 on "$a" is_held a
	wait_until 5 on "$b" is_held a
	# Use these commands in this order, so that the holder cannot reach c in between.
	proxy_to "$c" blackhole on
	proxy_to "$c" refuse off
	crash_server "$b"
	revive_server "$b"
	VIA=()
	use_servers "$a" "$b" "$c"
	# A caller with a long lease waits as long as that for b, so the refusals do not depend on the time that these calls take.
	run -75 rlock run -t 9m -n a -- touch ran
	run_timed_out 75 rlock run -t 9m -w 1s a -- touch ran
	on "$b" no_keys
	on "$c" no_keys
	# a is frozen. If the restarted b counted, b and c could grant the lock a second time.
	freeze_server "$a"
	run rlock run -t 9m -w 300ms --connect-timeout 200ms a -- touch ran
	[ "$status" = 75 ] || [ "$status" = 69 ]
	[ ! -e ran ]
	thaw_server "$a"
	in_background rlock run -t 9s -w 30s a -- sh -c 'kill -0 "$0" 2>/dev/null && grep -q "State:.[^Z]" "/proc/$0/status" && touch overlap; touch ran' \
		"$(command_of "$holder")"
	ended_with 76 "$holder"
	ended_with 0
	[ -e ran ]
	[ ! -e overlap ]
}

# restart_two: the first and the last of the three servers restart, empty.
restart_two() {
	crash_server "${SERVERS[0]}"
	crash_server "${SERVERS[2]}"
	revive_server "${SERVERS[0]}"
	revive_server "${SERVERS[2]}"
}

@test "a server that has run for less than the lease does not count for a majority, which the message says; it counts where all must agree" {
	not_under_valgrind 'rlock needs half a lease to start'
	take_servers 3
	restart_two
	waits_for_none run -0 rlock run -t 9m --quorum all a -- true
	run_timed_out 75 rlock run -w 1s -t 9m a -- touch ran
	assert_one_line '^rlock: a: .* was started less than a lease ago'
	run -75 rlock run -n -t 9m a -- touch ran
	assert_one_line '^rlock: a: busy: .* was started less than a lease ago'
	run -75 rlock run -nq -t 9m a -- touch ran
	assert_output ''
	[ ! -e ran ]
	# Restart the two servers again, since they may have run for as long as this lease already.
	restart_two
	run -0 rlock run -v -w 60s -t 15s a -- true
	assert_line --regexp '^rlock: a: waiting: [^ ]+ was started less than a lease ago$'
	wait_until 10 on_each no_keys
}

@test "a lock deleted on one server of three stays held; deleted on two, or with two servers killed, it is lost" {
	local lose why
	take_servers 3
	while IFS='|' read -r lose why; do
		rm -f family
		hold_with_family a -t 9s
		wait_until 5 on_each is_held a
		on "${SERVERS[1]}" redis del a
		# The renewal that finds the lock deleted acquires it again.
		wait_until 8 on "${SERVERS[1]}" is_held a
		family_runs
		# Wait until the lock has just been renewed, so that no renewal comes between the two commands: it would restore
		# what the first one has deleted.
		wait_until 5 on_each is_renewed a 9000
		without_renewal "$PID" eval "$lose"
		takes_less_than 10 ended_with 76
		family_is_gone
		stderr_is_one_line "^rlock: a: lock lost at [0-9T:+-]+: $why.*; terminating the command; "
		wait_until 5 on "${SERVERS[1]}" no_keys
	done <<-'END'
		on "${SERVERS[0]}" redis del a; on "${SERVERS[2]}" redis del a|it expired or was deleted
		crash_server "${SERVERS[0]}"; crash_server "${SERVERS[2]}"|not renewed for [0-9.]+m?s: .*[01] of 3 servers
	END
}

@test "a lock that a server has lost is not acquired there again while another owner holds it" {
	hold_on_each a -t 6s
	# Use one script: between two commands a renewal could acquire the lost lock again.
	on 2 redis eval 'redis.call("DEL", KEYS[1]) redis.call("HSET", KEYS[1], ARGV[1], 1)
		redis.call("PEXPIRE", KEYS[1], 30000)' 1 a 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1
	# A renewal is due after 2 s.
	pause_for 2.5
	end_commands
	ended_with 0
	stderr_is_empty
	assert_equal "$(on 2 redis hkeys a)" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1
}


# Two servers are frozen at first, so that the one whose clock is ahead answers first. Its reply determines since when the writer
# waits.
@test "a waiting writer comes before later readers although the clock of one server is an hour ahead" {
	local writer reader
	needs_wrong_clocks
	echo 3600 >off
	(
		follow_clock_file "$PWD/off"
		export "${CLOCK[@]:1}"
		start_server_number 29
	)
	start_server_number 30
	start_server_number 31
	wait_until 20 is_older 31 5
	use_servers 29 30 31
	assert [ "$(($(on 29 server_ms) - $(on 30 server_ms)))" -gt 3000000 ]
	# Two servers are frozen while this reader holds the lock: its lease must be long, but the servers have run for 5 s only.
	in_background rlock read --quorum all -t 60s a -- run_until_ended
	wait_until 10 on_each is_held a
	freeze_server 30
	freeze_server 31
	in_background rlock write -t 5s -w 60s a -- sh -c 'echo writer >>order'
	writer=$PID
	wait_until 10 on 29 redis_says 1 exists 'rlock_writer:{a}'
	thaw_server 30
	thaw_server 31
	wait_until 10 on_each has_waiters a 1
	# Delete the reservation, as another writer does that acquires the lock. The waiting writer must make the reservation
	# again.
	on_each redis del 'rlock_writer:{a}' >/dev/null
	wait_until 10 on_each redis_says 1 exists 'rlock_writer:{a}'
	run -75 rlock read -t 5s -n a -- true
	in_background rlock read -t 5s -w 60s a -- sh -c 'echo reader >>order'
	reader=$PID
	wait_until 10 on_each has_waiters a 2
	end_commands
	ended_with 0 "$writer"
	ended_with 0 "$reader"
	assert_equal "$(paste -sd ' ' order)" 'writer reader'
}
