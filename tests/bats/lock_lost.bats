#!/usr/bin/env bats
# bats file_tags=long
# What happens to a script whose lock is lost, and one whose lock has a fixed lease, which ends.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/scripting
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

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

@test "a fixed lease that has ended is a lost lock for unlock" {
	start_script 'rlock lock --pid $$ -l 1s --on-lost ignore a; touch "$READY"; until_let_go; rlock unlock a; exit'
	wait_until 5 file_exists "$READY"
	wait_until 5 is_free a
	is_running "$PID"
	let_go
	ended_with 76
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
