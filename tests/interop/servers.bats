#!/usr/bin/env bats
# One lock on several servers: Java's MultiLock or RedLock, and rlock with several URLs.

load interop

SERVERS=(1 2 3)

# url NUMBER: prints the URL of this server.
url() {
	echo "redis://127.0.0.1:$(port_of "$1")"
}

setup_file() {
	start_masters 3
	JAVA_URLS="$(url 1) $(url 2) $(url 3)"
	export JAVA_URLS
	start_common_java
}

setup() {
	interop_setup
	on_each redis flushall >/dev/null
	unset RLOCK_URL
	SERVER_OPTIONS=(-u "$(url 1)" -u "$(url 2)" -u "$(url 3)")
}

nothing_is_left() {
	on_each wait_until 20 no_keys
}

# listeners KIND NAME: prints the number of subscribers at the server that has most of them. A waiter for several servers
# subscribes at only one of those where the lock is busy.
listeners() {
	local number count most=0
	for number in 1 2 3; do
		count=$(on "$number" redis pubsub numsub "$(channel "$1" "$2")" | tail -n 1)
		((count <= most)) || most=$count
	done
	echo "$most"
}

@test "Java and rlock wake each other, stop waiting in time, renew, and acquire the lock of a killed holder" {
	rlock_is_woken plain plain a
	java_is_woken plain plain a
	each_gives_up plain plain a
	each_renews plain plain a
	rlock_outlives_java plain plain a
	java_outlives_rlock plain plain a
}

@test "while Java holds the lock on one server, rlock waits, and holds it on no other server" {
	# Start another service, which uses only the second server.
	start_java mortal 30000 "$(url 2)"
	java_locks T1 plain a
	rlock_is_refused plain a
	rlock_begins r plain a
	# The waiter may try for some time before it subscribes.
	wait_until 15 has_waiter plain a
	rlock_waits r
	on 1 stays_true_for 1 is_free a
	on 3 stays_true_for 1 is_free a
	java_unlocks T1 plain a
	rlock_has_its_turn
}

@test "Java and rlock both acquire a lock whose servers they name in different orders" {
	SERVER_OPTIONS=(-u "$(url 3)" -u "$(url 2)" -u "$(url 1)")
	for _ in 1 2 3 4 5; do
		rlock_begins r plain a
		java_begins T1 lock plain a
		both_have_turns a
	done
	nothing_is_left
}

# ---- a quorum of more than half of the servers ----

@test "with a quorum of a majority Java and rlock wake each other, and exclude each other also while one of three servers is frozen" {
	# A server that was started less than a lease ago does not count: it may have lost a lock that is held.
	wait_until 40 is_older 3 31
	rlock_is_woken majority majority a
	java_is_woken majority majority a
	freeze_server 3
	rlock_locks r majority a -t 5s --connect-timeout 500ms
	java_does false T1 try majority a 1000
	rlock_leaves r
	java_begins T1 try majority a 15000
	java_does true await T1 50000
	rlock_is_refused majority a -n -t 5s --connect-timeout 500ms
	thaw_server 3
	java_unlocks T1 majority a
	# The thawed server now runs the requests that came while it was frozen. These acquire holds that nobody releases, so wait
	# until their leases have ended.
	on_each wait_until 35 no_keys
}
