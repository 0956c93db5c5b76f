#!/usr/bin/env bats
# rlock list: it finds all kinds of locks of rlock and of Redisson, and no other hash. It reads a few keys at a time, so that
# other clients are not delayed. And what monitoring needs: --held-for, for Nagios and the like, and --metrics, for Prometheus.

load ../lib/usual
load ../lib/rights
load ../lib/inspecting
load ../lib/proxying

setup_file() { start_server_at_port; }

# names: prints the names in the output of `run`, in its order, without the header.
names() {
	tail -n +2 <<<"$output" | cut -d ' ' -f 1 | tr '\n' ' '
}

# make_locks COUNT: creates COUNT locks as Redisson does. The second byte of a name takes all allowed values, so many are not UTF-8.
make_locks() {
	redis eval '
		for i = 0, ARGV[1] - 1 do
			local byte = i % 254 + 1
			local name = "n" .. string.char(byte < 10 and byte or byte + 1) .. i
			redis.call("hset", name, "5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1", 1)
			redis.call("pexpire", name, 600000)
		end' 0 "$1"
}

@test "status without a name is list; without any lock it prints nothing on standard output" {
	run -0 --separate-stderr rlock status
	assert_output ''
	assert_equal "$stderr" 'rlock: no lock is held'
	run -0 --separate-stderr rlock list locks
	assert_equal "$stderr" 'rlock: locks: no lock that matches this pattern is held'
	run -0 rlock list -q --json
	assert_output '{"locks":[],"complete":true}'
	rlock list --metrics >text
	run -0 check_metrics text
	assert_output ''
	assert_equal "$(grep -c '^# TYPE rlock_' text)" 4
	acquire lock one a
	run -0 rlock status
	assert_equal "$(names)" 'a '
	run -64 rlock status ''
}

@test "list finds locks of each kind, with holder, TTL and waiters" {
	acquire lock one plain --note 'the plain one'
	acquire fair two fair
	acquire read three readers --note first
	acquire read four readers
	acquire write five writer
	hold_by_foreign_client java
	in_background rlock lock -w 20s plain -- true
	wait_until 5 has_waiters plain 1
	in_background rlock fair -w 20s fair -- true
	wait_until 5 has_queue_length fair 1
	run -0 rlock list
	assert_line --index 0 --regexp '^NAME +KIND +FOR +TTL +WAITERS +CLIENT +HOLDER$'
	assert_line --regexp '^plain +plain +[0-9.]+s +[1-5][0-9]s +1 +rlock +the plain one$'
	assert_line --regexp '^fair +fair +[0-9.]+s +[1-5][0-9]s +1 +rlock '
	assert_line --regexp '^readers +read +[0-9.]+s +[1-5][0-9]s +0 +rlock +first and 1 more$'
	assert_line --regexp '^writer +write +[0-9.]+s +[1-5][0-9]s +0 +rlock '
	assert_line --regexp '^java +plain +- +[0-9]+s +0 +redisson +5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1$'
	assert_equal "${#lines[@]}" 6
}

@test "list does not take other hashes for locks, and --json says how it has recognised a lock" {
	redis hset apples red 3 green 4 >/dev/null
	redis hset settings mode read width 80 >/dev/null
	redis set text x >/dev/null
	# A hash like that of a read lock, but without a timeout key, is no lock.
	redis hset readers mode read 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	hold_by_foreign_client java
	acquire lock ci nightly
	redis hset by-hand me 1 >/dev/null
	redis set 'redisson_lock_token:{by-hand}' 7 >/dev/null
	run -0 rlock list --json
	assert_equal "$(json 'sorted((l["name"], l["ground"]) for l in doc["locks"])')" \
		"[('by-hand', 'beside'), ('java', 'owners'), ('nightly', 'record')]"
}

@test "list is sorted by name, and prints the locks that match a pattern" {
	local name pattern found
	for name in hourly 'odd*' permits-1 permits-2 '{odd}permits-3'; do
		acquire sem ci "$name" --permits 1
	done
	while read -r pattern found; do
		run -0 rlock list --name "$pattern"
		assert_equal "$pattern: $(names)" "$pattern: $found "
	done <<-'END'
		* hourly odd* permits-1 permits-2 {odd}permits-3
		odd\* odd*
		*per?its-[^1] permits-2 {odd}permits-3
	END
}

@test "in a pattern [!a] and [^a] match any byte but a, for locks and semaphores" {
	local name pattern
	for name in la l!; do rlock lock --owner ci --lease 60s "$name"; done
	for name in sa s!; do rlock sem --permits 1 --owner ci --lease 60s "$name"; done
	for pattern in '[ls][!a]' '[ls][^a]'; do
		run -0 rlock list --name "$pattern"
		assert_equal "$(names)" 'l! s! '
	done
}

@test "on a narrow terminal list cuts no holder and no name: a long one is on a line of its own, and CLIENT is left out first" {
	local long note
	long=$(printf 'n%.0s' {1..100})
	note=$(printf 'm%.0s' {1..200})
	acquire lock ci noted --note "$note"
	acquire lock ci "$long" --note 'the long one'
	run -0 on_terminal 70 rlock list
	assert_line --index 0 --regexp '^NAME +KIND +FOR +TTL +WAITERS +HOLDER$'
	assert_line --regexp '^noted +plain +[0-9.]+s +[1-5][0-9]s +0$'
	assert_line "  $note"
	assert_line "$long"
	assert_line --regexp '^ +plain +[0-9.]+s +[1-5][0-9]s +0 +the long one$'
	# If no holder fits into its row, the header of the column must also be on a line of its own.
	run -0 on_terminal 40 rlock list
	assert_line --index 0 --regexp '^NAME +KIND +FOR +TTL +WAITERS$'
	assert_line --index 1 --regexp '^ +HOLDER$'
	assert_line --regexp '^ +plain +[0-9.]+s +[1-5][0-9]s +0$'
	assert_line --regexp '^ +the long one$'
	# Without a terminal, list must print one line for each lock.
	run -0 rlock list
	assert_line --regexp "^$long +plain .* the long one\$"
}

@test "list has one row for a lock on several servers, also with --watch, and continues when one does not answer" {
	local url=redis://127.0.0.1:$PORT
	acquire lock ci nightly -u "$url/1" -u "$url/2" --note 'the job'
	RLOCK_URL="$url/1 $url/2" in_background sh -c 'exec rlock list --watch=100ms >states'
	wait_until 5 awk 'END { exit NR < 4 }' states
	acquire lock ci other -u "$url/2"
	wait_until 5 grep -q '^other .* 1 of 2  ' states
	kill "$PID"
	ended_with 143
	run -0 grep -c '^nightly .* 0  *2 of 2  *rlock  *the job$' states
	assert_equal "$output" "$(grep -c '^NAME .* SERVERS  CLIENT  HOLDER$' states)"
	run -69 --separate-stderr rlock list --json -u "$url/1" -u redis://127.0.0.1:1 -u "$url/2"
	assert_equal "$(json 'len(doc["locks"]), doc["complete"]')" '(3, False)'
	output=$stderr
	assert_output --partial 'cannot reach'
}

@test "list with several servers reads a lock again when the server has dropped the script, also over a new connection" {
	acquire lock ci a
	acquire lock ci b
	local other="$RLOCK_URL?db=1"
	start_proxy
	proxy denial 'NOSCRIPT No matching script.'
	proxy deny "$ACQUIRE"
	proxy drop-reply "$ACQUIRE"
	run -0 --separate-stderr rlock list -u "$RLOCK_URL" -u "$other"
	assert_equal "$(names)" 'a b '
	assert_equal "$stderr" ''
	faults_happened
}

@test "list fails, and says that it is not complete, when a lock cannot be read again" {
	acquire lock ci a
	start_proxy
	proxy denial 'NOSCRIPT No matching script.'
	proxy deny "$ACQUIRE" 9
	run -70 --separate-stderr rlock list --json
	assert_equal "$(json 'doc["complete"]')" False
	assert_regex "$stderr" '^rlock: .*NOSCRIPT'
}

@test "the rights that the manual lists for list are enough, and list says how many keys the user may not read" {
	create_limited_user
	redis acl setuser ci -scan >/dev/null
	run -77 rlock list -u "$CI_URL"
	assert_output --partial '+scan'
	redis acl setuser ci +scan >/dev/null
	acquire lock ci nightly-1
	acquire lock ci hourly
	run -0 --separate-stderr rlock list -u "$CI_URL"
	assert_equal "$(names)" 'nightly-1 '
	assert_regex "$stderr" '^rlock: redis://127.0.0.1:[0-9]+/0: 1 keys could not be read: denied by the server'
	run -77 rlock list -u "$CI_URL" 'hourly*'
}

@test "list ends by SIGPIPE when its reader has ended, and reports its progress on a terminal when it takes long" {
	make_locks 2000
	run -0 bash -c 'rlock list | head -n 1 >/dev/null; echo "${PIPESTATUS[0]}"'
	assert_output 141
	start_proxy
	proxy delay 200
	run -0 on_terminal 80 rlock list '*A63'
	assert_output --regexp $'\rrlock: [0-9]+ keys scanned, [0-9]+ locks found'
	assert_line --regexp '^.*nA63 +plain'
}

@test "list prints 40,000 locks with arbitrary bytes in their names, reading a few keys at a time, in little memory" {
	make_locks 40000
	redis config resetstat >/dev/null
	# Limit the memory so that a list of all locks does not fit.
	(
		[ -n "${TESTS_UNDER-}" ] || ulimit -v 18000
		rlock list 'n?1*' >listed
		rlock list --json >listed.json
	)
	run -0 redis info commandstats
	refute_output --partial cmdstat_keys
	assert_output --regexp 'cmdstat_scan:calls=[0-9]{3}'
	run -0 python3 -IS -c '
import base64, json
expected = {b"n" + bytes([i % 254 + (1 if i % 254 < 9 else 2)]) + str(i).encode() for i in range(40000)}
doc = json.load(open("listed.json"))
found = [base64.b64decode(lock["name_base64"]) if "name_base64" in lock else lock["name"].encode() for lock in doc["locks"]]
print(len(found), set(found) == expected, doc["complete"])
rows = open("listed", encoding="utf-8").read().split("\n")[1:-1]
print(len(rows), {c for row in rows for c in row if not c.isprintable()})'
	assert_output $'40000 True True\n11111 set()'
}

@test "list ends with 70 when the cursors of SCAN never end, or a reply is of another type" {
	local scan text
	while IFS='|' read -r scan text; do
		rm -f hostile.sock
		in_background python3 -IS -c '
import itertools, os, re, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("hostile.new")
listener.listen()
os.rename("hostile.new", "hostile.sock")
stream, _ = listener.accept()
cursors = itertools.cycle("123")
while part := stream.recv(65536):
    for command in re.findall(rb"\*\d+\r\n\$\d+\r\n(\w+)", part):
        reply = sys.argv[1].replace("N", next(cursors)) if command == b"SCAN" else "+OK "
        stream.sendall(reply.replace(" ", "\r\n").encode())' "$scan"
		wait_until 5 test -S hostile.sock
		run -70 timeout 30 rlock list -u "unix://$PWD/hostile.sock"
		assert_one_line "^rlock: .*$text"
	done <<-'END'
		*2 $1 N *0 |SCAN has no end: the server gave the same cursor twice
		+OK |unexpected reply to SCAN
		*2 $1 0 *1 $1 a |unexpected reply to a request to inspect
	END
}

# ---- --held-for ----

@test "list --held-for prints the locks that a live holder has held for that long, and ends with 1 if there is one" {
	hold_by_foreign_client java
	run -0 rlock list -q --held-for 0
	assert_output ''
	acquire lock ci young
	acquire read job1 old --note 'nightly backup'
	acquire read job2 old --note 'a dead one'
	acquire read job3 old
	make_older old 7200000 nightly
	make_older old 72000000 dead
	redis del '{old}:job2:0:rwlock_timeout:1' >/dev/null
	run -1 rlock list --held-for 2h
	assert_line --index 1 --regexp '^old +read +2h00m +[0-9]+s +0 +rlock +nightly backup and '
	assert_equal "${#lines[@]}" 2
	run -0 --separate-stderr rlock list --held-for 2h 'y*'
	assert_output 'ok: no lock is held for 2h or longer'
	assert_equal "$stderr" ''
	run -1 rlock list --json --held-for 1h
	assert_equal "$(json '[lock["name"] for lock in doc["locks"]], doc["complete"]')" "(['old'], True)"
	# The lock of the Java service must be left out, since its age is unknown.
	run -1 rlock list --held-for 0
	assert_equal "$(names)" 'old young '
	run -69 --separate-stderr rlock list -u "unix://$PWD/none" --held-for 0 --metrics
	assert_output ''
}

@test "list --held-for leaves out a permit that has expired, also if it is the only one with a holder" {
	acquire sem one a --permits 2
	make_older a 7200000
	# Let Java take the other permit, without a record, and the first one expire.
	redis decr a >/dev/null
	redis zadd 'rlock_ends:{a}' 1 "$(redis zrange 'rlock_ends:{a}' 0 0)" >/dev/null
	run -0 rlock status a
	assert_line --regexp '^  expired '
	run -0 rlock list --held-for 1h
	assert_output 'ok: no lock is held for 1h or longer'
	run -0 rlock list
	assert_line --regexp '^a +sem +- .* a client without a record$'
}

@test "list --held-for and the age of --metrics leave out a lock that --at-least keeps after its job" {
	rlock run --at-least 1h cooldown -- true
	run -0 --separate-stderr rlock list --held-for 0
	assert_output 'ok: no lock is held for 0s or longer'
	run -0 rlock list --metrics
	assert_line --regexp '^rlock_lock_ttl_seconds\{name="cooldown",'
	refute_line --regexp '^rlock_lock_held_seconds\{'
	run -0 rlock list
	assert_output --partial 'kept'
}

# ---- --metrics ----

@test "list --metrics prints age, TTL and waiters of each lock, permits, and with several servers a server label" {
	local servers=(-u "$RLOCK_URL" -u "$RLOCK_URL?db=1")
	acquire lock ci nightly --note 'deploy@web1 pid 4711 pg_dump'
	make_older nightly 7200000
	in_background rlock run -w 20s nightly -- true
	wait_until 5 has_waiters nightly 1
	acquire sem ci imports --permits 5 --take 2 --note 'import@web2 pid 9 load it'
	run -0 --separate-stderr rlock list --metrics
	assert_equal "$stderr" ''
	check_metrics <<<"$output" >found
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
	grep -qE '^rlock_lock_held_seconds .*nightly.* 72[0-9]{2}\.' found
	grep -qE '^rlock_lock_ttl_seconds .*nightly.* [1-6][0-9]\.' found
	acquire lock ci both "${servers[@]}"
	rlock list "${servers[@]}" --metrics >text
	run -0 check_metrics text
	assert_equal "$(grep '^rlock_lock_held_seconds .*both' <<<"$output" | grep -o '"server": "[^"]*"' | sort -u | wc -l)" 2
}

# tests/bin/check_metrics fails if two samples have the same labels.
@test "holders with equal labels also get an owner label; locks of Java and expired holders are told apart" {
	local owner
	acquire read job1 catalog --note 'a@b pid 1 c'
	acquire read job2 catalog --note 'a@b pid 1 c'
	acquire read job3 catalog --note 'a@b pid 1 d'
	redis hset forever 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	acquire read dead catalog
	redis del '{catalog}:dead:0:rwlock_timeout:1' >/dev/null
	acquire write both written
	acquire read both written
	run -0 rlock list --metrics
	run -0 check_metrics <<<"$output"
	for owner in job1:0 job2:0; do
		assert_line --regexp "^rlock_lock_held_seconds \{.*\"name\": \"catalog\", \"owner\": \"$owner\", \"program\": \"c\"\} "
	done
	assert_line --regexp '^rlock_lock_ttl_seconds \{"holder": "a@b", "kind": "read", "name": "catalog", "program": "d"\} '
	assert_line 'rlock_lock_ttl_seconds {"kind": "plain", "name": "forever"} +Inf'
	refute_output --partial dead
	refute_line --regexp '^rlock_lock_held_seconds .*forever'
}

@test "no byte of a name or a note breaks the metrics format, and different names have different labels" {
	local name
	for name in 'a"b\c' $'a\001b' 'a\x01b' $'a\xffb' $'a\u202eb' 'a{b="c"} 1' '\n' "$(printf '\\%.0s' {1..512})"; do
		acquire sem ci "--name=$name" --permits 1 --note $'x\x80"y\\@h pid 1 p\\'
	done
	run -0 rlock list --metrics
	assert_line 'rlock_lock_waiters{name="a\\x01b",kind="sem"} 0'
	run -0 check_metrics <<<"$output"
	assert_equal "$(grep -c '^rlock_lock_waiters' <<<"$output")" 8
	assert_output --partial 'rlock_lock_waiters {"kind": "sem", "name": "a\\x5cx01b"} 0'
	assert_output --partial '"holder": "x\\x80\"y\\@h"'
}

@test "list says that --at-least keeps a lock whose job has ended" {
	rlock run --at-least 1m --note 'the sync' kept -- true
	run -0 rlock list
	assert_line --regexp ' the sync \(ended, kept by --at-least\)$'
}
