#!/usr/bin/env bats
# bats file_tags=long
# The lines of rlock(7) and rlock-protocol(7) that make a user of the server: each right in them is used, and they are
# enough for what they are said to be for. What a user without one of these rights is told is tested by acl.bats.

load ../lib/usual

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
# acl_lines FILE MARK: the lines for redis-cli that stand there.
acl_lines() {
	sed -n '/^\.\\" acl: '"$2"'$/,/^\.Ed/p' "$TOP/$1" | sed -n 's/\\&//g; /^ACL /p'
}

# rights: the commands that rlock(7) has for a user, one a line.
rights() {
	acl_lines man/rlock.7 'least rights' | grep -o '+[a-z|]*' | tr -d +
}

# be_user FILE MARK...: the user ci is made by these lines, and makes the calls from here on.
be_user() {
	redis acl deluser ci >/dev/null
	while [ $# -gt 0 ]; do
		acl_lines "$1" "$2"
		shift 2
	done >acl
	assert [ -s acl ]
	run -0 redis <acl
	refute_line --regexp '[^OK]'
	redis acl log reset >/dev/null
	export RLOCK_URL=redis://ci:SECRET@127.0.0.1:$PORT
}

# use_kind VERB LOCK_VERB NAME: whatever can be done with a lock of one kind, but waiting.
use_kind() {
	local verb=$1 lock=$2 name=$3
	run -0 rlock "$verb" -n "$name" -- rlock "$verb" -n "$name" -- true
	run -0 rlock "$verb" -n --db 3 "$name" -- true
	run -0 rlock "$verb" -t 3s "$name" -- sleep 1.2
	run -0 rlock "$verb" -n "$name" -- rlock "$verb" --at-least 10ms "$name" -- true
	run -0 rlock "$verb" -w 5s --at-least 10ms "$name" -- true
	run -0 rlock "$lock" -w 5s --owner x --lease 20s "$name"
	run -0 rlock renew --owner x --lease 20s "$name"
	run -0 rlock unlock --owner x "$name"
	run -0 rlock "$lock" --pid $$ "$name"
	run -0 rlock renew --pid $$ "$name"
	run -0 rlock unlock --pid $$ "$name"
	run -0 rlock "$lock" --owner x --lease 20s "$name"
	run -0 rlock unlock --force "$name"
	run -78 rlock "$verb" -n "$name-string" -- true
	assert_output --partial string
}

# use_wait HOLD WAIT NAME: waits by the verb WAIT for what HOLD has: in vain, and until it is released.
use_wait() {
	local hold=$1 wait=$2 name=$3
	run -0 rlock "$hold" --owner x --lease 20s "$name"
	run -75 rlock "$wait" -w 20ms "$name" -- true
	in_background rlock "$wait" -w 20s "$name" -- true
	wait_until 5 has_listener
	run -0 rlock unlock --owner x "$name"
	wait "$PID"
}
has_listener() {
	[ "$(redis pubsub channels)" != '' ]
}

# line_of NAME: the keys of the line, the one of the deadlines behind it.
line_of() {
	case $1 in
	*'{'*) printf '%s\n' "redisson_lock_queue:$1" "redisson_lock_timeout:$1" ;;
	*) printf '%s\n' "redisson_lock_queue:{$1}" "redisson_lock_timeout:{$1}" ;;
	esac
}

# A Java client takes the first position of NAME's queue from the waiter, and the waiter takes it back.
use_return() {
	local name=$1 line deadlines waiter
	{ read -r line; read -r deadlines; } < <(line_of "$name")
	run -0 rlock lock --owner x --lease 20s "$name"
	in_background rlock fair -w 20s "$name" -- true
	wait_until 5 has_queued_waiter "$line"
	waiter=$(redis lindex "$line" 0)
	redis zadd "$deadlines" 9999999999999 java:1 >/dev/null
	redis rpush "$line" java:1 >/dev/null
	redis lrem "$line" 1 "$waiter" >/dev/null
	wait_until 5 is_first "$line" "$waiter"
	run -0 rlock unlock --owner x "$name"
	wait "$PID"
	redis del "$line" "$deadlines" >/dev/null
}
has_queued_waiter() {
	[ "$(redis llen "$1")" -gt 0 ]
}
is_first() {
	redis_says "$2" lindex "$1" 0
}

use_plain() {
	use_kind run lock "$1"
	use_wait lock lock "$1"
	run -0 rlock run -n --fence "$1" -- true
}

use_fair() {
	use_kind fair fair "$1"
	use_wait fair fair "$1"
	use_return "$1"
	run -0 rlock fair -n --fence "$1" -- true
}

use_readwrite() {
	use_kind rlock rlock "$1"
	use_kind wlock wlock "$1"
	use_wait rlock wlock "$1"
	use_wait wlock rlock "$1"
	use_wait wlock wlock "$1"
	run -0 rlock wlock -n "$1" -- rlock rlock -n "$1" -- true
	run -64 rlock rlock -n "$1" -- rlock wlock -n "$1" -- true
	run -0 rlock rlock --owner x --lease 20s "$1"
	run -0 rlock rlock --owner y --lease 20s "$1"
	run -0 rlock unlock --force --holder x:0 "$1"
	run -0 rlock unlock --force "$1"
}

use_sem() {
	local name=$1-sem
	run -0 rlock sem -n --permits 2 "$name" -- true
	run -0 rlock sem --permits 2 --take 2 --owner x --lease 20s "$name"
	run -0 rlock renew --owner x --lease 30s "$name"
	run -75 rlock sem -w 1s --permits 2 "$name" -- true
	in_background rlock sem -w 20s --permits 2 "$name" -- true
	wait_until 5 is_held "$(case $1 in *'{'*) echo "rlock_queue:$name" ;; *) echo "rlock_queue:{$name}" ;; esac)"
	run -0 rlock unlock --owner x "$name"
	wait "$PID"
	run -0 rlock sem --permits 2 --at-least 1s "$name" -- true
	run -0 rlock sem --permits 3 --resize "$name"
	run -0 rlock status "$name"
	run -0 rlock unlock --force "$name"
}

# use_several NAME: on databases of this server, in the place of servers.
use_several() {
	run -0 rlock run -t 3s -w 10s -u "$RLOCK_URL/1 $RLOCK_URL/2 $RLOCK_URL/3" --quorum majority "$1" -- true
}

# use_everything NAME: whatever can be done with a lock.
use_everything() {
	redis script flush >/dev/null
	use_plain "$1"
	use_fair "$1"
	use_readwrite "$1"
	use_sem "$1"
	use_several "$1"
}

@test "each right that rlock(7) lists is used" {
	be_user man/rlock.7 'least rights'
	redis mset nightly-string x 'redisson_lock_token:{nightly}' 1 >/dev/null
	redis config resetstat >/dev/null
	use_everything nightly
	assert_equal "$(redis acl log)" ''
	# Redis 6 counts no subcommands.
	redis info commandstats | sed -nE 's/^cmdstat_([a-z]+).*/\1/p' | sort -u >used
	rights | cut -d '|' -f 1 | sort >listed
	assert [ "$(wc -l <listed)" -gt 30 ]
	run -0 comm -23 listed used
	assert_output ''
}

# without_lines WORD...: the user ci by the lines of rlock(7) without those that have one of these words.
without_lines() {
	redis acl deluser ci >/dev/null
	acl_lines man/rlock.7 'least rights' | grep -vF "$(printf '%s\n' "$@")" | redis >/dev/null
	redis acl log reset >/dev/null
	redis script flush >/dev/null
	export RLOCK_URL=redis://ci:SECRET@127.0.0.1:$PORT
}

# only_these_lines KIND WORD...: those without these words are enough for locks of that kind.
only_these_lines() {
	without_lines "${@:2}"
	redis set nightly-string x >/dev/null
	"use_$1" nightly
	assert_equal "$(redis acl log)" ''
}

@test "the lines of rlock(7) for one kind of lock are enough for that kind" {
	only_these_lines plain +lindex +zscore +zcard
	run -77 rlock fair -n nightly -- true
	run -77 rlock rlock -n nightly -- true
	only_these_lines fair +zcard
	only_these_lines readwrite +lindex +zscore
	only_these_lines sem +lindex
}

@test "rlock-protocol(7) lists the same rights" {
	rights | tr '|' '\n' | sort >listed
	sed -n '/^\.Sh ACCESS/,/^\.Pp/p' "$TOP/man/rlock-protocol.7" | grep '^\.Ic' | grep -oE '[A-Z]{2,}' |
		grep -vx AUTH | tr '[:upper:]' '[:lower:]' | sort >shown
	run -0 diff listed shown
}

@test "the keys and channels that rlock-protocol(7) has for groups of names are enough for these" {
	local name
	be_user man/rlock.7 'least rights' man/rlock-protocol.7 narrow
	redis acl setuser ci resetkeys resetchannels >/dev/null
	acl_lines man/rlock-protocol.7 narrow | redis >/dev/null
	for name in nightly-of-db1 '{app}:x'; do
		redis mset "$name-string" x >/dev/null
		use_everything "$name"
	done
	redis set 'redisson_lock_token:{nightly}' 1 >/dev/null
	run -0 rlock run -n nightly -- true
	assert_equal "$(redis acl log)" ''
}

@test "the keys and channels that rlock-protocol(7) has for groups of names are no others'" {
	local name verb
	be_user man/rlock.7 'least rights' man/rlock-protocol.7 narrow
	redis acl setuser ci resetkeys resetchannels >/dev/null
	acl_lines man/rlock-protocol.7 narrow | redis >/dev/null
	for name in daily '{nightly}' '{nightly}:x' app:x '{app}x' '{nightly'; do
		for verb in run fair rlock wlock; do
			run -77 rlock "$verb" -n "$name" -- true
		done
		run -77 rlock unlock --force "$name"
	done
	no_keys
}
