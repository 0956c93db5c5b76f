#!/usr/bin/env bats
# Which locks list finds on a server: rlock's and Java's, of each kind, and no hash of a user's, in slices that hold up no other
# client; and what a monitoring asks for: --held-for, for Nagios and the like, and --metrics, for Prometheus.

# shellcheck disable=SC2034,SC2154

load ../lib/usual
load ../lib/rights
load ../lib/inspecting
load ../lib/proxying

setup_file() { start_server_at_port; }

# names: those in the output of run, without the header, sorted.
names() {
	tail -n +2 <<<"$output" | cut -d ' ' -f 1 | sort | tr '\n' ' '
}

# make_locks COUNT: so many of Java's, "java-N".
make_locks() {
	redis eval '
		for i = 1, tonumber(ARGV[1]) do
			local name = "java-" .. i
			redis.call("hset", name, "5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:" .. i, 1)
			redis.call("pexpire", name, 600000)
		end' 0 "$1"
}

@test "list prints nothing on standard output when no lock is held" {
	run -0 --separate-stderr rlock list
	assert_output ''
	assert_equal "$stderr" 'rlock: *: no lock is held'
	run -0 --separate-stderr rlock list -q
	assert_equal "$stderr" ''
	run -0 rlock list --json
	assert_equal "$(json 'doc')" "{'locks': [], 'complete': True}"
}

@test "list ends by SIGPIPE when its reader has ended, and where that is ignored it says so" {
	make_locks 2000
	run -0 --separate-stderr bash -c 'rlock list | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_line --index 1 141
	assert_equal "$stderr" ''
	run -0 --separate-stderr bash -c 'trap "" PIPE; rlock list | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_line --index 1 71
	assert_equal "$stderr" 'rlock: cannot write to standard output: Broken pipe'
}

@test "status without a name is list" {
	acquire lock one a
	acquire lock two b
	run -0 rlock status
	assert_equal "$(names)" 'a b '
	run -0 rlock status --json
	assert_equal "$(json 'sorted(lock["name"] for lock in doc["locks"]), doc["complete"]')" "(['a', 'b'], True)"
	run -64 rlock status ''
}

@test "list finds locks of each kind, with holder, TTL and waiters" {
	acquire lock one plain --note 'the plain one'
	acquire fair two fair
	acquire read three readers --note first
	acquire read four readers
	acquire write five writer
	held_by_stranger java
	in_background rlock lock -w 20s plain -- true
	wait_until 5 has_waiters plain 1
	in_background rlock fair -w 20s fair -- true
	wait_until 5 has_in_queue fair 1
	run -0 rlock list
	assert_line --index 0 --regexp '^NAME +KIND +FOR +TTL +WAITERS +CLIENT +HOLDER$'
	assert_line --regexp '^plain +plain +[0-9.]+s +5[0-9]s +1 +rlock +the plain one$'
	assert_line --regexp '^fair +fair +[0-9.]+s +5[0-9]s +1 +rlock '
	assert_line --regexp '^readers +read +[0-9.]+s +5[0-9]s +0 +rlock +first and 1 more$'
	assert_line --regexp '^writer +write +[0-9.]+s +5[0-9]s +0 +rlock '
	assert_line --regexp '^java +plain +- +[0-9]+s +0 +redisson +5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1$'
	assert_equal "${#lines[@]}" 6
	rlock unlock --owner one plain
	rlock unlock --owner two fair
}

@test "list takes no hash of a user's for a lock, and says by what it knows one" {
	redis hset apples red 3 green 4 >/dev/null
	redis hset settings mode read width 80 >/dev/null
	redis hset person name bob age 3 >/dev/null
	redis set text x >/dev/null
	# Its reader has no timeout, and so no lock.
	redis hset readers mode read 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	held_by_stranger java
	acquire lock ci nightly
	redis hset by-hand me 1 >/dev/null
	redis set 'redisson_lock_token:{by-hand}' 7 >/dev/null
	run -0 rlock list
	assert_equal "$(names)" 'by-hand java nightly '
	run -0 rlock list --json
	assert_equal "$(json 'sorted((l["name"], l["ground"]) for l in doc["locks"])')" \
		"[('by-hand', 'beside'), ('java', 'owners'), ('nightly', 'record')]"
}

@test "list is sorted by name, and prints those that fit a pattern" {
	local name
	for name in nightly-1 nightly-2 hourly 'odd*'; do
		acquire lock ci "$name"
	done
	for name in permits-1 permits-2 '{odd}permits-3'; do
		acquire sem ci "$name" --permits 1
	done
	run -0 rlock list
	assert_equal "$(tail -n +2 <<<"$output" | cut -d ' ' -f 1 | tr '\n' ' ')" 'hourly nightly-1 nightly-2 odd* permits-1 permits-2 {odd}permits-3 '
	run -0 rlock list 'nightly-*'
	assert_equal "$(names)" 'nightly-1 nightly-2 '
	run -0 rlock list --name 'odd\*'
	assert_equal "$(names)" 'odd* '
	run -0 rlock list '*per?its-[^1]'
	assert_equal "$(names)" 'permits-2 {odd}permits-3 '
	run -0 --separate-stderr rlock list 'none*'
	assert_equal "$stderr" 'rlock: none*: no lock is held'
}

@test "list looks at a few keys at a time, and never by KEYS" {
	make_locks 5000
	redis config resetstat >/dev/null
	run -0 rlock list --json
	run -0 redis info commandstats
	refute_output --partial cmdstat_keys
	assert_output --regexp 'cmdstat_scan:calls=[2-9][0-9]'
	refute_output --regexp 'cmdstat_(set|del|hset|zadd|zrem|rpush|lrem|pexpire|publish|hincrby):'
}

@test "list --json has the members of status, and two of its own" {
	acquire lock ci nightly
	run -0 rlock list --json
	assert_equal "$(json 'sorted(doc)')" "['complete', 'locks']"
	json '"\n".join(sorted(lock))' >listed
	run -0 rlock status --json nightly
	json '"\n".join(sorted([*lock, "name"]))' >shown
	run -0 diff listed shown
}

@test "list on a terminal is cut to its width, CLIENT goes first, and a long name does not take the other columns away" {
	local long
	long=$(printf 'n%.0s' {1..100})
	acquire lock ci noted --note "$(printf 'm%.0s' {1..200})"
	acquire lock ci "$long" --note 'the long one'
	run -0 on_terminal 70 rlock list
	assert_output --partial 'mmm...'
	refute_output --partial CLIENT
	for line in "${lines[@]}"; do
		[ "$line" = "$long" ] || assert [ "${#line}" -le 70 ]
	done
	assert_line "$long"
	assert_line --regexp '^ +plain +[0-9.]+s +5[0-9]s +0 +the long one$'
	# One line a lock where it is read by a program.
	run -0 rlock list
	assert_line --regexp "^$long +plain .* the long one\$"
	assert_line --regexp '^noted {2,40}plain '
}

@test "list has one row for a lock on several servers, and goes on when one does not answer" {
	local url=redis://127.0.0.1:$PORT
	acquire lock ci nightly -u "$url/1" -u "$url/2" --note 'the job'
	acquire lock ci other -u "$url/2"
	run -0 rlock list -u "$url/1" -u "$url/2"
	assert_line --index 0 --regexp ' SERVERS$'
	assert_equal "$(names)" 'nightly other '
	assert_line --regexp '^nightly .* the job +2 of 2$'
	assert_line --regexp '^other .* 1 of 2$'
	run -69 --separate-stderr rlock list --json -u "$url/1" -u redis://127.0.0.1:1 -u "$url/2"
	assert_equal "$(json 'len(doc["locks"]), doc["complete"]')" '(3, False)'
	output=$stderr
	assert_output --partial 'cannot reach'
}

@test "list --watch prints one state after the other, with one row for a lock on several servers" {
	local url=redis://127.0.0.1:$PORT
	acquire lock ci nightly -u "$url/1" -u "$url/2" --note 'the job'
	RLOCK_URL="$url/1 $url/2" in_background sh -c 'exec rlock list --watch=100ms >states'
	wait_until 5 has_lines states 4
	acquire lock ci another -u "$url/1"
	wait_until 5 grep -q '^another .* 1 of 2$' states
	kill "$PID"
	run -0 grep -c '^nightly .* the job  *2 of 2$' states
	assert_equal "$output" "$(grep -c ^NAME states)"
}

@test "the rights that the manual lists for list are enough, and it says how many keys the user may not look at" {
	least_rights
	run -77 rlock list -u "$CI_URL"
	assert_output --partial '+scan'
	grep -q 'Ql +scan' "$BATS_TEST_DIRNAME/../../man/rlock.7"
	redis acl setuser ci +scan >/dev/null
	acquire lock ci nightly-1
	redis acl log reset >/dev/null
	run -0 rlock list -u "$CI_URL"
	assert_equal "$(names)" 'nightly-1 '
	assert_equal "$(redis acl log)" ''
	acquire lock ci hourly
	run -0 --separate-stderr rlock list -u "$CI_URL"
	assert_equal "$(names)" 'nightly-1 '
	assert_regex "$stderr" '^rlock: \*: redis://127.0.0.1:[0-9]+/0: 1 keys could not be looked at: denied by the server'
	run -77 --separate-stderr rlock list -u "$CI_URL" 'hourly*'
}

@test "while it takes long list says on a terminal how far it is" {
	make_locks 1000
	start_proxy
	proxy delay 200
	run -0 on_terminal 80 rlock list 'java-111'
	assert_output --regexp $'\rrlock: [0-9]+ keys looked at, [0-9]+ locks found'
	assert_line --regexp '^.*java-111 +plain'
	run -0 --separate-stderr rlock list 'java-111'
	assert_equal "$stderr" ''
}

@test "list prints each of 40,000 locks, whatever bytes are in their names, in little memory" {
	# The second byte is any that a name may have; many of these names are no UTF-8.
	redis eval '
		for i = 0, 39999 do
			local byte = i % 254 + 1
			local name = "n" .. string.char(byte < 10 and byte or byte + 1) .. i
			redis.call("hset", name, "5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1", 1)
			redis.call("pexpire", name, 600000)
		end' 0
	bounded rlock list 'n?1*' >listed
	bounded rlock list --json >listed.json
	run -0 python3 -IS -c '
import base64, json
expected = {b"n" + bytes([i % 254 + (1 if i % 254 < 9 else 2)]) + str(i).encode() for i in range(40000)}
doc = json.load(open("listed.json"))
found = [base64.b64decode(lock["name_base64"]) if "name_base64" in lock else lock["name"].encode() for lock in doc["locks"]]
print(len(found), set(found) == expected, doc["complete"])
text = open("listed", encoding="utf-8").read().split("\n")
rows = [line for line in text[1:] if line]
# No name of these has two blanks.
print(len(rows), len({row.split("  ")[0] for row in rows}), {c for row in rows for c in row if not c.isprintable()})'
	assert_line --index 0 '40000 True True'
	assert_line --index 1 '11111 11111 set()'
}

# bounded COMMAND...: with so little memory that no list of all locks fits into it.
bounded() {
	(
		[ -n "${TESTS_UNDER-}" ] || ulimit -v 18000
		"$@"
	)
}

# ---- servers that reply wrongly ----

@test "list ends when the cursors of a server go round in circles, a reply has no end or is of another type" {
	local mode code text
	[ -n "${TESTS_UNDER-}" ] || ulimit -v 40000
	while IFS='|' read -r mode code text; do
		rm -f hostile.sock
		# shellcheck disable=SC2086
		in_background hostile "$PWD/hostile.sock" $mode 2>/dev/null
		wait_until 5 test -S hostile.sock
		run "-$code" --separate-stderr timeout 30 "$RLOCK_BIN" list -u "unix://$PWD/hostile.sock"
		kill "$PID"
		assert_regex "$stderr" "^rlock: \*: .*${text}[^"$'\n'"]*\$"
	done <<-'END'
		circle|70|SCAN has no end: the server gave the same cursor twice
		endless|69|its reply is too long
		string|70|unexpected reply to SCAN
		good string|70|unexpected reply to a request to inspect
	END
}

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
	assert_equal "$(json 'sorted(lock["name"] for lock in doc["locks"]), doc["complete"]')" "(['old'], True)"
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
	run -0 sed -E 's/ [0-9]+\.[0-9]{3}$/ AGE/' <(sort found)
	assert_output - <<-'END'
		rlock_lock_held_seconds {"holder": "deploy@web1", "kind": "plain", "name": "nightly", "program": "pg_dump"} AGE
		rlock_lock_held_seconds {"holder": "import@web2", "kind": "sem", "name": "imports", "program": "load it"} AGE
		rlock_lock_ttl_seconds {"holder": "deploy@web1", "kind": "plain", "name": "nightly", "program": "pg_dump"} AGE
		rlock_lock_ttl_seconds {"holder": "import@web2", "kind": "sem", "name": "imports", "program": "load it"} AGE
		rlock_lock_waiters {"kind": "plain", "name": "nightly"} 1
		rlock_lock_waiters {"kind": "sem", "name": "imports"} 0
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

@test "a writer that reads as well has one sample of each metric, as no labels may come twice" {
	acquire write ci catalog
	acquire read ci catalog
	run -0 rlock list --metrics
	run -0 samples <<<"$output"
	assert_equal "$(grep -c '^rlock_lock_held_seconds ' <<<"$output")" 1
	assert_equal "$(grep -c '^rlock_lock_ttl_seconds ' <<<"$output")" 1
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
