#!/usr/bin/env bats
# The log for operators, --log: a line for each event of a lock, in two formats; each event once, whichever of rlock's
# processes sees it. And where the lines go: no lock is held up for its log.

load ../lib/usual
load ../lib/rights
load ../lib/logging

setup_file() { start_server_at_port; }

teardown() { common_teardown; }

# ---- events ----

@test "an acquisition and a release are logged for each name, with the status of the command, or its signal" {
	run -3 rlock fair --log log a b -- sh -c 'exit 3'
	assert_output ''
	assert_equal "$(events)" 'acquired a,acquired b,released a,released b'
	assert_equal "$(field kind acquired | paste -sd ,)" fair,fair
	assert_equal "$(field status released | paste -sd ,)" 3,3
	assert_equal "$(field status acquired | tr -d '\n')" ''
	rm log
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

@test "a lock that was busy, and a wait that is over in vain, are logged, with the holder" {
	hold_in_background a --note 'the holder'
	run -75 rlock run -n --log log a -- true
	assert_output ''
	assert_equal "$(events)" 'busy a'
	[[ $(field reason busy) = '"held by the holder ('* ]]
	assert_between 0 "$(field holder_held_ms busy)" 60000
	rm log
	# Long enough to sleep, on a busy machine, too.
	run -75 rlock run -qw 1s --log log a -- true
	assert_equal "$(events)" 'waited a,timed_out a'
	[ "$(field waited_ms timed_out)" -ge 1000 ]
	assert_between 1000 "$(field holder_held_ms timed_out)" 60000
}

@test "a wait that a signal ends is logged" {
	hold_in_background a
	in_background sh -c 'exec rlock run -v --log log a -- true 2>said'
	wait_until 10 file_has said 'waiting for'
	kill -TERM "$PID"
	wait_until 10 has_events 'waited a,cancelled a'
	assert_equal "$(field reason cancelled)" '"signal 15"'
}

@test "a lock that was lost is logged once, and why" {
	hold_in_background a -t 3s --log log
	redis del a >/dev/null
	wait_until 10 is_gone "$PID"
	assert_equal "$(events)" 'acquired a,lost a'
	assert_equal "$(field reason lost)" '"it expired or was deleted on the server"'
}

@test "a lock that is broken by force is logged by both sides, and one that is not, by none" {
	hold_in_background a -t 1s --log log
	run -1 rlock unlock --force --holder nobody:1 --log log a
	run -0 rlock unlock --force --log log a
	wait_until 5 is_gone "$PID"
	assert_equal "$(events | tr , '\n' | sort | paste -sd ,)" 'acquired a,broken a,lost a'
	assert_equal "$(field owner broken)" "$(field owner acquired)"
}

@test "a release that the server does not hear of is logged as what it is" {
	run -0 rlock run -t 3s --log log a -- sh -c 'kill -STOP "$SERVER_PID"'
	kill -CONT "$SERVER_PID"
	assert_equal "$(events)" 'acquired a,expires a'
	assert [ -n "$(field reason expires)" ]
}

@test "a release is logged with the limit that its command came to, and with how long --at-least keeps the lock" {
	run -124 rlock run --max-run 50ms --at-least 1h --log log a -- sleep 60
	assert_equal "$(events)" 'acquired a,released a'
	assert_equal "$(field reason released)" max-run
	[ "$(field kept_ms released)" -gt 3590000 ]
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

@test "a lock without a command is logged once, by its renewer when the process has ended" {
	in_background sleep 60
	mkdir inner
	(cd inner && rlock lock --log ../log --pid "$PID" a)
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

# ---- values ----

@test "a value stays one value in one line, and what is no UTF-8, or what a terminal obeys, is escaped in both formats" {
	local name=$'bad \xff\x1b[31m'
	rlock run --log log --note 'a "b" \ é = x' "$name" -- true
	run -0 cat log
	assert_equal "${#lines[@]}" 2
	assert_line --index 0 --partial ' name="bad \xff\x1b[31m" '
	assert_line --index 0 --partial ' note="a \"b\" \\ é = x" '
	rm log
	rlock run --log log --log-format json "$name" -- true
	run -0 all_json
	assert_line --index 0 --partial " name='bad \\\\xff\\x1b[31m' name_base64='$(printf %s "$name" | base64)' "
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

# ---- the file ----

@test "lines of 40 processes do not mix in one file" {
	local i
	export NOTE
	NOTE=$(printf '%255s' '' | tr ' ' x)
	for ((i = 0; i < 40; i++)); do
		rlock run --log log --log-format json --note "$NOTE" "lock$i" -- true 3>&- &
	done
	wait
	run -0 all_json
	assert_equal "${#lines[@]}" 80
	run -0 grep -c '"event":"acquired"' log
	assert_output 40
	for ((i = 0; i < 40; i++)); do
		grep -q "\"released\",\"name\":\"lock$i\"" log || fail "lock$i is missing"
	done
}

@test "after a rotation the next line goes to a new file" {
	# rlock writes the line while the command begins.
	rlock run --log log a -- sh -c 'comes_true grep -q acquired log && mv log old'
	assert_equal "$(events old)" 'acquired a'
	assert_equal "$(events log)" 'released a'
}

@test "a file that can't be opened is refused before anything is done" {
	local before after file
	before=$(server_commands)
	for file in "$PWD/nowhere/log" "$PWD" "$PWD/log/"; do
		run -78 rlock run --log "$file" a -- touch ran
		assert_output --partial "rlock: --log '$file': cannot be opened: "
		run -78 rlock unlock --force --log "$file" a
	done
	after=$(server_commands)
	assert_equal $((after - before)) 1
	assert [ ! -e ran ]
}

@test "a log that cannot be written to is one warning, changes no status, and holds no lock up" {
	mkfifo unread full
	exec 7<>full
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || :
	while IFS='|' read -r log why; do
		run -3 timeout -s KILL 10 rlock run --log "$log" a -- sh -c 'exit 3'
		assert_output "rlock: --log '$log': cannot be written to: $why"
	done <<-'END'
		/dev/full|No space left on device
		unread|No such device or address
		full|Resource temporarily unavailable
	END
	exec 7>&-
	: >log
	run -0 sh -c 'ulimit -f 0; rlock run --log log a -- true 2>&1 | cat'
	assert_output "rlock: --log 'log': cannot be written to: File too large"
	no_keys
}

# ---- standard error ----

@test "what happens while rlock is stopped stands on standard error once it goes on" {
	local command
	in_background sh -c 'exec rlock run -t 1s --log stderr a -- sleep 60 2>log'
	wait_until 5 has_renewer "$PID"
	wait_until 5 has_command "$PID"
	command=$(command_of "$PID")
	kill -STOP "$PID"
	redis del a >/dev/null
	wait_until 5 is_gone "$command"
	kill -CONT "$PID"
	wait_until 5 is_gone "$PID"
	assert_equal "$(events)" 'acquired a,lost a'
}

# ---- the system's log ----

# needs_mounts: skips the test where no other /dev can be made, as in a chroot.
needs_mounts() {
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
}

# with_daemon READS COMMAND [ARG...]: the command in a /dev with a log daemon's socket, and after it all that came there.
# With READS 0 there is no room for a line.
with_daemon() {
	unshare -rm sh -ec '
		mkdir dev
		mount --rbind /dev dev
		mount -t tmpfs none /dev
		for device in null full urandom; do
			: >"/dev/$device"
			mount --bind "dev/$device" "/dev/$device"
		done
		exec python3 -IS -c "$DAEMON" "$@"' sh "$@"
}

export DAEMON='
import socket, subprocess, sys
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
if sys.argv[1] == "0":
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.connect("/dev/log")
    filler.setblocking(False)
    try:
        while True:
            filler.send(b"filler")
    except BlockingIOError:
        pass
status = subprocess.call(sys.argv[2:])
log.setblocking(False)
try:
    while True:
        message = log.recv(65536)
        if message != b"filler":
            print(message.decode())
except BlockingIOError:
    sys.exit(status)
'

@test "the system's log gets each line, with its level" {
	needs_mounts
	run -75 with_daemon 1 sh -c 'rlock run --log syslog a -- ask_redis "$SERVER_SOCKET" del a
		rlock run --log syslog --log-format json b -- rlock run -n --log syslog a c -- false
		rlock lock --owner x --lease 1m c
		rlock run -n --log syslog c -- true'
	assert_line --regexp '^<14>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} rlock\[[0-9]+\]: time=[^ ]+ event=acquired name=a .*db=0"$'
	assert_line --regexp '^<12>[^:]+:[0-9]+:[0-9]+ rlock\[[0-9]+\]: time=[^ ]+ event=lost name=a '
	assert_line --regexp '^<14>.*: \{"time":"[^"]+","event":"acquired","name":"b",.*\}$'
	assert_line --regexp '^<14>.* event=busy name=c '
}

@test "a log daemon that is stuck is one warning, and holds no lock up" {
	needs_mounts
	run -3 with_daemon 0 timeout -s KILL 5 rlock run --log syslog a -- sh -c 'exit 3'
	assert_output "rlock: --log '/dev/log': cannot be written to: Resource temporarily unavailable"
}
