#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers of which some need not agree: acquired, waited for, re-entered and released while a minority of them
# is gone, frozen or refuses, and never held by two. How it is held on: quorum_held.bats; what all of them must grant:
# servers.bats.

# VIA is servers.bash's.
# shellcheck disable=SC2034

load ../lib/usual
load ../lib/proxying
load ../lib/agreeing
load ../lib/quorum

# From 4 on for take_servers.
setup_file() { start_old_servers 13; }

# ---- acquired without some ----

@test "one of three servers that is not there, or frozen, delays no call" {
	is_nowhere 2
	waits_for_none run -0 rlock run a b -- ask_redis "$SERVER_SOCKET" exists a b
	assert_output 2
	waits_for_none run -0 rlock write -n a -- true
	assert_output ''
	nothing_but 2
	VIA=()
	use_servers 1 2 3
	freeze_server 2
	waits_for_none run -7 rlock fair -n a -- sh -c 'exit 7'
	waits_for_none run -0 rlock read a -- true
	# Its release may find us in the queue of that one, and is called a release all the same.
	run -0 rlock run -v a -- true
	assert_line --regexp ': asking to release'
	nothing_but 2
	thaw_server 2
	# It has nothing when it goes on.
	wait_until 5 on_each no_keys
}

@test "two of three servers that are not there: 69 at once, or at the end of the wait time, and nothing is left" {
	is_nowhere 1
	is_nowhere 2
	waits_for_none run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: quorum not reached: 1 of 3 servers answered, and 2 are needed: '
	run -69 rlock fair -w 1s a -- touch ran
	on 3 no_keys
	[ ! -e ran ]
}

@test "a quorum of its own number: with as many as that the lock is acquired, with fewer it is not" {
	take_servers 4
	is_nowhere "${SERVERS[0]}"
	waits_for_none run -0 rlock run --quorum 3 a -- true
	run -69 rlock run --quorum 4 a -- touch ran
	assert_one_line '^rlock: a: quorum not reached: 3 of 4 servers answered, and 4 are needed: '
	nothing_but "${SERVERS[0]}"
	on "${SERVERS[1]}" held_by_stranger a
	run -75 rlock run --quorum 3 -n a -- touch ran
	[ ! -e ran ]
	on "${SERVERS[2]}" no_keys
	on "${SERVERS[3]}" no_keys
}

@test "one server's replies are lost, or garbage: the lock is acquired, once, and nothing is left" {
	local fault
	start_proxy_to 2
	for fault in 'drop-reply ACQUIRE' 'cut-before RELEASE' 'hold-reply ACQUIRE' 'garbage *'; do
		case $fault in
		*ACQUIRE) proxy_to 2 "${fault% *}" "$ACQUIRE" 1000 ;;
		*RELEASE) proxy_to 2 "${fault% *}" "$RELEASE" 1000 ;;
		*) proxy_to 2 "${fault% *}" '*' 1000 ;;
		esac
		run -7 rlock run -n -t 3s a -- sh -c 'ask_redis "$SERVER_SOCKET" hvals a; exit 7'
		assert_output 1
		nothing_but 2
		proxy_to 2 pass
		wait_until 8 on_each no_keys
	done
}

@test "one server that wants another password is done without, two of them are refused with 77" {
	take_servers 3
	on "${SERVERS[1]}" redis config set requirepass s3cr3t
	run -0 rlock run -t 1s a -- sleep 1.2
	assert_output ''
	run -0 rlock run -n a -- true
	assert_output ''
	REDISCLI_AUTH=s3cr3t on_each no_keys 2>/dev/null
	on "${SERVERS[0]}" redis config set requirepass s3cr3t
	run -77 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*password'
	[ ! -e ran ]
	on "${SERVERS[2]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[0]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[1]}" no_keys
}

# ---- one at a time ----

@test "a majority that is held keeps all out, in whatever order they name the servers, with one gone or not" {
	local holder gone
	hold_on_each a
	holder=$PID
	for gone in 0 1 3; do
		VIA=()
		[ $gone = 0 ] || is_nowhere $gone
		RLOCK_CONFIG=$(conf_for 3 1 2) run -75 rlock run -n a -- touch ran
		assert_output ''
	done
	VIA=()
	run -75 rlock run --config <(echo) -n -u "$(urls_of 1)" a -- touch ran
	RLOCK_CONFIG=$(conf_for 1 2 3) run -75 rlock run --quorum all -w 200ms a -- touch ran
	assert_one_line '^rlock: a: .*held by '
	[ ! -e ran ]
	let_go
	ended_with 0 "$holder"
	on_each no_keys
}

@test "what another owner holds on one of three servers keeps no call out, and is left alone" {
	on 2 held_by_stranger a
	waits_for_none run -0 rlock run a -- true
	assert_output ''
	[ "$(on 2 redis hkeys a)" = 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 ]
	[ "$(on 2 redis dbsize)" = 1 ]
	on 2 redis del a
	on_each no_keys
}

@test "a waiter is woken by the release of a majority, with one server gone or frozen" {
	local how
	for how in nowhere frozen; do
		rm -f let-go ran
		case $how in
		nowhere) is_nowhere 2 ;;
		frozen) VIA=() && use_servers 1 2 3 && freeze_server 2 ;;
		esac
		listen_to rlock run -t 9s --connect-timeout 500ms a -- until_let_go
		holder=$PID
		wait_until 5 on 1 is_held a
		wait_until 5 on 3 is_held a
		in_background rlock run --connect-timeout 500ms a -- touch ran
		wait_until 5 on 3 has_waiters a
		let_pass 0.3
		[ ! -e ran ]
		let_go
		# By itself it would look at the end of the lease, of which two thirds are left at least.
		wait_until 5 file_exists ran
		ended_with 0
		ended_with 0 "$holder"
		thaw_server 2
		wait_until 5 on_each no_keys
	done
}

@test "shells take their turns, one at a time, while servers freeze, cut, crash and processes are killed" {
	local seconds=6 end number shell pids=() bad=0
	[ -z "${RLOCK_LONG_TESTS:-}" ] || seconds=300
	take_servers 3
	end=$(($(now_ms) + seconds * 1000))
	for shell in 1 2 3 4 5; do
		mapfile -t SERVERS < <(shuf -e "${SERVERS[@]}")
		in_background env RLOCK_CONFIG="$(conf_for "${SERVERS[@]}")" bash -c '
			while ((${EPOCHREALTIME/./} < $1 * 1000)); do
				status=0
				rlock run -t 3s --connect-timeout 300ms -w 20s a -- shared_turn write || status=$?
				echo "$status" >>statuses
			done' bash "$end"
		pids+=("$PID")
	done
	# One whose rlock is killed again and again, with its command in it.
	in_background bash -c '
		while ((${EPOCHREALTIME/./} < $1 * 1000)); do
			rlock run -t 3s --connect-timeout 300ms -w 20s a -- shared_turn write &
			read -r -t 0.0$((RANDOM % 10)) <> <(:) || :
			kill -KILL $!
			wait
			read -r -t 0.2 <> <(:) || :
		done 2>/dev/null' bash "$end"
	pids+=("$PID")
	while (($(now_ms) < end)); do
		bad=${SERVERS[RANDOM % 3]}
		case $((RANDOM % 4)) in
		0)
			freeze_server "$bad"
			let_pass 0.$((RANDOM % 9 + 1))
			thaw_server "$bad"
			;;
		1)
			on "$bad" redis client kill type normal >/dev/null
			on "$bad" redis client kill type pubsub >/dev/null
			on "$bad" redis script flush >/dev/null
			;;
		2)
			crash_server "$bad"
			let_pass 0.$((RANDOM % 9))
			revive_server "$bad"
			# Another one may lose its data when this one counts again.
			wait_until 8 is_older "$bad" 4
			;;
		3) let_pass 0.3 ;;
		esac
	done
	for number in "${pids[@]}"; do
		wait_until 25 is_gone "$number"
	done
	[ ! -e wrong ] || fail "$(head wrong)"
	sort statuses | uniq -c
	# One may be stopped, or not get in, for what was done to the servers; but not one of five.
	(($(grep -vcx 0 statuses) * 5 <= $(wc -l <statuses)))
	(($(wc -l <turns) > seconds)) || fail "$(wc -l <turns) turns"
	run -0 rlock run -t 1s -w 9s a -- true
	wait_until 20 leaves_nothing
}

# A waiter that was killed, and could not leave a server that was away, is in the queue there until a release comes by.
leaves_nothing() {
	rlock run -t 1s -w 9s a -- true && on_each no_keys
}

# ---- released ----

@test "a release that one of three servers does not answer delays nothing, and arrives when it goes on" {
	listen_to rlock run -t 9s a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	freeze_server 2
	let_go
	waits_for_none ended_with 7
	said_nothing
	nothing_but 2
	thaw_server 2
	wait_until 5 on_each no_keys
}

# ---- without a command, and within each other ----

@test "a script locks, renews and unlocks on a majority, with one server gone" {
	is_nowhere 3
	run -0 bash -c '
		rlock lock --pid $$ a || exit
		ask_redis "$SERVER_SOCKET" hvals a
		rlock renew --pid $$ a || exit
		rlock lock --pid $$ a || exit
		ask_redis "$SERVER_SOCKET" hvals a
		rlock unlock --pid $$ a || exit
		rlock unlock --pid $$ a || exit
		ask_redis "$SERVER_SOCKET" exists a'
	assert_line -n 0 1
	assert_line -n -2 2
	assert_line -n -1 0
	nothing_but 3
	run -0 bash -c 'rlock lock --pid $$ a; exit'
	wait_until 5 nothing_but 3
	wait_until 5 no_hold_files
}

@test "a command within re-enters the lock, with one server gone, or that came back empty" {
	local counts='for number in 1 2 3; do
		redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" hvals a
	done'
	is_nowhere 3
	run -0 rlock run a -- sh -c "rlock run -n a -- sh -c '$counts'; $counts"
	assert_output $'2\n2\n\n1\n1'
	nothing_but 3
	# shellcheck disable=SC2034 # urls_of uses it
	VIA=()
	use_servers 1 2 3
	run -0 rlock run a -- sh -c '
		redis-cli -s "$BATS_FILE_TMPDIR/3/server/redis.sock" flushall >/dev/null
		rlock run -n a -- rlock run -n a -- sh -c "$1"
		eval "$1"' sh "${counts/1 2 3/1 2}"
	assert_output $'3\n3\n1\n1'
	on_each no_keys
}
