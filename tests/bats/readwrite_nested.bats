#!/usr/bin/env bats
# An owner of a read or write lock that acquires it again: which kinds it can, where that would be a deadlock, and a write lock
# that becomes a read lock.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/scripting

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- again ----

@test "a reader inside a writer inside a writer: each hold is released for itself" {
	run -0 rlock wlock a -- sh -c '
		rlock wlock -n a -- sh -c "rlock rlock -n a -- \$REDIS hvals a; \$REDIS hvals a"
		$REDIS hvals a
	'
	assert_output "write
2
1
write
2
write
1"
	no_keys
}

# never_to_be_had COMMAND...: 64 at once, in one line, and nothing has changed.
never_to_be_had() {
	local before
	before=$(show_contents)
	took_less 10 run -64 "$@"
	assert_one_line '^rlock: a: an upgrade of a read lock would be a deadlock: release the read lock first'
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "an upgrade of a read lock is a deadlock: 64 at once, however long one would wait" {
	admit_guest r rlock a
	RLOCK_HELD=$(inherited_holds_of "$PID")
	export RLOCK_HELD
	never_to_be_had rlock wlock a -- touch ran
	never_to_be_had rlock wlock -n a -- touch ran
	never_to_be_had rlock wlock -w 20s a -- touch ran
	never_to_be_had rlock wlock -n -E 0 a -- touch ran
	never_to_be_had rlock wlock b a -- touch ran
	RLOCK_HELD='' admit_guest other rlock a
	never_to_be_had rlock wlock -w 20s a -- touch ran
	has_listeners 0
}

@test "an upgrade inside a read lock of the same script, or the same owner, is a deadlock too" {
	start_locking_script rlock a
	never_to_be_had rlock wlock --pid "$PID" a
	never_to_be_had rlock wlock --pid "$PID" -w 20s a
	run -0 rlock unlock --pid "$PID" a
	no_keys
	run -0 rlock rlock --owner job-1 --lease 1m a
	never_to_be_had rlock wlock --owner job-1 --lease 1m a
	never_to_be_had rlock wlock --owner job-1 --lease 1m -w 20s a
	run -0 rlock unlock --owner job-1 a
	no_keys
}

@test "commands side by side do not share the write lock that one of them takes" {
	in_background sh -c 'rlock wlock a -- inside x & rlock wlock a -- inside y & rlock rlock a -- inside z & wait'
	one_is_in() { [ "$(find . -name 'in-?' | wc -l)" = 1 ]; }
	wait_until 5 one_is_in
	wait_until 5 has_listeners 2
	stays 0.3 one_is_in
	let_go
	ended_with 0
	all_are_inside x y z
	no_keys
}

# ---- a write lock that becomes a read lock ----

@test "readers that wait get in at once when a writer goes on as a reader, and writers don't" {
	admit_guest w wlock a
	RLOCK_HELD=$(inherited_holds_of "$PID") admit_guest own rlock a
	queue_guest r1 rlock a
	queue_guest r2 rlock a
	queue_guest w2 wlock a -v
	let_guest_out w
	wait_until 5 all_are_inside r1 r2
	is_mode a read
	stays_outside 0.3 w2
	let_guest_out r1 r2
	stays_outside 0.2 w2
	let_guest_out own
	enters_woken w2
}

@test "what a writer that went on as a reader keeps is a read lock, for Java too" {
	run -0 rlock wlock a -- sh -c 'rlock rlock -n a -- inside r >/dev/null 2>&1 3>&- &
		comes_true test -e in-r'
	[ "$(redis hget a mode)" = read ]
}
