#!/usr/bin/env bats
# A command that holds a lock calls rlock again: the same lock is re-entered, another one is acquired, and
# commands side by side exclude each other. Whose a lock is where that is hard to tell: two unlocks at once, programs that
# are called as ours are, an RLOCK_HELD that is wrong or has grown for long.

load ../lib/usual

setup() {
	directory_setup
	CLEARED=(env -i PATH="$PATH" RLOCK_URL="$RLOCK_URL")
	cat >inside <<-'EOS'
		#!/bin/sh
		# inside NAME: a command that says that it has begun, and waits to be let go.
		touch "in-$1"
		exec until_let_go
	EOS
	chmod +x inside
}

one_of_two_exists() {
	[ -e "$1" ] || [ -e "$2" ]
}

# exclude_each_other LOCK X Y: of two commands that run `inside X` and `inside Y` under LOCK the one is in,
# and the other one waits.
exclude_each_other() {
	wait_until 5 one_of_two_exists "in-$2" "in-$3"
	wait_until 5 has_waiters "$1" 1
	[ ! -e "in-$2" ] || [ ! -e "in-$3" ]
	has_count "$1" 1
}

# ---- the same lock ----

@test "rlock run inside rlock run of the same name re-enters and leaves again" {
	run -0 rlock run a -- sh -c 'rlock run a -- $REDIS hvals a; $REDIS hvals a'
	assert_output "2
1"
	no_keys
}

@test "commands side by side may all enter the lock that is held above them" {
	in_background rlock run a -- sh -c 'rlock run a -- ./inside x & rlock run a -- ./inside y & wait'
	wait_until 5 file_exists in-x
	wait_until 5 file_exists in-y
	wait_until 5 has_count a 3
	let_go
	ended_with 0
	no_keys
}

@test "a command that re-enters with a shorter ttl does not shorten the lock" {
	run -0 rlock run a -- sh -c 'rlock run -t 1s a -- $REDIS pttl a; $REDIS pttl a'
	assert_line -n 0 --regexp '^[23]....$'
	assert_line -n 1 --regexp '^[23]....$'
}

@test "a fixed lease inside does not shorten the lock, and ends its own command only" {
	run -0 rlock run a -- sh -c '
		rlock run -q -l 1s --grace 100ms a -- sleep 60
		echo "status $?"
		$REDIS hvals a
		$REDIS pttl a
	'
	assert_line 'status 124'
	assert_line -n -2 1
	assert_line -n -1 --regexp '^[23]....$'
	no_keys
}

@test "--at-least inside keeps the lock taken when the outer command has ended" {
	run -0 rlock run a -- sh -c 'rlock run --at-least 1m a -- true'
	ttl_is_above a 50000
	run -1 ttl_is_above a 60000
	run -75 rlock run -n a -- true
}

@test "an inner rlock that is killed leaves its command the lock, and one hold is released when that ends" {
	in_background rlock run a -- sh -c '
		rlock run a -- ./inside x &
		echo $! >inner
		until [ -e end-outer ]; do sleep 0.02; done
	'
	wait_until 5 file_exists in-x
	wait_until 5 test -s inner
	kill -KILL "$(cat inner)"
	wait_until 5 is_gone "$(cat inner)"
	has_count a 2
	let_go
	wait_until 5 has_count a 1
	touch end-outer
	ended_with 0
	no_keys
}

# is_listened_to CHANNEL
is_listened_to() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" = 1 ]
}

@test "a waiter learns of the earlier end when a hold that lasts longer is released" {
	local verb pids=()
	for verb in lock wlock; do
		run -0 rlock "$verb" --owner job --lease 8s "$verb"
		run -0 rlock "$verb" --owner job --lease 5m "$verb"
	done
	in_background rlock run lock -- true
	pids+=("$PID")
	in_background rlock rlock wlock -- true
	pids+=("$PID")
	wait_until 5 is_listened_to 'redisson_lock__channel:{lock}'
	wait_until 5 is_listened_to 'redisson_rwlock:{wlock}'
	# They look once more when they listen.
	wait_until 5 ttl_is_below lock $(($(redis pttl lock) - 1000))
	for verb in lock wlock; do
		run -0 rlock unlock --owner job "$verb"
	done
	# A waiter that is not notified looks by itself, but not so soon.
	wait_until 20 is_gone "${pids[0]}"
	wait_until 20 is_gone "${pids[1]}"
	ended_with 0 "${pids[0]}"
	ended_with 0 "${pids[1]}"
}

# ---- another lock ----

@test "commands side by side do not share what one of them takes" {
	in_background rlock run a -- sh -c 'rlock run b -- ./inside x & rlock run b -- ./inside y & wait'
	exclude_each_other b x y
	let_go
	ended_with 0
	file_exists in-x
	file_exists in-y
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
	run -75 rlock sem --permits 1 b -- "${CLEARED[@]}" rlock sem --permits 1 -w 10ms b -- echo inside
	hold_in_background c
	run -75 rlock run d -- "${CLEARED[@]}" rlock run -w 100ms c -- true
	assert_output --partial 'timed out'
	let_go
	ended_with 0
}

@test "a call with --owner within a lock of its process is another owner, and may wait for it" {
	run -75 rlock run a -- rlock lock --owner ci --lease 1m -w 100ms a
	assert_output --partial 'timed out'
	run -0 rlock run a -- sh -c 'rlock lock --owner ci --lease 1m -w 30s a >/dev/null 2>&1 &'
	wait_until 5 is_held a
	wait_until 5 rlock unlock --owner ci a
	no_keys
}

@test "in another database the owner is another one" {
	run -0 rlock run a -- rlock run -n --db 1 a -- \
		sh -c '$REDIS hkeys a; redis-cli -s "$SERVER_SOCKET" -n 1 hkeys a; redis-cli -s "$SERVER_SOCKET" -n 1 hvals a'
	assert_not_equal "${lines[0]}" "${lines[1]}"
	assert_line -n 2 1
	assert_equal "$(redis -n 1 dbsize)" 0
	# Nor is the hold here one that was lost there.
	run -1 rlock run a -- rlock renew --db 1 a
	no_keys
}

@test "the same server by another address is the same server" {
	ln -s "$SERVER_SOCKET" "$BATS_TEST_TMPDIR/alias.sock"
	run -0 rlock run a -- rlock run -n -u "unix://$BATS_TEST_TMPDIR/alias.sock" a -- \
		ask_redis "$SERVER_SOCKET" hvals a
	assert_output 2
	no_keys
}

# ---- RLOCK_HELD is only a claim ----

@test "a claim to hold a lock that is free acquires it as a fresh owner" {
	local held
	held=$(rlock run a -- printenv RLOCK_HELD)
	RLOCK_HELD=$held run -0 rlock run a -- sh -c '$REDIS hkeys a; echo "$RLOCK_HELD"'
	assert_not_equal "${lines[0]}" ''
	[[ $held != *"${lines[0]}"* ]]
	no_keys
}

@test "what RLOCK_HELD may say of others gives no right to their lock" {
	in_background rlock run a -- ./inside x
	wait_until 5 file_exists in-x
	local held
	held=$(rlock run b -- printenv RLOCK_HELD)
	RLOCK_HELD=$held run -75 rlock run -n a -- true
	RLOCK_HELD=${held//b/a} run -75 rlock run -n a -- true
	has_count a 1
}

@test "an RLOCK_HELD that cannot be understood, or is huge, is ignored" {
	local value
	for value in '//////' '%zz/plain/a/x:1/0/1' $'\x01\x02\xff' 'unix:/plain/a/x:1/0/1/2/3 unix:/plain/a/x:1' \
		"$(printf 'unix:%%2f/plain/a/x:%d/00000000000000000000000000000000/30000 ' {1..1500})" \
		"$(head -c 100000 /dev/zero | tr '\0' %)"; do
		RLOCK_HELD=$value run -0 rlock run a -- sh -c '$REDIS hvals a'
		assert_output 1
		RLOCK_HELD=$value run -1 rlock unlock a
	done
	no_keys
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
	for _ in 1 2 3; do
		rlock lock --pid "$PID" a
		unlock_twice
		assert_equal "$STATUSES" '0 1'
		run -0 cat said-first said-second
		assert_one_line '^rlock: a: not held by '
		no_keys
	done
}

# ---- renewers ----

@test "a process of the command that is called rlock-renewer is stopped with it" {
	cp "$(command -v sleep)" rlock-renewer
	in_background rlock run --grace 300ms a -- sh -c '
		setsid ./rlock-renewer 60 >/dev/null 2>&1 3>&- &
		echo $! >pid
		until grep -qsx rlock-renewer "/proc/$!/comm"; do sleep 0.02; done
		touch ready
		until_let_go'
	wait_until 20 file_exists ready
	BACKGROUND+=("$(<pid)")
	kill -s TERM "$PID"
	ended_with 143
	is_gone "$(<pid)"
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

@test "what is held still stays in an RLOCK_HELD that is pruned" {
	local word
	word=$(rlock run over -- sh -c 'echo "$RLOCK_HELD"')
	held_words $((131030 - ${#word})) "$word" >words
	run -0 timeout 60 rlock run a -- sh -c '
		RLOCK_HELD="$RLOCK_HELD $(cat words)" exec rlock run -n b -- rlock run -n a -- $REDIS hvals a'
	assert_output 2
	no_keys
}
