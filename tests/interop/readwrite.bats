#!/usr/bin/env bats
# Read and write locks. Readers of both sides share the lock, wait together for a writer, and are not harmed when one of them dies. A writer
# can acquire the read lock as well.

load interop

@test "readers of both sides share the lock, and the release of the last one, a Java thread, wakes a waiting rlock writer" {
	rlock_locks r1 read a
	java_locks T1 read a
	rlock_locks r2 read a
	java_locks T2 read a
	java_does false T3 try write a
	rlock_is_refused write a
	rlock_begins r write a
	wait_until 20 has_waiter write a
	rlock_leaves r1
	java_unlocks T1 read a
	rlock_leaves r2
	stays_true_for 0.3 rlock_waits r
	java_unlocks T2 read a
	rlock_has_its_turn
}

@test "the release of an rlock writer wakes all waiting readers of both sides" {
	rlock_locks w write a
	java_begins T1 lock read a
	java_begins T2 lock read a
	rlock_begins r1 read a
	rlock_begins r2 read a
	wait_until 20 has_waiter read a 3
	for contender in 1 2; do wait_until 20 is_asleep T$contender; done
	rlock_leaves w
	for contender in 1 2; do
		takes_less_than 4 java_enters T$contender
		takes_less_than 4 rlock_enters r$contender
	done
	for contender in 1 2; do
		java_unlocks T$contender read a
		rlock_leaves r$contender
	done
	nothing_is_left
}

@test "after an rlock reader was killed a Java reader keeps its hold, and its release lets a writer acquire the lock" {
	rlock_locks dead read a -t 2s
	java_locks T1 read a
	kill_whole "${PIDS[dead]}"
	rlock_begins r write a
	wait_until 20 has_waiter write a
	stays_true_for 3 rlock_waits r
	java_does true T1 held read a
	java_unlocks T1 read a
	rlock_has_its_turn
}

@test "after a Java reader was killed an rlock reader keeps its hold, and its release lets a writer acquire the lock" {
	start_mortal_java
	java_locks T1 read a
	rlock_locks r read a
	java_dies
	speak_to java
	java_begins T1 lock write a
	wait_until 20 has_waiter write a
	java_waits T1 4000
	rlock_leaves r
	java_has_its_turn write a
}

# ---- a reader inside a writer ----

@test "a Java writer that also has the read lock admits rlock readers once it has released the write lock" {
	java_locks T1 write a
	java_locks T1 read a
	rlock_is_refused read a
	java_unlocks T1 write a
	rlock_locks r read a
	rlock_is_refused write a
	java_does true T1 held read a
	java_unlocks T1 read a
	rlock_is_refused write a
	rlock_leaves r
	nothing_is_left
}

@test "an rlock writer that also has the read lock wakes Java's readers when it releases the write lock" {
	in_background bash -c '
		rlock wlock a -- sh -c "rlock rlock --pid $$ a && stay both" && stay reads && rlock unlock a'
	rlock_enters both
	# Waiters are woken in the order in which they came, so let the reader come first. Otherwise the writer could be woken
	# first, while the read lock is held, and could overtake the reader.
	java_begins T2 lock read a
	wait_until 20 is_asleep T2
	java_begins T1 lock write a
	wait_until 20 is_asleep T1
	touch both.out
	rlock_enters reads
	takes_less_than 4 java_enters T2
	java_waits T1 300
	touch reads.out
	ended_with 0
	java_waits T1 300
	java_unlocks T2 read a
	java_has_its_turn write a
}
