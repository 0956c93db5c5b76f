#!/usr/bin/env bats
# The log for operators, --log: a line for each event of a lock, in two formats; each event once, whichever of rlock's
# processes sees it. Where the lines go is tested by log_places.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/rights
load ../lib/logging

setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

# ---- events ----

@test "an acquisition and a release are logged, with the status of the command" {
	run -3 rlock run --log log a -- sh -c 'exit 3'
	assert_output ''
	assert_equal "$(events)" 'acquired a,released a'
	assert_equal "$(field status released)" 3
	assert_equal "$(field status acquired)" ''
}

@test "a command that a signal ended is logged with the signal" {
	run -143 sh -c 'rlock run --log log a -- sh -c "kill \$\$"; exit $?'
	assert_equal "$(field signal released)" 15
	assert_equal "$(field status released)" ''
}

@test "a line of text has the fields that the manual lists, in that order" {
	TZ=XST-5:30 run -0 rlock run --log log --note 'a note' a -- true
	run -0 cat log
	assert_line --index 0 --regexp "^time=[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}\+05:30 event=acquired name=a \
kind=plain owner=[0-9a-f-]{36}:[0-9]+ host=$(uname -n) pid=[0-9]+ user=[^ ]+ waited_ms=[0-9]+ note=\"a note\" server=\"unix://$SERVER_SOCKET\?db=0\"$"
	assert_line --index 1 --regexp ' user=[^ ]+ held_ms=[0-9]+ status=0 note="a note" server='
}

@test "each line of JSON is an object with the same fields" {
	run -0 rlock run --log log --log-format json --note 'a note' a -- true
	run -0 all_json
	assert_line --index 0 --regexp "^event='acquired' name='a' kind='plain' owner='[0-9a-f-]{36}:[0-9]+' host='$(uname -n)' \
pid=[0-9]+ user='[^ ]+' waited_ms=[0-9]+ note='a note' server='unix://$SERVER_SOCKET\?db=0'$"
	assert_line --index 1 --regexp "^event='released' .* held_ms=[0-9]+ status=0 note='a note' server="
}

@test "each kind of lock is logged as such" {
	local verb
	for verb in run fair rlock wlock; do
		rlock "$verb" --log log "$verb" -- true
	done
	assert_equal "$(field kind released | paste -sd ,)" plain,fair,read,write
}

@test "each of several names has lines of its own" {
	run -0 rlock run --log log a b -- true
	assert_equal "$(events)" 'acquired a,acquired b,released a,released b'
}

@test "a waiter is logged, and for how long it waited" {
	hold_in_background a
	in_background rlock run --log log a -- true
	wait_until 5 has_renewer "$PID"
	let_pass 0.2
	let_go
	wait_until 5 has_events 'waited a,acquired a,released a'
	[ "$(field waited_ms waited)" -ge 200 ]
	assert_equal "$(field waited_ms acquired)" "$(field waited_ms waited)"
}

@test "a lock that was busy is logged, and its holder, though nothing is said" {
	hold_in_background a --note 'the holder'
	run -75 rlock run -n --log log a -- true
	assert_output ''
	assert_equal "$(events)" 'busy a'
	[[ $(field reason busy) = '"held by the holder ('* ]]
	assert_between 0 "$(field holder_held_ms busy)" 60000
}

@test "a wait that is over in vain is logged" {
	hold_in_background a
	# Long enough to sleep, on a busy machine, too.
	run -75 rlock run -qw 2s --log log a -- true
	assert_equal "$(events)" 'waited a,timed_out a'
	[ "$(field waited_ms timed_out)" -ge 2000 ]
	assert_between 2000 "$(field holder_held_ms timed_out)" 60000
}

@test "a wait that a signal ends is logged" {
	hold_in_background a
	in_background sh -c 'exec rlock run -v --log log a -- true 2>said'
	wait_until 10 file_has said 'waiting for'
	kill -TERM "$PID"
	wait_until 10 has_events 'waited a,cancelled a'
	assert_equal "$(field reason cancelled)" '"signal 15"'
}

@test "a wait that the end of its process ends is logged" {
	hold_in_background a
	in_background sleep 60
	in_background sh -c 'exec rlock lock -v --log log --pid "$1" a 2>said' sh "$PID"
	wait_until 10 file_has said 'waiting for'
	kill -KILL "${BACKGROUND[1]}"
	wait_until 10 has_events 'waited a,cancelled a'
}

@test "an acquisition that failed is logged, and why" {
	run -69 rlock run -u "unix://$PWD/nowhere" --log log a -- true
	assert_equal "$(events)" 'failed a'
	[[ $(field reason failed) = *nowhere* ]]
}

@test "a lock that was lost is logged once, and why" {
	hold_in_background a -t 6s --log log
	redis del a >/dev/null
	wait_until 10 is_gone "$PID"
	assert_equal "$(events)" 'acquired a,lost a'
	assert_equal "$(field reason lost)" '"it expired or was deleted on the server"'
}

@test "a loss that only the release finds is logged once" {
	run -76 rlock run --log log a -- sh -c 'ask_redis "$SERVER_SOCKET" del a'
	assert_equal "$(events)" 'acquired a,lost a'
}

@test "a lock that was lost is logged once with --on-lost ignore, too" {
	hold_in_background a -t 1s --on-lost ignore --log log
	redis del a >/dev/null
	wait_until 5 has_events 'acquired a,lost a'
	let_go
	wait_until 5 is_gone "$PID"
	assert_equal "$(events)" 'acquired a,lost a'
}

@test "a lock that is broken by force is logged by both sides" {
	hold_in_background a -t 1s --log log
	run -0 rlock unlock --force --log log a
	wait_until 5 is_gone "$PID"
	assert_equal "$(events | tr , '\n' | sort | paste -sd ,)" 'acquired a,broken a,lost a'
	assert_equal "$(field owner broken)" "$(field owner acquired)"
}

@test "a lock that force does not break is not logged" {
	hold_in_background a
	run -1 rlock unlock --force --holder nobody:1 --log log a
	assert_equal "$(events)" ''
}

@test "a release that the server does not hear of is logged as what it is" {
	run -0 rlock run -t 6s --log log a -- sh -c 'kill -STOP "$SERVER_PID"'
	kill -CONT "$SERVER_PID"
	assert_equal "$(events)" 'acquired a,expires a'
	assert [ -n "$(field reason expires)" ]
}

@test "a lock that --at-least keeps is logged as released, and for how long it is kept" {
	run -0 rlock run --at-least 1h --log log a -- true
	assert_equal "$(events)" 'acquired a,released a'
	[ "$(field kept_ms released)" -gt 3590000 ]
}

@test "a command that came to a limit is logged with that" {
	run -124 rlock run --max-run 50ms --log log a -- sleep 60
	assert_equal "$(field reason released)" max-run
	rm log
	# A busy machine may take more than a second from SIGTERM to the release, which has to come before the end.
	run -124 rlock run --lease 9s --log log a -- sleep 60
	assert_equal "$(field reason released)" lease
}

@test "a lock that came to nothing is logged as released" {
	run -71 sh -c 'rlock lock --fence --owner x --lease 1m --log log a >/dev/full'
	assert_equal "$(events)" 'acquired a,released a'
	run -71 sh -c 'rlock lock --fence --pid $$ --log log b >/dev/full; exit $?'
	assert_equal "$(events)" 'acquired a,released a,acquired b,released b'
}

@test "a lock of an owner is logged by the calls that acquire and release it" {
	rlock lock --owner x --lease 1m --log log a
	rlock unlock --owner x --log log a
	assert_equal "$(events)" 'acquired a,released a'
	assert_equal "$(field owner released)" x:0
}

# ---- the renewer ----

@test "when rlock is killed its renewer logs the release, once" {
	hold_in_background a --log log
	wait_until 5 has_renewer "$PID"
	kill -KILL "$PID"
	wait_until 5 is_gone "$PID"
	let_go
	wait_until 5 is_free a
	wait_until 5 has_event released
	assert_equal "$(events)" 'acquired a,released a'
	assert_equal "$(field reason released)" '"rlock was killed"'
	assert_equal "$(field owner released)" "$(field owner acquired)"
	assert_equal "$(field pid released)" "$(field pid acquired)"
}

@test "with rlock killed a lock that was waited for is logged as released" {
	hold_in_background a
	in_background rlock run --log log a -- sh -c 'comes_true test -e now'
	wait_until 5 has_waiters a 1
	let_go
	wait_until 5 is_above "$PID" sh
	kill -KILL "$PID"
	wait_until 5 is_gone "$PID"
	: >now
	wait_until 5 has_event released
	assert_equal "$(field owner released)" "$(field owner acquired)"
	assert_equal "$(events)" 'waited a,acquired a,released a'
}

@test "when rlock is killed its renewer logs that the lock was lost, once" {
	# Killed before its command ran, it would have left nothing to lose.
	hold_in_background a -t 3s --log log
	wait_until 5 has_renewer "$PID"
	kill -KILL "$PID"
	wait_until 5 is_gone "$PID"
	redis del a >/dev/null
	wait_until 5 has_event lost
	wait_until 5 eval '[ -z "$(processes_of_test)" ]'
	assert_equal "$(events)" 'acquired a,lost a'
}

@test "a lock that is lost while rlock is stopped is logged once, when rlock goes on" {
	in_background rlock run -t 3s --log log a -- sleep 60
	wait_until 5 is_above "$PID" sleep
	wait_until 5 has_renewer "$PID"
	command=$(pgrep -P "$(renewer_of "$PID")" -x sleep)
	kill -STOP "$PID"
	redis del a >/dev/null
	wait_until 5 is_gone "$command"
	kill -CONT "$PID"
	wait_until 5 is_gone "$PID"
	assert_equal "$(events)" 'acquired a,lost a'
}

@test "a lock without a command is logged once, by its renewer when the process has ended" {
	in_background sleep 60
	rlock lock --log log --pid "$PID" a
	kill -KILL "$PID"
	wait_until 5 has_event released
	wait_until 5 eval '[ -z "$(processes_of_test)" ]'
	assert_equal "$(events)" 'acquired a,released a'
	assert_equal "$(field pid released)" "$PID"
	assert_equal "$(field reason released)" '"the process has ended"'
}

@test "a lock without a command is logged once, by the unlock that releases it" {
	rlock lock --log log --pid $$ a
	rlock unlock --log log --pid $$ a
	wait_until 5 eval '[ -z "$(processes_of_test)" ]'
	assert_equal "$(events)" 'acquired a,released a'
	assert_equal "$(field pid released)" $$
	assert [ -n "$(field held_ms released)" ]
}

@test "a lock without a command that was lost is logged once, and unlock does not again" {
	in_background sleep 60
	rlock lock -t 1s --on-lost ignore --log log --pid "$PID" a
	redis del a >/dev/null
	wait_until 5 has_event lost
	run -76 rlock unlock --log log --pid "$PID" a
	assert_equal "$(events)" 'acquired a,lost a'
}

@test "a lock without a command whose lease ends is logged as lost, and why" {
	in_background sleep 60
	rlock lock --lease 1s --on-lost ignore --log log --pid "$PID" a
	wait_until 5 has_event lost
	assert_equal "$(field reason lost)" '"its lease ends"'
}

@test "a loss that unlock finds is logged" {
	rlock lock --log log --pid $$ a
	redis del a >/dev/null
	run -76 rlock unlock --log log --pid $$ a
	assert_equal "$(events)" 'acquired a,lost a'
}

# ---- values ----

@test "a value with quotes, backslashes and blanks stays one value, in one line" {
	rlock run --log log --note 'a "b" \ é = x' 'two words' -- true
	run -0 cat log
	assert_equal "${#lines[@]}" 2
	assert_line --index 0 --partial ' name="two words" '
	assert_line --index 0 --partial ' note="a \"b\" \\ é = x" '
}

@test "what is no UTF-8, and what a terminal obeys, is escaped in both formats" {
	local name=$'bad \xff\x1b[31m'
	rlock run --log log "$name" -- true
	run -0 cat log
	assert_line --index 0 --partial ' name="bad \xff\x1b[31m" '
	rm log
	rlock run --log log --log-format json "$name" -- true
	run -0 all_json
	assert_line --index 0 --partial " name='bad \\\\xff\\\\x1b[31m' name_base64='$(printf %s "$name" | base64)' "
}

@test "a line is never longer than a pipe takes in one piece" {
	local format
	for format in text json; do
		rlock run --log log --log-format "$format" --note "$(printf '%255s' '' | tr ' ' '\377')" \
			"$(printf '%512s' '' | tr ' ' '\376')" -- true
		[ "$(wc -L <log)" -lt 4096 ]
		[ "$(wc -l <log)" = 2 ]
		[ "$format" = text ] || all_json log >/dev/null
		grep -q 'xfe' log
		rm log
	done
}

@test "no password is in the log" {
	redis acl setuser ci on ">$SECRET" allkeys allchannels +@all >/dev/null
	rlock run --log log -u "$(url_of ci)" a -- true
	run -69 rlock run --log log -u "redis://ci:$SECRET@127.0.0.1:1" a -- true
	run -77 rlock run --log log -u "redis://other:$SECRET@127.0.0.1:$PORT" a -- true
	assert_equal "$(events)" 'acquired a,released a,failed a,failed a'
	run ! grep -F "$SECRET" log
}
