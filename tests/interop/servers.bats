#!/usr/bin/env bats
# One lock on several servers: a MultiLock or a RedLock of Java's, and several URLs of rlock's.

load interop
load turns

COUNT=3

# ---- servers ----

setup_file() {
	local i
	for ((i = 1; i <= COUNT; i++)); do
		mkdir "$BATS_FILE_TMPDIR/$i"
		start_tcp_server "$BATS_FILE_TMPDIR/$i"
		echo "$SERVER_PID" >"$BATS_FILE_TMPDIR/$i/pid"
		echo "$SERVER_URL" >"$BATS_FILE_TMPDIR/$i/url"
	done
	on 1
	start_common_java
}

teardown_file() {
	local i
	stop_java
	for ((i = 1; i <= COUNT; i++)); do
		on "$i"
		stop_server
	done
}

# on NUMBER: helpers speak to this server from now on.
on() {
	SERVER_DIR=$BATS_FILE_TMPDIR/$1/server
	SERVER_SOCKET=$SERVER_DIR/redis.sock
	SERVER_PID=$(cat "$BATS_FILE_TMPDIR/$1/pid")
	SERVER_URL=$(url "$1")
	export SERVER_DIR SERVER_SOCKET SERVER_PID SERVER_URL
}

url() {
	cat "$BATS_FILE_TMPDIR/$1/url"
}

# on_each COMMAND [ARG...]: true of every server.
on_each() {
	local i status=0
	for ((i = 1; i <= COUNT; i++)); do
		on "$i"
		"$@" || {
			echo "not so on server $i: $*" >&2
			status=1
		}
	done
	on 1
	return $status
}

# ---- instead of what is for one server ----

start_common_java() {
	start_java java 30000 "$(url 1)" "$(url 2)" "$(url 3)"
}

start_mortal_java() {
	start_java mortal 3000 "$(url 1)" "$(url 2)" "$(url 3)"
}

nothing_is_left() {
	on_each wait_until 20 no_keys
}

# A waiter for several servers waits at one that was busy, whichever.
listeners() {
	local i count most=0
	for ((i = 1; i <= COUNT; i++)); do
		count=$(redis-cli -s "$BATS_FILE_TMPDIR/$i/server/redis.sock" pubsub numsub "$(channel "$1" "$2")" | tail -n 1)
		((count <= most)) || most=$count
	done
	echo "$most"
}

setup() {
	on 1
	interop_setup
	on_each redis flushall >/dev/null
	unset RLOCK_URL
	# shellcheck disable=SC2034
	SERVERS=(-u "$(url 1)" -u "$(url 2)" -u "$(url 3)")
}

# ---- all of them ----

@test "Java and rlock take turns" {
	rlock_is_woken plain plain a
	java_is_woken plain plain a
	java_is_woken_by_a_script plain plain a
	each_gives_up plain plain a
}

@test "each gets in when the other one was killed" {
	rlock_outlives_java plain plain a
	java_outlives_rlock plain plain a
}

@test "each renews its locks" {
	each_renews plain plain a
}

@test "a lock on several servers is the same one on each" {
	rlock_locks r plain a
	on_each keys_are a 'rlock_holds:{a}'
	on_each assert_plain_hold_of r
	rlock_leaves r
	nothing_is_left
}

assert_plain_hold_of() {
	assert_equal "$(redis hvals a)" 1
	assert_equal "$(redis hkeys a)" "$(owner_of "$1")"
	ttl_between 25000 a 30000
}

@test "what Java holds on one server keeps rlock from all, and rlock holds none of the others meanwhile" {
	# Another service, which knows that one server only.
	start_java mortal 30000 "$(url 2)"
	java_locks T1 plain a
	rlock_is_refused plain a
	rlock_begins r plain a
	# It may try for a while before it listens.
	wait_until 15 has_waiter plain a
	rlock_waits r
	on 1
	stays 1 is_free a
	on 3
	stays 1 is_free a
	java_unlocks T1 plain a
	took_less 4 rlock_enters r
	rlock_leaves r
	nothing_is_left
}

@test "an rlock that waits for one of the servers is woken by Java's release there" {
	local before
	start_java mortal 30000 "$(url 2)"
	# At whatever moment of the wait it comes.
	for before in 0.1 0.4 0.9 1.6 2.5; do
		java_locks T1 plain a
		rlock_begins "r$before" plain a
		let_pass $before
		rlock_waits "r$before"
		java_unlocks T1 plain a
		took_less 4 rlock_enters "r$before"
		rlock_leaves "r$before"
	done
	nothing_is_left
}

@test "what rlock holds on one server keeps Java from all" {
	SERVERS=(-u "$(url 3)")
	rlock_locks r plain a
	java_does false T1 try plain a
	java_does false T1 try plain a 500
	java_begins T1 lock plain a
	wait_until 20 has_waiter plain a
	java_waits T1
	rlock_leaves r
	took_less 4 java_enters T1
	java_unlocks T1 plain a
	nothing_is_left
}

@test "Java and rlock that ask the servers in different orders both get in" {
	local turn
	# shellcheck disable=SC2034
	SERVERS=(-u "$(url 3)" -u "$(url 2)" -u "$(url 1)")
	for turn in 1 2 3 4 5; do
		rlock_begins "r$turn" plain a
		java_begins "T$turn" lock plain a
		wait_until 10 one_is_in "$turn"
		if [ -e "r$turn.in" ]; then
			rlock_leaves "r$turn"
			took_less 5 java_enters "T$turn"
			java_unlocks "T$turn" plain a
		else
			java_enters "T$turn"
			java_unlocks "T$turn" plain a
			rlock_enters "r$turn"
			rlock_leaves "r$turn"
		fi
	done
	nothing_is_left
}

# The lock on all servers is one owner's.
one_is_in() {
	[ -e "r$1.in" ] || on_each is_held_by_java
}

is_held_by_java() {
	[ "$(redis hkeys a)" != '' ] && [ "$(redis exists 'rlock_holds:{a}')" = 0 ]
}

# ---- more than half of them ----

# A server that was started less than a lease ago may have lost a lock that is held, and has no vote.
old_enough() {
	on_each wait_until 40 is_up_for 31
}

is_up_for() {
	(($(redis info server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p') >= $1))
}

@test "rlock waits for a majority that Java holds, and is woken by its release" {
	old_enough
	rlock_is_woken majority majority a
}

@test "Java waits for a majority that rlock holds, and is woken by its release" {
	old_enough
	java_is_woken majority majority a
}

@test "with one of three servers gone Java and rlock still keep each other out" {
	old_enough
	on 3
	kill -STOP "$SERVER_PID"
	on 1
	rlock_locks r majority a -t 5s --connect-timeout 500ms
	java_does false T1 try majority a 1000
	rlock_leaves r
	java_does true T1 try majority a 15000
	rlock_is_refused majority a -n -t 5s --connect-timeout 500ms
	on 3
	kill -CONT "$SERVER_PID"
	on 1
	java_unlocks T1 majority a
	# What the stopped server had not yet done it does now, for one lease.
	on_each wait_until 35 no_keys
}
