#!/usr/bin/env bats
# --remember: for a while after the release status says which holder had the lock, until when, and how its command ended.

load ../lib/usual
load ../lib/inspecting
load ../lib/rights

# With a port: only a URL with a port can name a user.
setup_file() { start_server_at_port; }

NOW='[0-9-]{10}T[0-9:]{8}[+-][0-9:]{5}'

# says_last NAME REGEXP: the lock must be free, and what status says of its last holder must match.
says_last() {
	run -1 rlock status "$1"
	assert_line --index 0 --regexp "^$1: .*free"
	assert_line --index 1 --regexp "^  last held by $2\$"
}

@test "status of a free lock says which holder held it last, for how long, until when, and how its command ended" {
	run -3 rlock run --remember 1d --note 'nightly backup' nightly -- sh -c 'exit 3'
	says_last nightly "nightly backup \([0-9a-f:-]+\) for [0-9.]+s, until $NOW, [0-9.]+s ago: its command ended with 3"
	run -1 rlock status --json nightly
	assert_equal "$(json '[lock["last"][key] for key in ("kind", "note", "status", "signal", "reason")]')" \
		"['plain', 'nightly backup', 3, None, None]"
	assert_equal "$(json 'sorted(lock["last"])')" \
		"['ago_ms', 'held_ms', 'kind', 'note', 'owner', 'reason', 'signal', 'status', 'until']"
	run rlock run --remember 1d nightly -- sh -c 'kill -KILL $$'
	says_last nightly ".* pid [0-9]+ sh \([0-9a-f:-]+\) .* ago: its command was ended by signal 9"
	run -124 rlock run --remember 1d --max-run 3s nightly -- run_until_ended
	says_last nightly ".* ago: its command was ended by signal 15: max-run"
}

@test "the record of the last holder expires after --remember, and without --remember there is none" {
	rlock run nightly -- true
	no_keys
	rlock run --remember 1h nightly -- true
	ttl_between 3500000 'rlock_last:{nightly}' 3600000
	# A later release with a shorter --remember must replace the record.
	rlock run --remember 300ms nightly -- true
	wait_until 10 no_keys
	run -1 rlock status nightly
	assert_output 'nightly: free'
}

@test "list shows the last holder of a free lock, with one row for several servers; --held-for and --metrics leave it out" {
	local url=redis://127.0.0.1:$PORT
	run -3 rlock run --remember 1d --note 'nightly backup' nightly -- sh -c 'exit 3'
	run -0 rlock sem --permits 2 --remember 1d --note 'the {import}' 'a{b}c' -- true
	rlock lock --owner ci --lease 1m --note step deploy
	rlock unlock --remember 1d --owner ci deploy
	rlock run other -- true
	run -0 rlock list
	assert_equal "${#lines[@]}" 4
	assert_line --regexp '^nightly +plain +- +- +0 +rlock +nightly backup \(free, ended with 3 [0-9.]+s ago\)$'
	assert_line --regexp '^a\{b\}c +sem .* the \{import\} \(free, ended with 0 [0-9.]+s ago\)$'
	assert_line --regexp '^deploy +plain .* step \(free, released [0-9.]+s ago\)$'
	run -0 rlock list 'n*'
	assert_equal "${#lines[@]}" 2
	run -0 rlock list --json nightly
	assert_equal "$(json 'lock["state"], lock["last"]["status"]')" "('free', 3)"
	run -0 rlock list --held-for 1s
	assert_output 'ok: no lock is held for 1s or longer'
	run -0 rlock list --metrics
	refute_output --partial nightly
	hold_in_background nightly --note 'the next'
	run -0 rlock list 'n*'
	assert_equal "${#lines[@]}" 2
	assert_line --regexp '^nightly +plain .* the next$'
	redis flushall >/dev/null
	rlock run -u "$url/1" -u "$url/2" --remember 1d --note both both -- true
	run -0 rlock list -u "$url/1" -u "$url/2"
	assert_line --regexp '^both .* 2 of 2 +rlock +both \(free, ended with 0 '
}

@test "locks of all kinds remember their last holder" {
	local kind
	for kind in fair write 'sem --permits 2'; do
		# shellcheck disable=SC2086
		run -4 rlock $kind --remember 1h --note "of $kind" "${kind%% *}" -- sh -c 'exit 4'
		says_last "${kind%% *}" "of $kind \([0-9a-f-]+:[0-9]+\) .* with 4"
	done
}

@test "status of a held lock does not show the last holder, and a nested call is not remembered" {
	rlock run --remember 1h --note before nightly -- true
	run -5 rlock run --remember 1h --note outer nightly -- sh -c '
		rlock run --remember 1h --note inner nightly -- true
		rlock status nightly >text; rlock status --json nightly >json; exit 5'
	run -1 grep -e before -e 'last held' text
	output=$(cat json)
	assert_equal "$(json 'lock["last"]["note"]')" before
	says_last nightly 'outer .* with 5'
}

@test "a lock of a process or an owner is remembered when the process ends, after unlock, and after stop" {
	in_background sh -c 'rlock lock --pid $$ --remember 1h --note script nightly && run_until_ended'
	wait_until 5 is_held nightly
	end_commands
	ended_with 0
	wait_until 10 is_free nightly
	says_last nightly 'script .* ago: the process has ended'
	acquire lock job nightly --note 'a job'
	rlock unlock --owner job --remember 1h nightly
	says_last nightly 'a job \(job:0\) .* ago: unlock'
	run -64 rlock lock --owner job --lease 60s --remember 1h nightly
	assert_one_line '--remember .*--owner; give it to rlock unlock'
	rm end-commands
	hold_in_background nightly -t 9s --remember 1h --at-least 1h
	run -6 rlock run --at-least 500ms --remember 1h --note kept at-least -- sh -c 'exit 6'
	run -0 rlock stop nightly
	says_last nightly ".* ago: its command was ended by signal 15: stopped by [^ ]+@$(uname -n)"
	ttl_between 3500000 'rlock_last:{nightly}' 3600000
	# The lock must have been held until the end of --at-least.
	wait_until 10 is_free at-least
	says_last at-least "kept .* for (0\.[4-9]|[1-9][0-9.]*)s, until $NOW, [0-9.]+s ago: its command ended with 6"
}

@test "a missing right, a full server or an overwritten key for --remember does not prevent the release" {
	create_limited_user
	redis acl setuser ci resetkeys '~nightly*' '~rlock_holds:*' '~rlock_queue:*' '~rlock_turn:*' '~redisson_*' \
		'~rlock_waiters:*' >/dev/null
	run -0 rlock run -u "$CI_URL" --remember 1h nightly -- true
	assert_output ''
	no_keys
	run rlock check -u "$CI_URL" nightly
	assert_output --partial '~rlock_last:{nightly}'
	run -0 rlock run --remember 1h nightly -- ask_redis "$SERVER_SOCKET" config set maxmemory 1
	redis config set maxmemory 0 >/dev/null
	is_free nightly
	redis set 'rlock_last:{nightly}' mine >/dev/null
	run -0 rlock run --remember 1h nightly -- true
	assert_output ''
	run -1 rlock status nightly
	assert_output 'nightly: free'
}

@test "text of other programs in the record of a last holder is escaped on a terminal" {
	local field
	# The note must not be cut, although each byte becomes four characters.
	run -0 rlock run --remember 1h --note "$(printf '\377%.0s' {1..100})" nightly -- true
	says_last nightly '(\\xff){100} \(.*'
	for field in kind owner end note; do
		redis hset 'rlock_last:{nightly}' "$field" $'exit 1 \e[31mred\xff' >/dev/null
	done
	says_last nightly 'exit 1 \\x1b\[31mred\\xff \(exit 1 \\x1b\[31mred\\xff\) for .*: its command ended with 1'
	refute_output --partial $'\e'
	run -1 rlock status --json nightly
	assert_equal "$(json 'lock["last"]["kind"], lock["last"]["reason"]')" "('unknown', None)"
	redis hset 'rlock_last:{nightly}' since x >/dev/null
	run -1 rlock status nightly
	assert_output 'nightly: free'
}
