#!/usr/bin/env bats
# rlock status of a name: holders, since when and for how long, and waiters. Also for Redisson's locks, with any bytes in names and notes.
# status changes nothing.

load ../lib/usual
load ../lib/rights
load ../lib/queue
load ../lib/inspecting

# With a port: only a URL with a port can name a user.
setup_file() { start_server_at_port; }

teardown() {
	redis replicaof no one >/dev/null
	teardown_and_check_processes
}

# ---- one name: its lock, or another kind of key ----

@test "status shows a lock's owner, hold count, start, TTL, note and last token, and says what is no lock" {
	acquire lock ci nightly --note 'the nightly backup'
	acquire lock ci nightly
	acquire lock ci fenced --fence
	acquire sem ci one --permits 1
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: plain lock, held, [1-5][0-9]s of its lease left$'
	assert_line --index 1 --regexp '^ +FOR +TTL +COUNT +CLIENT +NOTE +OWNER$'
	assert_line --index 2 --regexp '^  holder +[0-9.]+s +[1-5][0-9]s +2 +rlock +the nightly backup +ci:0$'
	assert_equal "${#lines[@]}" 3
	run -0 rlock status --json nightly
	assert_equal "$(json 'lock["holders"][0]["count"], lock["holder_count"]')" '(2, 1)'
	redis set text x >/dev/null
	redis hset hash name bob >/dev/null
	run -1 rlock status fenced free one text hash
	assert_line 'free: free'
	assert_line 'text: no lock: the key holds a string'
	assert_line 'hash: no lock: the key holds a hash that is no lock'
	assert_line --index 0 --partial 'last token 1'
	assert_line 'one: semaphore, held, 0 of 1 permit free'
	run -0 rlock status --json fenced one
	assert_equal "$(json 'lock["token"], lock["holders"][0]["token"]')" '(1, 1)'
	run -1 rlock status --json hash
	assert_equal "$(json 'lock["state"], lock["type"], lock["kind"]')" "('other', 'hash that is no lock', None)"
	run -71 sh -c 'rlock status nightly >/dev/full'
	assert_output --partial 'standard output'
}

# ---- kinds, holders, waiters ----

@test "status and list call a fair lock fair without a queue, also when it is kept or renewed; Redisson's has no record and is plain" {
	acquire fair ci nightly
	acquire lock ci other
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: fair lock, held, '
	run -0 rlock status --json nightly
	assert_equal "$(json 'lock["kind"], lock["holders"][0]["kind"]')" "('fair', 'fair')"
	rlock renew --owner ci --lease 1m nightly
	run -0 rlock list
	assert_line --regexp '^nightly +fair '
	assert_line --regexp '^other +plain '
	rlock unlock --owner ci nightly
	rlock fair --at-least 1m nightly -- true
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: fair lock, held, '
	rlock unlock --force nightly
	acquire fair ci nightly
	# A re-entry of another kind must not change the kind as which the lock was acquired.
	rlock run --owner ci nightly -- rlock status nightly >text
	assert_equal "$(sed -n '1s/,.*//p' text)" 'nightly: fair lock'
	hold_by_foreign_client java
	run -0 rlock status java
	assert_line --index 0 --regexp '^java: plain lock, held, '
}

@test "status shows the queue of a fair lock, with positions, notes and Java's threads" {
	start_fair_contender r1 --note 'the holder' nightly
	wait_until 5 has_entered r1
	queue_fair_contender r2 --note 'the first' nightly
	java_locks J1 nightly
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: fair lock, held, '
	assert_line --regexp '^  holder .* rlock .*the holder +.*:[0-9]+$'
	assert_line --regexp '^  waiter 1 .* rlock .*the first '
	assert_line --regexp "^  waiter 2 +- .* redisson +$JAVA_CLIENT:1\$"
	finish_all
}

@test "status marks a dead waiter in the queue, and changes nothing on the server" {
	local before
	acquire fair ci nightly
	java_locks J1 nightly
	set_deadline nightly J1 -1000
	before=$(redis --raw keys '*' | sort)
	redis config resetstat >/dev/null
	run -0 rlock status nightly
	assert_line --regexp '^  waiter 1 +- +dead '
	run -0 rlock status --json nightly
	assert_equal "$(json '[(w["position"], w["client"], w["dead"]) for w in lock["queue"]]')" "[(1, 'redisson', True)]"
	run -0 redis info commandstats
	refute_output --regexp 'cmdstat_(set|del|hset|zadd|zrem|rpush|lrem|pexpire|publish|hincrby):'
	assert_equal "$(redis --raw keys '*' | sort)" "$before"
}

@test "a write lock that a call cannot acquire is held, although the time for which --at-least keeps it is over" {
	redis hset nightly mode write one:0:write:lingering:1 1 >/dev/null
	run -75 rlock write -n nightly -- true
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: write lock, held'
	assert_line --regexp '^  kept '
}

@test "status shows the readers of a read lock, each with its TTL or as expired, and the waiting writer" {
	acquire read one nightly --note first
	rlock read --owner two --lease 30s nightly
	redis hset nightly "$JAVA_CLIENT:9" 1 >/dev/null
	in_background rlock write -w 20s --note 'the writer' nightly -- true
	wait_until 5 has_waiters nightly 1
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: read lock, held, '
	assert_line --regexp '^  reader .* [1-5][0-9]s +1 +rlock +first +one:0$'
	assert_line --regexp '^  reader .* [12][0-9]s +1 +rlock .* two:0$'
	assert_line --regexp "^  expired .* $JAVA_CLIENT:9\$"
	assert_line --regexp '^  next writer .* rlock +the writer '
	redis set "{nightly}:$JAVA_CLIENT:9:rwlock_timeout:1" 1 px 60000 >/dev/null
	run -0 rlock status nightly
	assert_line --regexp "^  reader +- +[1-5][0-9]s +1 +redisson +$JAVA_CLIENT:9\$"
	redis hset over mode read "$JAVA_CLIENT:9" 1 >/dev/null
	run -1 rlock status over
	assert_line --index 0 'over: read lock, free'
}

@test "status shows some of very many readers, and the number of the others" {
	redis eval 'redis.call("hset", KEYS[1], "mode", "read")
		for i = 1, 20000 do redis.call("hset", KEYS[1], "5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:" .. i, 1) end
		redis.call("pexpire", KEYS[1], 60000)' 1 nightly
	run -0 rlock status nightly
	assert_line '  and 19900 more holders'
	assert [ "${#lines[@]}" -lt 110 ]
}

# ---- any bytes ----

@test "status escapes control characters in names, owners and notes" {
	local name=$'a\e[2Jb\tc'
	redis hset "rlock_holds:{$name}" 00112233445566778899aabbccddeeff $'ev\eil 1 2 - evil \e]0;title\a' >/dev/null
	redis hset "$name" $'ev\eil' 1 >/dev/null
	run -0 rlock status "$name"
	assert_line --index 0 --partial 'a\x1b[2Jb\x09c: plain lock'
	assert_line --regexp 'evil \\x1b]0;title\\x07 +ev\\x1bil$'
	refute_output --partial $'\e'
	run -0 rlock status --json "$name"
	refute_output --partial $'\e'
	assert_equal "$(json 'lock["holders"][0]["note"], doc["names"][0]["name"]')" "('evil \\x1b]0;title\\x07', 'a\\x1b[2Jb\\tc')"
}

@test "status --json and list --json have exactly the members that rlock-output(5) lists" {
	acquire read one nightly
	start_fair_contender r1 fairly
	wait_until 5 has_entered r1
	queue_fair_contender r2 fairly
	in_background rlock write -w 20s nightly -- true
	wait_until 5 has_waiters nightly 1
	redis acl setuser look on ">$SECRET" resetchannels -@all '~nightly*' +eval +evalsha +hlen +hgetall +pttl +time >/dev/null
	rlock sem --permits 2 --owner three --lease 60s counted
	run -0 rlock status --json nightly fairly counted
	json '"\n".join(members(doc))' >found
	json '"\n".join(sorted([*lock, "name"]))' >of_lock
	run -0 rlock status --json -u "$(url_of look)" nightly
	json '"\n".join(members(doc))' >>found
	redis acl setuser look -hlen >/dev/null
	run -77 rlock status --watch=100ms -u "$(url_of look)" nightly
	assert_output --partial '+hlen'
	sed -n '/^\.Sh JSON/,/^\.Sh [^J]/s/^\.It Li //p' "$TOP/man/rlock-output.5" |
		sed 's/ , /\n/g' | grep -vx -e locks -e complete | sort >listed
	run -0 diff listed <(sort -u found)
	run -0 rlock list --json nightly
	assert_equal "$(json 'sorted(doc)')" "['complete', 'locks']"
	run -0 diff of_lock <(json '"\n".join(sorted(lock))')
	rlock unlock --owner one nightly
	finish_all
}

@test "status has two lines for each holder and waiter on a terminal of 80 columns, however long a note is" {
	local note='deploy@web2.example.com pid 4711 report https://gitlab.example.com/group/project/-/jobs/12345'
	start_fair_contender r1 --note "$note" nightly
	wait_until 5 has_entered r1
	queue_fair_contender r2 --note 'the first' nightly
	run -0 on_terminal 80 rlock status nightly
	assert_equal "${#lines[@]}" 7
	assert_line --index 1 --regexp '^ +FOR +TTL +COUNT +NOTE$'
	assert_line --index 2 --regexp '^ +OWNER$'
	assert_line --index 3 --regexp "^  holder +[0-9.]+s +[0-9]+s +1 +$note\$"
	assert_line --index 4 --regexp '^ +[0-9a-f-]{36}:[0-9]+$'
	assert_line --index 5 --regexp '^  waiter 1 +[0-9.]+s +the first$'
	assert_line --index 6 --regexp '^ +[0-9a-f-]{36}:[0-9]+$'
	finish_all
}

@test "status never cuts an owner: on a narrow terminal it is below its row, and CLIENT is left out first" {
	local owner
	hold_in_background nightly --note 'the note'
	owner=$(redis hkeys nightly)
	run -0 on_terminal 100 rlock status nightly
	assert_line --regexp "^  holder .* rlock +the note  $owner\$"
	# A column without values must be left out.
	refute_output --partial SLOT
	run -0 on_terminal 60 rlock status nightly
	refute_output --partial CLIENT
	assert_line --regexp '^  holder .{1,43} the note$'
	assert_line "          $owner"
	assert_line '          OWNER'
	run -0 on_terminal 30 rlock status nightly
	assert_line --regexp '^  holder +[0-9.]+s +[0-9]+s +1 +the note$'
	assert_line "    $owner"
}

# ---- servers ----

@test "with several servers status says on how many the lock is held, and shows each server or that it does not answer" {
	local url=redis://127.0.0.1:$PORT none=redis://127.0.0.1:1
	acquire lock ci nightly -u "$url/1"
	acquire lock other nightly -u "$url/2"
	run -1 rlock status -u "$url/1" -u "$url/2" -u "$url/3" nightly
	assert_line --index 0 'nightly: held on 2 of 3 servers, 3 are needed; the servers differ'
	assert_line --regexp "^nightly at $url/1: plain lock, held, "
	assert_line --regexp '^  holder .* ci:0$'
	assert_line --regexp '^  holder .* other:0$'
	assert_line "nightly at $url/3: free"
	run -0 --separate-stderr rlock status --quorum 2 -u "$url/1" -u "$url/2" -u "$none" nightly
	assert_line --index 0 'nightly: held on 2 of 3 servers; the servers differ'
	assert_line --regexp "^nightly at $none/0: unknown: cannot reach "
	run -69 --separate-stderr rlock status -u "$url/1" -u "$url/2" -u "$none" nightly
	assert_equal "$(grep -c '^rlock: nightly: cannot reach ' <<<"$stderr")" 1
	run -1 rlock status -u "$url/3" -u "$url/2" -u "$none" nightly
	acquire lock ci same -u "$url/1" -u "$url/2"
	run -0 rlock status -u "$url/1" -u "$url/2" same
	refute_output --partial differ
	# The JSON document must have each name and each server.
	run -69 rlock status -u "$none" a b
	assert_one_line '^rlock: a: cannot reach '
	run -69 --separate-stderr rlock status --json -u "$none" -u "$url/1" nightly unheld
	assert_equal "$(json '[(n["name"], n["held"], [s["state"] for s in n["servers"]]) for n in doc["names"]]')" \
		"[('nightly', False, ['unknown', 'held']), ('unheld', False, [])]"
	assert_equal "$(json '[lock[key] for key in ("error", "kind", "token", "ttl_ms", "waits_ms")]')" \
		"['cannot reach $none/0: Connection refused', None, None, None, None]"
}

# ---- watch ----

@test "status --watch updates the screen in place, and Ctrl-C leaves the last state on it" {
	run -0 ptyrun bash --norc --noprofile --noediting -i <<-'END'
		ready
		send rlock status --watch=100ms nightly
		expect nightly: free
		check rlock lock --owner ci --lease 60s --note 'the note' nightly
		expect the note
		key C
		ends 130
	END
	# The output must move the cursor to the top, and erase the rest of each line.
	assert_output --partial $'\e[H'
	assert_output --partial $'\e[K'
	assert_line --regexp 'the note +ci:0'
}

@test "without a terminal status --watch prints one state after the other, and continues while the server is a replica" {
	in_background sh -c 'exec rlock status --watch=100ms --json nightly >states 2>errors'
	wait_until 5 awk 'END { exit NR < 2 }' states
	redis replicaof 127.0.0.1 1 >/dev/null
	# A replica must be reported as such, since what it stores about a lock does not count.
	wait_until 5 grep -q 'is a replica' errors
	run -69 rlock status nightly
	redis replicaof no one >/dev/null
	acquire lock ci nightly
	wait_until 5 grep -q '"held":true' states
}

@test "a pattern as the name for status, stop or unlock is not held, and the message points to list" {
	local words hint="rlock: nightly-*: a name is no pattern here; try: rlock list 'nightly-*'"
	acquire lock ci nightly-1
	for words in status stop 'unlock --force' 'unlock --owner ci'; do
		# shellcheck disable=SC2086
		run -1 rlock $words 'nightly-*'
		assert_line "$hint"
	done
	run -1 --separate-stderr rlock status --json 'nightly-?'
	assert_equal "$stderr" ''
	run -1 rlock status nightly
	refute_line --partial pattern
	assert is_held nightly-1
}

@test "status of a free relative path or link says when rlock flock holds the path that it resolves to" {
	mkdir real
	ln -s . real/link
	in_background rlock flock real/../real/link/job run_until_ended
	wait_until 5 is_held "$PWD/real/job"
	run -1 rlock status real/../real/link/job
	assert_line 'real/../real/link/job: free'
	assert_line "rlock: real/../real/link/job: held as the path that rlock flock locks; try: rlock status $PWD/real/job"
	kill "$PID"
	ended_with 143
}
