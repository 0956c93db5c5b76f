#!/usr/bin/env bats
# bats file_tags=long
# Locks without a command: a script locks, works, and unlocks, or ends, and the lock is free, or lost; and the runtime directory,
# where each has its hold file. The scripts are child processes, and call redis-cli by $REDIS. Re-entering, several names and
# other releases are the business of lock_unlock.bats.

load ../lib/usual
load ../lib/scripting
load ../lib/holding

# What PID was called with begins so: a shell's -c is not met.
is_program() {
	name_of "$1" && [ "$NAME_OF_PROCESS" = "$2" ]
}

# ---- held, and released ----

@test "a lock taken for a script, in \$( ) too, is held until the script unlocks it, without a word, and nothing is left" {
	for shell in bash dash; do
		run -0 timeout 60 "$shell" -c '
			x=$(cd /; rlock lock --pid $$ a; :)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
			exit
		'
		assert_output "1
0"
	done
	no_keys
	nothing_runs
	no_hold_files
}

@test "a script that is killed with SIGKILL frees its lock soon" {
	start_locking_script lock a
	kill -KILL "$PID"
	wait_until 5 is_free a
	wait_until 5 no_keys
	wait_until 5 no_hold_files
}

@test "a script that ends without an unlock frees its lock soon, whatever it has started" {
	prints '1' 'rlock lock --pid $$ a; $REDIS exists a; until_let_go >/dev/null 2>&1 & exit 0'
	wait_until 5 is_free a
	wait_until 5 no_hold_files
	let_go
}

@test "a script that goes on as another program keeps its lock" {
	start_script 'rlock lock --pid $$ a; exec until_let_go'
	wait_until 5 is_held a
	wait_until 5 is_program "$PID" until_let_go
	is_held a
	let_go
	wait_until 5 is_free a
}

@test "a lock for a script is renewed for as long as the script runs" {
	start_locking_script lock -t 3s a
	for _ in 1 2; do
		redis pexpire a 2250 >/dev/null
		wait_until 5 ttl_is_above a 2250
	done
	is_running "$PID"
}

@test "in a pipeline lock returns, for its renewer keeps none of the caller's descriptors" {
	prints '2' 'rlock lock --pid $$ a 2>&1 | cat; rlock lock --pid $$ a 7>&1 8>&1 | cat; $REDIS hvals a'
}

# ---- waiting ----

@test "lock waits for its turn" {
	hold_in_background a
	start_script 'rlock lock --pid $$ a; touch "$READY"; until_let_go'
	wait_until 5 has_waiters a
	run -1 file_exists "$READY"
	redis del a 'rlock_holds:{a}' >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	wait_until 5 file_exists "$READY"
	is_held a
}

@test "a lock that is not acquired leaves no trace" {
	held_by_stranger a
	run -75 rlock lock --pid $$ -n a
	assert_output ''
	run -75 rlock lock --pid $$ -w 50ms a
	nothing_runs
	no_hold_files
	assert_equal "$(redis dbsize)" 1
}

@test "the wait ends when the process ends that it is for, and leaves no trace" {
	held_by_stranger a
	in_background until_let_go
	local whose=$PID
	in_background rlock lock --pid "$whose" a 2>said
	wait_until 5 has_waiters a
	kill -KILL "$whose"
	ended_with 75
	assert_equal "$(<said)" "rlock: a: gave up waiting: process $whose has ended"
	nothing_runs
	no_hold_files
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	no_keys
}

# ---- the runtime directory ----

@test "the runtime directory is made for the user alone" {
	prints '700 600' 'umask 0; rlock lock --pid $$ a; stat -c %a "$RLOCK_RUNTIME_DIR" "$RLOCK_RUNTIME_DIR"/*'
}

@test "only hold files of dead processes are swept away" {
	start_locking_script lock -t 1s b
	kill -KILL "$(renewers)"
	kill -KILL "$PID"
	ended_with 137
	assert_equal "$(count_hold_files)" 1
	wait_until 5 is_free b
	start_locking_script lock a
	touch "$RLOCK_RUNTIME_DIR/hold-999999999-1-00000000000000000000000000000000"
	# One that was killed while it wrote, and one that writes still.
	touch -d '2 hours ago' "$RLOCK_RUNTIME_DIR/new-999999999-00000000000000000000000000000000"
	touch "$RLOCK_RUNTIME_DIR/new-1-00000000000000000000000000000000"
	touch "$RLOCK_RUNTIME_DIR/hold-and-other-things"
	run -0 bash -c 'rlock lock --pid $$ b; rlock unlock b; exit'
	run -0 ls "$RLOCK_RUNTIME_DIR"
	assert_equal "$(grep -c '^hold-[0-9]' <<<"$output")" 1
	assert_line --regexp "^hold-$PID-"
	assert_line hold-and-other-things
	assert_line new-1-00000000000000000000000000000000
	refute_line --partial -999999999-
}

# write_elsewhere FIELD: as if the one hold file came from another boot (2), pid namespace (3) or time namespace (4).
write_elsewhere() {
	cp "$1" "$BATS_TEST_TMPDIR/original"
	awk -v field="$2" '$1 == "place" { $field = field == 2 ? "1b4e28ba-2fa1-11d2-883f-0016d3cca427" : $field + 1 } 1' \
		"$BATS_TEST_TMPDIR/original" >"$1"
	refute cmp -s "$1" "$BATS_TEST_TMPDIR/original"
}

@test "a hold file of another host, virtual machine or time namespace is not used, and not swept away" {
	local file field
	start_locking_script lock a
	file=$(echo "$RLOCK_RUNTIME_DIR"/hold-*)
	for field in 2 3 4; do
		write_elsewhere "$file" "$field"
		run -1 rlock unlock --pid "$PID" a
		run -75 rlock lock --pid "$PID" -n a
		is_held a
		cp "$BATS_TEST_TMPDIR/original" "$file"
	done
	kill -KILL "$(renewers)"
	kill -KILL "$PID"
	ended_with 137
	for field in 2 3 4; do
		write_elsewhere "$file" "$field"
		run -1 rlock unlock a
		assert_equal "$(count_hold_files)" 1
		cp "$BATS_TEST_TMPDIR/original" "$file"
	done
	run -1 rlock unlock a
	no_hold_files
}

refuses_runtime_directory() {
	local words
	for words in "lock --pid $$ a" 'unlock a'; do
		# shellcheck disable=SC2086
		run -71 rlock $words
		assert_one_line '^rlock: '
		assert_output --partial "${RLOCK_RUNTIME_DIR%/}"
	done
	no_keys
	nothing_runs
}

@test "a runtime directory that others may enter is refused, and a link or a file in its place, and one that can't be made" {
	mkdir -m 755 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	rmdir "$RLOCK_RUNTIME_DIR"
	touch "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	rm "$RLOCK_RUNTIME_DIR"
	mkdir -m 700 "$BATS_TEST_TMPDIR/elsewhere"
	ln -s "$BATS_TEST_TMPDIR/elsewhere" "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR/ refuses_runtime_directory
	RLOCK_RUNTIME_DIR=/proc/rlock run -71 rlock lock --pid $$ a
	assert_one_line '^rlock: .*/proc/rlock'
	no_keys
}

@test "a runtime directory that is another user's is refused" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a directory away'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	chown 65534 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
}

@test "with a runtime directory that can't be written to, or has no room for a file, nothing stays locked" {
	local how read_only='mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	if [ "$(id -u)" = 0 ]; then
		unshare -m true 2>/dev/null || skip 'no mount namespaces here'
		for how in "$read_only" 'mount -t tmpfs -o mode=700,nr_inodes=1 none "$1"' \
			'mount -t tmpfs -o mode=700,size=4k none "$1" && head -c 4096 /dev/zero >"$1/full"'; do
			run -71 unshare -m sh -c "$how || exit 9; rlock lock --pid \$\$ a" sh "$RLOCK_RUNTIME_DIR"
			assert_one_line '^rlock: .+$'
			no_keys
		done
	else
		chmod 500 "$RLOCK_RUNTIME_DIR"
		run -71 rlock lock --pid $$ a
		assert_one_line '^rlock: .+$'
	fi
	assert_output --partial "$RLOCK_RUNTIME_DIR"
	no_keys
	nothing_runs
}

# In the hold file of the only lock: 1 when the renewer has found it lost.
is_marked_lost() {
	grep -qsx "state .* $1 [01]" "$RLOCK_RUNTIME_DIR"/hold-*
}

# ---- lost ----

@test "a lost lock ends all that the script has started in its session, and no daemon of another one" {
	start_script 'rlock lock --pid $$ -t 3s a
		sh -c "until_let_go & echo \$! >\"$1/child\"; wait" &
		setsid sh -c "until_let_go & echo \$! >\"$1/far-child\"; echo \$\$ >\"$1/far\"; wait" &
		until [ -s "$1/far" ] && [ -s "$1/child" ]; do :; done
		touch "$READY"; wait' "$BATS_TEST_TMPDIR"
	wait_until 10 file_exists "$READY"
	redis del a >/dev/null
	ended_with 143
	wait_until 5 is_gone "$(cat "$BATS_TEST_TMPDIR/child")"
	wait_until 5 nothing_runs
	is_running "$(cat "$BATS_TEST_TMPDIR/far")"
	is_running "$(cat "$BATS_TEST_TMPDIR/far-child")"
}

# As in a container: the kernel then says 0 of it.
@test "where a process of an outer PID namespace leads the session, a daemon of another one is not killed" {
	needs_namespaces
	in_background unshare --fork --pid --mount-proc --kill-child bash -c '
		bash -c '\''rlock lock --pid $$ -t 1s a; setsid until_let_go & echo $! >far; until_let_go'\'' & script=$!
		until [ -s far ]; do :; done
		$REDIS del a >/dev/null
		wait $script; echo "script $?" >ended
		while pgrep -x rlock-renewer >/dev/null; do :; done
		! kill -0 "$(cat far)" || echo "far runs" >>ended
		echo end >>ended'
	wait_until 15 grep -qsx end ended
	run -0 cat ended
	assert_output $'script 143\nfar runs\nend'
	let_go
}

@test "with --on-lost kill a script that ignores SIGTERM is killed, and no daemon of another session" {
	start_script 'trap "" TERM; rlock lock --pid $$ -t 3s --grace 100ms --on-lost kill a
		setsid until_let_go & echo $! >"$1/far"
		touch "$READY"; until_let_go' "$BATS_TEST_TMPDIR"
	wait_until 10 file_exists "$READY"
	redis del a >/dev/null
	ended_with 137
	wait_until 5 nothing_runs
	is_running "$(cat "$BATS_TEST_TMPDIR/far")"
}

@test "a script can clean up when its lock is lost, and learns it from unlock too" {
	start_script 'trap "rlock unlock a; exit \$?" TERM
		rlock lock --pid $$ -t 1s a; touch "$READY"; until_let_go'
	wait_until 5 file_exists "$READY"
	redis del a >/dev/null
	ended_with 76
	no_hold_files
}

@test "with --on-lost ignore the script runs on, and unlock says 76" {
	start_script 'rlock lock --pid $$ -t 1s --on-lost ignore a; touch "$READY"; until_let_go; rlock unlock a; exit'
	wait_until 5 file_exists "$READY"
	redis del a >/dev/null
	wait_until 5 is_marked_lost 1
	is_running "$PID"
	let_go
	ended_with 76
}

@test "with --signal a script gets that signal when its lock is lost" {
	start_script 'trap "exit 3" USR1; trap "exit 4" TERM
		rlock lock --pid $$ -t 1s --signal USR1 a; touch "$READY"; until_let_go'
	wait_until 5 file_exists "$READY"
	redis del a >/dev/null
	ended_with 3
}

@test "an interactive shell survives the loss of its lock, and learns it from unlock" {
	local typed=$BATS_TEST_TMPDIR/typed said=$BATS_TEST_TMPDIR/said child
	mkfifo "$typed"
	exec 9<>"$typed"
	in_background sh -c 'exec bash --norc --noprofile -i <"$0" >"$1" 2>&1' "$typed" "$said"
	echo 'rlock lock --pid $$ -t 1s a' >&9
	wait_until 5 is_marked_lost 0
	echo 'sleep 60 &' >&9
	wait_until 5 pgrep -P "$PID" -x sleep
	child=$(pgrep -P "$PID" -x sleep)
	redis del a >/dev/null
	wait_until 5 is_marked_lost 1
	# Before the shell was told to end, all that it starts is told, too.
	wait_until 5 is_gone "$child"
	echo 'rlock unlock a; echo "status $?"; exit' >&9
	wait_until 5 is_gone "$PID"
	exec 9>&-
	run -0 cat "$said"
	assert_output --partial 'status 76'
}

# ---- a fixed lease ----

@test "a lock with a fixed lease is not renewed, and its script gets SIGTERM before it ends" {
	# A trap that runs while bash reads a "<(...)" of its own can't be read.
	start_script 'exec {nothing}<> <(:); trap ": >\"$1\"" TERM; rlock lock --pid $$ -l 8s a
		until [ -e "$1" ]; do read -r -t 0.01 -u "$nothing"; done; touch "$READY"; until_let_go' \
		"$BATS_TEST_TMPDIR/told"
	wait_until 5 is_held a
	wait_until 12 file_exists "$BATS_TEST_TMPDIR/told"
	is_held a
	ttl_is_below a 2800
	wait_until 5 is_free a
	is_running "$PID"
}

@test "renew pushes a fixed lease forward, and the script is left alone for so long" {
	start_locking_script lock -l 9s a
	local start
	wait_until 9 ttl_is_below a 6000
	start=$(now_ms)
	run -0 rlock renew --pid "$PID" a
	assert_output --regexp '^(9s|8\.[0-9]+s)$'
	ended_with 143
	# Without the renewal it would have been told less than four seconds after it.
	(($(now_ms) - start > 4500))
}
