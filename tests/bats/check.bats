#!/usr/bin/env bats
# rlock check: whether locks can be relied on.

# bats sets this one.
# shellcheck disable=SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/replicas
load ../lib/proxying

setup_file() {
	choose_port
	start_server --port "$PORT" --appendonly yes --appendfsync no
}
teardown_file() { stop_server; }

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	redis config set maxmemory 0 >/dev/null
	redis config set maxmemory-policy noeviction >/dev/null
	watchful_teardown
}

# finds LEVEL SUBJECT TEXT: a line of the output.
finds() {
	assert_line --regexp "^$1 +$2 +$3"
}

# All that a lock of any kind needs.
RIGHTS=('~nightly*' '~rlock_*' '~redisson_*' '~{nightly*}:*:rwlock_timeout:*' '&redisson_*' +eval +evalsha '+client|setname'
	+subscribe +hlen +hexists +hkeys +hvals +hget +hgetall +hset +hdel +hincrby +del +exists +type +incr +get +set
	+zadd +zrem +zrange '+pubsub|numsub' +pttl +pexpire +time +publish +lindex +lpos +lrange +linsert +rpush +lrem
	+zscore +zcard +info +ping '+config|get')

# limited RULE...: RLOCK_URL is that of a user with these rights.
limited() {
	redis acl setuser limited reset resetchannels on '>secret' "$@" >/dev/null
	export RLOCK_URL=redis://limited:secret@127.0.0.1:$PORT
}

@test "a sound server is found to be sound" {
	run -0 rlock check
	assert_line --index 0 --regexp '^unix://'
	finds ok version '(Redis|Valkey) [0-9]'
	finds ok role master
	finds ok eviction noeviction
	finds ok persistence append-only
	finds ok latency '[0-9.]+ ms, worst of 20: '
	finds ok clock 'as fast as ours'
	finds ok rights all
	finds ok directory "$RLOCK_RUNTIME_DIR"
	finds ok kernel has
	refute_line --regexp '^BAD'
	no_keys
}

@test "a user with the rights that the manual names has all rights" {
	limited "${RIGHTS[@]}"
	run -0 rlock check 'nightly*'
	finds ok rights all
	no_keys
}

# Those without which locks work are notes.
@test "each right that a user lacks is named, as ACL SETUSER takes it" {
	local right level
	for right in "${RIGHTS[@]}"; do
		case $right in
		+ping | +info | '+config|get' | '+client|setname') continue ;;
		esac
		# shellcheck disable=SC2046
		limited $(printf '%s\n' "${RIGHTS[@]}" | grep -vxF -e "$right")
		run rlock check 'nightly*'
		case $right in
		+set | +get | +incr | '+pubsub|numsub') level='note' && assert_equal "$status" 0 ;;
		*) level=BAD && assert_equal "$status" 77 ;;
		esac
		case $right in
		'~nightly*') finds "$level" rights '.* ~nightly\*' ;;
		'~rlock_*') finds "$level" rights '.* ~rlock_holds:\{nightly\* .*~rlock_turn:\{nightly\*' ;;
		'~redisson_*') finds "$level" rights '.* ~redisson_lock_queue:\{nightly\*' ;;
		'~{'*) finds "$level" rights '.* ~\{nightly\*\}:\*:rwlock_timeout:\*' ;;
		'&'*) finds "$level" rights '.* &redisson_lock__channel:\{nightly\* .*&redisson_rwlock:\{nightly\*' ;;
		*) finds "$level" rights ".* \\${right/|/\\|}( |\$)" ;;
		esac
		# Without DEL they expire at once.
		wait_until 2 no_keys
	done
}

@test "the rights that are named are enough" {
	limited '~nightly*' '&redisson_*' +ping +info '+config|get' +eval
	run -77 rlock check 'nightly*'
	local named
	named=$(sed -nE 's/^BAD +rights .*ACL SETUSER USER //p' <<<"$output")
	# shellcheck disable=SC2086
	redis acl setuser limited $named >/dev/null
	run -0 rlock check 'nightly*'
	finds ok rights all
	run -0 rlock fair nightly -- true
	run -0 rlock wlock nightly -- true
	no_keys
}

@test "a user that has rights to plain locks only is told which locks cannot be used" {
	limited "${RIGHTS[@]}" -zcard -lpos
	run -77 rlock check 'nightly*'
	finds BAD rights "fair, read, write locks can't be used"
}

@test "names that begin otherwise than the user's are refused" {
	limited "${RIGHTS[@]}"
	run -77 rlock check 'weekly*'
	finds BAD rights '.* ~weekly\*'
}

@test "a server that deletes locks when its memory is full is not sound" {
	redis config set maxmemory-policy allkeys-lru >/dev/null
	run -0 rlock check
	finds note eviction 'allkeys-lru would delete locks'
	redis config set maxmemory 1gb >/dev/null
	run -78 rlock check
	finds BAD eviction 'allkeys-lru deletes locks'
	redis config set maxmemory-policy volatile-ttl >/dev/null
	run -78 rlock check
	finds BAD eviction 'volatile-ttl deletes locks'
}

@test "a server without persistence or replicas is noted" {
	own_server bare
	run -0 rlock check -u "unix://$PWD/bare/redis.sock"
	finds note persistence 'none: a restart forgets all locks'
	finds note replicas none
}

@test "a replica is not sound, and its master has one" {
	replicated_servers
	run -78 rlock check -u "unix://$PWD/two/redis.sock"
	finds BAD role 'slave: it can take no lock'
	run -0 rlock check --replicas 1
	finds ok replicas 1
	run -78 rlock check --replicas 2
	finds BAD replicas '1, and --replicas wants 2'
}

@test "a server that is too slow for the lease is not sound" {
	start_proxy
	proxy delay 150
	run -78 rlock check -t 1s
	finds BAD latency '[0-9.]+ ms, worst of 20: [0-9.]+ ms: too slow for a lease of 1s'
	run -0 rlock check -t 30s
	finds ok latency
}

@test "a server that cannot be reached: 69, and the machine is looked at all the same" {
	run -69 --separate-stderr rlock check -u "unix://$PWD/nowhere"
	finds BAD server '.*nowhere'
	finds ok kernel has
	[ "$(wc -l <<<"$stderr")" = 1 ]
}

@test "a wrong password: 77" {
	run -77 rlock check -u "redis://limited:wrong@127.0.0.1:$PORT"
	finds BAD server
}

@test "of several servers each is looked at" {
	own_server two
	run -69 rlock check -u "$RLOCK_URL" -u "unix://$PWD/nowhere" -u "unix://$PWD/two/redis.sock"
	[ "$(grep -c '^ok *role *master' <<<"$output")" = 2 ]
	finds BAD server '.*nowhere'
}

@test "a runtime directory that others may enter is not sound" {
	mkdir -m 755 dir
	RLOCK_RUNTIME_DIR=$PWD/dir run -78 rlock check
	finds BAD directory ".*dir can't be used"
}
