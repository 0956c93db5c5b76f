#!/usr/bin/env bats
# rlock flock by descriptor: the lock belongs to the process that has it open, and is released when that ends or closes it, in
# whatever way, or by -u.

# `run` sets what a program said.
# shellcheck disable=SC2154

load ../lib/usual

setup() {
	directory_setup
	FILE=$(realpath -m f)
	mkdir link
	ln -s "$RLOCK_BIN" link/flock
	# For the scripts: held prints whether the lock is held, soon_free and soon_held whether that comes true; rival is another
	# machine.
	cat >functions <<-END
		PATH=$PWD/link:$PATH
		held() { redis-cli -s '$SERVER_SOCKET' exists '$FILE'; }
		rival() { env -u RLOCK_HELD RLOCK_RUNTIME_DIR='$PWD/there' flock "\$@"; }
		soon_free() { comes_true free || echo 'not free'; }
		mode() { redis-cli -s '$SERVER_SOCKET' hget '$FILE' mode; }
	END
	printf '%s\n' '#!/bin/sh' '. ./functions' '[ "$(held)" = 0 ]' >free
	chmod +x free
	PATH=$BATS_TEST_DIRNAME/../bin:$PWD:$PATH
}

# script TEXT LINES: of SHELLS, or of sh; each has printed these lines, with blanks between, and its lock is free.
script() {
	local shell
	for shell in ${SHELLS-sh}; do
		printf '. ./functions\n%s\n' "$1" >script
		run -0 timeout 60 "$shell" ./script
		assert_equal "${lines[*]}" "$2"
		wait_until 10 is_free "$FILE"
		wait_until 5 no_hold_files
	done
}

# ---- how it is locked ----

@test "a subshell holds the lock until it ends" {
	SHELLS='sh bash' script '( flock -n 9 || exit 1; held; rival -n f true; echo $? ) 9>f; soon_free; rival -n f echo free' '1 1 free'
}

@test "the subshell of flock(1) ends with 1 where another machine holds the lock" {
	in_background rlock flock f until_let_go
	wait_until 10 is_held "$FILE"
	run -1 --separate-stderr env RLOCK_RUNTIME_DIR="$PWD/there" bash -c '. ./functions; ( flock -n 9 || exit 1; echo ran ) 9>f'
	assert_equal "$output$stderr" ''
	run -5 --separate-stderr env RLOCK_RUNTIME_DIR="$PWD/there" bash -c '. ./functions; exec 4<>f; flock -E 5 -w .1 4'
	assert_equal "$output$stderr" ''
	let_go
}

@test "a path and a descriptor of it are one lock" {
	script 'exec 9>f; rival f sh -c "touch in; until [ -e out ]; do sleep 0.02; done" & comes_true test -e in
		flock -n 9; echo $?; touch out; flock 9; echo $?; rm in out; wait' '1 0'
}

@test "with --fd a command runs, and the lock stays with the descriptor" {
	script 'exec 8<>f; flock -n --fd 8 echo "1 2 3"; held; flock --fd 8 -c "exit 3"; echo $?; flock --fd 8 sh -c "kill -9 \$\$"; echo $?
		rival -n f true; echo $?' '1 2 3 1 3 137 1'
}

@test "a descriptor that the caller alone has is locked while its command runs" {
	script 'flock -n --fd 8 redis-cli -s "$SERVER_SOCKET" exists "$PWD/f" 8>f; flock -n 8 8>f; soon_free' '1'
}

@test "with -o the command does not get the descriptor" {
	script 'exec 8<>f; flock -o --fd 8 sh -c "test -e /proc/self/fd/8"; echo $?; flock -o --fd 7 sh -c "test -e /proc/self/fd/7" 7<>f
		echo $?; test -e /proc/self/fd/8; echo $?; held' '1 1 0 1'
}

# ---- how it is released ----

@test "a copy of the descriptor in another process does not keep the lock" {
	script 'exec 9>f; flock 9; until_let_go 2>/dev/null 3>&- & exec 9>&-; soon_free; kill $!; echo end' 'end'
}

@test "the lock is released when its process is killed" {
	in_background bash -c '. ./functions; exec 9>f; flock 9; touch has; until_let_go'
	wait_until 10 file_exists has
	is_held "$FILE"
	kill -KILL "$PID"
	wait_until 5 is_free "$FILE"
	let_go
}

@test "a directory is locked by its descriptor, which is looked at once a second" {
	mkdir -p d
	script 'exec 9<d; flock 9; rival -n d true; echo $?; exec 9<&-; rival -w 5 d echo free' '1 free'
}

# ---- locked again ----

@test "a read lock after a write lock is a downgrade, and no writer comes between" {
	in_background bash -c '. ./functions; exec 9>f; flock 9; touch has; comes_true test -e go; flock -s 9; mode; touch read; until_let_go'
	wait_until 10 file_exists has
	in_background env RLOCK_RUNTIME_DIR="$PWD/there" rlock flock f touch written
	wait_until 10 redis_says 1 zcard "rlock_queue:{$FILE}"
	touch go
	wait_until 10 file_exists read
	run -0 redis hget "$FILE" mode
	assert_output read
	assert [ ! -e written ]
	let_go
	wait_until 20 file_exists written
}

@test "a write lock after a read lock releases first, and a failed one has lost the read lock" {
	script 'exec 9>f; flock -s 9; mode; flock -n 9; echo $?; mode
		flock -s 9; rival -s f sh -c "touch in; until [ -e out ]; do sleep 0.02; done" & comes_true test -e in
		flock -n -x 9; echo $?; find "$RLOCK_RUNTIME_DIR" -name "hold-*" | wc -l; touch out; wait; held; rm in out' 'read 0 write 1 0 0'
}

@test "after the renewer was killed a second call holds the lock" {
	script 'exec 9>f; flock 9; kill -KILL "$(sed -n "s/^state \([0-9]*\) .*/\1/p" "$RLOCK_RUNTIME_DIR"/hold-*)"
		flock -n 9; echo $?; held' '0 1'
}

# ---- what is no descriptor of a file ----

@test "a pipe and a deleted file are refused" {
	run -64 --separate-stderr sh -c 'echo | rlock flock 0'
	assert_regex "$output$stderr" '^rlock: descriptor 0 '
	run -64 --separate-stderr sh -c 'exec 9>gone; rm gone; rlock flock 9'
	assert_regex "$output$stderr" '^rlock: descriptor 9: .*deleted'
	run -64 sh -c 'rlock flock --fd 9 9>f'
	assert_output 'flock: missing command'
}

# ---- whose it is ----

@test "where the kernel does not compare descriptions, what /proc says of them counts" {
	needs_refuse
	printf '%s\n' 'exec 9>f' 'x=$(rlock flock 9)' 'redis-cli -s "$SERVER_SOCKET" exists "$PWD/f"' 'exec 9>&-' >script
	run -0 refuse refused rlock kcmp EPERM 1+ sh ./script
	assert_output 1
	run -0 grep -c kcmp refused
	wait_until 10 is_free "$FILE"
}

@test "another process's own descriptor of the file is not taken for the caller's" {
	script 'exec 9>f; sh -c ". ./functions; exec 9>f; flock 9; held"; soon_free; echo end' '1 end'
}

@test "process 1 may own a lock" {
	unshare --fork --pid --mount-proc true 2>/dev/null || skip 'no pid namespaces here'
	run -0 unshare --fork --pid --mount-proc bash -c '. ./functions; exec 9>f; flock 9; echo $?; held; flock -u 9; held'
	assert_output $'0\n1\n0'
}

@test "when the lock is lost its process gets SIGTERM" {
	echo 'ttl = 3s' >conf
	in_background env RLOCK_CONFIG="$PWD/conf" bash -c '. ./functions; exec 9>f; flock 9; touch has; until_let_go'
	wait_until 10 file_exists has
	redis del "$FILE"
	ended_with 143
	let_go
}
