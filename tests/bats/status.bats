#!/usr/bin/env bats
# What status says of a name: which owners hold it, since when and how much longer, and which wait. It says it of Java's
# locks, too, and with whatever bytes in names and notes, and changes nothing.

# SECRET and the like are of the helpers.
# shellcheck disable=SC2034,SC2154

load ../lib/usual
load ../lib/rights
load ../lib/queue
load ../lib/inspecting

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }

teardown() {
	redis replicaof no one >/dev/null
	watchful_teardown
}

# ---- what a name is ----

@test "status ends with 0 when all names are held, and with 1 when one is not" {
	acquire lock ci a
	acquire lock ci b
	run -0 rlock status a b
	run -1 rlock status a c b
	assert_line 'c: free'
}

@test "status says which owner holds a lock, how often, since when, for how long, its note and its last token" {
	acquire lock ci nightly --note 'the nightly backup'
	acquire lock ci nightly
	acquire lock ci fenced --fence
	acquire sem ci one --permits 1
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: plain lock, held, 5[0-9]s of its lease left$'
	assert_line --index 1 --regexp '^ +FOR +TTL +COUNT +CLIENT +NOTE +OWNER$'
	assert_line --index 2 --regexp '^  holder +[0-9.]+s +5[0-9]s +2 +rlock +the nightly backup +ci:0$'
	assert_equal "${#lines[@]}" 3
	run -0 rlock status --json nightly
	assert_equal "$(json 'lock["holders"][0]["count"], lock["holder_count"]')" '(2, 1)'
	run -0 rlock status fenced
	assert_line --index 0 --partial 'last token 1'
	run -0 rlock status --json fenced
	assert_equal "$(json 'lock["token"], lock["holders"][0]["token"]')" '(1, 1)'
	run -0 rlock status one
	assert_line --index 0 'one: semaphore, held, 0 of 1 permit free'
}

@test "status changes nothing on the server" {
	local before
	start_waiter r1 fair-lock
	wait_until 5 is_inside r1
	queue_waiter r2 fair-lock
	java_locks J1 fair-lock
	acquire read one readers
	acquire lock ci plain
	before=$(redis --raw keys '*' | sort; redis dbsize)
	redis config resetstat
	run -0 rlock status fair-lock readers plain
	run -0 redis info commandstats
	refute_output --regexp 'cmdstat_(set|del|hset|zadd|zrem|rpush|lrem|pexpire|publish|hincrby):'
	assert_equal "$(redis --raw keys '*' | sort; redis dbsize)" "$before"
	let_all_leave
}

@test "status calls a key of another type and a hash that is no lock what they are" {
	redis set string x >/dev/null
	redis hset hash name bob >/dev/null
	run -1 rlock status string hash
	assert_line 'string: no lock: the key holds a string'
	assert_line 'hash: no lock: the key holds a hash that is no lock'
	run -1 rlock status --json hash
	assert_equal "$(json 'lock["state"], lock["type"], lock["kind"]')" "('other', 'hash that is no lock', None)"
}

# ---- kinds, holders, waiters ----

@test "status shows the queue of a fair lock, with positions, notes and Java's threads" {
	start_waiter r1 --note 'the holder' nightly
	wait_until 5 is_inside r1
	queue_waiter r2 --note 'the first' nightly
	java_locks J1 nightly
	queue_waiter r3 --note 'the third' nightly
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: fair lock, held, '
	assert_line --regexp '^  holder .* rlock .*the holder +.*:[0-9]+$'
	assert_line --regexp '^  waiter 1 .* rlock .*the first '
	assert_line --regexp "^  waiter 2 +- .* redisson +$JAVA_CLIENT:1\$"
	assert_line --regexp '^  waiter 3 .* rlock .*the third '
	run -0 rlock status --json nightly
	assert_equal "$(json 'lock["kind"], lock["queue_count"], [(w["position"], w["client"], w["note"]) for w in lock["queue"]]')" \
		"('fair', 3, [(1, 'rlock', 'the first'), (2, 'redisson', ''), (3, 'rlock', 'the third')])"
	redis lrem 'redisson_lock_queue:{nightly}' 0 "$JAVA_CLIENT:1" >/dev/null
	redis zrem 'redisson_lock_timeout:{nightly}' "$JAVA_CLIENT:1" >/dev/null
	let_all_leave
}

@test "status shows that a waiter in the queue is dead" {
	acquire fair ci nightly
	java_locks J1 nightly
	set_deadline nightly J1 -1000
	run -0 rlock status --json nightly
	assert_equal "$(json 'lock["queue"][0]["dead"]')" True
	run -0 rlock status nightly
	assert_line --regexp '^  waiter 1 +- +dead '
	redis del 'redisson_lock_queue:{nightly}' 'redisson_lock_timeout:{nightly}' >/dev/null
}

@test "status shows the readers of a read lock, each with its own TTL, and the writer that waits" {
	acquire read one nightly --note first
	rlock read --owner two --lease 30s nightly
	in_background rlock write -w 20s --note 'the writer' nightly -- true
	wait_until 5 has_waiters nightly 1
	run -0 rlock status nightly
	assert_line --index 0 --regexp '^nightly: read lock, held, '
	assert_line --regexp '^  reader .* 5[0-9]s +1 +rlock +first +one:0$'
	assert_line --regexp '^  reader .* 2[0-9]s +1 +rlock .* two:0$'
	assert_line --regexp '^  next writer .* rlock +the writer '
	rlock unlock --owner one nightly
	rlock unlock --owner two nightly
}

@test "status says that a reader whose time is over has expired, and does not hold the lock" {
	redis hset nightly mode read "$JAVA_CLIENT:9" 1 >/dev/null
	redis pexpire nightly 60000 >/dev/null
	run -1 rlock status nightly
	assert_line --index 0 'nightly: read lock, free'
	assert_line --regexp "^  expired .* $JAVA_CLIENT:9\$"
	redis set "{nightly}:$JAVA_CLIENT:9:rwlock_timeout:1" 1 px 60000 >/dev/null
	run -0 rlock status nightly
	assert_line --regexp "^  reader +- +5[0-9]s +1 +redisson +$JAVA_CLIENT:9\$"
}

@test "of very many readers status shows some, says how many more there are, and does not hold up the server" {
	redis eval 'redis.call("hset", KEYS[1], "mode", "read")
		for i = 1, 20000 do redis.call("hset", KEYS[1], "5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:" .. i, 1) end
		redis.call("pexpire", KEYS[1], 60000)' 1 nightly
	redis config set slowlog-log-slower-than $((20000 * SLOWNESS)) >/dev/null
	run -0 rlock status nightly
	assert_line '  and 19900 more holders'
	assert [ "${#lines[@]}" -lt 110 ]
	# A server that has to wait for its processor is slow, too, but not each time.
	wait_until 10 status_is_quick nightly
}

status_is_quick() {
	redis slowlog reset >/dev/null && rlock status "$1" >/dev/null && redis_says 0 slowlog len
}

# ---- any bytes ----

@test "status escapes what a terminal would obey in names, owners and notes" {
	local name=$'a\e[2Jb\tc' note=$'evil \e]0;title\a'
	acquire lock ci "$name"
	redis hset "rlock_holds:{$name}" 00112233445566778899aabbccddeeff "$(printf 'ev\033il 1 2 - %s' "$note")" >/dev/null
	redis hset "$name" $'ev\eil' 1 >/dev/null
	run -0 rlock status "$name"
	assert_line --index 0 --partial 'a\x1b[2Jb\x09c: plain lock'
	assert_line --regexp 'evil \\x1b]0;title\\x07 +ev\\x1bil$'
	refute_output --partial $'\e'
	run -0 rlock status --json "$name"
	refute_output --partial $'\e'
	assert_equal "$(json 'lock["holders"][0]["note"], doc["names"][0]["name"]')" "('evil \\x1b]0;title\\x07', 'a\\x1b[2Jb\\tc')"
}

@test "status --json has the members that rlock-output(5) lists, and no others" {
	local documented=$BATS_TEST_DIRNAME/../../man/rlock-output.5
	acquire read one nightly
	start_waiter r1 fairly
	wait_until 5 is_inside r1
	queue_waiter r2 fairly
	in_background rlock write -w 20s nightly -- true
	wait_until 5 has_waiters nightly 1
	redis acl setuser look on ">$SECRET" resetkeys resetchannels -@all '~nightly*' +eval +evalsha +hlen +hgetall +pttl +time >/dev/null
	rlock sem --permits 2 --owner three --lease 60s counted
	run -0 rlock status --json nightly fairly counted
	json '"\n".join(members(doc))' >found
	run -0 rlock status --json -u "$(url_of look)" nightly
	json '"\n".join(members(doc))' >>found
	sort -u found -o found
	sed -n '/^\.Sh JSON/,/^\.Sh [^J]/s/^\.It Li //p' "$documented" | sed 's/ , /\n/g' | grep -vx -e locks -e complete | sort >listed
	run -0 diff listed found
	rlock unlock --owner one nightly
	let_all_leave
}

@test "status shows an owner whole, below its row where the terminal has no room beside it, and leaves out CLIENT first" {
	local owner width
	in_background rlock run --note "the note" nightly -- until_let_go
	wait_until 5 is_held nightly
	owner=$(redis hkeys nightly)
	for width in 80 60; do
		run -0 on_terminal "$width" rlock status nightly
		for line in "${lines[@]}"; do
			assert [ "${#line}" -le "$width" ]
		done
		refute_output --partial CLIENT
	done
	assert_line --regexp '^  holder .* the note$'
	assert_line "          $owner"
	assert_line '          OWNER'
	# However many digits its pid has.
	run -0 on_terminal 84 rlock status nightly
	assert_line --regexp "^  holder .* the note  $owner\$"
	run -0 on_terminal 45 rlock status nightly
	assert_line "  $owner"
	run -0 on_terminal 100 rlock status nightly
	assert_line --regexp "^  holder .* rlock +the note  $owner\$"
	# What nothing is in has no header.
	refute_output --partial SLOT
	run -0 on_terminal 30 rlock status nightly
	assert_line --regexp '^  holder +[0-9.]+s +[0-9]+s +1$'
	assert_line '          the note'
	assert_line "  $owner"
	let_go
}

# ---- rights ----

@test "a user that may not read the lock is refused with 77, and the rule is named" {
	acquire lock ci nightly
	redis acl setuser look on ">$SECRET" resetkeys resetchannels -@all '~nightly*' +eval +evalsha >/dev/null
	run -77 rlock status -u "$(url_of look)" nightly
	assert_output --partial '+hlen'
	run -77 rlock status --watch=100ms -u "$(url_of look)" nightly
	assert_output --partial '+hlen'
	redis acl setuser look resetkeys '~other*' +hlen >/dev/null
	run -77 rlock status -u "$(url_of look)" nightly
	assert_output --partial '~NAME'
}

# ---- servers ----

@test "status says that no server is reached with 69, and does not take a replica's word for the state of a lock" {
	run -69 rlock status -u redis://127.0.0.1:1 a b
	assert_one_line '^rlock: a: cannot reach '
	# The document has each name, and each server that was asked.
	run -69 --separate-stderr rlock status --json -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 a b
	assert_equal "$(json '[(n["name"], n["held"], [s["state"] for s in n["servers"]]) for n in doc["names"]]')" \
		"[('a', False, ['unknown', 'unknown']), ('b', False, [])]"
	assert_equal "$(json '[(s["error"], s["ttl_ms"], s["waits_ms"]) for s in doc["names"][0]["servers"]]')" \
		"[('cannot reach redis://127.0.0.1:1/0: Connection refused', None, None), ('cannot reach redis://127.0.0.1:2/0: Connection refused', None, None)]"
	assert_equal "$(grep -c '^rlock: ' <<<"$stderr")" 1
	redis replicaof 127.0.0.1 1 >/dev/null
	run -69 rlock status nightly
	assert_one_line 'is a replica'
}

@test "where servers differ status says on how many the lock is held, and what each of them says" {
	local url=redis://127.0.0.1:$PORT
	acquire lock ci nightly -u "$url/1"
	acquire lock other nightly -u "$url/2"
	run -1 rlock status -u "$url/1" -u "$url/2" -u "$url/3" nightly
	assert_line --index 0 'nightly: held on 2 of 3 servers, 3 are needed; the servers differ'
	assert_line --regexp "^nightly at redis://127.0.0.1:$PORT/1: plain lock, held, "
	assert_line --regexp '^  holder .* ci:0$'
	assert_line --regexp '^  holder .* other:0$'
	assert_line "nightly at redis://127.0.0.1:$PORT/3: free"
	run -0 rlock status --quorum 2 -u "$url/1" -u "$url/2" -u "$url/3" nightly
}

@test "a server of several that does not answer is named, and decides the status only where it matters" {
	local url=redis://127.0.0.1:$PORT
	acquire lock ci nightly -u "$url/1" -u "$url/2"
	run -0 --separate-stderr rlock status --quorum 2 -u "$url/1" -u "$url/2" -u redis://127.0.0.1:1 nightly
	assert_line --index 0 'nightly: held on 2 of 3 servers; the servers differ'
	assert_line --regexp '^nightly at redis://127.0.0.1:1/0: unknown: cannot reach '
	run -0 --separate-stderr rlock status --json --quorum 2 -u redis://127.0.0.1:1 -u "$url/1" -u "$url/2" nightly
	assert_equal "$(json '[lock[key] for key in ("state", "kind", "token", "ttl_ms", "waits_ms")]')" "['unknown', None, None, None, None]"
	run -69 --separate-stderr rlock status --json -u "$url/1" -u "$url/2" -u redis://127.0.0.1:1 nightly unheld
	assert_equal "$(json '[(n["name"], [s["state"] for s in n["servers"]]) for n in doc["names"]]')" \
		"[('nightly', ['held', 'held', 'unknown']), ('unheld', [])]"
	run -69 --separate-stderr rlock status -u "$url/1" -u "$url/2" -u redis://127.0.0.1:1 nightly
	assert_equal "$(grep -c '^rlock: nightly: cannot reach ' <<<"$stderr")" 1
	run -1 --separate-stderr rlock status -u "$url/3" -u "$url/2" -u redis://127.0.0.1:1 nightly
}

# ---- watch ----

@test "status --watch shows in place what becomes of a lock, and Ctrl-C leaves the last state on the screen" {
	run -0 ptyrun bash --norc --noprofile --noediting -i <<-'END'
		ready
		send rlock status --watch=100ms nightly
		expect nightly: free
		check rlock lock --owner ci --lease 60s --note 'the note' nightly
		expect the note
		key C
		expect ready> $
		send echo status $?
		expect status 130
	END
	# To the top, and no line that was longer before shows through.
	assert_output --partial $'\e[H'
	assert_output --partial $'\e[K'
	assert_line --regexp 'the note +ci:0'
}

@test "status --watch prints one state after the other where there is no terminal, and goes on while the server is away" {
	in_background sh -c 'exec rlock status --watch=100ms --json nightly >states 2>errors'
	wait_until 5 has_lines states 2
	redis replicaof 127.0.0.1 1 >/dev/null
	wait_until 5 grep -q 'is a replica' errors
	redis replicaof no one >/dev/null
	acquire lock ci nightly
	wait_until 5 grep -q '"held":true' states
	kill "$PID"
}

# ---- wrong use ----

@test "a full disk does not pass for success" {
	acquire lock ci nightly
	run -71 sh -c 'rlock status nightly >/dev/full'
	assert_output --partial 'standard output'
}

@test "status of a path that is free says when rlock flock holds what it leads to" {
	mkdir "$BATS_TEST_TMPDIR/real"
	ln -s real "$BATS_TEST_TMPDIR/link"
	cd "$BATS_TEST_TMPDIR" || return
	in_background rlock flock link/job sleep 60
	wait_until 5 is_held "$(realpath -m link/job)"
	run -1 rlock status real/../link/job
	assert_line "real/../link/job: free"
	assert_line "rlock: real/../link/job: held as the path that rlock flock locks: try: rlock status $(realpath -m link/job)"
	run -1 --separate-stderr rlock status --json link/job
	assert_equal "$stderr" ''
	run -1 rlock status real/other
	assert_output 'real/other: free'
	kill "$PID"
	wait_until 5 is_gone "$PID"
}
