#!/usr/bin/env bats
# bats file_tags=long
# A server that is frozen, gone, full, busy or of the wrong kind, a network that loses, delays and spoils
# what passes, and locks that get lost.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() {
	start_server
	# From here on the server knows each script: a request whose reply gets lost has been carried out.
	rlock run -t 3s warm -- sleep 1.2
}

teardown_file() { stop_server; }

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { common_teardown; }

# ---- what the tests share ----

# A server of this test alone, for what another test would suffer from. Arguments as start_server.
own_server() {
	BATS_FILE_TMPDIR=$BATS_TEST_TMPDIR start_server "$@"
	BACKGROUND+=("$SERVER_PID")
}

kill_server() {
	kill -s KILL "$SERVER_PID"
	wait "$SERVER_PID" || :
}

freeze() {
	kill -s STOP "$SERVER_PID"
}

unfreeze() {
	kill -s CONT "$SERVER_PID"
}

# start_proxy [LISTEN]: RLOCK_URL leads through it from now on. Sets PROXY_PORT, of a tcp LISTEN.
start_proxy() {
	local listen=${1:-unix:$BATS_TEST_TMPDIR/proxy.sock}
	in_background sh -c 'exec "$@" >proxy-said' sh \
		faultproxy "$listen" "unix:$SERVER_SOCKET" "unix:$BATS_TEST_TMPDIR/control"
	chrt --rr --pid 1 "$PID" 2>/dev/null || : # as start_server does
	wait_until 5 file_says proxy-said ready
	PROXY_PORT=$(sed -n 's/^listen tcp:.*://p' proxy-said)
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
}

proxy() {
	faultproxy -c "unix:$BATS_TEST_TMPDIR/control" "$@"
}

# proxy_counts WHAT: connections, requests, replies, dropped or writes_up.
proxy_counts() {
	proxy count | tr ' ' '\n' | sed -n "s/^$1=//p"
}

# All faults that were ordered have happened.
faults_happened() {
	proxy state | grep -q 'rules=0'
}

# Words that stand in one kind of request only, for the lock "a". A renewal has no word of its own:
# while no call acquires or releases the lock it is the one that names the holds.
ACQUIRE='redisson_lock_token:{a}'
RELEASE='redisson_lock__channel:{a}!redisson_lock_token:{a}'
RENEW='rlock_holds:{a}'

# A command that counts how often it ran, prints the hold count and exits with 7.
runs_once='echo >>ran; ask_redis "$SERVER_SOCKET" hvals a; exit 7'

# run_counted [OPTION...]: that command under the lock "a"; it has to run once, with one hold, and
# nothing may be left.
run_counted() {
	run -7 --separate-stderr rlock run "$@" a -- sh -c "$runs_once"
	[ "$output" = 1 ] || fail "hold counts: $output"
	# shellcheck disable=SC2154 # run sets it
	[ "$stderr" = '' ] || fail "said: $stderr"
	has_lines ran 1
	no_keys
}

# hold_and_listen NAME [OPTION...]: as hold_in_background, messages in the file "said". Returns when the command runs: the
# server has the lock before rlock has its reply.
hold_and_listen() {
	local name=$1
	shift
	in_background sh -c 'exec "$@" 2>said' sh rlock run "$@" "$name" -- until_let_go
	wait_until 5 is_parent_of "$PID" until_let_go
}

# wait_for_lock NAME [OPTION...]: a waiter, messages in the file "said", which makes the file "ran"
# once it has the lock. Sets PID. Returns when it waits.
wait_for_lock() {
	local name=$1
	shift
	in_background sh -c 'exec "$@" 2>said' sh rlock run "$@" "$name" -- touch ran
	wait_until 5 has_waiters "$name"
}

# ---- frozen ----

@test "a frozen server: all of the command's processes are gone before the lease ends" {
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 3000
	end=$(lease_end_ms a)
	freeze
	watch_family 6
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	unfreeze
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[-+][0-9]{2}:[0-9]{2}: not renewed for [0-9.]+m?s: .+: terminating the command$'
	wait_until 3 no_keys
	nothing_runs
}

@test "a server that stays frozen: rlock ends all the same, with 76" {
	own_server
	hold_and_listen a -t 1s
	freeze
	ended_with 76
	said_once '^rlock: a: lock lost at '
	nothing_runs
}

@test "a server that is frozen for less than a third of the lease: nothing happens" {
	hold_and_listen a -t 9s
	freeze
	let_pass 2
	unfreeze
	wait_until 8 is_renewed a 9000
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a server that is frozen over a renewal, but not for long: nothing happens" {
	hold_and_listen a -t 9s
	wait_until 8 is_renewed a 9000
	freeze
	let_pass 3.5
	unfreeze
	wait_until 8 is_renewed a 9000
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a release that cannot be delivered is a warning, and the command's status stands" {
	own_server
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 6s a -- sh -c 'until_let_go; exit 7'
	wait_until 5 is_held a
	freeze
	let_go
	took_less 9 ended_with 7
	said_once '^rlock: a: release failed: '
	unfreeze
	wait_until 8 no_keys
}

@test "a waiter whose server is frozen goes on when it thaws" {
	hold_in_background a -t 3s
	holder=$PID
	wait_for_lock a
	freeze
	let_pass 0.9
	unfreeze
	let_go
	ended_with 0
	ended_with 0 "$holder"
	[ -e ran ]
}

@test "a waiter's time runs out though the server is frozen: 69" {
	own_server
	hold_in_background a -t 1s
	wait_for_lock a -w 5s
	freeze
	took_less 8 ended_with 69
	said_once '^rlock: a: '
	[ ! -e ran ]
}

# ---- gone, and back ----

@test "a server that comes back empty: the lock is lost, the command stopped" {
	own_server
	hold_with_family a -t 1s
	kill_server
	own_server
	took_less 3 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	no_keys
}

@test "a server that comes back with what it knew: nothing happens" {
	own_server
	hold_and_listen a -t 9s
	redis save
	kill_server
	own_server
	is_held a
	wait_until 8 is_renewed a 9000
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a waiter survives a restart of its server, and gets the lock" {
	own_server
	hold_in_background a -t 30s
	wait_for_lock a
	kill_server
	let_pass 0.5
	is_running "$PID"
	own_server
	wait_until 5 file_exists ran
	ended_with 0
}

@test "a lock without a command that was renewed is released after an outage that its first lease does not outlast" {
	start_proxy
	in_background bash -c 'rlock lock -l 3s --pid $$ a && touch had; until_let_go'
	wait_until 5 file_exists had
	wait_until 3 ttl_is_below a 1200
	rlock renew --pid "$PID" a
	wait_until 3 ttl_is_below a 2000
	proxy refuse on
	proxy cut
	let_go
	wait "$PID" || :
	let_pass 0.5
	proxy refuse off
	# By itself it would be a second later.
	wait_until 1 is_free a
}

@test "a waiter whose server does not come back ends with 69 when its time is over" {
	own_server
	hold_in_background a
	wait_for_lock a -w 8s
	kill_server
	took_less 11 ended_with 69
	said_once '^rlock: '
}

@test "a server that is down at the start: 69 at once" {
	RLOCK_URL=unix://$BATS_TEST_TMPDIR/nobody.sock
	took_less 4 run -69 rlock run a -- touch ran
	assert_output --partial "$BATS_TEST_TMPDIR/nobody.sock"
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "a port where no server listens: 69 at once" {
	took_less 4 run -69 rlock run -u redis://127.0.0.1:1 a -- touch ran
	assert_output --partial '127.0.0.1:1'
	[ "${#lines[@]}" -eq 1 ]
}

@test "a server that is down at the start is tried again for the wait time that was given" {
	RLOCK_URL=unix://$BATS_TEST_TMPDIR/nobody.sock
	start=$(now_ms)
	run -69 rlock run -w 1s a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 900 && took < 5000)) || fail "took $took ms"
	[ "${#lines[@]}" -eq 1 ]
}

@test "a server that comes up within the wait time is used" {
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/server/redis.sock
	in_background rlock run -w 10s a -- touch ran
	let_pass 0.3
	is_running "$PID"
	own_server
	took_less 8 ended_with 0
	[ -e ran ]
	no_keys
}

# ---- lost ----

@test "a lock that was deleted on the server: the command is stopped within a third of the lease, 76" {
	hold_with_family a -t 6s
	wait_until 5 is_renewed a 6000
	end=$(lease_end_ms a)
	redis del a
	within 3.8 is_gone "$(family_member leader)"
	watch_family 7
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at .*: terminating the command$'
	# What lists the holds has the same time to live as the lock had.
	wait_until 8 no_keys
}

@test "a lock that another owner acquired meanwhile is not touched" {
	hold_and_listen a -t 1s
	redis del a
	redis hset a somebody 1
	redis pexpire a 60000
	ended_with 76
	said_once '^rlock: a: lock lost at '
	run -0 redis hgetall a
	assert_output $'somebody\n1'
	[ "$(redis pttl a)" -gt 50000 ]
}

@test "a lock that was lost just before the command ended: 76" {
	hold_and_listen a
	redis del a
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost before the command ended'
}

@test "with --on-lost term the command gets SIGTERM, and nothing worse" {
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 1s --on-lost term --grace 100ms a -- log_signals
	wait_until 5 file_says signals ready
	redis del a
	wait_until 2 file_says signals TERM
	stays 1.2 is_running "$PID"
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at '
	[ "$(grep -c TERM signals)" = 1 ]
}

@test "with --on-lost ignore the command runs on, and 76 says that the lock was lost" {
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 1s --on-lost ignore a -- log_signals
	wait_until 5 file_says signals ready
	redis del a
	stays 1.2 is_running "$PID"
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at '
	has_lines signals 1
}

@test "--quiet does not silence a lost lock" {
	hold_and_listen a -q -t 1s
	redis del a
	ended_with 76
	said_once '^rlock: a: lock lost at '
}

# ---- a server with a mind of its own ----

@test "SCRIPT FLUSH while the lock is held: it is released all the same" {
	own_server
	hold_and_listen a
	redis script flush
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "SCRIPT FLUSH between renewals: the lock stays held" {
	own_server
	hold_and_listen a -t 1s
	for _ in 1 2 3 4; do
		redis script flush
		stays 0.3 is_held a
	done
	let_go
	ended_with 0
	said_nothing
	no_keys
}

# be_busy MS: a script of another client that keeps the server busy so long, in the background: for longer than a third
# of the lease, and much shorter than the rest, since it may take twice as long on a busy machine. By the processor's time, since TIME stands still inside a script from Redis 7.2 on; before 7.0 there is no os.
be_busy() {
	in_background ask_redis "$SERVER_SOCKET" eval '
		local has_os, clock = pcall(function() return os.clock end)
		if not has_os then
			redis.replicate_commands()
			clock = function()
				local now = redis.call("TIME")
				return now[1] + now[2] / 1000000
			end
		end
		local stop = clock() + ARGV[1] / 1000
		while clock() < stop do end' 0 "$1"
}

says_busy() {
	redis ping 2>&1 | grep -q BUSY
}

@test "another client's long script on the server: nothing happens" {
	hold_and_listen a -t 9s
	holder=$PID
	be_busy 3200
	wait "$PID"
	is_held a
	let_go
	ended_with 0 "$holder"
	said_nothing
	no_keys
}

@test "a server that says BUSY for a while: the lock stays held" {
	own_server --lua-time-limit 50
	hold_and_listen a -t 6s
	holder=$PID
	be_busy 2200
	wait "$PID"
	wait_until 5 is_renewed a 6000
	let_go
	ended_with 0 "$holder"
	said_nothing
	no_keys
}

@test "a server that says BUSY: a waiter with time left gets the lock" {
	own_server --lua-time-limit 50
	be_busy 60000
	wait_until 10 says_busy
	in_background rlock run -w 60s a -- touch ran
	waiter=$PID
	stays 0.7 is_running "$waiter"
	says_busy
	redis script kill
	ended_with 0 "$waiter"
	[ -e ran ]
	no_keys
}

@test "CLIENT PAUSE, shorter than the lease: nothing happens" {
	hold_and_listen a -t 6s
	redis client pause 1000 all
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "CLIENT KILL of the holder's connections: the lock stays held, and is released" {
	hold_and_listen a -t 1s
	for _ in 1 2 3 4; do
		redis client kill type normal
		stays 0.3 is_held a
	done
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "CLIENT KILL of a waiter's connections: it goes on waiting, and gets the lock" {
	hold_in_background a
	holder=$PID
	wait_for_lock a
	for _ in 1 2 3; do
		redis client kill type normal
		redis client kill type pubsub
		wait_until 5 has_waiters a
	done
	is_running "$PID"
	let_go
	took_less 8 ended_with 0
	ended_with 0 "$holder"
	said_nothing
	[ -e ran ]
}

@test "a server that is full: a clear error, and no lock" {
	own_server
	redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	assert_output --regexp '^rlock: a: .*memory'
	[ ! -e ran ]
	no_keys
}

@test "a server that gets full meanwhile: the lock is renewed and released" {
	own_server
	hold_and_listen a -t 1s
	redis config set maxmemory 1
	stays 1.1 is_held a
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a full server: one of two holds of an owner is released as well" {
	own_server
	run -0 rlock run a -- sh -c '
		rlock run a -- ask_redis "$SERVER_SOCKET" config set maxmemory 1
		ask_redis "$SERVER_SOCKET" hvals a'
	assert_output $'OK\n1'
	no_keys
}

# refuses_kind COMMAND...: what that made of "a" is no plain lock: 78, and it is left as it is.
refuses_kind() {
	local before
	redis "$@"
	before=$(redis dump a)
	run -78 rlock run a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	assert_output --regexp '^rlock: a: '
	[ "$(redis dump a)" = "$before" ]
	redis_says -1 pttl a
	redis_says 1 dbsize
	[ ! -e ran ]
}

@test "a key that is a string is refused and left alone" {
	refuses_kind set a value
}

@test "a key that is a list is refused and left alone" {
	refuses_kind rpush a value
}

@test "a key that is a set is refused and left alone" {
	refuses_kind sadd a value
}

@test "a key that is a read/write lock is refused and left alone" {
	refuses_kind hset a mode read somebody 1
}

# refused_by_replica OPTION...: by each kind of lock.
refused_by_replica() {
	local verb
	for verb in run fair rlock wlock; do
		run -69 --separate-stderr rlock "$verb" "$@" a -- touch ran
		assert_equal "$stderr" "rlock: a: $RLOCK_URL?db=0 is a replica: it can grant no lock: name its master, or its sentinels: READONLY You can't write against a read only replica."
		[ ! -e ran ]
	done
}

@test "a replica is refused with 69 and its name, whether the lock is held or free" {
	own_server
	redis replicaof 127.0.0.1 1
	refused_by_replica
	refused_by_replica -n
	redis replicaof no one
	redis hset a somebody:1 1
	redis replicaof 127.0.0.1 1
	refused_by_replica
	refused_by_replica -n
	refused_by_replica -w 100ms
	redis replicaof no one
	redis del a
	redis hset a mode read somebody:1 1
	redis replicaof 127.0.0.1 1
	refused_by_replica -w 100ms
	redis replicaof no one
	redis del a
	redis set a value
	redis replicaof 127.0.0.1 1
	refused_by_replica
}

@test "a replica that has lost its master, and does not say what it knows, is refused by its name" {
	own_server --replica-serve-stale-data no
	redis replicaof 127.0.0.1 1
	run -69 rlock run a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	assert_output --partial "rlock: a: $RLOCK_URL?db=0 is a replica: it can grant no lock"
	[ ! -e ran ]
}

@test "a server that is a replica for a while is waited for, and gives the lock when it is none any more" {
	own_server
	redis hset a somebody:1 1
	in_background sh -c 'exec "$@" 2>said' sh rlock run -v a -- touch ran
	wait_until 5 has_waiters a
	redis replicaof 127.0.0.1 1
	redis publish 'redisson_lock__channel:{a}' 0
	wait_until 15 grep -q ' is a replica' said
	redis replicaof no one
	redis del a
	ended_with 0
	file_exists ran
}

has_refused_writes() {
	redis info errorstats | grep -q '^errorstat_READONLY:'
}

@test "a hold that a replica has not heard of is not lost" {
	own_server
	hold_and_listen a -t 12s
	printf '%s\n' multi 'rename a kept' 'replicaof 127.0.0.1 1' exec | redis
	wait_until 8 has_refused_writes
	printf '%s\n' multi 'replicaof no one' "eval \"redis.call('rename', 'kept', 'a')\" 2 kept a" exec | redis
	let_go
	ended_with 0
	[ ! -s said ]
	no_keys
}

@test "a server that turns into a replica while the lock is held: the command is stopped in time" {
	own_server
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 1000
	redis replicaof 127.0.0.1 1
	end=$(lease_end_ms a)
	watch_family 5
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at .*READONLY'
}

# ---- replies that get lost ----

@test "the reply to the acquire is lost: the command runs once, and nothing is left" {
	start_proxy
	proxy drop-reply "$ACQUIRE"
	run_counted
	faults_happened
}

@test "the reply to the acquire is lost for a call that does not wait: the command runs once, and nothing is left" {
	start_proxy
	proxy drop-reply "$ACQUIRE"
	run_counted -n
	faults_happened
}

@test "the reply to the acquire is lost three times: the command runs once, and nothing is left" {
	start_proxy
	proxy drop-reply "$ACQUIRE" 3
	run_counted -w 10s
	faults_happened
}

@test "the acquire does not reach the server: the command runs once, and nothing is left" {
	start_proxy
	proxy cut-before "$ACQUIRE"
	run_counted
	faults_happened
}

@test "the reply to the acquire comes too late: the command runs once, with one hold" {
	start_proxy
	proxy hold-reply "$ACQUIRE"
	run_counted -w 5s --connect-timeout 300ms
	proxy release
	no_keys
}

@test "the reply to the acquire is lost, and no other comes in time: nothing is left after the lease" {
	start_proxy
	proxy drop-reply "$ACQUIRE" 1000
	run -69 rlock run -w 300ms -t 1s a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
	wait_until 2 no_keys
}

@test "the reply to the release is lost: the command's status stands, and nothing is left" {
	start_proxy
	proxy drop-reply "$RELEASE"
	run_counted
	faults_happened
}

@test "the reply to the release is lost three times: the command's status stands, and nothing is left" {
	start_proxy
	proxy drop-reply "$RELEASE" 3
	run_counted
	faults_happened
}

has_no_renewers() {
	[ -z "$(renewers)" ]
}

@test "a signal that comes while unlock releases the lock ends it only after that" {
	local signal
	start_proxy
	for signal in INT TERM HUP; do
		in_background bash -c 'rlock lock --pid $$ a && touch locked && until_let_go'
		local whose=$PID
		wait_until 5 file_exists locked
		proxy blackhole on up
		in_background rlock unlock --pid "$whose" a
		# Its renewer gone, the lock would last to the end of its lease.
		wait_until 5 has_no_renewers
		kill -s "$signal" "$PID"
		proxy cut
		proxy blackhole off
		wait_until 5 no_keys
		wait_until 5 is_gone "$PID"
		rm locked
	done
}

@test "unlock of a lock that expired without its renewer never says that all was well, whatever gets lost" {
	local whose
	start_proxy
	in_background bash -c 'rlock lock -t 1s --pid $$ a && touch locked && until_let_go'
	whose=$PID
	wait_until 5 file_exists locked
	kill -KILL "$(renewers)"
	wait_until 5 no_keys
	proxy cut-before "$RELEASE"
	run -69 rlock unlock --pid "$whose" a
	faults_happened
	run -76 rlock unlock --pid "$whose" a
	assert_one_line '^rlock: a: .*lost.*$'
}

@test "the release does not reach the server: it is sent again" {
	start_proxy
	proxy cut-before "$RELEASE"
	run_counted
	faults_happened
}

@test "all replies are lost once: the command runs once, and nothing is left" {
	start_proxy
	proxy drop-reply SETNAME
	proxy drop-reply "$ACQUIRE"
	proxy drop-reply "$RELEASE"
	run_counted
	faults_happened
}

# renewal_survives COMMAND...: with that fault for renewals the lock stays held by one hold.
renewal_survives() {
	start_proxy
	hold_and_listen a -t 2s
	proxy "$@"
	wait_until 5 faults_happened
	wait_until 5 is_renewed a 2000
	[ "$(hold_count a)" = 1 ]
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "the reply to a renewal is lost: the lock stays held, by one hold" {
	renewal_survives drop-reply "$RENEW"
}

@test "the replies to three renewals are lost: the lock stays held, by one hold" {
	renewal_survives drop-reply "$RENEW" 3
}

@test "a renewal does not reach the server: the lock stays held" {
	renewal_survives cut-before "$RENEW"
}

@test "the reply to a waiter's SUBSCRIBE is lost: it gets the lock all the same" {
	start_proxy
	proxy drop-reply SUBSCRIBE
	hold_in_background a
	wait_for_lock a
	faults_happened
	let_go
	took_less 3 ended_with 0
	said_nothing
	[ -e ran ]
	wait_until 2 no_keys
}

@test "a waiter's reply is lost after the one that gave it the lock: the command runs once" {
	start_proxy
	hold_in_background a
	in_background sh -c 'exec "$@" 2>said' sh rlock run a -- sh -c 'echo >>ran; ask_redis "$SERVER_SOCKET" hvals a >counts'
	wait_until 5 has_waiters a
	proxy drop-reply "$ACQUIRE"
	let_go
	ended_with 0
	faults_happened
	has_lines ran 1
	file_says counts 1
	wait_until 2 no_keys
}

@test "of two nested commands of one owner, with replies lost for either, each hold is counted a single time" {
	start_proxy
	in_background rlock run a -- sh -c 'echo "$RLOCK_HELD" >held; until_let_go'
	holder=$PID
	wait_until 5 has_lines held 1
	nested() {
		mkdir "$1"
		in_background env RLOCK_HELD="$(cat held)" BATS_TEST_TMPDIR="$BATS_TEST_TMPDIR/$1" rlock run a -- until_let_go
	}
	[ "$(hold_count a)" = 1 ]
	proxy drop-reply "$ACQUIRE"
	nested first
	first=$PID
	wait_until 5 has_command "$first"
	[ "$(hold_count a)" = 2 ]
	proxy drop-reply "$ACQUIRE" 2
	nested second
	second=$PID
	wait_until 5 has_command "$second"
	faults_happened
	[ "$(hold_count a)" = 3 ]
	proxy drop-reply "$RELEASE"
	touch first/let-go
	ended_with 0 "$first"
	faults_happened
	[ "$(hold_count a)" = 2 ]
	proxy drop-reply "$RELEASE" 2
	touch second/let-go
	ended_with 0 "$second"
	faults_happened
	[ "$(hold_count a)" = 1 ]
	let_go
	ended_with 0 "$holder"
	no_keys
}

# ---- a bad line ----

@test "all connections are cut while the lock is held: nothing happens" {
	start_proxy
	hold_and_listen a -t 1s
	for _ in 1 2 3; do
		proxy cut
		stays 0.4 is_held a
	done
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a holder in a black hole: the command is stopped before the lease ends" {
	start_proxy
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 3000
	proxy blackhole on
	end=$(lease_end_ms a)
	watch_family 7
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at '
	wait_until 4 no_keys
}

@test "a holder whose replies vanish, while its renewals arrive: stopped, and the lock is released" {
	start_proxy
	hold_and_listen a -t 1s
	proxy blackhole on down
	ended_with 76
	said_once '^rlock: a: lock lost at '
	is_free_after_lease a 1000
}

@test "a waiter in a black hole: its time runs out, 69" {
	hold_in_background a -t 1s
	start_proxy
	wait_for_lock a -w 5s
	proxy blackhole on
	took_less 8 ended_with 69
	said_once '^rlock: a: '
	[ ! -e ran ]
}

@test "a waiter that was in a black hole gets the lock behind it" {
	hold_in_background a -t 1s
	holder=$PID
	start_proxy
	wait_for_lock a
	proxy blackhole on
	let_go
	ended_with 0 "$holder"
	let_pass 0.5
	proxy blackhole off
	proxy cut
	took_less 5 ended_with 0
	[ -e ran ]
	wait_until 2 no_keys
}

@test "a connection that the server does not answer ends at --connect-timeout" {
	start_proxy
	proxy blackhole on
	took_less 4 run -69 rlock run --connect-timeout 500ms a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "replies that take a second: slow, but all is as ever" {
	start_proxy
	proxy delay 1000
	run_counted -t 10s
}

@test "replies that take longer than the lease: the command does not run, and nothing is left" {
	start_proxy
	proxy delay 1100
	run rlock run -t 1s -w 2s a -- touch ran
	[ "$status" -ne 0 ] && [ "$status" -lt 128 ]
	[ ! -e ran ]
	wait_until 2 no_keys
}

@test "replies that come a byte at a time: all is as ever" {
	start_proxy
	proxy trickle on
	run_counted
}

@test "garbage instead of the reply to the acquire: nothing is left after the lease" {
	start_proxy
	proxy garbage "$ACQUIRE" 1000
	run rlock run -t 1s -w 300ms a -- touch ran
	[ "$status" -ne 0 ] && [ "$status" -lt 128 ]
	[ "${#lines[@]}" -eq 1 ]
	assert_output --regexp '^rlock: a: '
	[ ! -e ran ]
	proxy pass
	is_free_after_lease a 1000
}

@test "garbage instead of the reply to the release: the command's status stands" {
	start_proxy
	proxy garbage "$RELEASE" 1000
	run -7 rlock run -t 1s a -- sh -c 'exit 7'
	[ "${#lines[@]}" -eq 1 ] || fail "$output"
	proxy pass
	is_free_after_lease a 1000
}

@test "garbage instead of the reply to a renewal: the lock stays held" {
	renewal_survives garbage "$RENEW"
}

@test "garbage instead of every reply to a renewal: the command is stopped before the lease ends" {
	start_proxy
	hold_with_family a -t 1s
	wait_until 5 is_renewed a 1000
	proxy garbage "$RENEW" 100000
	end=$(lease_end_ms a)
	watch_family 5
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at '
}

@test "something that is no Redis at all: one clear line, and no lock" {
	start_proxy
	proxy garbage '*' 1000
	run rlock run a -- touch ran
	[ "$status" -ne 0 ] && [ "$status" -lt 128 ]
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

# ---- round trips ----

@test "an undisturbed run makes two round trips" {
	start_proxy
	run -0 rlock run a -- true
	[ "$(proxy_counts writes_up)" = 2 ]
	[ "$(proxy_counts connections)" = 1 ]
}

@test "an undisturbed run with user, password and database makes two round trips" {
	own_server
	rlock run -u "unix://$SERVER_SOCKET?db=2" warm -- true
	redis acl setuser somebody on '>secret' '~*' '&*' +@all
	start_proxy tcp:127.0.0.1:0
	run -0 rlock run -u "redis://somebody:secret@127.0.0.1:$PROXY_PORT/2" --note there a -- \
		redis-cli -s "$SERVER_SOCKET" -n 2 exists a
	assert_output 1
	[ "$(proxy_counts writes_up)" = 2 ]
	[ "$(proxy_counts connections)" = 1 ]
}

@test "an undisturbed run with the default user's password makes two round trips" {
	own_server
	rlock run warm -- true
	redis config set requirepass secret
	start_proxy tcp:127.0.0.1:0
	REDISCLI_AUTH=secret run -0 rlock run -u "redis://127.0.0.1:$PROXY_PORT" a -- true
	[ "$(proxy_counts writes_up)" = 2 ]
}
