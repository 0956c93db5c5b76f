#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree: what stands on each of them, renewed, re-entered and released, with and
# without a command. Waiting for it: servers_waiting.bats; what happens to servers and processes: servers_gone.bats and
# servers_faults.bats; which servers may be named: servers_urls.bats; with a quorum smaller than all: quorum.bats.

# In single quotes stand whole scripts; runs_once is agreeing.bash's.
# shellcheck disable=SC2016,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing

setup_file() { start_warm_servers 3; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- what the tests share ----

# sorted LINE...: in the order of same_on_all.
sorted() {
	printf '%s\n' "$@" | LC_ALL=C sort
}

# ---- what stands on the servers ----

@test "a lock is the same hash on each server, of the same owner, and leaves no key" {
	in_background rlock run "${U[@]}" a -- sh -c 'echo "$RLOCK_OWNER" >owner; exec until_let_go'
	wait_until 5 has_lines owner 1
	assert_equal "$(same_on_all hgetall a)" "$(sorted 1 "$(cat owner)")"
	assert_equal "$(same_on_all hkeys 'rlock_holds:{a}' | wc -l)" 1
	on_each keys_are a 'rlock_holds:{a}'
	on_each ttl_between 15000 a 30000
	on_each ttl_between 15000 'rlock_holds:{a}' 30000
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
	hold_on_each a -t 6s
	wait_until 10 on_each ttl_between 1 a 5000
	wait_until 10 on_each is_renewed a 6000
	wait_until 10 on_each ttl_between 1 a 5000
	let_go
	ended_with 0
	said_nothing
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

@test "unlock with the servers in another order shows the line that does it" {
	run -0 bash -c '
		rlock lock --pid $$ a
		said=$(rlock unlock --pid $$ -u "$3" -u "$1" -u "$2" a 2>&1) && exit
		eval "${said##*: }"' bash "$(urls_of 1)" "$(urls_of 2)" "$(urls_of 3)"
	on_each no_keys
}

@test "unlock --force breaks a lock on all servers, and its holder finds out" {
	hold_on_each a -t 1s
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
