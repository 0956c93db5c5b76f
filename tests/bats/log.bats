#!/usr/bin/env bats
# --log, the log for operators: one line for each event of a lock, in two formats, whichever of rlock's processes sees the event.
# Also the destinations of the log, and that no lock waits for its log.

load ../lib/usual
load ../lib/rights
load ../lib/logging

setup_file() { start_server_at_port; }

teardown() { common_teardown; }

# has_events EVENTS: whether `events` prints this.
has_events() {
	[ "$(events)" = "$1" ]
}

# ---- lines ----

@test "lines of text and of JSON have the fields that the manual lists, in that order, and no password" {
	TZ=XST-5:30 run -3 rlock fair --log log --note 'a note' a b -- sh -c 'exit 3'
	assert_output ''
	# On a busy machine the line of one name can come before that of the other.
	assert_equal "$(events | tr , '\n' | sort | paste -sd ,)" 'acquired a,acquired b,released a,released b'
	run -0 sort <(grep 'name=a' log)
	assert_line --index 0 --regexp "^time=[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}\+05:30 event=acquired name=a \
kind=fair owner=[0-9a-f-]{36}:[0-9]+ host=$(uname -n) pid=[0-9]+ user=[^ ]+ waited_ms=[0-9]+ note=\"a note\" server=\"unix://$SERVER_SOCKET\?db=0\"$"
	assert_line --index 1 --regexp ' user=[^ ]+ held_ms=[0-9]+ status=3 note="a note" server='
	redis acl setuser ci on ">$SECRET" allkeys allchannels +@all >/dev/null
	run -77 rlock run --log log -u "$(url_of other)" a -- true
	run -3 rlock run --log ./json --log-format json --note 'a note' -u "$(url_of ci)" a -- sh -c 'exit 3'
	assert_equal "$(events | tr , '\n' | sort | paste -sd ,)" 'acquired a,acquired b,failed a,released a,released b'
	run ! grep -F "$SECRET" log json
	run -0 objects json
	run -0 sort <<<"$output"
	assert_line --index 0 --regexp "^event='acquired' name='a' kind='plain' owner='[0-9a-f-]{36}:[0-9]+' host='$(uname -n)' \
pid=[0-9]+ user='[^ ]+' waited_ms=[0-9]+ note='a note' server='redis://127.0.0.1:$PORT/0'$"
	assert_line --index 1 --regexp "^event='released' .* held_ms=[0-9]+ status=3 note='a note' server="
}

# objects FILE: prints each line, a JSON object, as Python does, without the time.
objects() {
	python3 -IS - "$1" <<-'END'
		import datetime, json, sys
		for line in open(sys.argv[1], encoding="ascii"):
		    # After a line whose writer stood still within it, the next line begins with a newline.
		    if line == "\n":
		        continue
		    event = json.loads(line)
		    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(event.pop("time"))
		    assert abs(age) < datetime.timedelta(minutes=1)
		    print(" ".join(f"{key}={event[key]!r}" for key in event))
	END
}

@test "both formats escape line ends, quotes, bytes that are not UTF-8, and control characters" {
	local name=$'bad \xff\x1b[31m'
	rlock run --log log --note 'a "b" \ é = x' "$name" -- true
	run -0 head -n 1 log
	assert_output --partial ' name="bad \xff\x1b[31m" '
	assert_output --partial ' note="a \"b\" \\ é = x" '
	rlock run --log ./json --log-format json "$name" -- true
	run -0 objects json
	assert_line --index 0 --partial " name='bad \\\\xff\\x1b[31m' name_base64='$(printf %s "$name" | base64)' "
}

@test "no line is longer than PIPE_BUF, and lines of 40 processes do not mix in one file" {
	local i
	export NOTE
	NOTE=$(printf '%255s' '' | tr ' ' '\377')
	for i in text json; do
		rlock run --log "./$i" --log-format "$i" --note "$NOTE" "$(printf '%512s' '' | tr ' ' '\376')" -- true
		[ "$(wc -L <"$i")" -lt 4096 ]
		[ "$(grep -c 'xfe' "$i")" = 2 ]
	done
	for ((i = 0; i < 40; i++)); do
		rlock run --log ./json --log-format json --note "$NOTE" "lock$i" -- true 3>&- &
	done
	wait
	run -0 objects json
	assert_equal "${#lines[@]}" 82
	assert_equal "$(grep -o "^event='released' name='lock[0-9]*'" <<<"$output" | sort -u | wc -l)" 40
}

@test "the longest name is logged for any owner, although all that can be left out has no room" {
	local name owner
	name=$(printf '\002%.0s' {1..511})$'\377'
	owner=$(printf '\002%.0s' {1..255})
	redis hset "$name" "$owner" 1 >/dev/null
	run -0 rlock unlock -q --force --log log --log-format json "$name"
	wait_until 5 test -s log
	objects log >line
	run -0 sed -n "s/^event='broken' name='.*' name_base64=//p" line
	assert_output "'$(printf %s "$name" | base64 -w 0)' host='$(uname -n)' pid=$(sed 's/.*pid=//' line)"
}

# ---- events ----

@test "a wait that succeeds, times out or is ended by a signal is logged with its duration, and a busy lock is logged" {
	hold_in_background a --note 'the holder'
	touch log
	# Give a wait time that is long enough for the waiter to begin its sleep, also on a busy machine.
	# On a busy machine rlock ends a renewer that got no processor for a second, and says something else: try again then.
	for _ in 1 2 3; do
		rm log
		run -75 rlock run -n --log log a -- true
		run -75 rlock run -qw 3s --log log a -- true
		! has_event timed_out || break
	done
	assert_equal "$(events)" 'busy a,waited a,timed_out a'
	[[ $(field reason busy) = '"held by the holder ('* ]]
	[ "$(field waited_ms timed_out)" -ge 3000 ]
	assert_between 0 "$(field holder_held_ms busy)" "$(field holder_held_ms timed_out)"
	for _ in 1 2 3; do
		rm -f log
		wait_until 5 no_subscribers
		in_background rlock run --log log a -- true
		wait_until 10 has_waiters a
		# It subscribes when it has read that the lock is held.
		wait_until 5 eval '! no_subscribers'
		kill -TERM "$PID"
		wait_until 30 is_gone "$PID"
		! BUSY_FACTOR=1 wait_until 3 has_event cancelled || break
	done
	wait_until 10 has_events 'waited a,cancelled a'
	assert_equal "$(field reason cancelled)" '"signal 15"'
	rm log
	in_background rlock run --log log a -- true
	wait_until 10 has_waiters a
	end_commands
	wait_until 5 has_events 'waited a,acquired a,released a'
	assert_equal "$(field waited_ms acquired)" "$(field waited_ms waited)"
}

# Start many waiters at the same time, so that each is preempted at another point. The end of a wait may come while a reply is
# missing.
@test "a wait that timed out is never logged as shorter than --wait" {
	local waiters=()
	hold_in_background a
	for _ in {1..100}; do
		rlock run -qw 20ms --log log a -- true 3>&- &
		waiters+=("$!")
	done
	wait "${waiters[@]}" || true
	run -0 field waited_ms timed_out
	output=$(sort -n <<<"$output" | head -n 1)
	[ "$output" -ge 20 ]
}

@test "both sides log a lock broken by force; the renewer logs the release when rlock was killed" {
	hold_in_background a -t 9s --log log
	run -1 rlock unlock --force --holder nobody:1 --log log a
	run -0 rlock unlock --force --log log a
	wait_until 10 is_gone "$PID"
	wait_until 5 eval '[ "$(events | tr , "\n" | sort | paste -sd ,)" = "acquired a,broken a,lost a" ]'
	assert_equal "$(field reason lost)" '"it expired or was deleted on the server"'
	assert_equal "$(field owner broken)" "$(field owner acquired)"
	rm log
	# Try again if rlock has taken over from a late renewer: after the SIGKILL no process would log the release.
	for _ in 1 2 3; do
		rm -f log end-commands
		hold_in_background b --log log
		# Wait for the line before the SIGKILL: a line that rlock has read from its renewer, and not yet written, would be lost.
		wait_until 5 has_event acquired
		! has_renewer "$PID" || break
		end_commands
		ended_with 0
	done
	kill -KILL "$PID"
	wait_until 5 is_gone "$PID"
	end_commands
	wait_until 5 has_events 'acquired b,released b'
	assert_equal "$(field reason released)" '"rlock was killed"'
	assert_equal "$(field pid acquired) $(field pid released)" "$PID $PID"
}

@test "a release is logged with what ended the command, with the end of --at-least, and as failed if the server did not get it" {
	run -143 sh -c 'rlock run --log log a -- sh -c "kill \$\$"; exit $?'
	assert_equal "$(field signal released)" 15
	assert_equal "$(field status released)" ''
	rm log
	run -124 rlock run --max-run 50ms --at-least 1h --log log b -- sleep 60
	assert_equal "$(field reason released)" max-run
	[ "$(field kept_ms released)" -gt 3590000 ]
	rm log
	run -0 rlock run -t 30s --log log a -- sh -c 'kill -STOP "$SERVER_PID"'
	kill -CONT "$SERVER_PID"
	assert_equal "$(events)" 'acquired a,expires a'
	assert [ -n "$(field reason expires)" ]
}

@test "a lock without a command is logged once: by unlock, or by its renewer when the process ends or the lock is lost" {
	rlock lock --log log --pid $$ a
	rlock unlock --log log --pid $$ a
	wait_until 5 no_rlock_runs
	wait_until 5 has_events 'acquired a,released a'
	assert_equal "$(field pid released)" $$
	rm log
	in_background sleep 60
	rlock lock -t 9s --on-lost ignore --log log --pid "$PID" a
	redis del a >/dev/null
	wait_until 10 has_event lost
	run -76 rlock unlock --log log --pid "$PID" a
	assert_equal "$(events)" 'acquired a,lost a'
	rm log
	mkdir inner
	(cd inner && rlock lock --log ../log --pid "$PID" a)
	kill -KILL "$PID"
	wait_until 5 has_event released
	wait_until 5 no_rlock_runs
	wait_until 5 has_events 'acquired a,released a'
	assert_equal "$(field pid released)" "$PID"
	assert_equal "$(field reason released)" '"the process has ended"'
}

# ---- the file ----

@test "after the log was renamed the next line goes to a new file" {
	# Poll: rlock writes the line while the command is starting.
	rlock run --log log a -- sh -c 'wait_until_true grep -q acquired log && mv log old'
	assert_equal "$(wc -l <old)" 1
	assert_equal "$(events)" 'released a'
}

# then_syslog: prints what a warning about a file says of syslog on this machine.
then_syslog() {
	[ -S /dev/log ] && echo 'the log goes to syslog' || echo 'its lines are lost: no log daemon listens at /dev/log'
}

@test "a log that cannot be opened or written is one warning, and changes neither status nor lock" {
	mkfifo unread full
	exec 7<>full
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || :
	while IFS='|' read -r log why; do
		run -3 timeout -s KILL 30 rlock run --log "$log" a -- sh -c 'exit 3'
		assert_output "rlock: --log '$log': cannot be $why; $(then_syslog)"
	done <<-END
		/dev/full|written to: No space left on device
		unread|opened: No such device or address
		full|written to: Resource temporarily unavailable
		$PWD/nowhere/log|opened: No such file or directory
		$PWD|opened: Is a directory
	END
	exec 7>&-
	: >log
	run -0 sh -c 'ulimit -f 0; rlock run --log log a -- true 2>&1 | cat'
	assert_output "rlock: --log 'log': cannot be written to: File too large; $(then_syslog)"
	echo "log = $PWD/nowhere/log" >conf
	chmod 600 conf
	run -0 rlock lock --config conf --owner x --lease 1m a
	assert_output --regexp "^rlock: .*conf:1: log '$PWD/nowhere/log': cannot be opened: No such file or directory; $(then_syslog)\$"
	RLOCK_CONFIG=$PWD/conf run -0 rlock flock b echo ran
	assert_line ran
	assert_line --partial "$(then_syslog)"
}

@test "a line that a full file has cut off is a line of its own, and the next event has a whole line" {
	printf "%1000s\n" x >log
	run -3 bash -c 'ulimit -f 1; rlock run --log log a -- sh -c "exit 3" 2>&1 | cat; exit "${PIPESTATUS[0]}"'
	assert_output "rlock: --log 'log': cannot be written to: File too large; $(then_syslog)"
	assert_equal "$(stat -c %s log)" 1024
	rlock run --log log b -- true
	assert_equal "$(wc -l <log)" 4
	assert_equal "$(events)" 'acquired b,released b'
}

@test "a lost lock is reported with 76 when the file of standard error may not grow any more" {
	head -c 1024 /dev/zero >full
	in_background bash -c 'ulimit -f 1; exec rlock run -t 9s a -- run_until_ended 2>>full'
	wait_until 5 has_child "$PID" run_until_ended
	redis del a
	ended_with 76
	assert_equal "$(stat -c %s full)" 1024
}

@test "events while rlock is stopped are printed on standard error when it continues" {
	local command
	in_background sh -c 'exec rlock run -t 9s --log stderr a -- sleep 60 2>log'
	wait_until 5 has_child "$PID" sleep
	command=$(command_of "$PID")
	kill -STOP "$PID"
	redis del a >/dev/null
	wait_until 10 is_gone "$command"
	kill -CONT "$PID"
	wait_until 5 is_gone "$PID"
	wait_until 5 has_events 'acquired a,lost a'
}

# ---- the system's log ----

# with_daemon READS COMMAND [ARG...]: runs COMMAND with a /dev of its own, in which /dev/log is a socket of the test. Then prints
# what has arrived there. With READS 0 the socket is full; with READS none there is no socket.
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
if sys.argv[1] == "none":
    sys.exit(subprocess.call(sys.argv[2:]))
log, filler = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) for _ in range(2))
log.bind("/dev/log")
filler.connect("/dev/log")
try:
    while sys.argv[1] == "0":
        filler.send(b"filler")
except BlockingIOError:
    pass
status = subprocess.call(sys.argv[2:])
try:
    while message := log.recv(65536):
        if message != b"filler":
            print(message.decode())
except BlockingIOError:
    sys.exit(status)
'

@test "syslog gets each line with its level; a log daemon that hangs is one warning, and delays no lock" {
	# Skip here, not in with_daemon: in the subshell of `run` skip has no effect.
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	run -75 with_daemon 1 sh -c 'rlock run --log syslog a -- ask_redis "$SERVER_SOCKET" del a
		rlock run --log syslog --log-format json b -- true
		rlock lock --owner x --lease 1m c
		rlock run -n --log syslog c -- true'
	assert_line --regexp '^<14>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} rlock\[[0-9]+\]: time=[^ ]+ event=acquired name=a .*db=0"$'
	assert_line --regexp '^<12>[^:]+:[0-9]+:[0-9]+ rlock\[[0-9]+\]: time=[^ ]+ event=lost name=a '
	assert_line --regexp '^<14>.*: \{"time":"[^"]+","event":"acquired","name":"b",.*\}$'
	assert_line --regexp '^<14>.* event=busy name=c '
	rmdir dev
	run -0 with_daemon 1 rlock run --log /nowhere/log d -- true
	assert_line "rlock: --log '/nowhere/log': cannot be opened: No such file or directory; the log goes to syslog"
	assert_line --regexp '^<14>.* event=acquired name=d '
	assert_line --regexp '^<14>.* event=released name=d '
	rmdir dev
	# Try again if a line was late: rlock waits for each line for half a second, and sends a line that fails later to no other log.
	for _ in 1 2 3; do
		rmdir dev 2>/dev/null || :
		run -0 with_daemon 1 rlock run --log /dev/full e -- true
		! grep -q '^<14>.* event=acquired name=e ' <<<"$output" || break
	done
	assert_line --partial 'the log goes to syslog'
	assert_line --regexp '^<14>.* event=acquired name=e '
	assert_line --regexp '^<14>.* event=released name=e '
	rmdir dev
	run -3 with_daemon 0 timeout -s KILL 20 rlock run --log syslog a -- sh -c 'exit 3'
	assert_output "rlock: --log 'syslog': its lines are lost: the log daemon does not read /dev/log; give stderr or a file"
}

@test "without a log daemon one warning says that the lines are lost, and check notes it" {
	local lost='its lines are lost: no log daemon listens at /dev/log'
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	run -0 with_daemon none rlock run --log syslog a -- true
	assert_output "rlock: --log 'syslog': $lost; give stderr or a file"
	rmdir dev
	run -0 with_daemon none rlock run --log /dev/full b -- true
	# Where the test runs as a user, the kernel may refuse to open a device of the /dev that with_daemon has made.
	assert_output --regexp "^rlock: --log '/dev/full': cannot be (written to: No space left on device|opened: Permission denied); $lost\$"
	rmdir dev
	echo 'log = syslog' >conf
	chmod 600 conf
	RLOCK_CONFIG=$PWD/conf run -0 with_daemon none rlock lock --owner x --lease 1m c
	assert_output "rlock: $PWD/conf:1: log 'syslog': $lost; give stderr or a file"
	rmdir dev
	RLOCK_CONFIG=$PWD/conf run -0 with_daemon none rlock check
	assert_line --regexp "^note +log +$lost; give stderr or a file\$"
	assert_line --regexp '^sound: .*, log$'
	rmdir dev
	RLOCK_CONFIG=$PWD/conf run -0 with_daemon 1 rlock check
	refute_output --partial 'lines are lost'
}
