#!/usr/bin/env bats
# A command that holds a lock calls rlock again: the same lock is re-entered, another one is acquired, and
# commands side by side exclude each other.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/own_servers

setup_file() { start_server; }
teardown_file() { stop_server; }

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

teardown() { watchful_teardown; }

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

@test "rlock run in the place of a command of rlock run re-enters" {
	run -0 timeout 10 rlock run a -- rlock run a -- ask_redis "$SERVER_SOCKET" hvals a
	assert_output 2
	no_keys
}

@test "ten levels count ten holds, and each is released" {
	cat >level <<-'EOS'
		#!/bin/sh
		[ "$1" = 10 ] || rlock run -n a -- ./level $(($1 + 1)) || exit
		$REDIS hvals a
		[ "$1" != 10 ] || exit 7
	EOS
	chmod +x level
	run rlock run a -- ./level 1
	assert_output 10
	assert_equal "$status" 7
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

@test "the lock is free when the outermost has released it, and not before" {
	in_background rlock run a -- sh -c 'rlock run a -- true; touch left; until_let_go'
	wait_until 5 file_exists left
	has_count a 1
	run -75 rlock run -n a -- true
	let_go
	ended_with 0
	no_keys
}

@test "what the inner command ends with reaches the outermost" {
	run -7 rlock run a -- rlock run a -- rlock run b -- sh -c 'exit 7'
	run -143 rlock run a -- rlock run a -- sh -c 'kill -TERM $$'
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

@test "a longer lease inside keeps the lock for no longer than it is held" {
	run -0 rlock run a -- sh -c 'rlock run -l 10m a -- $REDIS pttl a'
	assert_output --regexp '^(59....|600000)$'
	no_keys
}

@test "--at-least inside keeps the lock taken when the outer command has ended" {
	run -0 rlock run a -- sh -c 'rlock run --at-least 1m a -- true'
	ttl_is_above a 50000
	run -1 ttl_is_above a 60000
	run -75 rlock run -n a -- true
}

@test "--at-least outside keeps the lock taken when a command inside has left it" {
	run -0 rlock run --at-least 1m a -- sh -c 'rlock run a -- true; rlock run -n a -- true'
	ttl_is_above a 50000
	run -75 rlock run -n a -- true
}

@test "an inner rlock that is killed leaves its command the lock" {
	in_background rlock run a -- sh -c '
		rlock run a -- ./inside x &
		echo $! >inner
		until [ -e end-outer ]; do sleep 0.02; done
	'
	wait_until 5 file_exists in-x
	wait_until 5 test -s inner
	kill -KILL "$(cat inner)"
	wait_until 5 is_gone "$(cat inner)"
	touch end-outer
	ended_with 0
	has_count a 1
	run -75 rlock run -n a -- true
	let_go
	wait_until 5 no_keys
}

@test "a command whose inner rlock was killed releases one hold when it ends" {
	in_background rlock run a -- sh -c '
		rlock run a -- ./inside x &
		echo $! >inner
		until [ -e end-outer ]; do sleep 0.02; done
	'
	wait_until 5 file_exists in-x
	wait_until 5 test -s inner
	kill -KILL "$(cat inner)"
	let_go
	wait_until 5 has_count a 1
	touch end-outer
	ended_with 0
	no_keys
}

@test "an outer rlock that is killed leaves the lock to the commands inside" {
	in_background rlock run a -- rlock run a -- ./inside x
	wait_until 5 file_exists in-x
	kill -KILL "$PID"
	wait_until 5 is_gone "$PID"
	has_count a 2
	let_go
	wait_until 5 no_keys
}

@test "a lock that is broken is lost for all levels" {
	in_background rlock run -t 1s a -- sh -c 'rlock run -t 1s a -- ./inside x; echo $? >inner'
	wait_until 5 file_exists in-x
	rlock unlock -q --force a
	ended_with 76
	no_keys
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

@test "names of which one is held already: it is re-entered, the other is acquired" {
	run -0 rlock run a -- sh -c '
		rlock run a b -- sh -c "$REDIS hvals a; $REDIS hvals b"
		$REDIS exists b
		$REDIS hvals a
	'
	assert_output "2
1
0
1"
	no_keys
}

@test "commands side by side that name a lock they share and one they do not take turns" {
	in_background rlock run a -- sh -c 'rlock run a b -- ./inside x & rlock run a b -- ./inside y & wait'
	exclude_each_other b x y
	has_count a 2
	let_go
	ended_with 0
	no_keys
}

@test "the lock that a command took for itself is not its sibling's" {
	run -0 rlock run a -- sh -c 'rlock run b -- true; rlock run -n b -- $REDIS hvals b'
	assert_output 1
}

@test "RLOCK_NAME tells of the nearest lock, RLOCK_HELD of all" {
	run -0 rlock run a -- rlock run b -- sh -c 'echo "$RLOCK_NAME"; echo "$RLOCK_HELD" | wc -w'
	assert_line -n 0 b
	assert_line -n 1 2
}

# ---- strangers ----

@test "a daemon that kept the environment of an ended rlock run is a stranger to the lock" {
	run -0 rlock run a -- sh -c '
		setsid sh -c "
			until [ -e ended ]; do sleep 0.02; done
			rlock run a -- ./inside x &
			rlock run a -- ./inside y &
			wait
			touch both
		" >/dev/null 2>&1 3>&- &
		exit 0
	'
	no_keys
	touch ended
	exclude_each_other a x y
	let_go
	wait_until 5 file_exists both
	file_exists in-x
	file_exists in-y
	wait_until 5 no_keys
}

@test "a daemon that kept the environment waits for a new holder" {
	run -0 rlock run a -- sh -c '
		setsid sh -c "
			until [ -e taken ]; do sleep 0.02; done
			rlock run -n a -- true
			echo \$? >status
		" >/dev/null 2>&1 3>&- &
		exit 0
	'
	in_background rlock run a -- ./inside x
	wait_until 5 file_exists in-x
	touch taken
	wait_until 5 test -s status
	assert_equal "$(cat status)" 75
}

@test "a daemon re-enters the lock while the command that started it still holds it" {
	in_background rlock run a -- sh -c '
		setsid rlock run -n a -- ./inside x &
		until_let_go
	'
	wait_until 5 file_exists in-x
	has_count a 2
}

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
	is_a_deadlock run rlock run a -- echo inside
	is_a_deadlock run rlock run -n a -- echo inside
	is_a_deadlock run rlock fair -w 1h a -- echo inside
	is_a_deadlock fair sh -c 'sh -c "rlock run a -- echo inside"; exit'
	is_a_deadlock write rlock read a -- echo inside
	is_a_deadlock write rlock write a -- echo inside
	is_a_deadlock read rlock write a -- echo inside
	is_a_deadlock run rlock run b a -- echo inside
	is_a_deadlock run rlock run b -- "${CLEARED[@]}" rlock run a -- echo inside
	is_a_deadlock run bash -c 'rlock lock --pid $$ a; exit'
}

@test "a call whose environment was cleared enters where its ancestor lets it" {
	run -0 rlock read a -- "${CLEARED[@]}" rlock read -n a -- echo inside
	assert_output inside
	run -0 rlock sem --permits 2 a -- "${CLEARED[@]}" rlock sem --permits 2 -n a -- echo inside
	assert_output inside
	run -75 rlock sem --permits 1 b -- "${CLEARED[@]}" rlock sem --permits 1 -w 10ms b -- echo inside
	redis del a b 'rlock_total:{a}' 'rlock_total:{b}' >/dev/null
	no_keys
}

@test "a call with --owner within a lock of its process is another owner, and may wait for it" {
	run -75 rlock run a -- rlock lock --owner ci --lease 1m -w 100ms a
	assert_output --partial 'timed out'
	run -0 rlock run a -- sh -c 'rlock lock --owner ci --lease 1m -w 30s a >/dev/null 2>&1 &'
	wait_until 5 is_held a
	wait_until 5 rlock unlock --owner ci a
	no_keys
}

@test "a call whose environment was cleared waits for a holder that is no ancestor" {
	hold_in_background a
	run -75 rlock run b -- "${CLEARED[@]}" rlock run -w 100ms a -- true
	assert_output --partial 'timed out'
	let_go
	ended_with 0
	no_keys
}

@test "in another database the owner is another one" {
	run -0 rlock run a -- rlock run -n --db 1 a -- \
		sh -c '$REDIS hkeys a; redis-cli -s "$SERVER_SOCKET" -n 1 hkeys a; redis-cli -s "$SERVER_SOCKET" -n 1 hvals a'
	assert_not_equal "${lines[0]}" "${lines[1]}"
	assert_line -n 2 1
	assert_equal "$(redis -n 1 dbsize)" 0
	no_keys
}

@test "on another server the owner is another one" {
	start_second_server
	run -0 rlock run a -- rlock run -n -u "unix://$OTHER" a -- \
		sh -c '$REDIS hkeys a; ask_redis "$OTHER" hkeys a; ask_redis "$OTHER" hvals a'
	assert_not_equal "${lines[0]}" "${lines[1]}"
	assert_line -n 2 1
	# What is busy there is not entered because of what is held here.
	ask_redis "$OTHER" hset a other:1 1 >/dev/null
	run -75 rlock run a -- rlock run -n -u "unix://$OTHER" a -- true
}

@test "renew in another database does not take the hold here for a lost one there" {
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

@test "an RLOCK_HELD that cannot be understood is ignored" {
	local value
	for value in '' ' ' '/' '//////' 'a' 'a/b/c' '%' '%%%' '%00' '%zz/plain/a/x:1/0/1' \
		'unix:/plain/a/%00/0/1' 'unix:/plain/a//0/1' 'unix:/plain/a/%0a:1/0/1' \
		'unix:/plain/a/x y:1/0/99999999999999999999999' 'unix:/none/a/x:1/0/-1' \
		$'\x01\x02\xff' 'unix:/plain/a/x:1/0/1/2/3 unix:/plain/a/x:1'; do
		RLOCK_HELD=$value run -0 rlock run a -- sh -c '$REDIS hvals a; exit 0'
		assert_output 1
		RLOCK_HELD=$value run -1 rlock unlock a
		held_by_stranger a
		RLOCK_HELD=$value run -75 rlock run -n a -- true
		redis flushall >/dev/null
	done
}

@test "a huge RLOCK_HELD is ignored" {
	local word=unix:/plain/a/x:1/00000000000000000000000000000000/30000 value
	value=$(printf "$word %.0s" {1..1500})
	RLOCK_HELD=$value run -0 rlock run a -- sh -c '$REDIS hvals a'
	assert_output 1
	value=$(printf 'unix:%%2f/plain/a/x:%d/00000000000000000000000000000000/30000 ' {1..1500})
	RLOCK_HELD=$value run -0 rlock run a -- sh -c '$REDIS hvals a'
	assert_output 1
	value=$(head -c 100000 /dev/zero | tr '\0' %)
	RLOCK_HELD=$value run -0 rlock run a -- sh -c '$REDIS hvals a'
	assert_output 1
	no_keys
}

@test "an inner command still enters its lock behind a huge RLOCK_HELD" {
	local value
	value=$(printf 'unix:/plain/a/x:%d/00000000000000000000000000000000/30000 ' {1..1500})
	RLOCK_HELD=$value run -0 timeout 10 rlock run a -- rlock run -n a -- ask_redis "$SERVER_SOCKET" hvals a
	assert_output 2
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
	kept_holds_go fair 1
	kept_holds_go wlock 2
	kept_holds_go rlock 2
}
