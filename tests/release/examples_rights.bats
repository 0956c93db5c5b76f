#!/usr/bin/env bats
# bats file_tags=long
# The lines of rlock(7) and rlock-protocol(7) that make a user of the server: rlock uses each right in them, and needs no other
# for what the text names. acl.bats tests the messages to a user who lacks a right.

load ../lib/usual
load ../lib/certificates

# One server also has a port: only the URL of a port can name a user. Two more servers are for locks on several servers.
setup_file() {
	start_server_number 1
	start_server_number 2
	start_server_at_port
}

teardown_file() {
	stop_server
	stop_servers
}

# acl_lines FILE MARK: print the lines for redis-cli in the block with that mark.
acl_lines() {
	sed -n '/^\.\\" acl: '"$2"'$/,/^\.Ed/p' "$TOP/$1" | sed -n 's/\\&//g; /^ACL /p'
}

# rights: print the commands that rlock(7) allows a user, one a line.
rights() {
	acl_lines man/rlock.7 'least rights' | grep -o '+[a-z|]*' | tr -d +
}

# granted VERB OPTION...: check that `rlock VERB OPTION... -- true` succeeds.
granted() {
	run -0 rlock "$@" -- true
}

# use_owner VERB OPTION... NAME: acquire a lock for an owner, renew it and release it.
use_owner() {
	run -0 rlock "$1" --owner x --lease 20s "${@:2}"
	run -0 rlock renew --owner x --lease 30s "${@: -1}"
	run -0 rlock unlock --owner x "${@: -1}"
}

# use_kind VERB LOCK_VERB NAME: make each request that a lock of one kind can need, but do not wait.
use_kind() {
	local verb=$1 lock=$2 name=$3
	run -0 rlock "$verb" -n "$name" -- rlock "$verb" -n "$name" -- true
	granted "$verb" -n --db 3 "$name"
	run -0 rlock "$verb" -t 3s "$name" -- sleep 1.2
	run -0 rlock "$verb" -n "$name" -- rlock "$verb" --at-least 10ms "$name" -- true
	granted "$verb" -w 5s --at-least 10ms "$name"
	use_owner "$lock" -w 5s "$name"
	run -0 rlock "$lock" --pid $$ "$name"
	run -0 rlock unlock --pid $$ "$name"
	run -0 rlock "$lock" --owner x --lease 20s "$name"
	run -0 rlock unlock --force "$name"
	run -78 rlock "$verb" -n "$name-string" -- true
	assert_output --partial string
}

# use_wait HOLD WAIT NAME: hold a lock by the verb HOLD, and wait for it by the verb WAIT: until the time is over, and until it is released.
use_wait() {
	run -0 rlock "$1" --owner x --lease 20s "$3"
	run -75 rlock "$2" -w 20ms "$3" -- true
	in_background rlock "$2" -w 20s "$3" -- true
	wait_until 5 has_listener
	run -0 rlock unlock --owner x "$3"
	ended_with 0
}
has_listener() {
	! no_subscribers
}

# use_return NAME: let a Java client take the first position of NAME's queue from the waiter, which takes the position back.
use_return() {
	local queue deadlines waiter
	queue=$(key_of_lock redisson_lock_queue "$1")
	deadlines=$(key_of_lock redisson_lock_timeout "$1")
	run -0 rlock lock --owner x --lease 20s "$1"
	in_background rlock fair -w 20s "$1" -- true
	wait_until 5 has_queue_length "$1" 1
	waiter=$(redis lindex "$queue" 0)
	redis zadd "$deadlines" 9999999999999 java:1 >/dev/null
	redis rpush "$queue" java:1 >/dev/null
	redis lrem "$queue" 1 "$waiter" >/dev/null
	wait_until 5 redis_says "$waiter" lindex "$queue" 0
	run -0 rlock unlock --owner x "$1"
	ended_with 0
	redis del "$queue" "$deadlines" >/dev/null
}

use_plain() {
	use_kind run lock "$1"
	use_wait lock lock "$1"
	granted run -n --fence "$1"
}

use_fair() {
	use_kind fair fair "$1"
	use_wait fair fair "$1"
	use_return "$1"
	granted fair -n --fence "$1"
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
	granted sem -n --permits 2 "$name"
	use_owner sem --permits 2 --take 2 "$name"
	run -0 rlock sem --permits 2 --take 2 --owner x --lease 20s "$name"
	run -75 rlock sem -w 1s --permits 2 "$name" -- true
	in_background rlock sem -w 20s --permits 2 "$name" -- true
	wait_until 5 is_held "$(key_of_lock rlock_queue "$name")"
	run -0 rlock unlock --owner x "$name"
	ended_with 0
	granted sem --permits 2 --at-least 30s "$name"
	run -0 rlock sem --permits 3 --resize "$name"
	run -0 rlock status "$name"
	run -0 rlock unlock --force "$name"
}

# use_everything NAME: make each request that a lock can need.
use_everything() {
	redis script flush >/dev/null
	redis set "$1-string" x >/dev/null
	use_plain "$1"
	use_fair "$1"
	use_readwrite "$1"
	use_sem "$1"
	granted run -t 3s -w 10s -u "$RLOCK_URL unix://$(socket_of 1) unix://$(socket_of 2)" --quorum majority "$1"
}

# be_user: make the user ci by the lines of standard input. All later calls are made by ci.
be_user() {
	run -0 redis
	refute_line --regexp '[^OK]'
	redis acl log reset >/dev/null
	export RLOCK_URL=redis://ci:SECRET@127.0.0.1:$PORT
}

# only_these_lines KIND WORD...: check that the lines of rlock(7) without these words are enough for locks of that kind.
only_these_lines() {
	redis acl deluser ci >/dev/null
	be_user < <(acl_lines man/rlock.7 'least rights' | grep -vF "$(printf '%s\n' "${@:2}")")
	redis script flush >/dev/null
	redis set nightly-string x >/dev/null
	"use_$1" nightly
	assert_equal "$(redis acl log)" ''
}

@test "each right that rlock(7) lists is used, its lines for one kind are enough for that kind, and rlock-protocol(7) lists the same" {
	redis config resetstat >/dev/null
	only_these_lines plain +lindex +zscore +zcard
	run -77 rlock fair -n nightly -- true
	run -77 rlock rlock -n nightly -- true
	only_these_lines fair +zcard
	only_these_lines readwrite +lindex +zscore
	only_these_lines sem +lindex
	run -0 rlock list 'nightly*'
	# Compare commands without their subcommands, which Redis 6 does not count.
	redis info commandstats | sed -nE 's/^cmdstat_([a-z]+).*/\1/p' | sort -u >used
	assert [ "$(rights | wc -l)" -gt 30 ]
	run -0 comm -23 <(rights | cut -d '|' -f 1 | sort) used
	assert_output ''
	run -0 diff <(rights | tr '|' '\n' | sort) <(sed -n '/^\.Sh ACCESS/,/^\.Pp/p' "$TOP/man/rlock-protocol.7" | grep '^\.Ic' |
		grep -oE '[A-Z]{2,}' | grep -vx AUTH | tr '[:upper:]' '[:lower:]' | sort)
}

@test "the keys and channels that rlock-protocol(7) has for groups of names are enough for these, and no others'" {
	local name verb
	redis acl deluser ci >/dev/null
	be_user < <(acl_lines man/rlock.7 'least rights')
	redis acl setuser ci resetkeys resetchannels >/dev/null
	be_user < <(acl_lines man/rlock-protocol.7 narrow)
	for name in daily '{nightly}' '{nightly}:x' app:x '{app}x' '{nightly'; do
		for verb in run fair rlock wlock; do
			run -77 rlock "$verb" -n "$name" -- true
		done
		run -77 rlock unlock --force "$name"
	done
	no_keys
	redis acl log reset >/dev/null
	for name in nightly-of-db1 '{app}:x'; do
		use_everything "$name"
	done
	redis set 'redisson_lock_token:{nightly}' 1 >/dev/null
	granted run -n nightly
	assert_equal "$(redis acl log)" ''
}

# literal MARK: print the block of rlock(7) with that mark.
literal() {
	sed -n '/^\.\\" '"$1"'$/,/^\.Ed/{/^\./!p}' "$TOP/man/rlock.7"
}

@test "the lines of rlock(7) for a server with a password and TLS, and those for its clients, fit together" {
	export CERTIFICATES=$PWD/certificates
	create_certificates "$CERTIFICATES"
	choose_port
	literal 'server: password and TLS' | sed "s,/etc/redis,$CERTIFICATES,; s/ 6379$/ $PORT/" >redis.conf
	assert [ "$(wc -l <redis.conf)" -gt 5 ]
	in_background redis-server ./redis.conf --bind 127.0.0.1 --save '' --dir "$PWD"
	literal 'client: password and TLS' |
		sed "s,/etc/rlock/ca.crt,$CERTIFICATES/ca.crt,; s,/etc/rlock.password,$PWD/password,; s,redis.example,localhost:$PORT," >rlock.conf
	echo SECRET >password
	chmod 600 password rlock.conf
	unset RLOCK_URL
	wait_until 30 rlock run --config "$PWD/rlock.conf" x -- true
	echo wrong >password
	run -77 rlock run --config "$PWD/rlock.conf" x -- true
	sed -i /password/d rlock.conf
	run -77 rlock run --config "$PWD/rlock.conf" x -- true
	sed -i s/rediss:/redis:/ rlock.conf
	run ! rlock run --config "$PWD/rlock.conf" x -- true
}
