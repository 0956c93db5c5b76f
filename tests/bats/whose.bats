#!/usr/bin/env bats
# The owner of a lock where it is hard to tell: deep nesting, two unlocks at once, programs that are called as ours are,
# an RLOCK_HELD that has grown for long, a /proc that hides processes.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- deep nesting ----

# A script that runs COMMAND so many processes below.
write_deep() {
	cat >deep <<-'EOS'
		#!/bin/sh
		# deep LEVELS COMMAND [ARG...]
		levels=$1
		shift
		[ "$levels" = 0 ] || set -- ./deep $((levels - 1)) "$@"
		"$@"
		exit $?
	EOS
	chmod +x deep
}

@test "a lock is re-entered a hundred processes below the one that has it, and released from there" {
	write_deep
	run -0 timeout 60 bash -c '
		rlock lock --pid $$ a
		./deep 100 rlock run -n a -- $REDIS hvals a
		./deep 100 rlock unlock a
		$REDIS exists a
	'
	assert_output "2
0"
}

@test "rlock run inside rlock run, seventy times, enters its lock each time" {
	cat >nest <<-'EOS'
		#!/bin/sh
		[ "$1" = 0 ] && exec $REDIS hvals a
		exec rlock run -n a -- ./nest $(($1 - 1))
	EOS
	chmod +x nest
	run -0 timeout 120 ./nest 70
	assert_output 70
	no_keys
}

# ---- two unlocks ----

# unlock_twice: two unlocks for process PID at once. Sets STATUSES, sorted.
unlock_twice() {
	local first second=0
	rlock unlock --pid "$PID" a 2>said-first 3>&- &
	first=$!
	rlock unlock --pid "$PID" a 2>said-second || second=$?
	STATUSES=$second
	wait "$first" && STATUSES="0 $STATUSES" || STATUSES="$? $STATUSES"
	STATUSES=$(tr ' ' '\n' <<<"$STATUSES" | sort -n | paste -s -d ' ')
}

@test "of two unlocks at once one releases the lock, and the other finds none" {
	in_background sleep 300
	for _ in 1 2 3 4 5 6 7 8; do
		rlock lock --pid "$PID" a
		unlock_twice
		assert_equal "$STATUSES" '0 1'
		run -0 cat said-first said-second
		assert_one_line '^rlock: a: not held by '
		no_keys
	done
}

@test "two unlocks at once of a lock that is held twice release both holds" {
	in_background sleep 300
	for _ in 1 2 3; do
		rlock lock --pid "$PID" a
		rlock lock --pid "$PID" a
		unlock_twice
		assert_equal "$STATUSES" '0 0'
		no_keys
	done
}

# ---- renewers ----

# A program that calls itself so for an hour, in a session of its own.
write_impostor() {
	cp "$(command -v sleep)" rlock-renewer
	cat >impostor <<-'EOS'
		#!/bin/sh
		setsid ./rlock-renewer 60 >/dev/null 2>&1 3>&- &
		echo $! >pid
		until grep -qsx rlock-renewer "/proc/$!/comm"; do sleep 0.02; done
		touch ready
		until_let_go
	EOS
	chmod +x impostor
}

@test "a process of the command that is called rlock-renewer is stopped with it" {
	write_impostor
	in_background rlock run --grace 300ms a -- ./impostor
	wait_until 20 file_exists ready
	BACKGROUND+=("$(<pid)")
	kill -s TERM "$PID"
	ended_with 143
	is_gone "$(<pid)"
	no_keys
}

@test "--wait-all waits for a process that is called rlock-renewer" {
	write_impostor
	in_background rlock run --wait-all a -- ./impostor
	wait_until 20 file_exists ready
	BACKGROUND+=("$(<pid)")
	let_go
	wait_until 20 has_no_child "$PID" impostor
	stays 0.5 is_held a
	kill "$(<pid)"
	ended_with 0
	no_keys
}

@test "the renewer of a lock inside a command that is stopped is left aside, and frees that lock" {
	in_background sh -c 'sleep 60 & echo $! >other; wait'
	wait_until 20 test -s other
	in_background rlock run --grace 300ms a -- sh -c 'rlock lock --pid "$0" b; touch ready; until_let_go' "$(<other)"
	wait_until 20 file_exists ready
	kill -s TERM "$PID"
	ended_with 143
	is_held b
	kill "$(<other)"
	wait_until 20 is_free b
}

# ---- RLOCK_HELD ----

# held_words LEN WORD: as many times the word as have room, with blanks between.
held_words() {
	local count=$((($1 + 1) / (${#2} + 1))) words
	printf -v words "%${count}s" ''
	words=${words// /$2 }
	echo "${words% }"
}

@test "an RLOCK_HELD that would be too long for a program is pruned of holds that are over" {
	local word
	# Of an owner that holds nothing.
	word=$(rlock run over -- sh -c 'echo "$RLOCK_HELD"')
	held_words 131050 "$word" >words
	run -0 timeout 60 sh -c 'RLOCK_HELD=$(cat words) exec rlock run a -- sh -c "\$REDIS exists a; echo \${#RLOCK_HELD}"'
	assert_line -n 0 1
	assert [ "${lines[1]}" -lt 131072 ]
	no_keys
}

@test "what is held still stays in an RLOCK_HELD that is pruned" {
	local word
	word=$(rlock run over -- sh -c 'echo "$RLOCK_HELD"')
	held_words $((131030 - ${#word})) "$word" >words
	run -0 timeout 60 rlock run a -- sh -c '
		RLOCK_HELD="$RLOCK_HELD $(cat words)" exec rlock run -n b -- rlock run -n a -- $REDIS hvals a'
	assert_output 2
	no_keys
}

# ---- what is not to be seen ----

# An orphaned shell, where /proc shows no other user's processes.
HIDING=(unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' sh)

needs_hidepid() {
	not_under_valgrind 'it looks at processes itself'
	RLOCK=$(readlink -f "$(command -v rlock)")
	"${HIDING[@]}" test -x "$RLOCK" 2>/dev/null || skip 'no mount namespaces here, or none may run rlock in one'
	! "${HIDING[@]}" test -e /proc/1 || skip 'nothing can be hidden here'
}

@test "a process that /proc hides is told, and is no wrong number" {
	needs_hidepid
	run -71 "${HIDING[@]}" "$RLOCK" lock -u redis://127.0.0.1:1 --pid 1 --on-lost ignore a
	assert_one_line '^rlock: a: cannot watch process 1: /proc does not show it \(hidepid\?\)$'
}

@test "a command that becomes another user's, which /proc hides, keeps its lock when rlock is killed" {
	local command
	needs_hidepid
	in_background unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec "$@"' sh \
		setpriv --regid=65534 --clear-groups --bounding-set=-kill,-sys_ptrace \
		rlock run -t 3s a -- setpriv --reuid=65534 sleep 60
	wait_until 5 command_is_anothers
	command=$(pgrep -P "$(renewer_of "$PID")" -u 65534)
	BACKGROUND+=("$command")
	kill -KILL "$PID"
	# Longer than the lease.
	stays 4 is_held a
	kill -KILL "$command"
	wait_until 20 is_free a
}

command_is_anothers() {
	has_renewer "$PID" && pgrep -P "${RENEWERS[0]}" -u 65534 >/dev/null
}
