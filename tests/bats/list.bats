#!/usr/bin/env bats
# Which locks list finds on a server: rlock's and Java's, of each kind, and no hash of a user's; in slices that hold up no
# other client, however many there are.

# In single quotes stand whole scripts; SECRET and the like are of the helpers.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/rights
load ../lib/inspecting
load ../lib/proxying

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() { directory_setup; }
teardown() { watchful_teardown; }

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
	run -0 rlock list
	assert_equal "$(tail -n +2 <<<"$output" | cut -d ' ' -f 1 | tr '\n' ' ')" 'hourly nightly-1 nightly-2 odd* '
	run -0 rlock list 'nightly-*'
	assert_equal "$(names)" 'nightly-1 nightly-2 '
	run -0 rlock list --name 'odd\*'
	assert_equal "$(names)" 'odd* '
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
	make_locks 2000
	start_proxy
	proxy delay 200
	run -0 on_terminal 80 rlock list 'java-1111'
	assert_output --regexp $'\rrlock: [0-9]+ keys looked at, [0-9]+ locks found'
	assert_line --regexp '^.*java-1111 +plain'
	run -0 --separate-stderr rlock list 'java-1111'
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
	bounded rlock list >listed
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
	assert_line --index 1 '40000 40000 set()'
}

# bounded COMMAND...: with so little memory that no list of all locks fits into it.
bounded() {
	(
		[ -n "${TESTS_UNDER-}" ] || ulimit -v 18000
		"$@"
	)
}

# ---- servers that reply wrongly ----

# lists_from SCAN [EVAL]: run has listed from a server that replies so, see tests/bin/hostile; one line is on standard
# error.
lists_from() {
	rm -f hostile.sock
	in_background hostile "$PWD/hostile.sock" "$@" 2>/dev/null
	wait_until 5 test -S hostile.sock
	run --separate-stderr timeout 10 env "${RLOCK_BIN%/*}/rlock" list --connect-timeout 3s -u "unix://$PWD/hostile.sock"
	kill "$PID"
	assert_equal "$(wc -l <<<"$stderr")" 1
}

# ends_list CODE TEXT MODE...: so ends list where the replies to SCAN, or those to its script, are like that.
ends_list() {
	local code=$1 text=$2 mode
	shift 2
	[ -n "${TESTS_UNDER-}" ] || ulimit -v 40000
	for mode in "$@"; do
		lists_from "$mode"
		assert_equal "$mode: $status" "$mode: $code"
		assert_regex "$stderr" "^rlock: \*: .*$text"
		lists_from good "$mode"
		assert_equal "good $mode: $status" "good $mode: $code"
		assert_regex "$stderr" "^rlock: \*: .*$text"
	done
}

@test "list ends when the cursors of a server go round in circles" {
	local mode
	for mode in same circle; do
		lists_from "$mode"
		assert_equal "$status" 70
		assert_equal "$(names)" 'java '
		assert_equal "$stderr" "rlock: *: SCAN has no end: the server gave the same cursor twice"
	done
}

@test "list ends when a reply is too large, does not become whole, is none of the protocol or of another type" {
	ends_list 69 'its reply (is too long|has too many elements|is nested too deeply)' endless array
	ends_list 69 'in time' slow
	ends_list 69 "cannot reach unix://$PWD/hostile.sock" garbage end
	ends_list 70 'unexpected reply to (SCAN|a request to inspect)' string null cursor
}

@test "of a server whose scan does not end list prints what it has found, until Ctrl-C" {
	rm -f hostile.sock
	in_background hostile "$PWD/hostile.sock" new
	wait_until 5 test -S hostile.sock
	in_background "$RLOCK_BIN" list -u "unix://$PWD/hostile.sock" >listed
	wait_until 10 grep -q '^java ' listed
	# A sanitizer keeps what is freed.
	[ -n "${TESTS_UNDER-}" ] ||
		assert [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$PID/status")" -lt 20000 ]
	kill -INT "$PID"
	took_less 5 ended_with 130
}
