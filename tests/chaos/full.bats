#!/usr/bin/env bats
# A server has no memory left (maxmemory, noeviction). Promised: a call that acquires or re-enters a lock ends with 69 and one line that
# says so. Locks that are held are still renewed and released. A waiter continues to wait for its wait time, or for 60 s without one.
# It acquires the lock when the server has memory again.

load chaos

# Each cell starts a server of its own, so the server has not loaded any script yet.
setup_file() { :; }
teardown_file() { :; }
setup() {
	clean_environment
	cd "$BATS_TEST_TMPDIR" || return
}

# The hold count of the only owner of the lock KEYS[1].
COUNT_HOLDS='
	for _, value in ipairs(redis.call("HVALS", KEYS[1])) do
		if tonumber(value) then return tonumber(value) end
	end'

# take_locks KIND WAITER_KIND: acquires a lock for this shell, one for each of two owners, and one for a command that runs until
# finish_contender. Two calls wait for the lock of that command: one without a limit, and one for 4 s.
take_locks() {
	calls 0 rlock "$LOCK" -t 3s --pid "$BASHPID" script
	calls 0 rlock "$LOCK" -l 60s --owner job owner
	calls 0 rlock "$LOCK" -l 60s --owner other forgotten
	start_contender holder "$1" "$LEDGER" until -t 3s
	HOLDER=$PID
	wait_until 10 entered 1 || return
	start_contender waiter "$2" "$LEDGER" '-f 0'
	WAITER=$PID
	start_contender hasty "$2" ledger-hasty '-f 0' -w 4s
	HASTY=$PID
	wait_until 10 listen 2
}

# none_gets_in: each call for a new lock, and each re-entry, must end with 69. No command may run, and no key and no hold may be added.
none_gets_in() {
	local SAYS=memory line key
	while read -r line; do
		# shellcheck disable=SC2086
		calls 69 rlock $line
	done <<-EOS
		$VERB new -- touch ran
		$VERB -n new -- touch ran
		$VERB -w 300ms new -- touch ran
		$VERB new another -- touch ran
		$LOCK --pid $BASHPID new
		$LOCK -l 5s --owner job new
		$LOCK --pid $BASHPID script
		$LOCK -l 5s --owner job owner
	EOS
	[ ! -e ran ] || violated 'a command ran without its lock'
	for key in new another; do
		[ -z "$(redis keys "*$key*")" ] || violated "there is now on the server: $(redis keys "*$key*")"
	done
	for key in script owner; do
		must "$key was re-entered" redis_says 1 eval "$COUNT_HOLDS" 1 "$key"
	done
}

# fill NUMBER KIND: acquires locks, fills the server, and uses the locks. Then gives the server memory again.
fill() {
	local room_us
	VERB=$(verb_of "$2") LOCK=$(verb_without_command "$2")
	BATS_FILE_TMPDIR=$CELL start_server || return
	if [ "$2" = write ]; then take_locks "$2" read; else take_locks "$2" "$(excluded_kind "$2")"; fi || return
	let_some_pass 900
	redis config set maxmemory 1
	injected
	none_gets_in
	# Wait for longer than the leases of 3 s: locks that are not renewed expire in this time.
	pause_for 3.3
	must 'the lock of a script was not renewed' is_held script
	must 'the lock of a command was not renewed' is_well "$LEDGER"
	calls 0 rlock renew script
	calls 0 rlock renew --owner job -l 60s owner
	calls 0 rlock unlock script
	calls 0 rlock unlock --owner job owner
	# Use `must` instead of `calls`, since unlock --force prints a line when it succeeds: it names the owner.
	must 'the lock of a gone owner was not broken' rlock unlock --force forgotten
	# The call that waits for 4 s must end: with 75 if another owner held the lock at its last attempt, or with 69 if the
	# server had no memory to queue the waiter.
	must_end '75 69' "$HASTY" hasty
	[ ! -e ledger-hasty ] || violated 'the waiter whose time was over acquired the lock'
	finish_contender holder
	must_end 0 "$HOLDER" holder
	must 'the lock of the command was not released' is_free "$NAME"
	let_some_pass 900
	must 'the waiter did not go on waiting' is_running "$WAITER"
	room_us=$(now_us)
	redis config set maxmemory 0
	must_end 0 "$WAITER" waiter
	took $((($(times enter | tail -n 1) - room_us) / 1000))
	must 'keys are left' wait_until 20 no_keys
	repeated
}

@test "a full server: new locks are refused with 69, held locks are renewed and released, and waiters acquire theirs when there is memory" {
	scenario_of_kinds 'a full server' 'for a call, or until the waiter was in once there was room' 20 10 fill
}
