#!/usr/bin/env bats
# A command that holds a lock calls rlock again: the same lock is re-entered, another one is acquired, and
# commands side by side exclude each other. Whose a lock is where that is hard to tell: two unlocks at once, programs that
# are called as ours are, an RLOCK_HELD that is wrong or has grown for long.

load ../lib/usual

setup() {
	directory_setup
	CLEARED=(env -i PATH="$PATH" RLOCK_URL="$RLOCK_URL")
}

# ---- the same lock ----

@test "rlock run inside rlock run of the same name re-enters and releases again; a shorter lease inside does not shorten the lock" {
	run -0 rlock run a -- sh -c '
		rlock run -t 9s a -- $REDIS hvals a
		$REDIS hvals a
		rlock run -l 2s --grace 100ms a -- sleep 60
		echo "status $?"
		$REDIS pttl a
	'
	assert_output --regexp $'^2\n1\nrlock: a: the lease of 2s ends: .*\nstatus 124\n[23]....$'
	no_keys
}

@test "--at-least inside keeps the lock when the outer command has ended" {
	run -0 rlock run a -- sh -c 'rlock run --at-least 1m a -- true'
	ttl_is_above a 50000
	run -1 ttl_is_above a 60000
	run -75 rlock run -n a -- true
}

# kept_holds_go VERB FIELDS: those of nested commands that have ended, once another one is released; so many fields of the lock
# stay.
kept_holds_go() {
	run -0 rlock "$1" a -- sh -c '
		for _ in 1 2 3 4 5; do
			rlock "$1" --at-least 50ms a -- true || exit
		done
		tries=0
		until [ "$($REDIS hlen a)" = "$2" ]; do
			rlock "$1" a -- true && tries=$((tries + 1)) && [ "$tries" -lt 1000 ] || exit
		done
		$REDIS hvals "rlock_holds:{a}" | grep -c "^[^ ]"' sh "$@"
	assert_output 1
	keys_are
}

@test "holds of nested commands that --at-least kept go once they have ended, and another is released" {
	kept_holds_go run 1
	kept_holds_go rlock 2
}

@test "a waiter learns of the earlier end when a hold that lasts longer is released" {
	local verb
	for verb in lock wlock; do
		run -0 rlock "$verb" --owner job --lease 8s "$verb"
		run -0 rlock "$verb" --owner job --lease 5m "$verb"
		in_background rlock "$verb" "$verb" -- true
		wait_until 5 has_waiters "$verb"
		run -0 rlock unlock --owner job "$verb"
	done
	# A waiter that is not notified looks by itself, but not so soon.
	for verb in "${BACKGROUND[@]}"; do
		wait_until 20 is_gone "$verb"
		ended_with 0 "$verb"
	done
}

# Else the lock would stay held for the rest of the longer lease, which nothing holds.
@test "a hold whose lease is over does not keep the lock when a longer hold of its owner is released" {
	local verb
	for verb in lock fair read write; do
		run -0 rlock "$verb" --owner job --lease 1s "$verb"
		run -0 rlock "$verb" --owner job --lease 1h "$verb"
	done
	pause_for 1.2
	for verb in lock fair read write; do
		run -0 rlock unlock --owner job "$verb"
	done
	no_keys
}

@test "a nested rlock that was killed does not keep the lock after its lease when the outer one releases it" {
	local verb
	for verb in run fair read write; do
		# shellcheck disable=SC2016
		run -0 rlock "$verb" -t 1h a -- sh -c '
			rlock "$1" -t 1s a -- sh -c "kill -KILL \$(ps -o ppid= \$PPID) \$PPID"
			[ "$($REDIS hvals "rlock_holds:{a}" | grep -c "^[^ ]")" = 2 ] && sleep 1.2' sh "$verb"
		no_keys
	done
}

# ---- another lock ----

@test "commands side by side do not share a lock that one of them acquires" {
	in_background rlock run a -- sh -c 'rlock run b -- sh -c "touch in; run_until_ended" & until [ -e in ]; do :; done
		rlock run -n b -- true; echo $? >status; wait'
	wait_until 20 test -s status
	assert_equal "$(<status)" 75
	end_commands
	ended_with 0
	no_keys
}

@test "a command of a command gets SIGTERM once when the outer one is terminated" {
	record_stderr rlock run --max-run 3s --grace 9s a -- rlock run b -- sh -c 'echo $PPID >inner; exec log_signals'
	wait_until 20 file_has_line signals ready
	# The inner rlock would pass a second one on when it has taken over.
	kill -STOP "$(<inner)"
	wait_until 10 file_has_line signals TERM
	stays_true_for 2.5 eval '[ "$(grep -cx TERM signals)" = 1 ]'
	end_commands
	ended_with 124
	no_keys
}

# ---- strangers ----

# is_a_deadlock VERB COMMAND...: within a command of rlock VERB, without RLOCK_HELD.
is_a_deadlock() {
	local text='^rlock: a: deadlock: held by an ancestor of this process, '
	text+='[^ ]+@[^ ]+ pid [0-9]+ [^ ]+ \([^ ]+\): RLOCK_HELD is not in the environment: try: sudo --preserve-env=RLOCK_HELD$'
	run -64 timeout 10 rlock "$1" a -- "${CLEARED[@]}" "${@:2}"
	assert_output --regexp "$text"
	refute_output --partial inside
	no_keys
}

@test "a call whose environment was cleared does not wait for its own ancestor" {
	is_a_deadlock run rlock run -n a -- echo inside
	is_a_deadlock fair sh -c 'sh -c "rlock run a -- echo inside"; exit'
	is_a_deadlock write rlock read a -- echo inside
	is_a_deadlock read rlock write a -- echo inside
	is_a_deadlock run rlock run b a -- echo inside
	is_a_deadlock run bash -c 'rlock lock --pid $$ a; exit'
}

@test "a call whose environment was cleared enters where its ancestor lets it, and waits for a holder that is none" {
	run -0 rlock read a -- "${CLEARED[@]}" rlock read -n a -- echo inside
	assert_output inside
	run -75 rlock sem --permits 1 b -- "${CLEARED[@]}" rlock sem --permits 1 -w 1s b -- echo inside
	# So may a call with --owner, which is another owner.
	run -75 rlock run a -- rlock lock --owner ci --lease 1m -w 1s a
	hold_in_background c
	run -75 rlock run d -- "${CLEARED[@]}" rlock run -w 1s c -- true
	assert_output --partial 'timed out'
}

@test "in another database the owner is another one, and the same server by another address is the same" {
	run -0 rlock run a -- rlock run -n --db 1 a -- redis-cli -s "$SERVER_SOCKET" -n 1 hvals a
	assert_output 1
	# Nor is the hold here one that was lost there.
	run -1 rlock run a -- rlock renew --db 1 a
	ln -s "$SERVER_SOCKET" alias.sock
	run -0 rlock run a -- rlock run -n -u "unix://$PWD/alias.sock" a -- ask_redis "$SERVER_SOCKET" hvals a
	assert_output 2
	no_keys
}

# ---- RLOCK_HELD is only a claim ----

@test "a claim to hold a lock that is free or another's acquires it as a fresh owner, or gives no right to it" {
	local held
	held=$(rlock run a -- printenv RLOCK_HELD)
	RLOCK_HELD=$held run -0 rlock run a -- sh -c '$REDIS hkeys a'
	assert [ -n "$output" ]
	[[ $held != *"$output"* ]]
	hold_in_background b
	RLOCK_HELD=${held//a/b} run -75 rlock run -n b -- true
	has_hold_count b 1
}

@test "an RLOCK_HELD that cannot be understood, or is huge, is ignored" {
	local value
	for value in '//////' $'%zz/\x01\x02\xff' 'unix:/plain/a/x:1/0/1/2/3 unix:/plain/a/x:1' "$(head -c 100000 /dev/zero | tr '\0' %)"; do
		RLOCK_HELD=$value run -0 rlock run a -- sh -c '$REDIS hvals a'
		assert_output 1
		RLOCK_HELD=$value run -1 rlock unlock a
	done
	no_keys
}

@test "what is held still stays in an RLOCK_HELD that is pruned" {
	run -0 timeout 60 rlock run a -- bash -c '
		over=$(rlock run over -- sh -c "echo \"\${RLOCK_HELD##* }\"")
		while [ $((${#RLOCK_HELD} + ${#over})) -lt 131050 ]; do RLOCK_HELD+=" $over"; done
		exec rlock run -n b -- rlock run -n c -- rlock run -n a -- $REDIS hvals a'
	assert_output 2
	no_keys
}

# ---- two unlocks ----

@test "of two unlocks at once one releases the lock, and the other finds none" {
	in_background sleep 300
	for _ in {1..8}; do
		rlock lock --pid "$PID" a
		run -0 sh -c 'rlock unlock --pid "$0" a & rlock unlock --pid "$0" a; echo "$?"; wait "$!"; echo "$?"' "$PID"
		assert_equal "$(sort <<<"$output" | xargs)" "0 1 $(grep '^rlock: a: not held by ' <<<"$output")"
		no_keys
	done
}

# ---- renewers ----

@test "with a command its processes that are called as our renewers are stopped, but not the renewer of a lock for another process" {
	cp "$(command -v sleep)" rlock-renewer
	cp rlock-renewer rlock-renewer-p
	in_background sh -c 'sleep 60 & echo $! >other; wait'
	wait_until 20 test -s other
	in_background rlock run --grace 300ms a -- sh -c '
		for name in rlock-renewer rlock-renewer-p; do
			setsid ./$name 60 >/dev/null 2>&1 3>&- &
			echo $! >pid-$name
			until grep -qsx $name "/proc/$!/comm"; do sleep 0.02; done
		done
		rlock lock --pid "$(cat other)" b
		touch ready
		run_until_ended'
	wait_until 20 file_exists ready
	BACKGROUND+=("$(<pid-rlock-renewer)" "$(<pid-rlock-renewer-p)")
	kill -s TERM "$PID"
	ended_with 143
	is_gone "$(<pid-rlock-renewer)"
	is_gone "$(<pid-rlock-renewer-p)"
	is_held b
	kill "$(<other)"
	wait_until 20 is_free b
}
