#!/usr/bin/env bats
# A lock without a command and without --pid: which callers are given it, and what the others are told. The
# callers here are child processes.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- helpers ----

# The shells that are installed, one a line. Some behave otherwise: subshells of ksh93 are no processes.
shells() {
	local shell
	for shell in bash dash 'busybox sh' mksh yash; do
		! command -v "${shell%% *}" >/dev/null || echo "$shell"
	done
}

# is_given TEXT: a script of that text has the lock when it asks for it itself.
is_given() {
	local shell
	while read -r shell; do
		# shellcheck disable=SC2086
		run -0 --separate-stderr timeout 20 $shell -c "$1; :"
		assert_equal "$shell: $output" "$shell: 1"
		wait_until 5 no_keys
	done < <(shells)
}

# is_refused TEXT [LINE]: a call inside that text is refused with 64, and shown the line.
is_refused() {
	local shell
	while read -r shell; do
		# shellcheck disable=SC2086
		run -0 timeout 20 $shell -c "$1; :"
		assert_line 'status 64'
		assert_line --regexp "^rlock: a: .*: try: ${2:-rlock lock --pid \\\$\\\$ a}\$"
		no_keys
	done < <(shells)
	no_hold_files
}

# ---- wrappers ----

@test "a lock behind a wrapper that ends with the call is refused, and the right line is shown" {
	is_refused 'timeout 10 rlock lock a; echo "status $?"'
	is_refused 'timeout 10 rlock fair -n a; echo "status $?"' 'rlock fair --pid \$\$ -n a'
	printf a >names
	run -123 xargs rlock lock <names
	assert_output --partial 'try: rlock lock --pid $$ a'
	no_keys
}

@test "the line that is shown keeps the options and quotes the name" {
	run -64 timeout 10 rlock wlock --wait 3s -t 10s "my lock; it's"
	assert_output --partial "try: rlock wlock --pid \$\$ --wait 3s -t 10s 'my lock; it'\\''s'"
}

@test "behind a wrapper the line that is shown locks for the script" {
	run -0 bash -c '
		said=$(timeout 10 rlock lock a 2>&1)
		eval "timeout 10 ${said##*: try: }"
		$REDIS exists a
	'
	assert_output 1
}

@test "what becomes the program that it runs is no wrapper" {
	is_given 'env A=1 rlock lock a; $REDIS exists a'
	is_given 'nice rlock lock a; $REDIS exists a'
}

@test "a line of a makefile is refused, and one that goes on has the lock" {
	printf 'short:\n\trlock lock a\nlong:\n\trlock lock a; $(REDIS) exists a\n' >Makefile
	run -2 make -s short
	assert_output --partial 'try: rlock lock a -- COMMAND'
	no_keys
	run -0 make -s long
	assert_output 1
}

@test "a text of sh -c that is the call alone is refused where the shell stays for it" {
	local shell
	while read -r shell; do
		# A shell that becomes the call leaves the lock to the script.
		run -0 bash -c "$shell -c 'rlock lock a'; echo \"\$? \$(\$REDIS exists a)\""
		assert_line --regexp '^(0 1|64 0)$'
		wait_until 5 no_keys
	done < <(shells)
	# No shell becomes the call while it has something to do behind it.
	run -64 bash -c 'trap : EXIT; rlock lock a'
	assert_output --partial '--pid $PPID): try: rlock lock --pid $$ a'
	no_keys
	run -0 bash -c "bash -c 'trap : EXIT; rlock lock --pid \$PPID a'; \$REDIS exists a"
	assert_output 1
}

# ---- subshells ----

@test "a subshell is refused, and told of --pid" {
	is_refused '(rlock lock a; echo "status $?")'
	is_refused '{ rlock lock a; echo "status $?"; } & wait'
	is_refused 'x=$(rlock lock a 2>&1; echo "status $?"); echo "$x"'
	is_refused 'x=$( (rlock lock a 2>&1; echo "status $?") ); echo "$x"'
}

@test "a subshell of a pipeline's member is refused" {
	is_refused '{ (rlock lock a 2>&1; echo "status $?"); :; } | cat'
}

@test "a subshell of bash is told of BASHPID, by which it has the lock itself" {
	run -0 timeout 20 bash -c '(rlock lock a 2>&1; :); (rlock lock --pid $BASHPID a; $REDIS exists a)
		until [ "$($REDIS exists a)" = 0 ]; do :; done'
	assert_output --partial '--pid $BASHPID'
	assert_line 1
}

# ---- callers that go on ----

@test "a script whose output is a pipe has the lock" {
	printf '%s\n' 'rlock lock a' '$REDIS exists a' >script
	is_given 'sh ./script | cat'
	run -0 bash -c 'exec > >(cat); rlock lock a; $REDIS exists a'
	assert_output 1
}

@test "a function whose output is piped has the lock" {
	is_given 'main() { rlock lock a; $REDIS exists a; }; main | cat'
}

@test "what reads from a pipeline has the lock" {
	is_given 'echo a | while read -r name; do rlock lock "$name"; $REDIS exists "$name"; done'
	is_given ': | eval "rlock lock a; \$REDIS exists a"'
}

@test "a call that is alone in \$( ), or in the background, leaves the lock to the script" {
	is_given 'token=$(rlock lock --fence a); $REDIS exists a; $REDIS del "redisson_lock_token:{a}" >/dev/null'
	is_given 'rlock lock a & wait; $REDIS exists a'
}

@test "a forked worker that is no shell has the lock" {
	run -0 python3 -IS -c '
import os, subprocess, sys
worker = os.fork()
if worker == 0:
    subprocess.run(["rlock", "lock", "a"], check=True)
    subprocess.run(os.environ["REDIS"].split() + ["exists", "a"])
    os._exit(0)
sys.exit(os.waitpid(worker, 0)[1])
'
	assert_output 1
}

@test "a shell that was started by a shell of the same command line has the lock" {
	printf '%s\n' 'if [ -z "$INNER" ]; then INNER=yes sh ./script; exit; fi' 'rlock lock a' '$REDIS exists a' >script
	run -0 sh ./script
	assert_output 1
}
