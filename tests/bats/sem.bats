#!/usr/bin/env bats
# Semaphores: at most so many holders at a time, what stands on the server for them is what Redisson's would have put
# there, and permits come back from holders that are gone.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/scripting
load ../lib/proxying
load ../lib/replicas
load ../lib/inspecting

setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# free_permits NAME: prints the counter.
free_permits() { redis get "$1"; }

# has_free NAME COUNT
has_free() { [ "$(free_permits "$1")" = "$2" ]; }

# held_permits NAME: prints how many are in the set.
held_permits() { redis zcard "{$1}:timeout"; }

has_held() { [ "$(held_permits "$1")" = "$2" ]; }

# has_queued NAME COUNT: so many waiters of rlock are in the wake queue.
has_queued() { redis_says "$2" zcard "rlock_queue:{$1}"; }

# No permit is held, no waiter left, and the counter is that.
is_whole() {
	has_free "$1" "$2" && ! list_keys "*{$1}*" | grep -qvx -e "rlock_total:{$1}" -e ''
}

# hold_permit N NAME [OPTION...]: until let_go. Sets PID. The server has the permit before the command runs.
hold_permit() {
	local held
	held=$(held_permits "$2")
	in_background rlock sem --permits "$1" "$2" "${@:3}" -- until_let_go
	wait_until 5 has_more_than "$2" "$held"
	wait_until 5 is_parent_of "$PID" until_let_go
}

# replace_by_list KEY: in one step, so that no renewal finds the key absent.
replace_by_list() {
	redis rpush "$1.new" x
	redis rename "$1.new" "$1"
}

has_more_than() { (($(held_permits "$1") > $2)); }

# A thread of a Java service takes a permit of RPermitExpirableSemaphore: java_permit NAME ID DEADLINE_MS.
java_permit() {
	redis eval '
		redis.call("decrby", KEYS[1], 1)
		redis.call("zadd", KEYS[2], ARGV[2], ARGV[1])' 2 "$1" "{$1}:timeout" "$2" "$3"
}

server_ms() {
	redis eval 'local t = redis.call("time") return t[1] * 1000 + math.floor(t[2] / 1000)' 0
}

# ---- what stands on the server ----

@test "a permit is a member of the set that Redisson has, and one less in the counter" {
	local id score now
	hold_permit 3 a -t 30s
	assert_equal "$(list_keys)" 'a
rlock_ends:{a}
rlock_holds:{a}
rlock_total:{a}
{a}:timeout'
	has_free a 2
	id=$(redis zrange '{a}:timeout' 0 -1)
	[[ $id =~ ^[0-9a-f]{32}:1$ ]]
	assert_equal "$(redis hkeys 'rlock_holds:{a}')" "${id%:1}"
	score=$(redis zscore '{a}:timeout' "$id")
	now=$(server_ms)
	# The lease, and 10 s for a Java client's clock.
	((score > now + 30000 && score <= now + 40000))
	((score == $(redis zscore 'rlock_ends:{a}' "$id") + 10000))
	ttl_between 25000 'rlock_holds:{a}' 30000
	ttl_between 40000 'rlock_ends:{a}' 45000
	assert_equal "$(redis pttl a)" -1
	let_go
	ended_with 0
	is_whole a 3
}

@test "several permits are taken at once, and released at once" {
	hold_permit 5 a --take 3
	has_free a 2
	has_held a 3
	run -75 rlock sem -n --permits 5 --take 3 a -- true
	run -0 rlock sem -n --permits 5 --take 2 a -- true
	let_go
	ended_with 0
	is_whole a 5
}

@test "no more holders than there are permits have one, and a permit that is released is free for the next one" {
	hold_permit 2 a
	hold_permit 2 a
	run -75 rlock sem -n --permits 2 a -- true
	assert_output ''
	run -75 rlock sem --wait 300ms --permits 2 a -- true
	assert_output --regexp '^rlock: a: timed out after 300ms: held by [^ ]+@.* until_let_go \('
	let_go
	wait "${BACKGROUND[@]}"
	run -0 rlock sem -n --permits 2 a -- true
	is_whole a 2
}

@test "the command learns its mode and its owner, and a call inside it acquires a permit of its own" {
	run -0 rlock sem --permits 2 a -- sh -c 'echo "$RLOCK_MODE $RLOCK_NAME"
		rlock sem -n --permits 2 a -- redis-cli -s "$1" get a
		rlock sem -n --permits 1 a -- true || echo "$?"' sh "$SERVER_SOCKET"
	assert_line --index 0 'sem a'
	assert_line --index 1 0
	is_whole a 2
}

@test "of several semaphores all are acquired, or none" {
	hold_permit 1 b
	run -75 rlock sem -n --permits 1 a b -- true
	is_whole a 1
	let_go
	ended_with 0
	run -0 rlock sem -n --permits 1 a b -- redis-cli -s "$SERVER_SOCKET" mget a b
	assert_output '0
0'
	is_whole a 1
	is_whole b 1
}

@test "a key that is no semaphore stays as it is" {
	local key
	redis set a word
	redis hset b f 1
	redis set c 3
	redis hset '{c}:timeout' f 1
	show_contents >before
	for key in a b c; do
		run -78 rlock sem --permits 3 "$key" -- true
		assert_output --regexp "^rlock: $key: not a lock of this kind: the key holds a (string|hash|semaphore whose side key .*)"
	done
	assert_equal "$(show_contents)" "$(cat before)"
}

# ---- what it costs the server ----

@test "the scripts of an uncontended permit run eighteen commands on the server, and two more while others are held" {
	# From here on the server knows the scripts.
	rlock sem --permits 3 a -- true
	redis config resetstat >/dev/null
	rlock sem --permits 3 a -- true
	run -0 commands_in_scripts
	((output <= 18)) || fail "$output commands"
	hold_permit 3 a
	redis config resetstat >/dev/null
	rlock sem --permits 3 a -- true
	run -0 commands_in_scripts
	((output <= 20)) || fail "$output commands"
	let_go
	ended_with 0
}

# ---- how many there are ----

@test "a semaphore that is not there gets as many permits as are asked for, less those that are held" {
	redis zadd '{a}:timeout' "$(($(server_ms) + 60000))" java
	run -0 rlock sem -n --permits 3 a -- redis-cli -s "$SERVER_SOCKET" get a
	assert_output 1
	has_free a 2
	has_held a 1
}

@test "a total that differs is kept, with one warning that names both" {
	redis set a 2
	run -0 rlock sem --permits 3 a -- true
	assert_one_line '^rlock: a: has 2 permits in all, and --permits says 3: --resize changes it$'
	is_whole a 2
	run -0 rlock sem --permits 1 a -- true
	assert_one_line '^rlock: a: has 2 permits in all, and --permits says 1: --resize changes it$'
	is_whole a 2
	run -0 rlock sem --permits 2 a -- true
	assert_output ''
}

@test "a waiter is warned of another total once" {
	redis set a 1
	hold_permit 1 a
	in_background rlock sem --permits 2 a -- true 2>log
	wait_until 5 has_queued a 1
	let_go
	wait "${BACKGROUND[@]}"
	assert_equal "$(grep -c 'permits in all' log)" 1
	is_whole a 1
}

@test "a permit of Java's RSemaphore, which leaves a lower counter only, is no other total" {
	rlock sem --permits 3 a -- true
	redis decr a
	run -0 rlock sem --permits 3 a -- true
	assert_output ''
	redis incr a
	is_whole a 3
}

@test "a greater total is warned of, though what is free and what is held add up to --permits" {
	rlock sem --permits 3 a -- true
	redis decr a
	run -0 rlock sem -n --permits 2 a -- true
	assert_one_line '^rlock: a: has 3 permits in all, and --permits says 2: --resize changes it$'
	redis incr a
	is_whole a 3
}

@test "the total is changed on purpose, while permits are held, too" {
	hold_permit 3 a --take 2
	run -0 rlock sem --permits 5 --resize a
	assert_output ''
	has_free a 3
	run -0 rlock sem --permits 1 --resize a
	has_free a -1
	run -75 rlock sem -n --permits 1 a -- true
	assert_output ''
	let_go
	ended_with 0
	is_whole a 1
	run -0 rlock sem --permits 4 --resize a b
	is_whole a 4
	is_whole b 4
}

@test "a total that is made less lets no waiter in until so many permits came back, and its waiters wait on" {
	hold_permit 2 a
	local first=$PID
	hold_permit 2 a
	in_background rlock sem --permits 2 a -- touch entered
	local waiter=$PID
	wait_until 5 has_queued a 1
	run -0 rlock sem --permits 1 --resize a
	has_free a -1
	kill -TERM "$first"
	ended_with 143 "$first"
	has_free a 0
	stays 1 has_queued a 1
	[ ! -e entered ]
	let_go
	ended_with 0 "$waiter"
	wait "${BACKGROUND[@]}" || :
	wait_until 5 is_whole a 1
}

@test "a greater total wakes as many waiters" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- until_let_go
	in_background rlock sem --permits 1 a -- until_let_go
	wait_until 5 has_queued a 2
	took_less 1.5 rlock sem --permits 3 --resize a
	within 1 has_held a 3
	let_go
	wait "${BACKGROUND[@]}"
	is_whole a 3
}

@test "a counter of 0 or less is told as no permits, once, and --resize raises it" {
	local counter
	for counter in 0 -5; do
		redis flushall >/dev/null
		redis set a "$counter" >/dev/null
		run -75 rlock sem --permits 3 -w 300ms a -- true
		assert_output 'rlock: a: has 0 permits in all, and --permits says 3: --resize changes it
rlock: a: timed out after 300ms: the semaphore has 0 permits in all, and 1 must be free'
		run -1 rlock status a
		assert_output 'a: semaphore, free, 0 of 0 permits free'
		run -0 rlock sem -v --permits 3 --resize a
		assert_line 'rlock: a: has 3 permits in all, and had 0 before'
		is_whole a 3
	done
}

@test "a call that needs more permits than there are says so, and names no holder when there is none" {
	redis set a 3 >/dev/null
	run -75 rlock sem --permits 5 --take 4 -v -n a -- true
	assert_line 'rlock: a: busy: the semaphore has 3 permits in all, and 4 must be free'
	redis decr a >/dev/null
	rlock sem --permits 2 --owner x --lease 1m a
	run -75 rlock sem --permits 2 --take 2 -w 100ms a -- true
	assert_one_line '^rlock: a: timed out after 100ms: held by [^ ]+@.*'
}

@test "a call is told that permits are kept for a waiter, and no id of one" {
	redis set a 1 >/dev/null
	redis set 'rlock_turn:{a}' "$(server_ms)000 0123456789abcdef0123456789abcdef" >/dev/null
	run -75 rlock sem --permits 1 -w 100ms a -- true
	assert_output 'rlock: a: timed out after 100ms: kept for the next waiter'
}

# ---- holders ----

@test "a permit is renewed as long as it is held" {
	hold_permit 1 a -t 1s
	local id score
	id=$(redis zrange '{a}:timeout' 0 -1)
	score=$(redis zscore '{a}:timeout' "$id")
	let_pass 2
	(($(redis zscore '{a}:timeout' "$id") >= score + 1500))
	run -75 rlock sem -n --permits 1 a -- true
	let_go
	ended_with 0
	is_whole a 1
}

@test "a permit whose id is gone is lost, and the command is terminated" {
	hold_permit 2 a -t 1s --take 2
	redis zrem '{a}:timeout' "$(redis zrange '{a}:timeout' 0 0)"
	ended_with 76
	# What was left of the hold came back.
	has_free a 1
	has_held a 0
}

@test "a permit whose keys were deleted or renamed is lost, and the command is terminated" {
	local command
	for command in 'del {a}:timeout' 'rename {a}:timeout b' 'del rlock_holds:{a}' 'rename rlock_holds:{a} b' flushall; do
		redis flushall >/dev/null
		in_background rlock sem --permits 2 -t 1s a -- sh -c 'until_let_go; echo ended >>ended'
		wait_until 5 has_held a 1
		# shellcheck disable=SC2086
		redis $command >/dev/null
		ended_with 76
	done
	[ ! -e ended ]
}

@test "a permit stays held when its counter, ends or total are deleted or renamed: those are made anew" {
	local command
	for command in 'del a' 'rename a b' 'del rlock_ends:{a}' 'del rlock_total:{a}'; do
		redis flushall >/dev/null
		mkfifo go
		in_background rlock sem --permits 2 -t 3s a -- sh -c 'read -r _ <go'
		wait_until 5 has_held a 1
		# shellcheck disable=SC2086
		redis $command >/dev/null
		let_pass 2.5
		run -75 rlock sem -n --permits 2 --take 2 a -- true
		run -0 rlock sem -n --permits 2 a -- true
		echo >go
		ended_with 0
		rm go
		redis del b >/dev/null
		is_whole a 2
	done
}

@test "a permit stays held when the server stands still for less than its lease" {
	hold_permit 1 a -t 6s
	redis client pause 2000 all
	in_background rlock sem --permits 1 a -- touch entered
	local waiter=$PID
	wait_until 5 has_queued a 1
	[ ! -e entered ]
	let_go
	ended_with 0 "$waiter"
	is_whole a 1
}

@test "a permit is lost when the server stands still for longer than its lease" {
	hold_permit 1 a -t 2s
	redis client pause 3000 all
	ended_with 76
	run -0 rlock sem -w 10s --permits 1 a -- true
	is_whole a 1
}

@test "a permit is lost when its counter was overwritten with another type" {
	hold_permit 2 a -t 1s 2>said
	replace_by_list a
	ended_with 76
	grep -qF 'overwritten with another type (list)' said
}

@test "a permit of a process is released by unlock, renewed by renew, and comes back when the process ends" {
	start_script 'rlock sem --permits 2 --pid $$ a && rlock renew --mode sem --pid $$ a && rlock unlock --mode sem --pid $$ a
		echo "$?"; rlock sem --permits 2 --pid $$ a; echo got >got; comes_true test -e out' >log 2>&1
	wait_until 5 file_exists got
	assert_equal "$(sed -n '$p' log)" 0
	has_free a 1
	kill -KILL "$PID"
	wait_until 5 is_whole a 2
}

@test "a permit of an owner is renewed and released by that owner, the latest first" {
	run -0 rlock sem --permits 3 --owner ci-1 --lease 10m a
	run -0 rlock sem --permits 3 --owner ci-1 --lease 20m a
	has_free a 1
	run -0 rlock renew --owner ci-1 --lease 30m a
	assert_output --regexp '^30m'
	run -1 rlock unlock --mode plain --owner ci-1 a
	run -0 rlock unlock --mode sem --owner ci-1 a
	has_free a 2
	run -0 rlock unlock --owner ci-1 a
	is_whole a 3
	run -1 rlock unlock --owner ci-1 a
}

@test "a permit is kept for --at-least, also when the command ends sooner" {
	run -0 rlock sem --permits 1 --at-least 5s a -- true
	has_free a 0
	run -75 rlock sem -n --permits 1 a -- true
	run -0 rlock sem --wait 30s --permits 1 a -- true
	is_whole a 1
}

# ---- holders that are gone ----

@test "a dead holder's permit is back when its lease is over, by a waiter's own timer" {
	hold_permit 1 a -t 2s
	kill_holder "$PID"
	took_less 4 rlock sem --permits 1 a -- true
	is_whole a 1
}

@test "a permit of Java is reclaimed 5 s after its deadline, since the client's clock may be behind" {
	redis set a 1
	java_permit a 0123456789abcdef "$(($(server_ms) + 1000))"
	run -75 rlock sem -n --permits 1 a -- true
	run -0 rlock sem --wait 20s --permits 1 a -- true
	is_whole a 1
}

@test "a Java client whose clock is ahead by less than 10 s reclaims no permit in its lease" {
	hold_permit 1 a -t 1m
	# What RPermitExpirableSemaphore.tryAcquire looks for, a second before the lease ends by its clock.
	assert_equal "$(redis zrangebyscore '{a}:timeout' 0 $(($(server_ms) + 59000 + 9000)))" ''
	let_go
	ended_with 0
}

@test "a permit that expired before its release is lost, and comes back once" {
	rlock sem --permits 1 --owner ci-1 --lease 1s a
	let_pass 1.1
	run -1 rlock renew --owner ci-1 --lease 1s a
	run -1 rlock unlock --owner ci-1 a
	run -0 rlock sem -n --permits 1 a -- true
	is_whole a 1
}

# ---- waiters ----

@test "a release notifies Java's waiters of how many permits are free, and those only when one is" {
	record_messages 'redisson_sc:{a}'
	run -0 rlock sem --permits 3 a -- true
	run -0 rlock sem --permits 3 --take 2 a -- true
	# The first one found no counter, as RSemaphore.trySetPermits does.
	assert_equal "$(show_messages 'redisson_sc:{a}')" '2 3 3'
}

@test "waiters are woken in the order in which they came" {
	local i
	hold_permit 1 a
	for i in 1 2 3; do
		in_background rlock sem --permits 1 a -- sh -c 'echo "$1" >>turns' sh "$i"
		wait_until 5 has_queued a "$i"
	done
	let_go
	wait "${BACKGROUND[@]}"
	assert_equal "$(cat turns)" '1
2
3'
	is_whole a 1
}

@test "a waiter is woken at once by a release, and by one of Java" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- until_let_go
	wait_until 5 has_queued a 1
	redis eval 'redis.call("incrby", KEYS[1], 1) redis.call("publish", KEYS[2], 1)' 2 a 'redisson_sc:{a}'
	within 1 has_held a 2
	let_go
	wait "${BACKGROUND[@]}"
	has_free a 2
}

@test "as many waiters are woken as Java releases permits, though it says a number" {
	local i
	redis set a 0
	for i in 1 2 3; do
		in_background rlock sem -q --permits 3 a -- until_let_go
		wait_until 5 has_queued a "$i"
	done
	redis eval 'redis.call("incrby", KEYS[1], 3) redis.call("publish", KEYS[2], 3)' 2 a 'redisson_sc:{a}'
	within 1.5 has_held a 3
	let_go
	wait "${BACKGROUND[@]}"
}

@test "a waiter that needs several permits gets them, though others come and take one each" {
	local i
	hold_permit 2 a
	in_background rlock sem --permits 2 --take 2 a -- touch got
	wait_until 5 has_queued a 1
	let_pass 2.1
	for i in 1 2 3; do
		in_background sh -c 'until [ -e got ]; do rlock sem --permits 2 a -- true; done'
	done
	let_go
	wait_until 10 file_exists got
	wait "${BACKGROUND[@]}"
	is_whole a 2
}

@test "a waiter that needs all permits gets them, though callers that wait and callers that do not take one each" {
	for _ in 1 2 3 4 5 6; do
		in_background sh -c 'until [ -e got ]; do rlock sem -q --permits 3 a -- true; done'
		in_background sh -c 'until [ -e got ]; do rlock sem -n --permits 3 a -- true; done'
	done
	in_background rlock sem --permits 3 --take 3 a -- touch got
	wait_until 20 file_exists got
	wait "${BACKGROUND[@]}" || :
	wait_until 5 is_whole a 3
}

@test "a waiter that is killed costs those behind it nothing" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- true
	local dead=$PID
	wait_until 5 has_queued a 1
	in_background rlock sem --permits 1 a -- true
	wait_until 5 has_queued a 2
	kill -KILL "$dead"
	let_go
	took_less 1.5 wait "$PID"
	wait_until 5 is_whole a 1
}

@test "a waiter that gives up leaves nothing" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- true
	wait_until 5 has_queued a 1
	kill -TERM "$PID"
	ended_with 143
	wait_until 5 has_queued a 0
	let_go
	wait "${BACKGROUND[@]}" || :
	is_whole a 1
}

# ---- status, list, unlock --force ----

@test "status shows the total, what is free, the holders, and permits without one" {
	hold_permit 5 a --take 2 --note 'two licences'
	java_permit a 0123456789abcdef 922337203685477
	redis decr a
	in_background rlock sem --permits 5 --take 2 a -- true
	wait_until 5 has_queued a 1
	run -0 rlock status a
	assert_line --index 0 'a: semaphore, held, 1 of 5 permits free'
	assert_line --regexp '^  holder +[0-9.]+s +[0-9]+s +2 +rlock +two licences +'
	assert_line --regexp '^  holder +- +- +1 +redisson +30313233343536373839616263646566$'
	assert_line --regexp '^  1 without a record of a holder: '
	assert_line --regexp '^  1 waiter of rlock, the first for '
	run -0 rlock status --json a
	assert_equal "$(json 'lock["kind"], lock["permits"], lock["holder_count"], lock["waiter_count"]')" \
		"('sem', {'total': 5, 'free': 1, 'without_holder': 1}, 2, 1)"
	redis incr a
	let_go
	wait "${BACKGROUND[@]}"
}

@test "status ends with 1 while all permits are free, and shows those that have expired" {
	rlock sem --permits 2 a -- true
	run -1 rlock status a
	assert_output 'a: semaphore, free, 2 of 2 permits free'
	rlock sem --permits 2 --owner ci --lease 5s a
	run -0 rlock status a
	let_pass 5.1
	run -1 rlock status a
	assert_line --regexp '^  expired '
}

@test "list finds semaphores that are held, with braces in their names, too, and by a pattern" {
	hold_permit 2 imports --note one
	in_background rlock sem --permits 2 'a{b}c' -- until_let_go
	wait_until 5 has_free 'a{b}c' 1
	redis set counter 5
	run -0 rlock list
	assert_line --regexp '^imports +sem .* one$'
	assert_line --regexp '^a\{b\}c +sem '
	assert_equal "${#lines[@]}" 3
	run -0 rlock list 'imp*'
	assert_equal "${#lines[@]}" 2
	run -0 rlock list 'a?b[x-z{}]c*'
	assert_equal "${#lines[@]}" 2
	run -0 rlock list 'a?b[^x-z{}]c*'
	refute_output --partial sem
	run -0 rlock list '*{b}*'
	assert_equal "${#lines[@]}" 2
	let_go
	wait "${BACKGROUND[@]}"
}

@test "unlock --force frees all permits, and with --holder those of one owner" {
	rlock sem --permits 4 --owner one --lease 1m a
	rlock sem --permits 4 --take 2 --owner two --lease 1m a
	redis decr a
	run -0 rlock unlock --force --holder two:0 a
	has_free a 2
	run -1 rlock unlock --force --holder three:0 a
	run -78 rlock unlock --force --mode plain a
	run -0 rlock unlock --force a
	is_whole a 4
	run -1 rlock unlock --force a
}

# ---- lost replies ----

@test "no permit is taken twice when the reply to its acquisition was lost" {
	start_proxy
	proxy drop-reply 'rlock_total:{a}'
	run -0 rlock sem --permits 2 --wait 5s a -- redis-cli -s "$SERVER_SOCKET" get a
	assert_output 1
	faults_happened
	is_whole a 2
}

@test "a permit comes back once when the reply to its release was lost" {
	start_proxy
	in_background rlock sem --permits 2 a -- until_let_go
	wait_until 5 has_free a 1
	proxy drop-reply 'redisson_sc:{a}!rlock_total:{a}'
	let_go
	ended_with 0
	faults_happened
	is_whole a 2
}

# ---- processes and servers that fail ----

@test "a permit stays with its command when rlock is killed, and comes back when that ends" {
	hold_permit 1 a -t 3s
	kill -KILL "$PID"
	let_pass 4
	run -75 rlock sem -n --permits 1 a -- true
	let_go
	wait_until 2 is_whole a 1
}

@test "a permit is renewed by another renewer when that is killed" {
	hold_permit 1 a -t 1s
	wait_until 5 has_renewer "$PID"
	kill -KILL "$(renewer_of "$PID")"
	let_pass 2
	has_held a 1
	let_go
	ended_with 0
	is_whole a 1
}

@test "a permit that was granted to a waiter whose connections broke is taken once" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- true
	wait_until 5 has_queued a 1
	redis client kill type pubsub >/dev/null
	redis client kill type normal skipme yes >/dev/null || :
	let_go
	wait "${BACKGROUND[@]}"
	is_whole a 1
}

@test "a server that forgot everything loses the permit, and the waiter goes on waiting there" {
	hold_permit 1 a -t 1s
	local holder=$PID
	in_background rlock sem --permits 1 a -- touch got
	wait_until 5 has_queued a 1
	redis flushall >/dev/null
	ended_with 76 "$holder"
	wait_until 10 file_exists got
	wait_until 5 is_whole a 1
}

@test "a server that is restarted without its data loses the permit, and the waiter goes on waiting there" {
	own_server one
	local server=$PID holder waiter
	export SERVER_SOCKET=$PWD/one/redis.sock RLOCK_URL=unix://$PWD/one/redis.sock
	REDIS="ask_redis $SERVER_SOCKET"
	hold_permit 1 a -t 2s
	holder=$PID
	in_background rlock sem -w 60s --permits 1 a -- touch entered
	waiter=$PID
	wait_until 5 has_queued a 1
	kill -KILL "$server"
	wait_until 5 is_gone "$server"
	own_server one
	ended_with 76 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	wait_until 5 is_whole a 1
}

@test "a full server grants no permit, and those that are held are renewed and released" {
	hold_permit 2 a -t 1s
	redis config set maxmemory 1 >/dev/null
	run -69 rlock sem -n --permits 2 a -- true
	let_pass 1.5
	has_held a 1
	let_go
	ended_with 0
	redis config set maxmemory 0 >/dev/null
	is_whole a 2
}

# ---- usage ----

@test "a call without --permits, or with what is not for a semaphore, is wrong usage" {
	local line
	local -a words
	for line in 'a -- true' '--permits 0 a -- true' '--permits x a -- true' '--permits 2 --take 3 a -- true' \
		'--permits 2 --take 0 a -- true' '--permits 2 --fence a -- true' '--permits 2 --quorum 1 a -- true' \
		'--permits 2 --resize a -- true' '--permits 2 --resize --take 1 a' '--permits 2 --resize -n a' \
		'--permits 2 --owner x a' "--permits 2 -u $RLOCK_URL -u redis://127.0.0.1:1 a -- true"; do
		read -ra words <<<"$line"
		run -64 rlock sem "${words[@]}"
	done
	run -64 rlock run --permits 2 a -- true
	no_keys
}

@test "what goes with an acquisition is refused beside --resize, which it is said of" {
	local option
	for option in '--at-least 5s' '--owner x' '--lease 5s' '--ttl 5s' '--pid 1' '--note x' '-w 3s' -n '--take 2' \
		--wait-all --kill-child '--max-run 3s' '--grace 3s' '--on-lost term' '--replicas 1'; do
		# shellcheck disable=SC2086
		run -64 rlock sem --permits 3 --resize $option a
		assert_one_line "^rlock: --[a-z-]+ can't go together with --resize, which acquires nothing: leave one of them out$"
	done
	run -64 rlock sem --permits 3 --resize a -- true
	assert_output "rlock: --resize can't go together with a COMMAND, since it acquires nothing: leave one of them out"
	no_keys
}

@test "the help of sem speaks of one server" {
	run -0 rlock help sem
	assert_line --regexp '^ +-u, --url URL +the server, one alone; or RLOCK_URL in the$'
	refute_output --partial 'given several times: a lock on all'
}

@test "a call without --permits is shown with it" {
	run -64 rlock sem -n a -- true
	assert_output 'rlock: sem needs --permits, how many there are in all: try: rlock sem --permits 3 -n a -- true'
}

# ---- what can't be served, or is no semaphore ----

@test "permits are not kept for a waiter that needs more than there are" {
	run -0 rlock sem --permits 3 --resize a
	in_background sh -c 'exec rlock sem --permits 5 --take 5 a -- touch served 2>said' sh
	wait_until 5 has_queued a 1
	# By then free permits are kept for a waiter that needs several.
	let_pass 2.5
	for _ in 1 2 3; do
		run -0 rlock sem --permits 3 -w 4s a -- true
	done
	run -0 rlock sem --permits 3 -n a -- true
	[ ! -e served ]
	grep -q 'has 3 permits in all, and --permits says 5' said
}

@test "the total of a key that is no semaphore is not changed, and 78 says what it holds" {
	redis lpush list a >/dev/null
	redis set text hello >/dev/null
	redis set side 3 >/dev/null
	redis set '{side}:timeout' x >/dev/null
	run -78 rlock sem --permits 3 --resize list
	assert_one_line '^rlock: list: not a lock of this kind: the key holds a list'
	run -78 rlock sem --permits 3 --resize text
	assert_one_line '^rlock: text: not a lock of this kind: the key holds a string that is no counter'
	run -78 rlock sem --permits 3 --resize side
	assert_one_line '^rlock: side: not a lock of this kind: the key holds a semaphore whose side key \{side\}:timeout holds a string'
}

@test "a side key of another type is named, and nothing is changed" {
	local key words
	for key in 'rlock_holds:{a}' 'rlock_ends:{a}' 'rlock_total:{a}' '{a}:timeout'; do
		redis flushall >/dev/null
		redis set a 3 >/dev/null
		redis rpush "$key" x >/dev/null
		show_contents >before
		for words in 'sem -n --permits 3 a -- true' 'sem -n --permits 3 --take 2 a -- true' 'sem --permits 4 --resize a' 'unlock --force a'; do
			# shellcheck disable=SC2086
			run -78 rlock $words
			assert_output "rlock: a: not a lock of this kind: the key holds a semaphore whose side key $key holds a list"
		done
		run -1 rlock status a
		assert_output "a: no lock: the key holds a semaphore whose side key $key holds a list"
		assert_equal "$(show_contents)" "$(cat before)"
	done
}

@test "a permit is lost when a side key was overwritten with another type" {
	hold_permit 1 a -t 1s 2>said
	replace_by_list 'rlock_ends:{a}'
	ended_with 76
	grep -qF 'its key was overwritten with another type (list)' said
	has_free a 1
	has_held a 0
}

@test "unlock --force says of a string that is no counter what it is" {
	local text
	for text in 007 -0 word 99999999999999999999; do
		redis set a "$text" >/dev/null
		for mode in '' '--mode sem'; do
			# shellcheck disable=SC2086
			run -78 rlock unlock --force $mode a
			assert_one_line '^rlock: a: not a lock of this kind: the key holds a string that is no counter'
		done
		assert_equal "$(redis get a)" "$text"
	done
}

@test "a counter that the server cannot add to is no semaphore" {
	local text
	for text in 007 -0 99999999999999999999 9223372036854775807; do
		redis set a "$text" >/dev/null
		run -78 rlock sem --permits 3 -w 1s a -- true
		assert_one_line '^rlock: a: not a lock of this kind: the key holds a string that is no counter'
		run -1 rlock status a
		refute_output --partial 'permits free'
	done
}

@test "a right that the default user lacks costs no permit" {
	local right
	hold_permit 3 a
	for right in pttl pexpire hset zadd; do
		redis acl setuser default "-$right" >/dev/null
		run -77 rlock sem -n --permits 3 a -- true
		redis acl setuser default "+$right" >/dev/null
		has_free a 2 || fail "without +$right"
	done
	let_go
	ended_with 0
	is_whole a 3
}

@test "a permit is back, and waiters are notified, though its record cannot be deleted" {
	redis acl setuser default -hdel >/dev/null
	record_messages 'redisson_sc:{a}'
	run -0 rlock sem --permits 2 a -- true
	redis acl setuser default +hdel >/dev/null
	has_free a 2
	assert_equal "$(show_messages 'redisson_sc:{a}')" '1 2'
}

@test "a remembered total that was overwritten with a text is ignored" {
	local text
	for text in word 99999999999999999999 inf; do
		hold_permit 2 a
		redis set 'rlock_total:{a}' "$text" >/dev/null
		run -0 rlock sem -n --permits 2 a -- true
		redis set 'rlock_total:{a}' "$text" >/dev/null
		run -0 rlock status a
		assert_output --partial '1 of 2 permits free'
		run -0 rlock unlock --force a
		has_free a 2
		let_go
		ended_with 76
		redis flushall >/dev/null
		rm -f let-go
	done
}

@test "a semaphore whose counter was deleted can be broken" {
	hold_permit 3 a
	redis del a >/dev/null
	run -0 rlock unlock --force a
	has_free a 3
	has_held a 0
	let_go
	ended_with 76
}
