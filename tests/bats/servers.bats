#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree: the same lock on each, had everywhere or nowhere, lost
# when one of them is. How it is with a quorum smaller than all: tests/bats/quorum.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() {
	start_servers 30 --databases 40
	SERVERS=(1 2 3)
	# From here on each of these knows the scripts: a request whose reply gets lost has been carried out.
	RLOCK_URL=$(urls_of 1 2 3) rlock run -t 3s warm -- sleep 1.4
}

teardown_file() { stop_servers; }

setup() {
	common_setup
	VIA=()
	use_servers 1 2 3
	U=(-u "unix://$BATS_FILE_TMPDIR/1/server/redis.sock" -u "unix://$BATS_FILE_TMPDIR/2/server/redis.sock"
		-u "unix://$BATS_FILE_TMPDIR/3/server/redis.sock")
	on_each ask_server flushall
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	local number
	for number in "${SERVERS[@]}"; do
		thaw_server "$number" 2>/dev/null || :
	done
	watchful_teardown
}

# ---- what the tests share ----

# listen_to COMMAND [ARG...]: as in_background, messages in the file "said".
listen_to() {
	in_background sh -c 'exec "$@" 2>said' sh "$@"
}

# hold NAME [OPTION...]: as hold_in_background, on all servers, messages in the file "said".
hold() {
	listen_to rlock run "${@:2}" "$1" -- until_let_go
	wait_until 5 on_each is_held "$1"
}

# wait_for NAME [OPTION...]: a waiter, which makes the file "ran" once it has the lock. Sets PID. Returns
# when it waits.
wait_for() {
	listen_to rlock run "${@:2}" "$1" -- touch ran
	wait_until 8 has_listener "$1"
}

# On one of the servers at least.
has_listener() {
	local number
	for number in "${SERVERS[@]}"; do
		! on "$number" has_waiters "$1" || return 0
	done
	return 1
}

# A client that is no rlock releases its lock.
stranger_leaves() {
	redis del "$1" >/dev/null
	redis publish "redisson_lock__channel:{$1}" 0 >/dev/null
}

keys_are() {
	assert_equal "$(redis --raw keys '*' | LC_ALL=C sort)" "$(printf '%s\n' "${@}")"
}

ttl_between() {
	local ttl
	ttl=$(redis pttl "$2")
	((ttl >= $1 && ttl <= $3)) || {
		echo "$2 has $ttl ms to live, which is not $1 to $3" >&2
		return 1
	}
}

# sorted LINE...: in the order of same_on_all.
sorted() {
	printf '%s\n' "$@" | LC_ALL=C sort
}

# same_on_all COMMAND [ARG...]: prints what redis says, sorted, which is the same on all servers.
same_on_all() {
	local number said=none
	for number in "${SERVERS[@]}"; do
		[ "$said" = none ] || assert_equal "$(on "$number" redis --raw "$@" | LC_ALL=C sort)" "$said"
		said=$(on "$number" redis --raw "$@" | LC_ALL=C sort)
	done
	echo "$said"
}

# The first moment when a lease ends on one of the servers, in this machine's ms.
first_lease_end_ms() {
	local number
	for number in "${SERVERS[@]}"; do
		on "$number" lease_end_ms "$1"
	done | sort -n | head -n 1
}

# all_take_turns VERB COUNT TURNS NAME [OPTION...]: so many shells take so many turns each, every one with
# the servers in another order. None may fail, nor meet another.
all_take_turns() {
	local shell orders=('1 2 3' '3 2 1' '2 3 1' '1 3 2' '3 1 2' '2 1 3') pids=()
	for ((shell = 0; shell < $2; shell++)); do
		# shellcheck disable=SC2086
		in_background env RLOCK_URL="$(urls_of ${orders[shell % 6]})" bash -c '
			for ((turn = 0; turn < $1; turn++)); do
				rlock "${@:2}" -- shared_turn write || echo "$? in turn $turn" >>wrong
			done' bash "$3" "$1" "${@:5}" "$4"
		pids+=("$PID")
	done
	wait "${pids[@]}"
	[ ! -e wrong ] || fail "$(head wrong)"
	has_lines turns $(($2 * $3))
	on_each no_keys
	nothing_runs
}

# A command that counts how often it ran, prints the hold counts of all servers and exits with 7.
runs_once='echo >>ran
	for number in 1 2 3; do
		ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" hvals a
	done
	exit 7'

# run_counted [OPTION...]: that command under the lock "a"; it has to run once, with one hold on each, and
# nothing may be left.
run_counted() {
	run -7 --separate-stderr rlock run "$@" a -- sh -c "$runs_once"
	assert_output $'1\n1\n1'
	# shellcheck disable=SC2154 # run sets it
	assert_equal "$stderr" ''
	has_lines ran 1
	on_each no_keys
}

# Words that stand in one kind of request only, for the lock "a", as in tests/bats/faults.bats.
ACQUIRE='redisson_lock_token:{a}'
RELEASE='redisson_lock__channel:{a}!redisson_lock_token:{a}'
RENEW='rlock_holds:{a}'

faults_happened() {
	proxy_to "$1" state | grep -q 'rules=0'
}

# ---- what stands on the servers ----

@test "a lock is the same hash on each server, of the same owner, and nothing is left behind it" {
	in_background rlock run "${U[@]}" a -- sh -c 'echo "$RLOCK_OWNER" >owner; exec until_let_go'
	wait_until 5 has_lines owner 1
	assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner)")"
	assert_equal "$(same_on_all hkeys 'rlock_holds:{a}' | wc -l)" 1
	on_each keys_are a 'rlock_holds:{a}'
	on_each ttl_between 25000 a 30000
	on_each ttl_between 25000 'rlock_holds:{a}' 30000
	let_go
	ended_with 0
	on_each no_keys
}

# names_all_servers COMMAND...: it locks "a" on all servers.
names_all_servers() {
	run -0 "$@" a -- sh -c "${runs_once%exit 7}"
	assert_output $'1\n1\n1'
	on_each no_keys
}

@test "several servers can be named by several -u, by one, by RLOCK_URL and by the file" {
	local a b c
	a=$(urls_of 1) b=$(urls_of 2) c=$(urls_of 3)
	names_all_servers env -u RLOCK_URL rlock run "${U[@]}"
	names_all_servers env -u RLOCK_URL rlock run -u "$a $b" --url "$c"
	names_all_servers env RLOCK_URL="  $a   $b $c " rlock run
	printf 'url = %s\n' "$a" "$b" "$c" >lines
	names_all_servers env -u RLOCK_URL rlock run --config lines
	echo "url = $a $b $c" >line
	names_all_servers env -u RLOCK_URL rlock run --config line
}

@test "servers that are named at a higher place replace all of a lower one" {
	run -0 rlock run -u "$(urls_of 2)" a -- ask_redis "$SERVER_SOCKET" exists a
	assert_output 0
	echo "url = $(urls_of 1)" >conf
	names_all_servers rlock run --config conf
}

@test "verbose tells of each server" {
	run -0 rlock run -v a -- true
	for number in 1 2 3; do
		assert_output --partial "$(urls_of $number)"
	done
}

@test "a fair lock, a read lock and a write lock are the same on each server, too" {
	local verb
	for verb in fair rlock wlock; do
		rm -f owner let-go
		in_background rlock "$verb" a -- sh -c 'echo "$RLOCK_OWNER" >owner; exec until_let_go'
		wait_until 5 has_lines owner 1
		case $verb in
		fair) assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner)")" ;;
		rlock) assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner)" mode read)" ;;
		wlock) assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner):write" mode write)" ;;
		esac
		let_go
		ended_with 0
		on_each no_keys
	done
}

@test "several names are locked together on several servers, and released together" {
	in_background rlock run b a c -- until_let_go
	for name in a b c; do
		wait_until 5 on_each is_held $name
	done
	assert_equal "$(same_on_all hgetall b)" "$(same_on_all hgetall a)"
	run -75 rlock run -n c d -- true
	on_each is_free d
	let_go
	ended_with 0
	on_each no_keys
}

@test "all servers are asked at the same time" {
	for number in 1 2 3; do
		start_proxy_to $number
		proxy_to $number delay 2000
	done
	# To acquire the lock, and to release it.
	took_less 8 rlock run a -- true
	on_each no_keys
}

@test "a lock is renewed on all servers" {
	hold a -t 6s
	wait_until 10 on_each ttl_between 1 a 5000
	wait_until 10 on_each is_renewed a 6000
	wait_until 10 on_each ttl_between 1 a 5000
	let_go
	ended_with 0
	said_nothing
	on_each no_keys
}

@test "a fixed lease, a longest and a least time hold on all servers" {
	not_under_valgrind 'a second is too short for it to stop a command'
	run -124 rlock run -l 2s a -- until_let_go
	assert_one_line '^rlock: a: .*lease'
	on_each no_keys
	run -124 rlock run --max-run 100ms a -- until_let_go
	on_each no_keys
	run -3 rlock run --at-least 20s a -- sh -c 'exit 3'
	on_each ttl_between 15000 a 20000
	run -75 rlock run -n a -- true
	run -75 rlock run -n -u "$(urls_of 2)" a -- true
}

# ---- within each other ----

@test "a lock on several servers is re-entered by a command within" {
	run -7 rlock run a -- sh -c "rlock run -n a -- sh -c '$runs_once'; $runs_once"
	assert_output $'2\n2\n2\n1\n1\n1'
	on_each no_keys
}

@test "a lock is re-entered with the servers in another order" {
	RLOCK_URL=$(urls_of 3 1 2) run -7 rlock run a -- sh -c "rlock run -n ${U[*]} a -- sh -c '$runs_once'; $runs_once"
	assert_output $'2\n2\n2\n1\n1\n1'
	on_each no_keys
}

@test "a command within can enter the lock of one of the servers, and the lock of all within that of one" {
	run -7 rlock run a -- sh -c "rlock run -n -u $(urls_of 2) a -- sh -c '$runs_once'; $runs_once"
	assert_output $'1\n2\n1\n1\n1\n1'
	on_each no_keys
	run -7 rlock run -u "$(urls_of 2)" a -- sh -c "rlock run -n a -- sh -c '$runs_once'; $runs_once"
	assert_output $'1\n2\n1\n\n1'
	on_each no_keys
}

@test "a write lock is entered to read on all servers, and a read lock to write is refused on all" {
	run -0 rlock wlock a -- rlock rlock -n a -- echo in
	assert_output in
	run -64 rlock rlock a -- rlock wlock a -- touch ran
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on_each no_keys
}

# ---- without a command ----

@test "a script locks, renews and unlocks on all servers" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock lock --pid $$ --lease 20s a && sh -c "$1"
			rlock renew --pid $$ a
			rlock unlock --pid $$ a && sh -c "$1"
		' "$shell" "${runs_once%exit 7}"
		assert_line -n 0 1
		assert_line -n 1 1
		assert_line -n 2 1
		assert_line -n 3 --regexp '^(19.*|20)s$'
		assert_equal "${#lines[@]}" 4
		on_each no_keys
	done
}

@test "a script that ends frees its lock on all servers within a second" {
	run -0 bash -c 'rlock lock --pid $$ a b; exit'
	wait_until 5 on_each no_keys
	in_background bash -c 'rlock fair --pid $$ a; until_let_go'
	wait_until 5 on_each is_held a
	kill -KILL "$PID"
	wait_until 5 on_each no_keys
	wait_until 5 no_state_files
}

@test "renew of a fixed lease renews it on all servers" {
	in_background bash -c 'rlock lock --pid $$ -l 6s a && touch ready; until_let_go; exit 0'
	wait_until 5 file_exists ready
	wait_until 4 on_each ttl_between 1 a 4000
	run -0 rlock renew --pid "$PID" a
	on_each ttl_between 4500 a 6000
	let_go
	ended_with 0
	wait_until 5 on_each no_keys
}

@test "a script's lock that is lost on one of the servers ends the script" {
	in_background bash -c 'rlock lock --pid $$ -t 1s a; until_let_go'
	wait_until 5 on_each is_held a
	on 3 redis del a
	ended_with 143
	wait_until 2 on_each no_keys
}

@test "unlock with the servers in another order shows the line that does it" {
	run -0 bash -c '
		rlock lock --pid $$ a
		said=$(rlock unlock --pid $$ -u "$3" -u "$1" -u "$2" a 2>&1) && exit
		eval "${said##*: }"' bash "$(urls_of 1)" "$(urls_of 2)" "$(urls_of 3)"
	on_each no_keys
}

@test "an owner's lock is acquired, renewed and released on all servers" {
	rlock lock --owner job-1 --lease 20s a
	assert_equal "$(same_on_all hgetall a)" $'1\njob-1:0'
	rlock renew --owner job-1 --lease 60s a
	on_each ttl_between 55000 a 60000
	run -75 rlock lock -n --owner job-2 --lease 20s a
	run -1 rlock unlock --owner job-2 a
	rlock unlock --owner job-1 a
	on_each no_keys
	run -1 rlock unlock --owner job-1 a
	assert_one_line '^rlock: a: '
}

@test "an owner's lock is re-entered, and released hold by hold" {
	rlock lock --owner job --lease 20s a
	rlock lock --owner job --lease 20s a
	assert_equal "$(same_on_all hvals a)" 2
	rlock unlock --owner job a
	assert_equal "$(same_on_all hvals a)" 1
	rlock unlock --owner job a
	on_each no_keys
}

@test "unlock --force breaks a lock on all servers, and its holder finds out" {
	hold a -t 1s
	run -0 rlock unlock --force a
	assert_output --partial 'broken'
	on_each is_free a
	ended_with 76
	wait_until 2 on_each no_keys
}

@test "unlock --force breaks what only one of the servers has" {
	on 2 held_by_stranger a
	run -0 rlock unlock --force a
	on_each no_keys
	run -1 rlock unlock --force a
	assert_one_line '^rlock: a: '
}

@test "unlock --force --holder breaks no other owner's lock" {
	hold a
	run -1 rlock unlock --force --holder somebody:1 a
	on_each is_held a
	run -0 rlock unlock --force --holder "$(redis hkeys a)" a
	on_each is_free a
}

# ---- one at a time ----

@test "a caller that names the same servers is kept out, in whatever order" {
	hold a
	for order in '1 2 3' '1 3 2' '2 1 3' '2 3 1' '3 1 2' '3 2 1'; do
		# shellcheck disable=SC2086
		RLOCK_URL=$(urls_of $order) run -75 rlock run -n a -- touch ran
		assert_output ''
	done
	[ ! -e ran ]
	let_go
	ended_with 0
	on_each no_keys
}

@test "a caller that names one of the servers is kept out, and keeps those out that name all" {
	local number
	hold a
	for number in 1 2 3; do
		run -75 rlock run -n -u "$(urls_of $number)" a -- touch ran
	done
	let_go
	ended_with 0
	for number in 1 2 3; do
		run -75 rlock run -u "$(urls_of $number)" a -- env -u RLOCK_HELD rlock run -n a -- touch ran
	done
	[ ! -e ran ]
	on_each no_keys
}

@test "what Java holds on one server keeps all out, which say by which owner, and nothing is left on the others" {
	local number
	for number in 1 2 3; do
		on $number held_by_stranger a
		run -75 rlock run -n a -- touch ran
		assert_output ''
		run -75 rlock run -w 200ms a -- touch ran
		assert_one_line '^rlock: a: .*held by 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1'
		on $number redis del a >/dev/null
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "the wait time is kept to, and its end is told with the holder's note" {
	hold a --note 'the other one'
	start=$(now_ms)
	run -75 rlock run -w 600ms a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 600 && took < 5000)) || fail "took $took ms"
	assert_one_line '^rlock: a: .*held by the other one'
	run -9 rlock run -n -E 9 a -- touch ran
	run -75 rlock run -q -w 50ms a -- touch ran
	assert_output ''
	run -75 rlock run -v -w 1.1s a -- touch ran
	assert_equal "$(grep -c 'a: waiting for the other one' <<<"$output")" 1
	[ ! -e ran ]
}

@test "a waiter is woken by the release on all servers, long before the lease would end" {
	hold a
	holder=$PID
	wait_for a
	let_go
	took_less 1.8 wait_until 2 file_exists ran
	ended_with 0
	ended_with 0 "$holder"
	on_each no_keys
}

@test "a waiter is woken when Java has released its locks, server by server" {
	on_each held_by_stranger a
	wait_for a
	on 2 stranger_leaves a
	on 1 stranger_leaves a
	stays 0.3 is_running "$PID"
	[ ! -e ran ]
	on 3 stranger_leaves a
	took_less 2 wait_until 3 file_exists ran
	ended_with 0
	on_each no_keys
}

@test "a waiter is woken by the holder of the lock on one of the servers only" {
	local number
	for number in 1 3; do
		rm -f ran
		on $number held_by_stranger a
		listen_to rlock run a -- touch ran
		let_pass 0.7
		[ ! -e ran ]
		on $number stranger_leaves a
		took_less 1.8 wait_until 3 file_exists ran
		ended_with 0
	done
	on_each no_keys
}

@test "a waiter for one of the servers keeps none from the others" {
	on 2 held_by_stranger a
	wait_for a
	stays 0.3 on 1 is_free a
	stays 0.3 on 3 is_free a
	run -0 rlock run -n -u "$(urls_of 1)" a -- true
	run -0 rlock run -n -u "$(urls_of 3)" a -- true
	is_running "$PID"
	on 2 stranger_leaves a
	took_less 2 ended_with 0
	on_each no_keys
}

@test "a try that failed releases at once what it got, of every kind" {
	local verb
	for verb in run fair rlock wlock; do
		case $verb in
		rlock | wlock) on 2 redis hset a mode write somebody:1:write 1 ;;
		*) on 2 held_by_stranger a ;;
		esac >/dev/null
		on 2 redis pexpire a 30000 >/dev/null
		run -75 rlock $verb -n b a c -- touch ran
		on 1 no_keys
		on 3 no_keys
		on 2 keys_are a
		run -75 rlock $verb -w 300ms b a c -- touch ran
		assert_one_line '^rlock: a: '
		on 1 no_keys
		on 3 no_keys
		on 2 keys_are a
		on 2 redis flushall >/dev/null
	done
	[ ! -e ran ]
}

@test "readers share the lock on all servers, and a writer waits for both" {
	local first second
	in_background rlock rlock a -- inside r1
	first=$PID
	in_background rlock rlock a -- inside r2
	second=$PID
	wait_until 5 file_exists in-r1
	wait_until 5 file_exists in-r2
	run -75 rlock wlock -n a -- touch ran
	in_background rlock wlock a -- touch ran
	touch out-r1
	ended_with 0 "$first"
	stays 0.3 is_running "$PID"
	touch out-r2
	ended_with 0 "$second"
	took_less 2 ended_with 0
	[ -e ran ]
	wait_until 5 on_each no_keys
}

@test "a fair lock is acquired in the order of the calls, on several servers" {
	local who pids=()
	hold f
	holder=$PID
	for who in 1 2 3 4 5; do
		in_background rlock fair f -- sh -c 'echo "$0" >>order' $who
		pids+=("$PID")
		wait_until 5 on_each has_in_queue f $who
	done
	let_go
	ended_with 0 "$holder"
	for who in "${pids[@]}"; do
		ended_with 0 "$who"
	done
	assert_equal "$(paste -s -d ' ' order)" '1 2 3 4 5'
	wait_until 5 on_each no_keys
}

@test "a caller that wants a fair lock on several servers waits for those that came before on one of them" {
	local holder
	hold f
	holder=$PID
	# A thread of Java's, which names this server alone.
	on 2 redis rpush 'redisson_lock_queue:{f}' java:1 >/dev/null
	on 2 redis zadd 'redisson_lock_timeout:{f}' 99999999999999 java:1 >/dev/null
	in_background rlock fair f -- true
	wait_until 5 on 2 has_in_queue f 2
	stays 2.5 on 2 is_first_in_queue f java:1
	on 2 redis lrem 'redisson_lock_queue:{f}' 0 java:1 >/dev/null
	on 2 redis zrem 'redisson_lock_timeout:{f}' java:1 >/dev/null
	let_go
	ended_with 0 "$holder"
	ended_with 0
	wait_until 5 on_each no_keys
}

is_first_in_queue() {
	redis_says "$2" lindex "redisson_lock_queue:{$1}" 0
}

has_in_queue() {
	redis_says "$2" llen "redisson_lock_queue:{$1}"
}

# ---- many ----

@test "six shells that name the servers in different orders take their turns, one at a time" {
	took_less 30 all_take_turns run 6 25 a
}

@test "four shells that name the servers in different orders take their turns of a fair lock" {
	took_less 30 all_take_turns fair 4 6 a
}

@test "four shells take their turns of two names on all servers" {
	took_less 30 all_take_turns run 4 10 a b
}

@test "one that names one of the servers and one that names all of them take turns" {
	local number pids=()
	for number in 1 2 3 '1 2 3' '3 2 1'; do
		# shellcheck disable=SC2086
		in_background env RLOCK_URL="$(urls_of $number)" TOGETHER="$number" bash -c '
			case $TOGETHER in
			*" "*) command=(shared_turn write) ;;
			# Those of different servers do not exclude each other.
			*) command=(shared_turn read) ;;
			esac
			for ((turn = 0; turn < 15; turn++)); do
				rlock run -w 30s a -- "${command[@]}" || echo "$? in turn $turn" >>wrong
			done'
		pids+=("$PID")
	done
	wait "${pids[@]}"
	[ ! -e wrong ] || fail "$(head wrong)"
	has_lines turns 75
	on_each no_keys
}

# ---- the end of a wait ----

@test "a signal that ends a wait leaves nothing on any server" {
	local verb signal
	for verb in run fair wlock; do
		rm -f let-go
		in_background rlock $verb a -- until_let_go
		holder=$PID
		wait_until 5 on_each is_held a
		for signal in TERM $([ $verb != run ] || echo INT); do
			in_background rlock $verb a b -- touch ran
			let_pass 0.2
			kill -s "$signal" "$PID"
			took_less 4 ended_with $((128 + $(kill -l "$signal")))
			on_each is_free b
		done
		let_go
		ended_with 0 "$holder"
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "the end of a wait time leaves nothing on any server, and no line" {
	local verb
	for verb in run fair rlock; do
		rm -f let-go
		in_background rlock "${verb/rlock/wlock}" a -- until_let_go
		wait_until 5 on_each is_held a
		run -75 rlock $verb -w 300ms a b -- touch ran
		on_each is_free b
		let_go
		ended_with 0
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "a signal ends a wait at once though one server is frozen, which forgets the waiter when it goes on" {
	local verb
	for verb in run fair; do
		rm -f let-go
		in_background rlock $verb a -- until_let_go
		holder=$PID
		wait_until 5 on_each is_held a
		in_background rlock $verb a b -- touch ran
		let_pass 0.3
		freeze_server 3
		let_pass 0.3
		kill -s TERM "$PID"
		took_less 4 ended_with 143
		thaw_server 3
		let_go
		ended_with 0 "$holder"
		wait_until 5 on_each no_keys
	done
}

# ---- servers that are gone ----

@test "one server that is not there: 69 at once, in one line, and nothing is left on the others" {
	local verb
	VIA[2]=unix://$PWD/nobody.sock
	use_servers 1 2 3
	SERVERS=(1 3)
	for verb in run fair rlock wlock; do
		took_less 2 run -69 rlock $verb a -- touch ran
		assert_one_line '^rlock: a: .*2 of 3 servers .*nobody.sock'
		on_each no_keys
		took_less 2 run -69 rlock $verb -n a b -- touch ran
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "one server that is not there is tried again for the wait time that was given" {
	VIA[2]=unix://$PWD/nobody.sock
	use_servers 1 2 3
	start=$(now_ms)
	run -69 rlock run -w 1s a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 900 && took < 6000)) || fail "took $took ms"
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on 1 no_keys
	on 3 no_keys
}

@test "one server that comes up within the wait time is used" {
	take_servers 3
	crash_server "${SERVERS[1]}"
	in_background rlock run -w 10s a -- touch ran
	let_pass 0.3
	is_running "$PID"
	revive_server "${SERVERS[1]}"
	took_less 3 ended_with 0
	[ -e ran ]
	on_each no_keys
}

@test "one frozen server: 69 at --connect-timeout, and nothing is left on any" {
	freeze_server 2
	took_less 1.5 run -69 rlock run --connect-timeout 500ms a -- touch ran
	assert_one_line '^rlock: a: .*2 of 3 servers'
	on 1 no_keys
	on 3 no_keys
	thaw_server 2
	wait_until 2 on_each no_keys
	[ ! -e ran ]
}

@test "one frozen server is waited for, and the lock is acquired when it goes on" {
	freeze_server 2
	in_background rlock run -w 10s --connect-timeout 500ms a -- touch ran
	let_pass 1.2
	is_running "$PID"
	thaw_server 2
	took_less 4 ended_with 0
	[ -e ran ]
	wait_until 2 on_each no_keys
}

@test "a lock that is held on the others is not acquired, whether one server is there or not" {
	VIA[2]=unix://$PWD/nobody.sock
	use_servers 1 2 3
	on 3 held_by_stranger a
	run rlock run -n a -- touch ran
	[ "$status" = 75 ] || [ "$status" = 69 ]
	on 1 no_keys
	[ ! -e ran ]
}

@test "a waiter survives a restart of one server, and gets the lock" {
	take_servers 3
	on "${SERVERS[2]}" held_by_stranger a
	on "${SERVERS[0]}" held_by_stranger a
	wait_for a
	crash_server "${SERVERS[0]}"
	let_pass 0.5
	is_running "$PID"
	revive_server "${SERVERS[0]}"
	let_pass 0.5
	is_running "$PID"
	on "${SERVERS[2]}" stranger_leaves a
	took_less 4 ended_with 0
	[ -e ran ]
	on_each no_keys
}

crash_at_known_end() {
	end=$(first_lease_end_ms a)
	crash_server "$1"
}

freeze_at_known_end() {
	end=$(first_lease_end_ms a)
	freeze_server "$1"
}

@test "one of the servers is killed: the command is stopped before the lease ends, 76" {
	take_servers 3
	hold_with_family a -t 5s
	wait_until 6 on_each is_renewed a 5000
	before_renewal "$PID" crash_at_known_end "${SERVERS[1]}"
	watch_family 8
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+m?s: .+: terminating the command$'
	wait_until 2 on "${SERVERS[0]}" no_keys
	wait_until 2 on "${SERVERS[2]}" no_keys
}

@test "one of the servers is frozen: the command is stopped before the lease ends, 76" {
	hold_with_family a -t 5s
	wait_until 6 on_each is_renewed a 5000
	before_renewal "$PID" freeze_at_known_end 2
	watch_family 8
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at '
	thaw_server 2
	wait_until 2 on_each no_keys
}

@test "one of the servers is frozen over a renewal, but not for long: nothing happens" {
	hold a -t 9s
	wait_until 8 on_each is_renewed a 9000
	freeze_server 3
	let_pass 3.4
	thaw_server 3
	wait_until 10 on_each is_renewed a 7500
	let_go
	ended_with 0
	said_nothing
	on_each no_keys
}

@test "a lock that is deleted on one of the servers is lost: the command is stopped, 76" {
	hold_with_family a -t 1s
	wait_until 5 on_each is_held a
	on 3 redis del a
	took_less 5 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	# What the others have of it ends with its lease.
	wait_until 2 on_each no_keys
}

@test "a server that comes back empty: the lock is lost" {
	take_servers 3
	hold_with_family a -t 2s
	wait_until 5 on_each is_held a
	crash_server "${SERVERS[2]}"
	revive_server "${SERVERS[2]}"
	took_less 3 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	wait_until 3 on_each no_keys
}

@test "a release that one frozen server does not answer: a warning within 8 s, and the command's status" {
	listen_to rlock run a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	freeze_server 2
	let_go
	took_less 6.5 ended_with 7
	said_once '^rlock: a: release failed: '
	on 1 no_keys
	on 3 no_keys
	thaw_server 2
	wait_until 2 on_each no_keys
}

@test "a release that one server does not live to see: a warning within the lease, and the command's status" {
	take_servers 3
	listen_to rlock run -t 2s a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	crash_server "${SERVERS[1]}"
	let_go
	took_less 3 ended_with 7
	said_once '^rlock: a: release failed: '
	on "${SERVERS[0]}" no_keys
	on "${SERVERS[2]}" no_keys
}

@test "a release that one server does not answer at once is delivered" {
	hold a
	freeze_server 3
	let_go
	let_pass 1.5
	is_running "$PID"
	thaw_server 3
	took_less 5 ended_with 0
	said_nothing
	on_each no_keys
}

@test "a release that a slow server carries out while another one is not there is no loss" {
	start_proxy_to 1
	start_proxy_to 2
	proxy_to 2 delay 150
	listen_to rlock run a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	proxy_to 1 refuse on
	proxy_to 1 cut
	let_go
	wait_until 5 on 2 is_free a
	let_pass 0.4
	proxy_to 1 refuse off
	took_less 5 ended_with 7
	said_nothing
	on_each no_keys
}

@test "a release reaches a server whose connection was closed meanwhile" {
	hold a
	on 2 redis client kill type normal
	let_go
	took_less 4 ended_with 0
	said_nothing
	on_each no_keys
}

# ---- the keeper, the renewer ----

# hold_and_know NAME [OPTION...]: as hold; sets RENEWER and CHILD, too.
hold_and_know() {
	hold "$@"
	wait_until 5 has_command "$PID"
	CHILD=$(command_of "$PID")
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
	BACKGROUND+=("$CHILD" "$RENEWER")
	[ -n "$RENEWER" ]
}

@test "with rlock killed the lock is held on all servers until the command has ended, and released on all" {
	hold_and_know a -t 1s
	kill -s KILL "$PID"
	stays 1.5 on_each is_held a
	is_running "$CHILD"
	let_go
	wait_until 2 on_each no_keys
	wait_until 2 nothing_runs
}

@test "a renewer that is killed is replaced, and the lock stays held on all servers" {
	hold_and_know a -t 2s
	for _ in 1 2; do
		kill -s KILL "$RENEWER"
		stays 1.6 on_each is_held a
		wait_until 5 has_renewer "$PID"
		RENEWER=$(renewer_of "$PID")
		[ -n "$RENEWER" ]
	done
	let_go
	ended_with 0
	said_nothing
	on_each no_keys
}

@test "with rlock and its renewer killed the lock is free on all servers after a lease" {
	hold_and_know a -t 1s
	kill -s KILL "$PID" "$RENEWER"
	wait_until 3 on_each no_keys
	is_running "$CHILD"
	wait_until 5 nothing_runs
}

@test "rlock killed at any moment: none meets another, and after a lease nothing is left" {
	local start took lane lanes=()
	start=${EPOCHREALTIME/./}
	rlock run measured -- true
	took=$((${EPOCHREALTIME/./} - start))
	lane() {
		local i
		for ((i = 0; i < 6; i++)); do
			timeout --foreground -s KILL "$(awk -v us=$((RANDOM * 4 * took / 32768)) 'BEGIN { printf "%.6f", us / 1e6 + 1e-4 }')" \
				rlock run -t 4s "lock$1.$i" -- sh -c 'mkdir "in-$0" || echo "$0" >>wrong; rmdir "in-$0"' "lock$1.$i" 3>&- &
			rlock run -w 60s -t 4s "lock$1.$i" -- \
				sh -c 'mkdir "in-$0" || echo "$0" >>wrong; rmdir "in-$0"; echo >>ran' "lock$1.$i" || echo "$?" >>wrong
			wait
		done
	}
	for lane in 1 2 3 4; do
		lane $lane 2>>said &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	wait_until 10 on_each no_keys
	[ ! -e wrong ] || fail "$(cat wrong)"
	has_lines ran 24
}

# ---- replies that get lost ----

@test "one server's reply to the acquire is lost: the command runs once, and nothing is left" {
	start_proxy_to 1
	start_proxy_to 3
	proxy_to 1 drop-reply "$ACQUIRE"
	run_counted
	faults_happened 1
	rm ran
	proxy_to 3 drop-reply "$ACQUIRE" 3
	run_counted -w 10s
	faults_happened 3
	rm ran
	proxy_to 1 drop-reply "$ACQUIRE"
	proxy_to 3 drop-reply "$ACQUIRE"
	run_counted -w 10s
}

@test "one server's reply to the acquire is lost for a call that does not wait: the command runs once" {
	start_proxy_to 2
	proxy_to 2 drop-reply "$ACQUIRE"
	run_counted -n
	faults_happened 2
}

@test "the acquire does not reach one server: the command runs once, and nothing is left" {
	start_proxy_to 2
	proxy_to 2 cut-before "$ACQUIRE"
	run_counted -w 5s
	faults_happened 2
}

@test "one server's reply to the acquire comes too late: the command runs once, with one hold" {
	start_proxy_to 2
	proxy_to 2 hold-reply "$ACQUIRE"
	run_counted -w 5s --connect-timeout 300ms
	proxy_to 2 release
	on_each no_keys
}

@test "one server's replies to the acquire are all lost: 69, and nothing is left on any" {
	start_proxy_to 2
	proxy_to 2 drop-reply "$ACQUIRE" 1000
	run -69 rlock run -w 300ms -t 1s a -- touch ran
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on 1 no_keys
	on 3 no_keys
	wait_until 2 on_each no_keys
}

@test "garbage instead of one server's reply to the acquire: not acquired, and nothing is left on any" {
	start_proxy_to 2
	proxy_to 2 garbage "$ACQUIRE" 1000
	run rlock run -t 1s -w 300ms a -- touch ran
	[ "$status" -ne 0 ] && [ "$status" -lt 128 ]
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on 1 no_keys
	on 3 no_keys
	wait_until 2 on_each no_keys
}

@test "one server's reply to the release is lost: the command's status stands, and nothing is left" {
	start_proxy_to 2
	proxy_to 2 drop-reply "$RELEASE"
	run_counted
	rm ran
	proxy_to 2 cut-before "$RELEASE"
	run_counted
	rm ran
	proxy_to 2 drop-reply "$RELEASE" 3
	run_counted
	faults_happened 2
}

@test "one server's replies to renewals are lost: the lock stays held, by one hold" {
	start_proxy_to 2
	hold a -t 2s
	proxy_to 2 drop-reply "$RENEW" 2
	wait_until 3 faults_happened 2
	wait_until 5 on_each is_renewed a 1200
	assert_equal "$(same_on_all hvals a)" 1
	let_go
	ended_with 0
	said_nothing
	on_each no_keys
}

# ---- servers that refuse ----

# nothing_but NUMBER: the others have nothing.
nothing_but() {
	local number
	for number in "${SERVERS[@]}"; do
		[ "$number" = "$1" ] || on "$number" no_keys
	done
}

@test "one server that wants another password: 77 in one line, and nothing is left on the others" {
	local number
	take_servers 3
	for number in "${SERVERS[@]}"; do
		on "$number" redis config set requirepass s3cr3t
		run -77 rlock run a -- touch ran
		assert_one_line '^rlock: a: .*password'
		nothing_but "$number"
		REDISCLI_AUTH=wr0ng run -77 rlock run -w 1s a -- touch ran
		assert_one_line '^rlock: a: '
		refute_output --partial wr0ng
		nothing_but "$number"
		REDISCLI_AUTH=s3cr3t on "$number" redis config set requirepass ''
	done
	[ ! -e ran ]
	on_each no_keys
}

@test "one server where the user lacks a right: 77 with the rule, and nothing is left on the others" {
	local number right
	take_servers 3
	for number in "${SERVERS[@]}"; do
		for right in publish hset evalsha; do
			on "$number" redis acl setuser default "-$right" >/dev/null
			run rlock run -w 2s a -- true
			on_each no_keys
			on "$number" redis acl setuser default +@all >/dev/null
			[ "$right" = publish ] || {
				assert_equal "$status" 77
				assert_one_line "^rlock: a: .*\\+$right"
			}
		done
	done
}

@test "one server with a key of another kind: 78 in one line, the key is left alone, and nothing is left" {
	local number
	for number in 1 2 3; do
		on $number redis set a value
		run -78 rlock run -w 2s a -- touch ran
		assert_one_line '^rlock: a: '
		assert_equal "$(on $number redis get a)" value
		nothing_but $number
		on $number redis del a
		on $number redis hset a mode read somebody 1
		run -78 rlock fair -n b a -- touch ran
		nothing_but $number
		on $number keys_are a
		on $number redis del a
	done
	[ ! -e ran ]
}

@test "one server that is full, or a replica: 69 in one line, and nothing is left on the others" {
	take_servers 3
	on "${SERVERS[1]}" redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	on_each no_keys
	on "${SERVERS[1]}" redis config set maxmemory 0
	on "${SERVERS[2]}" redis replicaof 127.0.0.1 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: '
	on "${SERVERS[0]}" no_keys
	on "${SERVERS[1]}" no_keys
	[ ! -e ran ]
}

# ---- what was typed wrongly ----

# refused STATUS TEXT ARGUMENT...: one line with TEXT, no command started, nothing locked.
refused() {
	run "-$1" --separate-stderr rlock "${@:3}"
	assert_equal "$output" ''
	output=$stderr
	refute_output --regexp $'\n'
	assert_output --regexp '^rlock: .'
	assert_output --partial -- "$2"
	[ ! -e ran ]
}

@test "a quorum that is half of the servers or less, more than there are, or no number is refused" {
	local quorum
	for quorum in 0 1 4 -1 2.5 '' most ALL '2 ' 18446744073709551618; do
		refused 64 quorum run "${U[@]}" --quorum="$quorum" a -- touch ran
	done
	refused 64 quorum run -u redis://a -u redis://b --quorum 1 a -- touch ran
	refused 64 quorum run -u redis://a -u redis://b -u redis://c -u redis://d --quorum 2 a -- touch ran
	refused 64 quorum lock --owner x --lease 9s "${U[@]}" --quorum 1 a
	refused 64 quorum unlock "${U[@]}" --quorum 1 a
}

@test "one server may be given with a quorum that one server can be" {
	local quorum
	for quorum in 1 all majority; do
		run -0 rlock run -u "$(urls_of 1)" --quorum $quorum a -- true
	done
	refused 64 quorum run -u "$(urls_of 1)" --quorum 2 a -- touch ran
	refused 64 quorum run -u "$(urls_of 1)" --quorum 0 a -- touch ran
}

@test "a server that is given twice is refused, however it is spelled" {
	local pair
	for pair in 'redis://a redis://a' 'redis://a redis://a:6379' 'redis://a redis://a/0' 'redis://a redis://a:6379/0' \
		'redis://a redis://A' 'redis://a redis://x@a' 'redis://a redis://x:s3cr3t@a' \
		'redis://[::1] redis://[::1]:6379' 'unix:///a unix:///a?db=0' 'unix:///a unix:///%61'; do
		refused 64 twice run -u redis://b -u "${pair% *}" -u "${pair#* }" a -- touch ran
		refute_output --partial s3cr3t
	done
	RLOCK_URL='redis://b redis://x:s3cr3t@a redis://a' refused 64 twice run a -- touch ran
	refute_output --partial s3cr3t
	refused 64 twice run --db 3 -u unix:///a -u unix:///a a -- touch ran
}

@test "databases of one server are told from each other" {
	run -0 rlock run -u "$(urls_of 1)?db=1" -u "$(urls_of 1)?db=2" a -- \
		sh -c 'for db in 1 2; do redis-cli -s "$SERVER_SOCKET" -n $db exists a; done'
	assert_output $'1\n1'
}

@test "local: cannot be one of several servers" {
	refused 64 local: run -u local: -u "$(urls_of 1)" a -- touch ran
	refused 64 local: run -u "$(urls_of 1) local:" a -- touch ran
	RLOCK_URL="$(urls_of 1) local: $(urls_of 2)" refused 64 local: run a -- touch ran
}

@test "several servers issue no fencing token, and a file that asks for one is ignored" {
	refused 64 fence run --fence "${U[@]}" a -- touch ran
	refused 64 fence lock --fence --pid $$ a
	echo 'fence = yes' >conf
	run -0 rlock run --config conf a -- sh -c 'echo "${RLOCK_TOKEN-none}"'
	assert_output none
	on_each no_keys
}

@test "what is wrong in the file is told with 78" {
	printf 'url = %s\n' redis://a redis://b redis://a >conf
	unset RLOCK_URL
	refused 78 twice run --config conf a -- touch ran
	printf 'url = %s\n' redis://a local: >conf
	refused 78 local: run --config conf a -- touch ran
	printf '%s\n' "url = $(urls_of 1 2 3)" 'quorum = 1' >conf
	refused 78 quorum run --config conf a -- touch ran
	printf '%s\n' "url = $(urls_of 1 2 3)" 'quorum = most' >conf
	refused 78 quorum run --config conf a -- touch ran
	printf '%s\n' "url = $(urls_of 1 2)" 'url = http://x' >conf
	refused 78 conf:2 run --config conf a -- touch ran
}

@test "one bad URL among several is told" {
	refused 64 http://x run -u "$(urls_of 1)" -u http://x a -- touch ran
	refused 64 http://x run -u "$(urls_of 1) http://x" a -- touch ran
	RLOCK_URL="$(urls_of 1) http://x" refused 64 RLOCK_URL run a -- touch ran
}

@test "thirty-two servers are not too many, and thirty-three are refused" {
	local number many=()
	for ((number = 1; number <= 33; number++)); do
		many+=("unix://$SERVER_SOCKET?db=$number")
	done
	run -0 rlock run -u "${many[*]:0:32}" a -- redis-cli -s "$SERVER_SOCKET" -n 32 exists a
	assert_output 1
	refused 64 32 run -u "${many[*]}" a -- touch ran
	run redis info keyspace
	refute_output --partial db
}

# ---- passwords and databases ----

hides_passwords() {
	! grep -qaE 's3cr3t|w0rd' "/proc/$1/cmdline"
}

@test "the passwords of all URLs are hidden in the list of processes, and in messages" {
	need_own_command_line
	local pid
	VIA[1]=redis://:s3cr3t@127.0.0.1:1
	VIA[2]=redis://ci:w0rd@127.0.0.1:2
	in_background rlock run -v -w 3s -u "$(urls_of 1)" --url="$(urls_of 2)" a -- true
	pid=$PID
	in_background rlock run -w 3s -u "redis://127.0.0.1:3 $(urls_of 1)  $(urls_of 2)" a -- true
	wait_until 2 hides_passwords "$pid"
	wait_until 2 hides_passwords "$PID"
	grep -qa 127.0.0.1:2 "/proc/$pid/cmdline"
	use_servers 1 2
	run -69 rlock run -v a -- true
	refute_output --regexp 's3cr3t|w0rd'
	run -69 rlock run -u "$(urls_of 2)" -u "$(urls_of 1)" a -- true
	refute_output --regexp 's3cr3t|w0rd'
	run -64 rlock run -u "$(urls_of 2)" -u "$(urls_of 1)" -u 'redis://:s3cr3t@127.0.0.1:x' a -- true
	refute_output --regexp 's3cr3t|w0rd'
}

@test "the passwords of the URLs are not in RLOCK_HELD, nor in the file of a lock without a command" {
	start_proxy_to 2 tcp:127.0.0.1:0
	VIA[2]=redis://default:s3cr3t@$(sed -n 's/^listen tcp://p' proxy-said-2)
	on 2 redis config set requirepass s3cr3t
	use_servers 1 2 3
	run -0 rlock run a -- sh -c 'echo "$RLOCK_HELD"; printenv | grep -v ^RLOCK_URL='
	refute_output --partial s3cr3t
	run -0 rlock lock --pid $$ a
	run grep -r s3cr3t "$RLOCK_RUNTIME_DIR"
	assert_output ''
	run -0 rlock unlock --pid $$ a
	REDISCLI_AUTH=s3cr3t on 2 redis config set requirepass ''
	on_each no_keys
}

@test "a password file and REDISCLI_AUTH are for each server whose URL has none" {
	local address
	take_servers 3
	start_proxy_to "${SERVERS[1]}" tcp:127.0.0.1:0
	address=$(sed -n 's/^listen tcp://p' "proxy-said-${SERVERS[1]}")
	on "${SERVERS[0]}" redis config set requirepass s3cr3t
	on "${SERVERS[1]}" redis config set requirepass w0rd
	on "${SERVERS[2]}" redis config set requirepass s3cr3t
	VIA[SERVERS[1]]=redis://:w0rd@$address
	use_servers "${SERVERS[@]}"
	echo s3cr3t >file
	chmod 600 file
	run -0 rlock run --password-file file a -- true
	assert_output ''
	REDISCLI_AUTH=s3cr3t run -0 rlock run a -- true
	# shellcheck disable=SC2034 # urls_of uses it
	VIA[SERVERS[1]]=redis://$address
	use_servers "${SERVERS[@]}"
	run -77 rlock run --password-file file a -- true
	refute_output --partial s3cr3t
	REDISCLI_AUTH=s3cr3t on "${SERVERS[0]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[2]}" no_keys
}

@test "--db is the database of each server" {
	run -0 rlock run --db 3 a -- sh -c '
		for number in 1 2 3; do
			redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" -n 3 exists a
			ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" exists a
		done'
	assert_output $'1\n0\n1\n0\n1\n0'
	refused 64 db run --db 3 -u "$(urls_of 1)" -u "$(urls_of 2)?db=1" a -- touch ran
}
