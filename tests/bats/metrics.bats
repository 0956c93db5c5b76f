#!/usr/bin/env bats
# What a monitoring asks for: rlock list --held-for, for Nagios and the like, and --metrics, for Prometheus.

# `run` sets what a program printed.
# shellcheck disable=SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/inspecting
load ../lib/permits

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }
teardown() { watchful_teardown; }

# ---- --held-for ----

@test "list --held-for prints the locks that are held for so long, and ends with 1 if there is one" {
	acquire lock ci young
	acquire lock ci old --note 'nightly backup'
	make_older old 7200000
	run -1 rlock list --held-for 2h
	assert_line --index 1 --regexp '^old +plain +2h00m +[0-9]+s +0 +rlock +nightly backup$'
	assert_equal "${#lines[@]}" 2
	run -1 rlock list --held-for 2h 'o*'
	run -0 --separate-stderr rlock list --held-for 2h 'y*'
	assert_output ''
	# shellcheck disable=SC2154
	assert_equal "$stderr" 'rlock: y*: no lock is held for 2h or longer'
	run -0 rlock list --held-for 3h -q
	assert_output ''
	run -1 rlock list --json --held-for 1h
	assert_equal "$(json '[lock["name"] for lock in doc["locks"]], doc["complete"]')" "(['old'], True)"
	run -69 rlock list -u "unix://$PWD/none" --held-for 0
}

@test "list --held-for 0 leaves out holders whose start is not known, as Java's" {
	held_by_stranger java
	run -0 rlock list -q --held-for 0
	assert_output ''
	acquire lock ci ours
	run -1 rlock list --held-for 0
	refute_output --partial java
	assert_output --partial ours
}

@test "list --held-for looks at all holders but those whose lease has ended, and shows the oldest" {
	local number
	for number in {1..4}; do
		acquire read "job$number" catalog --note "reader $number"
		acquire sem "job$number" imports --permits 5 --note "importer $number"
	done
	make_older catalog 7200000 'reader 3'
	make_older catalog 72000000 'reader 4'
	redis del '{catalog}:job4:0:rwlock_timeout:1' >/dev/null
	make_older imports 7200000 'importer 3'
	run -1 rlock list --held-for 2h
	assert_line --regexp '^catalog +read +2h00m .* reader 3 and '
	assert_line --regexp '^imports +sem +2h00m .* importer 3 and 3 more$'
	assert_equal "${#lines[@]}" 3
}

# ---- --metrics ----

@test "list --metrics prints age, TTL and waiters of each lock, and of semaphores the permits" {
	acquire lock ci nightly --note 'deploy@web1 pid 4711 pg_dump'
	make_older nightly 7200000
	in_background rlock run -w 20s nightly -- true
	wait_until 5 has_waiters nightly 1
	acquire sem ci imports --permits 5 --take 2 --note 'import@web2 pid 9 load it'
	run -0 --separate-stderr rlock list --metrics
	assert_equal "$stderr" ''
	samples <<<"$output" >found
	run -0 sed -E 's/ [0-9]{2,}\.[0-9]{3}$/ AGE/; s/ [0-9]\.[0-9]{3}$/ AGE/' found
	assert_output - <<-'END'
		rlock_lock_held_seconds {"holder": "import@web2", "kind": "sem", "name": "imports", "program": "load it"} AGE
		rlock_lock_held_seconds {"holder": "deploy@web1", "kind": "plain", "name": "nightly", "program": "pg_dump"} AGE
		rlock_lock_ttl_seconds {"holder": "import@web2", "kind": "sem", "name": "imports", "program": "load it"} AGE
		rlock_lock_ttl_seconds {"holder": "deploy@web1", "kind": "plain", "name": "nightly", "program": "pg_dump"} AGE
		rlock_lock_waiters {"kind": "sem", "name": "imports"} 0
		rlock_lock_waiters {"kind": "plain", "name": "nightly"} 1
		rlock_semaphore_permits {"kind": "sem", "name": "imports", "state": "free"} 3
		rlock_semaphore_permits {"kind": "sem", "name": "imports", "state": "held"} 2
	END
	run -0 grep -oE '^rlock_lock_held_seconds .*nightly.* 72[0-9]{2}\.' found
	run -0 grep -oE '^rlock_lock_ttl_seconds .*nightly.* [1-6][0-9]\.' found
}

@test "two holders whose labels are the same have their owners as well; Java's, and one that has expired, are told apart" {
	local number
	for number in 1 2; do
		acquire read "job$number" catalog --note 'a@b pid 1 c'
	done
	acquire read job3 catalog --note 'a@b pid 1 d'
	held_by_stranger java
	redis hset forever 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	acquire read dead catalog
	redis del '{catalog}:dead:0:rwlock_timeout:1' >/dev/null
	run -0 rlock list --metrics
	run -0 samples <<<"$output"
	assert_line --regexp '^rlock_lock_held_seconds \{"holder": "a@b", "kind": "read", "name": "catalog", "owner": "job1:0", "program": "c"\} '
	assert_line --regexp '^rlock_lock_held_seconds \{"holder": "a@b", "kind": "read", "name": "catalog", "owner": "job2:0", "program": "c"\} '
	assert_line --regexp '^rlock_lock_ttl_seconds \{"holder": "a@b", "kind": "read", "name": "catalog", "program": "d"\} '
	assert_line --regexp '^rlock_lock_ttl_seconds \{"kind": "plain", "name": "java"\} '
	assert_line 'rlock_lock_ttl_seconds {"kind": "plain", "name": "forever"} +Inf'
	refute_output --partial dead
	run -1 grep '^rlock_lock_held_seconds .*java' <<<"$output"
}

@test "no byte of a name or a note spoils the text, and no two names look alike there" {
	local name
	for name in 'a"b\c' $'a\001b' 'a\x01b' $'a\xffb' 'a\xffb' $'a\tb' 'ä€' $'a\u202eb' 'a{b="c"} 1' '\n' \\ "$(printf '\\%.0s' {1..512})"; do
		acquire sem ci "$name" --permits 1 --note $'x\x80"y\\@h pid 1 p\x02\\\n'"q" 2>/dev/null ||
			acquire sem ci "$name" --permits 1 --note $'x\x80"y\\@h pid 1 p\\'
	done
	rlock list --metrics >text
	run -0 samples text
	assert_equal "$(grep -c '^rlock_lock_waiters' <<<"$output")" 12
	assert_output --partial 'rlock_lock_waiters {"kind": "sem", "name": "a\"b\\c"} 0'
	assert_output --partial 'rlock_lock_waiters {"kind": "sem", "name": "a\\x01b"} 0'
	assert_output --partial 'rlock_lock_waiters {"kind": "sem", "name": "a\\x5cx01b"} 0'
	assert_output --partial 'rlock_lock_waiters {"kind": "sem", "name": "a\\xffb"} 0'
	assert_output --partial '"holder": "x\\x80\"y\\@h"'
	run -0 grep -F 'rlock_lock_waiters{name="a\"b\\c",kind="sem"} 0' text
	run -0 grep -F 'rlock_lock_waiters{name="a\\x09b",kind="sem"} 0' text
}

@test "without a lock list --metrics says which metrics there are, and without a server nothing" {
	run -0 --separate-stderr rlock list --metrics
	assert_equal "$(grep -c '^# TYPE rlock_' <<<"$output")" 4
	assert_equal "$stderr" ''
	run -0 samples <<<"$output"
	assert_output ''
	run -69 --separate-stderr rlock list -u "unix://$PWD/none" --metrics
	assert_output ''
}

@test "of several servers each sample says of which one it is" {
	local servers=(-u "$RLOCK_URL" -u "$RLOCK_URL?db=1")
	rlock lock "${servers[@]}" --owner ci --lease 60s nightly
	run -0 rlock list "${servers[@]}" --metrics
	run -0 samples <<<"$output"
	assert_equal "$(grep -c '^rlock_lock_held_seconds .*"server": "unix://' <<<"$output")" 2
	assert_equal "$(grep -o '"server": "[^"]*"' <<<"$output" | sort -u | wc -l)" 2
	rlock unlock "${servers[@]}" --owner ci nightly
}
