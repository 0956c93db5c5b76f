#!/usr/bin/env bats
# Waiters for a plain or write lock when there are many: each release wakes one of them, whatever has become of those in
# front of it. Which of them acquires the lock is in run.bats and readwrite.bats.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# A try that is due anyway comes after 2 s: what was woken is there sooner.
SOON=1.6

# hold VERB NAME: until let_go.
hold() {
	in_background rlock "$1" "$2" -- until_let_go
	wait_until 5 is_held "$2"
}

# How many of the waiters in the queue listen.
live_waiters() {
	redis eval '
		local live = 0
		for _, id in ipairs(redis.call("zrange", KEYS[1], 0, -1)) do
			live = live + redis.call("pubsub", "numsub", ARGV[1] .. ":" .. id)[2]
		end
		return live' 1 "rlock_queue:{$1}" "redisson_lock__channel:{$1}"
}

has_live_waiters() {
	[ "$(live_waiters "$1")" = "$2" ]
}

# wait_as WAITER NAME [OPTION...]: a waiter in the background, which writes its number into "turns" when it has the lock,
# and keeps it until the file "out" is there. Sets PID. Returns when it is in the queue.
wait_as() {
	local waiters
	waiters=$(live_waiters "$2")
	in_background rlock run "${@:3}" "$2" -- sh -c 'echo "$1" >>turns; [ -e out ] || comes_true test -e out' sh "$1"
	wait_until 5 has_live_waiters "$2" $((waiters + 1))
}

# It was in the queue.
kill_waiter() {
	local waiters
	waiters=$(live_waiters a)
	kill -KILL "$1"
	wait_until 5 has_live_waiters a $((waiters - 1))
}

# had_turns WAITER...: these, in this order.
had_turns() {
	[ "$(cat turns 2>/dev/null)" = "$(printf '%s\n' "$@")" ]
}

# How often waiters were woken that ran with -v, and their errors in "log".
times_woken() {
	grep -c ': woken$' log
}

# ---- how much a release costs ----

# wakes_one VERB: of twenty waiters nearly each is woken once, until all have had their turns. Others may try by their own
# clocks just then, and be there first, more often on a busy machine. Were all woken by each release, it would be 210 times.
wakes_one() {
	local i woken
	hold "$1" a
	for i in {1..20}; do
		in_background rlock "$1" -v a -- true 2>>log
	done
	wait_until 10 has_waiters a 20
	let_go
	wait "${BACKGROUND[@]}"
	woken=$(times_woken)
	((woken >= 10 && woken <= 100)) || fail "woken $woken times"
	no_keys
}

@test "of twenty waiters for a plain lock each release wakes one" {
	wakes_one run
}

@test "of twenty waiters for a write lock each release wakes one" {
	wakes_one wlock
}

@test "those that wait longest are woken first" {
	hold run a
	wait_as 1 a
	wait_as 2 a
	wait_as 3 a
	touch out
	let_go
	wait_until 5 had_turns 1 2 3
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "of several readers a release of a writer wakes all, and of the writers behind it one" {
	local i
	hold wlock a
	for i in 1 2; do
		in_background rlock wlock a -- sh -c 'echo writer >>turns'
	done
	for i in 3 4 5; do
		in_background rlock rlock a -- sh -c 'echo reader >>turns'
	done
	wait_until 5 has_listeners 5
	let_go
	wait "${BACKGROUND[@]}"
	assert_equal "$(sort turns | uniq -c | tr -s ' ')" ' 3 reader
 2 writer'
	no_keys
}

# ---- what becomes of a waiter ----

has_pattern() {
	redis_says 1 pubsub numpat
}

@test "waiters that were killed do not hold up the next one" {
	local i
	# A monitor of all channels hears them still.
	in_background redis-cli -s "$SERVER_SOCKET" psubscribe '*'
	wait_until 5 has_pattern
	hold run a
	for i in 1 2 3 4 5; do
		wait_as "$i" a
		kill_waiter "$PID"
	done
	wait_as 6 a
	touch out
	let_go
	within $SOON had_turns 6
	ended_with 0
	kill "${BACKGROUND[0]}"
	no_keys
}

# stop_when_woken: of two waiters the first, FIRST, is woken, and does not act on it.
stop_when_woken() {
	hold run a
	wait_as 1 a
	FIRST=$PID
	wait_as 2 a
	kill -STOP "$FIRST"
	let_go
	wait_until 5 is_free a
}

@test "a waiter that is killed once it was woken holds up the others for 4 s at most" {
	stop_when_woken
	touch out
	kill -KILL "$FIRST"
	wait_until 4 had_turns 2
	ended_with 0
	no_keys
}

@test "a waiter that is stopped for long holds up the others once, and acquires the lock when it goes on" {
	local first
	hold run a
	wait_as 1 a
	first=$PID
	wait_as 2 a
	wait_as 3 a
	wait_as 4 a
	kill -STOP "$first"
	let_go
	wait_until 4 test -e turns
	touch out
	within $SOON has_lines turns 3
	kill -CONT "$first"
	within $SOON has_lines turns 4
	wait "${BACKGROUND[@]}"
	assert_equal "$(tail -n 1 turns)" 1
	no_keys
}

@test "four stopped waiters do not hold up the fifth for more than 4 s" {
	local i
	hold run a
	for i in 1 2 3 4; do
		wait_as "$i" a
		kill -STOP "$PID"
	done
	wait_as 5 a
	let_go
	wait_until 4 had_turns 5
	touch out
	kill -CONT "${BACKGROUND[@]:1:4}"
	wait_until 5 has_lines turns 5
	wait "${BACKGROUND[@]}"
	no_keys
}

# So many waiters try seldom, and none tells the last one by its own try that the others had quick turns.
@test "a waiter that is stopped after many quick turns does not hold up the last one for more than 4 s" {
	local i stopped
	hold run a
	for i in {1..12}; do
		in_background rlock run a -- sh -c 'echo "$1" >>turns' sh "$i"
	done
	wait_until 5 has_live_waiters a 12
	wait_as 13 a
	stopped=$PID
	wait_as 14 a
	kill -STOP "$stopped"
	let_go
	wait_until 4 grep -qx 14 turns
	touch out
	kill -CONT "$stopped"
	wait_until 5 has_lines turns 14
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "more dead waiters than are removed at once hold up none for more than 4 s" {
	local i
	hold run a
	wait_as 1 a
	wait_as 2 a
	redis eval 'for i = 1, 1500 do redis.call("zadd", KEYS[1], i, "dead-" .. i) end' 1 'rlock_queue:{a}' >/dev/null
	touch out
	let_go
	wait_until 4 had_turns 1 2
	wait "${BACKGROUND[@]}"
	no_keys
}

# gives_up SIGNAL STATUS: the first was woken, and is told to end before it acts on it.
gives_up() {
	stop_when_woken
	kill "-$1" "$FIRST"
	kill -CONT "$FIRST"
	touch out
	within $SOON had_turns 2
	ended_with 0
	ended_with "$2" "$FIRST"
	no_keys
}

@test "a waiter that is woken and gives up by SIGTERM wakes the next one" {
	gives_up TERM 143
}

@test "a waiter that is woken and gives up by SIGINT wakes the next one" {
	gives_up INT 130
}

@test "a waiter that gives up before it is woken leaves the queue" {
	hold run a
	wait_as 1 a -w 5s
	kill -TERM "$PID"
	ended_with 143
	has_waiters a 0
	run -75 rlock run -q -w 300ms a -- true
	has_waiters a 0
	let_go
	ended_with 0 "${BACKGROUND[0]}"
	no_keys
}

@test "waiters whose subscriptions are cut are woken all the same" {
	hold run a
	wait_as 1 a
	wait_as 2 a
	redis client kill type pubsub >/dev/null
	touch out
	let_go
	within $SOON has_lines turns 2
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a queue that was deleted comes back" {
	hold run a
	wait_as 1 a
	wait_as 2 a
	redis del 'rlock_queue:{a}' >/dev/null
	# The second one is back when it tries next; the first one hears the lock as well.
	wait_until 4 has_waiters a
	touch out
	let_go
	within $SOON has_lines turns 2
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a key of another type in the place of the queue keeps none from the lock" {
	redis set 'rlock_queue:{a}' mine >/dev/null
	hold run a
	in_background rlock run a -- true
	wait_until 5 has_listeners 1
	let_go
	took_less 2 ended_with 0
	assert_equal "$(redis get 'rlock_queue:{a}')" mine
	redis del 'rlock_queue:{a}' >/dev/null
}

@test "the lease of a killed holder ends: the first waiter acquires the lock, and wakes the next" {
	in_background rlock run -t 1s a -- until_let_go
	wait_until 5 has_renewer "$PID"
	wait_as 1 a
	wait_as 2 a
	touch out
	# In this order: one that lives starts another renewer.
	kill -KILL "${BACKGROUND[0]}" "$(renewer_of "${BACKGROUND[0]}")"
	wait_until 10 has_lines turns 2
	let_go
	wait_until 5 no_keys
}

# lease_ends VERB: of a holder that is killed together with the first five in a queue so long that the others try seldom.
lease_ends() {
	local i
	in_background rlock "$1" -t 2s a -- until_let_go
	wait_until 5 has_renewer "$PID"
	for i in {1..18}; do
		in_background rlock "$1" a -- sh -c 'echo "$1" >>turns' sh "$i"
		wait_until 5 has_waiters a "$i"
	done
	# When the first twelve came, the queue was not long.
	let_pass 3.5
	kill -KILL "${BACKGROUND[@]:0:6}" "$(renewer_of "${BACKGROUND[0]}")"
	wait_until 6 is_free a
	wait_until 3 has_lines turns 13
	let_go
	wait_until 5 no_keys
}

@test "the lease of a killed holder of a plain lock ends, and the first waiters were killed with it" {
	lease_ends run
}

@test "the lease of a killed holder of a write lock ends, and the first waiters were killed with it" {
	lease_ends wlock
}

# ---- those that come later ----

# woken_after SECONDS VERB: a waiter, PID, that has waited for so long is woken, and stopped before it acts on that.
woken_after() {
	hold "$2" a
	in_background rlock "$2" a -- sh -c 'echo waiter >>turns'
	wait_until 5 has_waiters a
	let_pass "$1"
	kill -STOP "$PID"
	let_go
	wait_until 5 is_free a
}

# has_next_turn VERB: it has waited for more than 2 s.
has_next_turn() {
	local waiter
	woken_after 2.2 "$1"
	# The next call may begin late.
	redis pexpire 'rlock_turn:{a}' 20000 >/dev/null
	waiter=$PID
	run -75 rlock "$1" -n a -- true
	in_background rlock "$1" a -- sh -c 'echo later >>turns'
	wait_until 5 has_waiters a
	kill -CONT "$waiter"
	wait_until 3 has_lines turns 2
	assert_equal "$(cat turns)" $'waiter\nlater'
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a waiter for a plain lock that has waited for 2 s is not overtaken" {
	has_next_turn run
}

@test "a waiter for a write lock that has waited for 2 s is not overtaken" {
	has_next_turn wlock
}

@test "a reader does not overtake a writer that has waited for 2 s" {
	woken_after 2.2 wlock
	redis pexpire 'rlock_turn:{a}' 20000 >/dev/null
	run -75 rlock rlock -n a -- true
	kill -CONT "$PID"
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a reader that came before a writer does not leave the next turn to it" {
	hold wlock a
	in_background rlock rlock a -- sh -c 'echo reader >>turns'
	wait_until 5 has_listeners 1
	in_background rlock wlock a -- sh -c 'echo writer >>turns'
	wait_until 5 has_waiters a
	let_pass 2.2
	kill -STOP "$PID"
	let_go
	# If it did leave the turn to the writer, that would be for so long.
	redis pexpire 'rlock_turn:{a}' 20000 >/dev/null
	wait_until 5 had_turns reader
	kill -CONT "$PID"
	wait "${BACKGROUND[@]}"
	no_keys
}

# Each of them comes again as soon as it had its turn, up to 40 times, and waits for longer than 2 s.
@test "a reader enters while writers come and go without a gap" {
	local i
	hold wlock a
	for i in 1 2 3 4 5 6 7 8; do
		in_background sh -c 'for i in $(seq 40); do [ -e turns ] || rlock wlock a -- timeout 0.4 tail -f /dev/null; done'
	done
	wait_until 5 has_waiters a 8
	let_go
	let_pass 3
	in_background rlock rlock a -- sh -c 'echo reader >>turns'
	wait_until 10 had_turns reader
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a waiter that does not come in its turn holds up the others for 2 s at most" {
	woken_after 2.2 run
	ttl_between 1 'rlock_turn:{a}' 1000
	took_less 4 rlock run a -- true
	kill -CONT "$PID"
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a waiter that gives up in its turn holds up none" {
	woken_after 2.2 run
	redis pexpire 'rlock_turn:{a}' 20000 >/dev/null
	kill -TERM "$PID"
	kill -CONT "$PID"
	ended_with 143
	took_less 5 rlock run a -- true
	no_keys
}

@test "a waiter that has not waited for long may be overtaken" {
	woken_after 0.1 run
	rlock run -n a -- true
	kill -CONT "$PID"
	wait "${BACKGROUND[@]}"
	no_keys
}

# others_wait: as Redisson's waiters do, one listens to the channel of the lock, and tries nothing.
others_wait() {
	in_background redis-cli -s "$SERVER_SOCKET" subscribe 'redisson_lock__channel:{a}'
	wait_until 5 has_listeners 1
}

# Mostly; a part is left to chance.
others_have_turn() {
	rlock run -n a -- true
	redis_says - get 'rlock_turn:{a}'
}

@test "after a turn of ours the others have time for one of theirs" {
	others_wait
	wait_until 5 others_have_turn
	# One that does not wait takes what is free.
	run -0 rlock run -n a -- true
	wait_until 5 others_have_turn
	# One that waits does so for that time.
	run -0 rlock run -w 2s a -- true
	kill "${BACKGROUND[0]}"
	wait_until 2 no_keys
}

@test "waiters of ours are not taken for others" {
	hold run a
	wait_as 1 a
	wait_as 2 a
	touch out
	let_go
	within $SOON had_turns 1 2
	is_free 'rlock_turn:{a}'
	wait "${BACKGROUND[@]}"
}

# ---- several names ----

@test "a waiter for several names that is woken for one of them leaves it to the next" {
	hold run a
	hold run b
	in_background rlock run a b -- sh -c 'echo both >>turns'
	wait_until 5 has_waiters a
	wait_as 1 a
	# Only a becomes free.
	kill -TERM "${BACKGROUND[0]}"
	touch out
	within $SOON had_turns 1
	let_go
	wait_until 5 had_turns 1 both
	wait_until 5 no_keys
}

# The reader's own hold has expired, and its nested call finds that out.
@test "a try that removes the last reader of one lock, and is busy with another, wakes the next waiter" {
	hold wlock b
	in_background rlock rlock a -- sh -c '
		comes_true test -e go
		$REDIS del "{a}:$RLOCK_OWNER:rwlock_timeout:1" >/dev/null
		rlock rlock -q -n a b
		echo $? >nested
		comes_true test -e turns'
	wait_until 5 is_held a
	in_background rlock wlock a -- sh -c 'echo writer >>turns'
	wait_until 5 has_waiters a
	touch go
	wait_until 5 test -e nested
	within $SOON had_turns writer
	assert_equal "$(cat nested)" 75
	let_go
	wait "${BACKGROUND[@]}" || :
	no_keys
}

# ---- others than ours ----

@test "a release by Redisson wakes the first waiter, and not the others" {
	local i
	held_by_stranger a
	touch out
	for i in 1 2 3 4 5; do
		wait_as "$i" a -v 2>>log
	done
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	within $SOON has_lines turns 5
	wait "${BACKGROUND[@]}"
	(($(times_woken) <= 7)) || fail "woken $(times_woken) times"
	no_keys
}

@test "when the first waiter has gone the next one hears Redisson" {
	held_by_stranger a
	wait_as 1 a
	kill_waiter "$PID"
	wait_as 2 a
	wait_as 3 a
	touch out
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	within $SOON had_turns 2 3
	wait "${BACKGROUND[@]:1}"
	no_keys
}

@test "unlock --force wakes the first waiter" {
	held_by_stranger a
	wait_as 1 a
	wait_as 2 a
	touch out
	rlock unlock --force a
	within $SOON had_turns 1 2
	wait "${BACKGROUND[@]}"
	no_keys
}

# ---- where there can't be a queue ----

# Each is woken by each release, as Redisson's are.
@test "a user without the right to the queue, or to a channel for each waiter, waits without" {
	local rules
	for rules in '~a ~rlock_holds:* ~rlock_waiters:* ~redisson_* &*' '~* &redisson_lock__channel:{a}'; do
		rm -f turns out let-go
		# shellcheck disable=SC2086
		redis acl setuser limited on '>secret' resetkeys resetchannels +@all $rules >/dev/null
		hold run a
		for i in 1 2; do
			in_background rlock run -u "redis://limited:secret@127.0.0.1:$PORT" a -- sh -c 'echo turn >>turns'
		done
		wait_until 5 has_listeners 2
		has_waiters a 0
		let_go
		within $SOON has_lines turns 2
		wait "${BACKGROUND[@]}"
	done
	no_keys
}

@test "on a server without memory waiters acquire the lock after a release" {
	hold run a
	redis config set maxmemory 1 >/dev/null
	in_background rlock run -w 20s a -- sh -c 'echo turn >>turns'
	wait_until 5 has_listeners 1
	has_waiters a 0
	redis config set maxmemory 0 >/dev/null
	let_go
	within $SOON has_lines turns 1
	wait "${BACKGROUND[@]}"
	no_keys
}
