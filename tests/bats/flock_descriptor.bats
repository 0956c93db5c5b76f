#!/usr/bin/env bats
# rlock flock by descriptor: the lock belongs to the process that has the file open. It is released by -u, or when that process
# closes the descriptor or ends in any way. flock.bats compares random scripts with the machine's flock.

load ../lib/usual

setup() {
	directory_setup
	FILE=$(realpath -m f)
	mkdir link
	ln -s "$RLOCK_BIN" link/flock
	# Write functions for the scripts. held: prints whether the lock is held. soon_free: waits until a call on another machine
	# can acquire the lock.
	cat >functions <<-END
		PATH=$PWD/link:$PATH
		held() { redis-cli -s '$SERVER_SOCKET' exists '$FILE'; }
		other_machine() { env -u RLOCK_HELD RLOCK_RUNTIME_DIR='$PWD/there' flock "\$@"; }
		soon_free() { other_machine -w 10 f true || echo 'not free'; }
		mode() { redis-cli -s '$SERVER_SOCKET' hget '$FILE' mode; }
	END
}

# script TEXT LINES [COMMAND...]: sh must run TEXT and print these lines, joined by blanks; then the lock must be free.
script() {
	printf '. ./functions\n%s\n' "$1" >script
	run -0 timeout 60 "${@:3}" sh ./script
	assert_equal "${lines[*]}" "$2"
	wait_until 10 is_free "$FILE"
	wait_until 5 no_hold_files
}

# ---- how it is locked ----

@test "a subshell holds the lock until it ends, and a path and a descriptor of it are the same lock" {
	script '( flock -n 9 || exit 1; held; other_machine -n f true; echo $? ) 9>f; soon_free
		exec 9>f; other_machine f sh -c "touch in; until [ -e out ]; do sleep 0.02; done" & wait_until_true test -e in
		(flock -n 9 || exit 1; echo ran) 9>f; echo $?; touch out; flock 9; echo $?; wait' '1 1 1 0'
}

@test "with --fd a command runs, and the descriptor keeps the lock; the command inherits it unless -o is given" {
	script 'exec 8<>f; flock -n --fd 8 echo "1 2 3"; held; flock --fd 8 -c "exit 3"; echo $?
		other_machine -n f true; echo $?; flock -o --fd 8 sh -c "test -e /proc/self/fd/8"; echo $?; held' '1 2 3 1 3 1 1 1'
	script 'flock -n --fd 8 redis-cli -s "$SERVER_SOCKET" exists "$PWD/f" 8>f; soon_free' '1'
}

@test "with --fd a command that cannot be run is refused before the lock is acquired or released" {
	: >data
	script 'exec 8<>f 2>stderr; flock --fd 8 ./nothere; echo $?; held; flock --fd 8 ./data; echo $?; held
		flock 8; held; flock -u --fd 8 nothere; echo $?; held' '127 0 126 0 1 127 1'
	run -0 cat stderr
	assert_line --index 0 "rlock: $FILE: ./nothere: command not found"
	assert_line --index 1 --regexp "^rlock: $FILE: cannot run ./data: Permission denied"
	run -127 sh -c 'rlock flock -n --fd 8 "touch ran" 8<>f'
	assert_output --partial "; try: rlock flock -n --fd 8 -c 'touch ran'"
}

@test "with --fd and -E 0 no command runs while the lock is busy" {
	script 'exec 9>f; other_machine f sh -c "touch in; until [ -e out ]; do sleep 0.02; done" & wait_until_true test -e in
		flock -n -E 0 --fd 9 echo ran; echo $?; flock -s -w 3 -E 0 --fd 9 echo ran; echo $?; flock -n -E 0 9; echo $?
		flock -n -E 9 --fd 9 echo ran; echo $?; touch out; wait' '0 0 0 9'
}

@test "with --fd signals sent to rlock reach the command, once each, and rlock ends after it, with its status" {
	local signal
	in_background bash -c '. ./functions; exec 8<>f; flock --fd 8 sh -c "echo \$PPID >flock; exec log_signals"; echo $?; held' >status
	wait_until 20 file_has_line signals ready
	for signal in ALRM WINCH USR2 USR1 HUP INT QUIT TERM; do
		kill -s "$signal" "$(<flock)"
		wait_until 5 file_has_line signals "$signal"
	done
	is_running "$(<flock)"
	end_commands
	ended_with 0
	assert_equal "$(grep -v CONT signals)" $'ready\nALRM\nWINCH\nUSR2\nUSR1\nHUP\nINT\nQUIT\nTERM'
	assert_equal "$(<status)" $'0\n1'
	for signal in HUP INT QUIT TERM; do
		rm flock
		in_background bash -c '. ./functions; exec 8<>f; flock $1 --fd 8 sh -c "echo \$PPID >flock; exec sleep 60"; exit $?' bash \
			"$([ "$signal" = HUP ] && echo -u)"
		wait_until 10 test -s flock
		kill -s "$signal" "$(<flock)"
		takes_less_than 15 ended_with $((128 + $(kill -l "$signal")))
	done
}

@test "with --fd SIGTERM to rlock ends a stopped command, too" {
	in_background bash -c '. ./functions; exec 8<>f; flock --fd 8 sh -c "echo \$PPID \$\$ >flock; exec sleep 60"; exit $?'
	wait_until 10 test -s flock
	kill -s STOP "$(cut -d ' ' -f 2 flock)"
	wait_until 5 is_stopped "$(cut -d ' ' -f 2 flock)"
	kill -s TERM "$(cut -d ' ' -f 1 flock)"
	takes_less_than 8 ended_with 143
}

# ---- how it is released ----

@test "the lock is released when its process closes the descriptor, though others have a copy, or is killed" {
	script 'exec 8>g 9>f; flock 8; flock 9; run_until_ended 2>/dev/null 3>&- & exec 9>&-; soon_free; kill $!; echo end' 'end'
	in_background bash -c '. ./functions; exec 9>f; flock 9; touch has; run_until_ended'
	wait_until 10 file_exists has
	is_held "$FILE"
	kill -KILL "$PID"
	wait_until 5 is_free "$FILE"
}

@test "a directory can be locked by its descriptor, which the renewer checks once a second" {
	mkdir d
	script 'exec 9<d; flock 9; other_machine -n d true; echo $?; exec 9<&-; other_machine -w 20 d echo free' '1 free'
}

# ---- locked again ----

@test "a read lock after a write lock is a downgrade: no writer can acquire it in between" {
	in_background bash -c '. ./functions; exec 9>f; flock 9; touch has; wait_until_true test -e go; flock -s 9; mode >mode; run_until_ended'
	wait_until 10 file_exists has
	in_background env RLOCK_RUNTIME_DIR="$PWD/there" rlock flock f touch written
	wait_until 10 has_waiters "$FILE"
	touch go
	wait_until 10 test -s mode
	assert_equal "$(<mode)" read
	assert [ ! -e written ]
	end_commands
	wait_until 20 file_exists written
}

@test "a write lock after a read lock releases the read lock first, which is lost if the write lock is busy" {
	script 'exec 9>f; flock -s 9; mode; flock -n 9; echo $?; mode
		flock -s 9; other_machine -s f sh -c "touch in; until [ -e out ]; do sleep 0.02; done" & wait_until_true test -e in
		flock -n -x 9; echo $?; find "$RLOCK_RUNTIME_DIR" -name "hold-*" | wc -l; touch out; wait; held' 'read 0 write 1 0 0'
}

@test "the hold of a descriptor is found after its file, or the directory, was moved or deleted" {
	script 'exec 9>f; flock 9; mv f g; other_machine -n f true; echo $?; flock -u 9; echo $?; held' '1 0 0'
	script 'exec 9>f; flock 9; rm f; flock -u 9; echo $?; held' '0 0'
	script 'exec 9>f; flock 9; rm f; : >f; flock -u 9; echo $?; held' '0 0'
	FILE=$PWD/d/f
	script 'mkdir d; exec 9>d/f; flock 9; rm -r d; flock -u 9; echo $?; redis-cli -s "$SERVER_SOCKET" exists "$PWD/d/f"' '0 0'
}

@test "a descriptor that is locked again keeps its lock's name when the file was renamed" {
	script 'exec 9>f; flock -s 9; mv f g; flock -x 9; mode; flock -s 9; mode; rm g; flock 9; echo $?; mode
		redis-cli -s "$SERVER_SOCKET" exists "$PWD/g"' 'write read 0 write 0'
}

@test "after the renewer was killed a second call acquires the lock again" {
	script 'exec 9>f; flock 9; kill -KILL "$(sed -n "s/^state \([0-9]*\) .*/\1/p" "$RLOCK_RUNTIME_DIR"/hold-*)"
		flock -n 9; echo $?; held' '0 1'
}

# ---- which descriptors can be locked, and which process owns the lock ----

@test "a pipe and a deleted file are refused" {
	run -64 sh -c 'echo | rlock flock 0'
	assert_output --regexp '^rlock: descriptor 0 '
	run -64 sh -c 'exec 9>gone; rm gone; rlock flock 9'
	assert_output --regexp '^rlock: descriptor 9: .*deleted'
	# The file still exists under another name. But a new file may get the name that would be locked, so rlock must refuse.
	run -64 sh -c 'exec 9>gone; ln gone other; rm gone; rlock flock --fd 9 true'
	assert_output --regexp '^rlock: descriptor 9: .*deleted'
	run -0 sh -c 'exec 9>gone; rm gone; rlock flock -u 9'
	run -64 sh -c 'rlock flock --fd 9 9>f'
	assert_output 'flock: missing command'
}

@test "without kcmp(2) descriptors are compared by /proc" {
	needs_refuse
	script 'exec 9>f; flock 9; held; exec 9>&-; soon_free' 1 refuse refused flock kcmp EPERM 1+
	run -0 grep -c kcmp refused
}

@test "a descriptor that another process has opened itself is not taken for the caller's; process 1 may own a lock" {
	script 'exec 9>f; sh -c ". ./functions; exec 9>f; flock 9; held"; soon_free; echo end' '1 end'
	needs_namespaces
	script 'exec 9>f; flock 9; echo $?; held; flock -u 9; held' '0 1 0' unshare --fork --pid --mount-proc
}

@test "when the lock is lost, its process gets SIGTERM" {
	echo 'ttl = 9s' >conf
	in_background env RLOCK_CONFIG="$PWD/conf" bash -c '. ./functions; exec 9>f; flock 9; touch has; run_until_ended'
	wait_until 10 file_exists has
	redis del "$FILE"
	ended_with 143
	end_commands
}
