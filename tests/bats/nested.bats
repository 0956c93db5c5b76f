#!/usr/bin/env bats
# A command that holds a lock calls rlock again: the same lock is re-entered, another one is acquired, and commands side by side exclude
# each other. And unusual callers: two unlocks at the same time, programs named like rlock's, a wrong or huge RLOCK_HELD.

load ../lib/usual

setup() {
	directory_setup
	CLEARED=(env -i PATH="$PATH" RLOCK_URL="$RLOCK_URL")
}

# ---- the same lock ----

@test "rlock run inside rlock run of the same name re-enters the lock, and its shorter lease does not shorten it" {
	run -0 rlock run a -- sh -c '
		rlock run -t 9s a -- $REDIS hvals a
		$REDIS hvals a
		rlock run -l 4s --grace 100ms a -- sleep 60
		echo "status $?"
		$REDIS pttl a
	'
	assert_output --regexp $'^2\n1\nrlock: a: the lease of 4s ends: .*\nstatus 124\n[123]....$'
	no_keys
}

@test "a nested --at-least keeps the lock after the outer command has ended" {
	run -0 rlock run a -- sh -c 'rlock run --at-least 1m a -- true'
	ttl_is_above a 50000
	run -1 ttl_is_above a 60000
	run -75 rlock run -n a -- true
}

# kept_holds_go VERB FIELDS: nested commands leave holds that --at-least keeps until their time has ended. The next release must remove
# these holds, so that the lock has only FIELDS fields.
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

@test "holds kept by a nested --at-least are removed at the next release after their time" {
	kept_holds_go run 1
	kept_holds_go rlock 2
}

@test "a waiter is notified when the release of a longer hold makes the lock end sooner" {
	local verb
	for verb in lock wlock; do
		run -0 rlock "$verb" --owner job --lease 8s "$verb"
		run -0 rlock "$verb" --owner job --lease 5m "$verb"
		in_background rlock "$verb" "$verb" -- true
		wait_until 5 has_waiters "$verb"
		run -0 rlock unlock --owner job "$verb"
	done
	# The waiters must end within 20 s: without a notification they would try again only later.
	for verb in "${BACKGROUND[@]}"; do
		wait_until 20 is_gone "$verb"
		ended_with 0 "$verb"
	done
}

# An expired hold must not count. Otherwise the lock would have no holder, and still stay held until the longer lease ends.
@test "an expired hold does not keep the lock when a longer hold of its owner is released" {
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

@test "the hold of a killed nested rlock does not outlast its own lease when the outer one releases" {
	local verb
	for verb in run fair read write; do
		# shellcheck disable=SC2016
		in_background rlock "$verb" -t 1h "$verb" -- sh -c '
			rlock "$1" -t 4s "$1" -- sh -c "kill -KILL \$(ps -o ppid= \$PPID) \$PPID"
			[ "$($REDIS hvals "rlock_holds:{$1}" | grep -c "^[^ ]")" = 2 ] && sleep 4.2' sh "$verb"
	done
	all_ended_with 0
	no_keys
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
	record_stderr rlock run --max-run 10s --grace 9s a -- rlock run b -- sh -c 'echo $PPID >inner; exec log_signals'
	wait_until 20 file_has_line signals ready
	# Stop the inner rlock: otherwise it would take over from its renewer, and pass a second SIGTERM on.
	kill -STOP "$(<inner)"
	wait_until 20 file_has_line signals TERM
	stays_true_for 2.5 eval '[ "$(grep -cx TERM signals)" = 1 ]'
	end_commands
	ended_with 124
	no_keys
}

# ---- callers without RLOCK_HELD, and other owners ----

# is_a_deadlock VERB COMMAND...: within a command of rlock VERB, and without RLOCK_HELD, COMMAND must report a deadlock.
is_a_deadlock() {
	local text='^rlock: a: deadlock: held by an ancestor of this process, '
	text+='[^ ]+@[^ ]+ pid [0-9]+ [^ ]+ \([^ ]+\); RLOCK_HELD, which the outer call sets, is not in the environment; pass it on, with sudo by --preserve-env=RLOCK_HELD$'
	run -64 timeout 30 rlock "$1" a -- "${CLEARED[@]}" "${@:2}"
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

@test "a call with a cleared environment acquires a lock that its ancestor shares, and waits for other holders" {
	run -0 rlock read a -- "${CLEARED[@]}" rlock read -n a -- echo inside
	assert_output inside
	run_timed_out 75 rlock sem --permits 1 b -- "${CLEARED[@]}" rlock sem --permits 1 -w 1s b -- echo inside
	hold_in_background c
	run_timed_out 75 rlock run d -- "${CLEARED[@]}" rlock run -w 1s c -- true
	assert_output --partial 'timed out'
}

@test "another database has another owner; another address of the same server has the same owner" {
	run -0 rlock run a -- rlock run -n --db 1 a -- redis-cli -s "$SERVER_SOCKET" -n 1 hvals a
	assert_output 1
	# A hold in one database is not a lost hold in another one: renew exits with 1, not 76.
	run -1 rlock run a -- rlock renew --db 1 a
	ln -s "$SERVER_SOCKET" alias.sock
	run -0 rlock run a -- rlock run -n -u "unix://$PWD/alias.sock" a -- ask_redis "$SERVER_SOCKET" hvals a
	assert_output 2
	no_keys
}

# ---- RLOCK_HELD is only a claim ----

@test "a false RLOCK_HELD gives no right to another owner's lock, and a free lock is acquired as a new owner" {
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

@test "a long RLOCK_HELD loses ended holds only" {
	run -0 timeout 60 rlock run a -- bash -c '
		over=$(rlock run over -- sh -c "echo \"\${RLOCK_HELD##* }\"")
		while [ $((${#RLOCK_HELD} + ${#over})) -lt 131050 ]; do RLOCK_HELD+=" $over"; done
		exec rlock run -n b -- rlock run -n c -- rlock run -n a -- $REDIS hvals a'
	assert_output 2
	no_keys
}

# ---- two unlocks ----

@test "one of two simultaneous unlocks releases the lock, and the other exits with 1" {
	in_background sleep 300
	for _ in {1..8}; do
		rlock lock --pid "$PID" a
		run -0 sh -c 'rlock unlock --pid "$0" a & rlock unlock --pid "$0" a; echo "$?"; wait "$!"; echo "$?"' "$PID"
		assert_equal "$(sort <<<"$output" | xargs)" "0 1 $(grep '^rlock: a: not held by ' <<<"$output")"
		no_keys
	done
}

# ---- renewers ----

@test "processes of the command that are named like renewers are terminated with it, but not the renewer of another process's lock" {
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
		rlock lock -t 1h --pid "$(cat other)" b
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
