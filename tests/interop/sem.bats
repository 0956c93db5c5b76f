#!/usr/bin/env bats
# Semaphores whose permits Java threads and rlock share: RPermitExpirableSemaphore and RSemaphore, with one counter.

load interop
load stress

# has_all_permits TOTAL: whether all TOTAL permits of the semaphore "a" are free, and only its counter and its total are left as
# keys.
has_all_permits() {
	[ "$(redis get a)" = "$1" ] && [ "$(redis keys '*' | sort | paste -s -d ' ')" = "a rlock_total:{a}" ]
}

@test "at most three holders have permits at a time, each side gets a share of the turns, and all permits are free at the end" {
	play sem a 20 4
	wait_until 20 has_all_permits 3
}

@test "rlock and both semaphores of Java count the same permits, and a release of one side wakes the other" {
	local kind
	for kind in expirable semaphore; do
		java_does true T1 permits "$kind" a 1
		java_does ok T1 acquire "$kind" a
		run -75 rlock sem -n --permits 1 a -- true
		rlock_begins r sem a --permits 1
		wait_until 20 has_waiters a 1
		java_does ok T1 release "$kind" a
		takes_less_than 4 rlock_enters r
		java_does 0 T1 available "$kind" a
		java_begins T1 acquire "$kind" a
		java_waits T1 300
		rlock_leaves r
		takes_less_than 4 java_enters T1
		java_does ok T1 release "$kind" a
		wait_until 20 has_all_permits 1
		redis del a 'rlock_total:{a}'
	done
}

# last_permit_end: prints the time, in ms by the clock of Java, from which Java reclaims the last permit.
last_permit_end() { redis zrange '{a}:timeout' -1 -1 withscores | tail -n 1; }

# java_has_permit: lets an rlock ask for the permit, then checks whether Java has it. The rlock gets the permit itself, or is later
# than Java, which the first request of this rlock has woken.
java_has_permit() {
	rlock sem -q -n --permits 1 a -- true || [ $? = 75 ] || return
	[ "$(ask await T1 0)" = ok ]
}

@test "Java gets the permit of a killed rlock 10 s after its lease, or at the end of the lease if another rlock asks for a permit" {
	local end_ms
	java_does true T1 permits expirable a 1
	rlock_locks r sem a --permits 1 -t 2s
	kill_whole "${PIDS[r]}"
	end_ms=$(last_permit_end)
	java_begins T1 acquire expirable a
	java_waits T1 1000
	wait_until 20 java_has_permit
	# Java has acquired its permit, for 30 s, before it would have done so alone.
	assert [ $(($(last_permit_end) - 30000)) -lt "$end_ms" ]
	java_does ok T1 release expirable a
	rlock_locks r sem a --permits 1 -t 2s
	kill_whole "${PIDS[r]}"
	java_begins T1 acquire expirable a
	java_enters T1
	java_does ok T1 release expirable a
	wait_until 20 has_all_permits 1
}
