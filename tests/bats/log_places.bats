#!/usr/bin/env bats
# Where the log for operators goes: to a file, to the system's log or to standard error, as --log or the configuration
# file says; and that no lock is held up for its log.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/logging

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

# ---- the file ----

@test "lines of 200 processes do not mix in one file" {
	local i
	export NOTE
	NOTE=$(printf '%255s' '' | tr ' ' x)
	for ((i = 0; i < 200; i++)); do
		rlock run --log log --log-format json --note "$NOTE" "lock$i" -- true 3>&- &
	done
	wait
	run -0 all_json
	assert_equal "${#lines[@]}" 400
	run -0 grep -c '"event":"acquired"' log
	assert_output 200
	for ((i = 0; i < 200; i++)); do
		grep -q "\"released\",\"name\":\"lock$i\"" log || fail "lock$i is missing"
	done
}

@test "a new file can be read by its group, as far as the mask allows" {
	(umask 0 && rlock run --log open a -- true)
	(umask 077 && rlock run --log closed a -- true)
	assert_equal "$(stat -c %a open closed | paste -sd ,)" 640,600
}

@test "a file is added to, and a symbolic link to it is followed" {
	echo before >target
	ln -s target log
	rlock run --log log a -- true
	assert_equal "$(head -n 1 target)" before
	assert_equal "$(wc -l <target)" 3
	assert [ -L log ]
}

@test "after a rotation the next line goes to a new file" {
	# rlock writes the line while the command begins.
	rlock run --log log a -- sh -c 'comes_true grep -q acquired log && mv log old'
	assert_equal "$(events old)" 'acquired a'
	assert_equal "$(events log)" 'released a'
}

@test "a file by a relative name is the same for the renewer, which runs elsewhere" {
	in_background sleep 60
	mkdir inner
	(cd inner && rlock lock --log ../log --pid "$PID" a)
	kill -KILL "$PID"
	wait_until 5 has_events 'acquired a,released a'
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

@test "a full disk is one warning, and changes no status" {
	run -3 rlock run --log /dev/full a -- sh -c 'exit 3'
	assert_output "rlock: --log '/dev/full': cannot be written to: No space left on device"
}

@test "a FIFO that no process reads is one warning, and holds no lock up" {
	mkfifo pipe
	run -3 timeout -s KILL 5 rlock run --log pipe a -- sh -c 'exit 3'
	assert_output "rlock: --log 'pipe': cannot be written to: No such device or address"
	no_keys
}

@test "a FIFO that is full is one warning, and holds no lock up" {
	mkfifo pipe
	exec 7<>pipe
	dd if=/dev/zero of=pipe bs=4096 oflag=nonblock 2>/dev/null || :
	run -0 timeout -s KILL 5 rlock run --log pipe a -- true
	assert_output "rlock: --log 'pipe': cannot be written to: Resource temporarily unavailable"
	exec 7>&-
	no_keys
}

@test "a FIFO that a process reads gets each line" {
	mkfifo pipe
	exec 7<>pipe
	rlock run --log pipe a -- true
	head -n 2 <&7 >log
	exec 7>&-
	assert_equal "$(events)" 'acquired a,released a'
}

@test "a file that may not grow ends no lock" {
	: >log
	run -0 sh -c 'ulimit -f 0; rlock run --log log a -- true 2>&1 | cat'
	assert_output "rlock: --log 'log': cannot be written to: File too large"
}

@test "the command and the renewer have no descriptor of the log" {
	local without renewer
	without=$(sh -c 'ls /proc/$$/fd; :' 7</dev/null)
	run -0 rlock run --log log a -- sh -c 'ls /proc/$$/fd; :' 7</dev/null
	assert_output "$without"
	in_background sleep 60
	rlock lock --log log --pid "$PID" a
	renewer=$(processes_of_test | sed -n 's/ rlock-renewer$//p')
	assert [ -n "$renewer" ]
	run -0 find "/proc/$renewer/fd" -lname "$PWD/log"
	assert_output ''
	kill -KILL "$PID"
	wait_until 5 is_free a
}

# ---- standard error ----

@test "on standard error stand the same lines, even with --quiet" {
	run -0 rlock run -q --log stderr --log-format json a -- true
	echo "$output" >log
	run -0 all_json
	assert_equal "${#lines[@]}" 2
}

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

@test "a lock without a command keeps no standard error for its log" {
	in_background sleep 60
	run -0 took_less 3 rlock lock --log stderr --pid "$PID" a
	assert_output --partial ' event=acquired '
	kill -KILL "$PID"
	wait_until 5 is_free a
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

@test "without a log daemon there is one warning" {
	needs_mounts
	run -3 unshare -rm sh -ec 'mkdir dev; mount --rbind /dev dev; mount -t tmpfs none /dev
		: >/dev/null; mount --bind dev/null /dev/null
		exec rlock run --log syslog a -- sh -c "exit 3"'
	assert_output "rlock: --log '/dev/log': cannot be written to: No such file or directory"
}

# ---- where it is set ----

@test "the configuration file can set the log, and verbs that log nothing ignore it" {
	printf 'log = %s\nlog-format = json\n' "$PWD/log" >rlock.conf
	rlock run --config rlock.conf a -- true
	run -0 all_json
	assert_equal "${#lines[@]}" 2
	rm log
	rlock list --config rlock.conf
	assert [ ! -e log ]
	rlock run --config rlock.conf --log other --log-format text a -- true
	assert [ ! -e log ]
	assert_equal "$(events other)" 'acquired a,released a'
}
