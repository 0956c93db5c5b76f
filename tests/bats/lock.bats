#!/usr/bin/env bats
# bats file_tags=long
# Locks without a command: a script locks and unlocks, or ends, or loses its lock. Also the runtime directory with the hold files. The
# scripts are child processes; they call redis-cli by $REDIS. lock_unlock.bats covers re-entering, several names
# and other ways to release.

load ../lib/usual
load ../lib/scripting

# ---- held, and released ----

# The renewer keeps none of the caller's descriptors, so $( ) ends although the renewer still runs.
@test "a lock acquired for a script, also in \$( ), is held until the script unlocks it; nothing is printed and nothing is left" {
	for shell in bash dash; do
		run -0 timeout 60 "$shell" -c '
			x=$(cd /; rlock lock --pid $$ a 2>&1 7>&1 8>&1; :)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
			exit
		'
		assert_output $'1\n0'
	done
	no_keys
	wait_until 5 no_rlock_runs
	no_hold_files
}

@test "a script that ends or is killed without an unlock frees its lock soon, also when its children run on" {
	script_prints '1' 'rlock lock --pid $$ a; $REDIS exists a; run_until_ended >/dev/null 2>&1 & exit 0'
	wait_until 5 is_free a
	wait_until 5 no_hold_files
	end_commands
	rm end-commands
	start_locking_script lock a
	kill -KILL "$PID"
	wait_until 5 no_keys
	wait_until 5 no_hold_files
}

@test "at-least in the configuration file does not keep the lock of a script that has ended" {
	echo 'at-least = 1m' >conf
	chmod 600 conf
	RLOCK_CONFIG=$PWD/conf run -0 sh -c 'rlock lock --pid $$ a'
	wait_until 5 is_free a
}

@test "lock waits until it is acquired, or until the process that it is for ends, and then leaves no trace" {
	hold_by_foreign_client a
	redis pexpire a 300000 >/dev/null
	run -75 rlock lock --pid $$ -n a
	assert_output ''
	run_timed_out 75 rlock lock --pid $$ -w 1s a
	wait_until 5 no_rlock_runs
	in_background run_until_ended
	local whose=$PID
	in_background rlock lock --pid "$whose" a 2>stderr
	wait_until 5 has_waiters a
	kill -KILL "$whose"
	ended_with 75
	assert_equal "$(<stderr)" "rlock: a: gave up waiting: process $whose has ended"
	wait_until 5 no_rlock_runs
	no_hold_files
	assert_equal "$(redis dbsize)" 1
	start_script 'rlock lock --pid $$ a; touch "$READY"; run_until_ended'
	wait_until 5 has_waiters a
	run -1 file_exists "$READY"
	release_by_foreign_client a
	wait_until 5 file_exists "$READY"
	is_held a
}

# ---- the runtime directory ----

@test "only hold files of dead processes are removed" {
	start_locking_script lock b
	find_only_renewer
	kill -KILL "$RENEWER"
	kill -KILL "$PID"
	ended_with 137
	assert_equal "$(count_hold_files)" 1
	redis del b 'rlock_holds:{b}' >/dev/null
	start_locking_script lock a
	cd "$RLOCK_RUNTIME_DIR"
	touch hold-999999999-1-00000000000000000000000000000000
	# A temporary file of a process that was killed while writing, and one of a process that is writing.
	touch -d '2 hours ago' new-999999999-00000000000000000000000000000000
	touch new-1-00000000000000000000000000000000 hold-and-other-things
	run -0 bash -c 'rlock lock --pid $$ b; rlock unlock b; exit'
	run -0 ls
	assert_output --regexp "^hold-$PID-[^ ]*"$'\nhold-and-other-things\nnew-1-00000000000000000000000000000000$'
}

# write_elsewhere FILE FIELD: writes the hold file FILE as from another boot (FIELD 2), PID namespace (3) or time namespace (4).
write_elsewhere() {
	awk -v field="$2" '$1 == "place" { $field = field == 2 ? "1b4e28ba-2fa1-11d2-883f-0016d3cca427" : $field + 1 } 1' original >"$1"
	refute cmp -s "$1" original
}

@test "a hold file of another host, virtual machine or time namespace is neither used nor removed" {
	local file field
	start_locking_script lock a
	file=$(echo "$RLOCK_RUNTIME_DIR"/hold-*)
	cp "$file" original
	for field in 2 3 4; do
		write_elsewhere "$file" "$field"
		run -1 rlock unlock --pid "$PID" a
		run -75 rlock lock --pid "$PID" -n a
		is_held a
	done
	cp original "$file"
	find_only_renewer
	kill -KILL "$RENEWER"
	kill -KILL "$PID"
	ended_with 137
	for field in 2 3 4; do
		write_elsewhere "$file" "$field"
		run -1 rlock unlock a
		assert_equal "$(count_hold_files)" 1
	done
	cp original "$file"
	run -1 rlock unlock a
	no_hold_files
}

refuses_runtime_directory() {
	local words
	for words in "lock --pid $$ a" 'unlock a'; do
		# shellcheck disable=SC2086
		run -71 rlock $words
		assert_one_line "^rlock: .*${RLOCK_RUNTIME_DIR%/}"
	done
	no_keys
	wait_until 5 no_rlock_runs
}

@test "the runtime directory is created with mode 700; one of another user, open to others, a link or a file is refused" {
	script_prints '700 600' 'umask 0; rlock lock --pid $$ a; stat -c %a "$RLOCK_RUNTIME_DIR" "$RLOCK_RUNTIME_DIR"/*'
	wait_until 5 no_rlock_runs
	chmod 750 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	chmod 700 "$RLOCK_RUNTIME_DIR"
	if [ "$(id -u)" = 0 ]; then
		chown 65534 "$RLOCK_RUNTIME_DIR"
		refuses_runtime_directory
		chown 0 "$RLOCK_RUNTIME_DIR"
	fi
	mv "$RLOCK_RUNTIME_DIR" elsewhere
	ln -s "$PWD/elsewhere" "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR/ refuses_runtime_directory
	rm "$RLOCK_RUNTIME_DIR"
	touch "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	RLOCK_RUNTIME_DIR=/proc/rlock run -71 rlock lock --pid $$ a
	assert_one_line '^rlock: .*/proc/rlock'
}

@test "with a runtime directory that is read-only or full, no lock stays held" {
	local how
	unshare -m true 2>/dev/null || skip 'no mount namespaces here'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	for how in 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"' 'mount -t tmpfs -o mode=700,nr_inodes=1 none "$1"' \
		'mount -t tmpfs -o mode=700,size=4k none "$1" && head -c 4096 /dev/zero >"$1/full"'; do
		run -71 unshare -m sh -c "$how || exit 9; rlock lock --pid \$\$ a" sh "$RLOCK_RUNTIME_DIR"
		assert_one_line "^rlock: .*$RLOCK_RUNTIME_DIR"
		no_keys
		wait_until 5 no_rlock_runs
	done
}

@test "--pid with the id of a thread is refused, and the message names its process" {
	mkfifo thread
	in_background python3 -IS -c '
import threading
thread = threading.Thread(target=lambda: open("thread").read())
thread.start()
print(thread.native_id, file=open("id", "w"), flush=True)
thread.join()'
	wait_until 10 test -s id
	run -64 rlock lock --pid "$(<id)" a
	assert_output "rlock: a: --pid $(<id) is a thread; give its process: --pid $PID"
	: >thread
	ended_with 0
}

# ---- lost locks ----

# is_marked_lost 0|1: whether the only hold file says that the lock is lost (1).
is_marked_lost() {
	grep -qsx "state .* $1 [01]" "$RLOCK_RUNTIME_DIR"/hold-*
}

# lose_lock [STATUS]: deletes the lock of the script once it has created READY; the script must then exit with STATUS.
lose_lock() {
	wait_until 10 file_exists "$READY"
	redis del a >/dev/null
	[ -z "${1-}" ] || ended_with "$1"
}

@test "a lost lock terminates the script's processes in its session, and no daemon in another session" {
	start_script 'rlock lock --pid $$ -t 6s a
		sh -c "run_until_ended & echo \$! >child; wait" &
		setsid sh -c "run_until_ended & echo \$! >far-child; echo \$\$ >far; wait" &
		until [ -s far ] && [ -s child ]; do :; done
		touch "$READY"; wait'
	lose_lock 143
	wait_until 5 is_gone "$(<child)"
	wait_until 5 no_rlock_runs
	is_running "$(<far)"
	is_running "$(<far-child)"
}

@test "--on-lost kill also kills a command that the script runs under another lock" {
	start_script 'trap "" TERM
		rlock lock --pid $$ -t 6s --grace 100ms --on-lost kill a
		rlock run b -- sh -c "echo \$\$ >child; touch \"$READY\"; exec run_until_ended"'
	lose_lock 137
	wait_until 5 is_gone "$(<child)"
	wait_until 5 no_rlock_runs
}

@test "a renewer whose process has ended uses almost no processor time while the server does not answer" {
	start_script 'rlock lock --pid $$ -t 30s a; touch "$READY"; run_until_ended'
	wait_until 10 file_exists "$READY"
	find_only_renewer
	kill -s STOP "$SERVER_PID"
	kill -s KILL "$PID"
	wait_until 5 is_gone "$PID"
	before=$(processor_ticks "$RENEWER")
	pause_for 2
	# A busy loop would have used about two hundred ticks in this time.
	(($(processor_ticks "$RENEWER") - before < 50))
	kill -s CONT "$SERVER_PID"
	wait_until 10 is_free a
}

# processor_ticks PID: prints the processor time of the process itself, in ticks of 10 ms.
processor_ticks() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# In a container the session's leader can be in an outer PID namespace; then the kernel reports its pid as 0.
@test "--on-lost kill kills a script that ignores SIGTERM, and no daemon of another session, although the session's leader is not visible" {
	needs_namespaces
	in_background unshare --fork --pid --mount-proc --kill-child bash -c '
		bash -c '\''trap "" TERM; rlock lock --pid $$ -t 6s --grace 100ms --on-lost kill a
			setsid sh -c "echo \$\$ >far; exec run_until_ended" & run_until_ended'\'' & script=$!
		until [ -s far ]; do :; done
		$REDIS del a >/dev/null
		wait $script; echo "script $?" >ended
		while pgrep -x rlock-renewer-p >/dev/null; do :; done
		! kill -0 "$(<far)" || echo "far runs" >>ended
		echo end >>ended'
	wait_until 15 grep -qsx end ended
	assert_equal "$(<ended)" $'script 137\nfar runs\nend'
	end_commands
}

@test "a script whose lock is lost gets the signal of --signal, can clean up, and unlock exits with 76" {
	start_script 'trap "rlock unlock a; exit \$?" USR1; trap "exit 4" TERM
		rlock lock --pid $$ -t 6s --signal USR1 a; touch "$READY"; run_until_ended'
	lose_lock 76
	no_hold_files
}

@test "with --on-lost ignore the script continues, and unlock exits with 76" {
	start_script 'rlock lock --pid $$ -t 3s --on-lost ignore a; touch "$READY"; run_until_ended; rlock unlock a; exit'
	lose_lock
	wait_until 5 is_marked_lost 1
	is_running "$PID"
	end_commands
	ended_with 76
}

@test "an interactive shell survives the loss of its lock, and unlock exits with 76; its children are terminated" {
	mkfifo typed
	exec 9<>typed
	in_background sh -c 'exec bash --norc --noprofile -i <typed >output 2>&1'
	echo 'rlock lock --pid $$ -t 3s a; sleep 60 & echo $! >child' >&9
	wait_until 5 test -s child
	redis del a >/dev/null
	wait_until 5 is_marked_lost 1
	wait_until 5 is_gone "$(<child)"
	echo 'rlock unlock a; echo "status $?"; exit' >&9
	wait_until 5 is_gone "$PID"
	exec 9>&-
	run -0 cat output
	assert_output --partial 'status 76'
}

# ---- a fixed lease ----

@test "a fixed lease is renewed by rlock renew only, and its script gets SIGTERM before the lease ends" {
	# Open the pipe before the loop: a "<(...)" within it would fail in bash if the trap runs at that moment.
	start_script 'exec {nothing}<> <(:); trap "\$REDIS pttl a >told" TERM; rlock lock --pid $$ -l 20s a
		until [ -s told ]; do read -r -t 0.01 -u "$nothing"; done; touch "$READY"; run_until_ended'
	local start left_ms told_ms
	wait_until 5 is_held a
	wait_until 20 ttl_is_below a 12500
	start=$(now_ms) left_ms=$(redis pttl a)
	run -0 rlock renew --pid "$PID" a
	assert_output --regexp '^(20s|1[89]s)$'
	wait_until 25 test -s told
	told_ms=$(<told)
	# The signal comes before the end of the lease, and at most a third of the lease before it.
	((told_ms > 0 && told_ms < 6900))
	# Without the renewal the signal would have come before the end of the time that was left then.
	(($(now_ms) - start > left_ms))
	wait_until 10 is_free a
	is_running "$PID"
}
