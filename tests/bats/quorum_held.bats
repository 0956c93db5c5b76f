#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers of which some need not agree: held on while a minority of them is gone, frozen or empty, lost
# with a majority; and which servers are too young to count.

# SERVERS and VIA are servers.bash's.
# shellcheck disable=SC2034,SC2154

load ../lib/usual
load ../lib/agreeing
load ../lib/quorum

setup_file() { start_old_servers 15; }

# ---- held on ----

@test "a lock is renewed on the servers that are left while one is frozen, and on that one when it goes on" {
	hold_on_each a -t 3s
	freeze_server 2
	stays 3.3 is_running "$PID"
	on 1 ttl_between 1 a 3000
	thaw_server 2
	wait_until 10 on_each is_renewed a 3000
	freeze_server 1
	stays 3.3 is_running "$PID"
	let_go
	waits_for_none ended_with 0
	said_nothing
	thaw_server 1
	wait_until 9 on_each no_keys
}

@test "all servers can be restarted one after the other while a lock is held, and no other gets it" {
	local number
	take_servers 3
	hold_on_each a -t 2s
	holder=$PID
	for number in "${SERVERS[@]}"; do
		crash_server "$number"
		run -75 rlock run -n -t 2s a -- touch ran
		revive_server "$number"
		run -75 rlock run -n -t 1s a -- touch ran
		wait_until 5 on "$number" is_held a
	done
	is_running "$holder"
	run -75 rlock run -w 1s -t 1s a -- touch ran
	[ ! -e ran ]
	let_go
	ended_with 0 "$holder"
	said_nothing
	on_each no_keys
}

@test "a majority is not granted while one of its servers that lost the lock is young, and granted when that one is old enough" {
	take_servers 3
	local a=${SERVERS[0]} b=${SERVERS[1]} c=${SERVERS[2]}
	# The holder has it on a and b: c is not to be reached.
	start_proxy_to "$c"
	proxy_to "$c" refuse on
	hold_without "$c" a -t 9s
	holder=$PID
	proxy_to "$c" refuse off
	proxy_to "$c" blackhole on
	crash_server "$b"
	revive_server "$b"
	VIA=()
	use_servers "$a" "$b" "$c"
	run -75 rlock run -t 9s -n a -- touch ran
	assert_output ''
	run -75 rlock run -t 9s -w 200ms a -- touch ran
	on "$b" no_keys
	on "$c" no_keys
	# Of b and c alone, as a is frozen, it could be acquired twice.
	freeze_server "$a"
	run rlock run -t 9s -w 300ms --connect-timeout 200ms a -- touch ran
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

@test "a server that was started less than a lease ago does not count for a majority, which is told, and counts for all" {
	not_under_valgrind 'half a lease is over when rlock has begun'
	take_servers 3
	crash_server "${SERVERS[0]}"
	crash_server "${SERVERS[2]}"
	revive_server "${SERVERS[0]}"
	revive_server "${SERVERS[2]}"
	waits_for_none run -0 rlock run -t 9m --quorum all a -- true
	run -75 rlock run -w 300ms -t 9s a -- touch ran
	assert_one_line '^rlock: a: .* was started less than a lease ago'
	run -75 rlock run -n -t 9s a -- touch ran
	assert_one_line '^rlock: a: busy: .* was started less than a lease ago'
	run -75 rlock run -nq -t 9s a -- touch ran
	assert_output ''
	[ ! -e ran ]
	on_each no_keys
	run -0 rlock run -v -w 20s -t 3s a -- true
	assert_line --regexp '^rlock: a: waiting: [^ ]+ was started less than a lease ago$'
	refute_line --regexp 'waiting for'
	on_each no_keys
}

@test "two of three servers are killed: the command is stopped, 76" {
	take_servers 3
	hold_with_family a -t 3s
	wait_until 6 on_each is_renewed a 3000
	crash_server "${SERVERS[0]}"
	crash_server "${SERVERS[2]}"
	ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+m?s: .*1 of 3 servers .+: terminating the command: before you run it again, look at what is half done$'
	wait_until 5 on "${SERVERS[1]}" no_keys
}

delete_on_two() {
	on 2 redis del a
	on 3 redis del a
}

@test "a lock that is deleted on one of three servers is held on, on two at a time it is lost" {
	hold_with_family a -t 3s
	wait_until 5 on_each is_held a
	on 2 redis del a
	stays 1.5 on 1 is_held a
	on 3 is_held a
	family_runs
	# A renewal between the two would bring back what the first one took away.
	wait_until 5 on_each is_renewed a 3000
	before_renewal "$PID" delete_on_two
	took_less 10 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	wait_until 5 on_each no_keys
}

@test "a lock that is deleted on one of three servers while another one is frozen is held on" {
	hold_on_each a -t 6s
	wait_until 5 on_each is_renewed a 4000
	freeze_server 3
	on 2 redis del a
	# The first attempt to renew begins after 2 s, and takes one.
	let_pass 3
	thaw_server 3
	wait_until 15 on_each is_renewed a 5000
	let_go
	ended_with 0
	said_nothing
	on_each no_keys
}

@test "a server that lost a lock has it again with the next renewal, and of several names" {
	local verb
	for verb in run wlock; do
		rm -f let-go
		listen_to rlock $verb -t 3s a b -- until_let_go
		wait_until 5 on_each is_held b
		on 2 redis flushall
		wait_until 5 on 2 is_held a
		for name in a b; do
			assert_equal "$(on 2 redis hgetall $name | LC_ALL=C sort)" "$(on 1 redis hgetall $name | LC_ALL=C sort)"
			assert_equal "$(on 2 redis hkeys "rlock_holds:{$name}")" "$(on 1 redis hkeys "rlock_holds:{$name}")"
		done
		on 2 ttl_between 1 a 3000
		let_go
		ended_with 0
		said_nothing
		on_each no_keys
	done
}

@test "a lock that a server lost is not acquired there again when another owner holds it now" {
	hold_on_each a -t 3s
	# At once: else a renewal may come between, which finds the lock lost, and acquires it.
	on 2 redis eval 'redis.call("DEL", KEYS[1]) redis.call("HSET", KEYS[1], ARGV[1], 1)
		redis.call("PEXPIRE", KEYS[1], 30000)' 1 a 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1
	let_pass 1.5
	assert_equal "$(on 2 redis hkeys a)" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1
	is_running "$PID"
	let_go
	ended_with 0
	said_nothing
	assert_equal "$(on 2 redis hkeys a)" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1
}

# ---- stop ----

@test "a holder of a lock on several servers is stopped by a request to those that are left" {
	hold_on_each b -t 3s
	freeze_server 2
	run -0 rlock stop b
	thaw_server 2
	ended_with 124
	# A request to one that does not decide is read, too.
	hold_on_each c -t 3s
	run -0 rlock stop -u "$(urls_of 3)" c
	ended_with 124
	wait_until 9 on_each no_keys
	# One hold, which is named once.
	run -0 rlock run --at-least 60s a -- true
	run -75 rlock stop a
	assert_line --partial 'cannot be asked: --at-least keeps it'
	assert_equal "${#lines[@]}" 1
}
