#!/usr/bin/env bats
# bats file_tags=long
# On a terminal, under a shell with job control: Ctrl-C, Ctrl-\, Ctrl-Z, fg and reading what is typed are
# as without rlock.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { common_teardown; }

# in_terminal SHELL: standard input is what happens there; see ptyrun. The output is what was shown.
in_terminal() {
	case $1 in
	bash) set -- bash --norc --noprofile --noediting -i ;;
	*) set -- "$1" -i ;;
	esac
	run -0 ptyrun "$@"
}

# how_often TEXT: so often it stands in the output.
how_often() {
	grep -oF -e "$1" <<<"$output" | wc -l
}

# ---- Ctrl-C, Ctrl-\ ----

@test "Ctrl-C stops a shell's loop around rlock run" {
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send for i in 1 2 3; do rlock run a -- sh -c 'echo begun; exec sleep 60'; done; echo not reached
			expect begun
			key C
			expect ready> $
			send echo status $?
			expect status 130
			check comes_true test "$(ask_redis "$SERVER_SOCKET" dbsize)" = 0
		END
		[ "$(how_often begun)" = 1 ]
		refute_output --partial 'not reached'
		refute_output --partial 'rlock:'
	done
	wait_until 5 nothing_runs
}

@test "Ctrl-C stops a script's loop around rlock run" {
	cat >script <<-'END'
		for i in 1 2 3; do rlock run a -- sh -c 'echo begun; exec sleep 60'; done
		echo not reached
	END
	for shell in bash dash; do
		in_terminal "$shell" <<-END
			send $shell script
			expect begun
			key C
			expect ready> \$
			send echo status \$?
			expect status 130
		END
		[ "$(how_often begun)" = 1 ]
		refute_output --partial 'not reached'
	done
	wait_until 5 no_keys
}

@test "Ctrl-C ends a waiter, and the shell's loop with it" {
	hold_in_background a
	holder=$PID
	in_terminal bash <<-'END'
		send for i in 1 2; do rlock run a -- echo ran; done; echo not reached
		expect waiting for
		key C
		expect ready> $
		send echo status $?
		expect status 130
	END
	refute_output --partial 'not reached'
	is_running "$holder"
	[ "$(hold_count a)" = 1 ]
}

@test "each Ctrl-C reaches the command once" {
	in_terminal bash <<-'END'
		send rlock run a -- sh -c 'echo $PPID >keeper; exec log_signals'
		check comes_true grep -x ready signals
		key C
		check comes_true test '$(grep -cx INT signals)' = 1
		key C
		check comes_true test '$(grep -cx INT signals)' = 2
		key C
		check comes_true test '$(grep -cx INT signals)' = 3
		check kill -USR1 "$(cat keeper)"
		check comes_true grep -x USR1 signals
		check touch let-go
		expect ready> $
		send echo status $?
		expect status 0
	END
	[ "$(grep -cx INT signals)" = 3 ]
}

@test "Ctrl-\\ ends the command, and rlock by SIGQUIT" {
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send ulimit -c 0
			expect ready> $
			send rlock run a -- sh -c 'echo begun; exec sleep 60'
			expect begun
			key \
			expect ready> $
			send echo status $?
			expect status 131
		END
		wait_until 5 no_keys
	done
}

@test "a terminal that hangs up ends the command and frees the lock" {
	in_terminal bash <<-'END'
		send rlock run a -- sh -c 'echo $$ >pid; echo begun; exec sleep 60'
		expect begun
	END
	wait_until 5 is_gone "$(cat pid)"
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "a terminal that hangs up ends the command of an rlock that has no shell above it" {
	# As under `ssh -t host rlock run ...`: the kernel tells the leader of the session alone.
	cat >job <<-'END'
		echo 'ready> '
		exec rlock run a -- sh -c 'echo $$ >pid; echo begun; exec sleep 60'
	END
	run -0 ptyrun sh job <<-'END'
		expect begun
		hangup
	END
	wait_until 5 is_gone "$(cat pid)"
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "Ctrl-C at the moment when the command begins ends it" {
	needs_refuse
	# Before the renewer is forked, and before the command is.
	for number in 1 2; do
		rm -f stopped
		run -0 ptyrun bash -c '
			trap : INT
			echo "ready> "
			refuse stopped rlock clone,clone3,fork,vfork STOP "$0" rlock run a -- sleep 3
			echo "status $?"
		' "$number" <<-'END'
			check comes_true test -s stopped
			check comes_true grep -q '^State:.T' /proc/$(cut -d ' ' -f 4 stopped)/status
			key C
			check comes_true grep -q '^ShdPnd:.*2$' /proc/$(cut -d ' ' -f 4 stopped)/status
			check kill -CONT $(cut -d ' ' -f 4 stopped)
			expect status 130
		END
		no_keys
		nothing_runs
	done
}

# ---- Ctrl-Z, fg, bg ----

@test "Ctrl-Z stops the job, its lock is kept meanwhile, and fg continues it" {
	in_terminal bash <<-'END'
		send rlock run -t 1s a -- sh -c 'echo $$ >pid; echo begun; read line; echo "got $line"; exit 7'
		expect begun
		key Z
		expect Stopped
		expect ready> $
		check comes_true grep "'^State:.T'" "/proc/$(cat pid)/status"
		check stays_held a 3
		send fg
		expect rlock run
		send hello
		expect got hello
		expect ready> $
		send echo status $?
		expect status 7
	END
	no_keys
	wait_until 5 nothing_runs
}

@test "Ctrl-Z and fg, over and over, in each shell" {
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send rlock run a -- sh -c 'echo $$ >pid; echo begun; while read line; do echo "got $line"; done'
			expect begun
			key Z
			expect ready> $
			check comes_true grep "'^State:.T'" "/proc/$(cat pid)/status"
			send fg
			expect rlock run
			send one
			expect got one
			key Z
			expect ready> $
			check comes_true grep "'^State:.T'" "/proc/$(cat pid)/status"
			send fg
			expect rlock run
			send two
			expect got two
			key D
			expect ready> $
			send echo status $?
			expect status 0
		END
		no_keys
	done
}

@test "a job that was stopped by Ctrl-Z goes on in the background after bg" {
	for shell in bash dash; do
		rm -f let-go
		in_terminal "$shell" <<-'END'
			send rlock run a -- sh -c 'echo begun; until_let_go; echo over >over'
			expect begun
			key Z
			expect ready> $
			send bg
			expect ready> $
			check touch let-go
			check comes_true test -e over
			send wait; echo waited
			expect waited
		END
		no_keys
		rm over
	done
}

@test "a job that is stopped as soon as it runs has a renewer that is not stopped" {
	# With all processors busy, so that a process just forked has to wait for its turn.
	for ((i = $(nproc); i > 0; i--)); do
		in_background sh -c 'while :; do :; done'
	done
	for ((i = 0; i < 4; i++)); do
		cat <<-'END'
			send rlock run a -- sh -c 'echo $PPID >keeper; kill -TSTP 0; echo continued'
			expect Stopped
			expect ready> $
			check comes_true 'pgrep -P "$(cat keeper)" -x rlock-renewer'
			send fg
			expect continued
			expect ready> $
		END
	done >script
	in_terminal bash <script
	no_keys
}

@test "a job that is stopped while its command is about to run is stopped" {
	not_under_valgrind 'its vfork is a fork'
	# In a session with nothing else in it nothing would be there to continue a job, and none could be stopped.
	run -0 setsid -w sh -c 'struck TSTP fork 60 rlock run a -- true; :'
	refute_output --partial nothing
	assert_output --partial 'stopped exit 0'
	no_keys
}

@test "a waiter that was stopped by Ctrl-Z gets the lock after fg" {
	not_under_valgrind 'TSTP does not stop it'
	hold_in_background a
	in_terminal bash <<-'END'
		send rlock run a -- echo ran
		expect waiting for
		key Z
		expect Stopped
		expect ready> $
		check touch let-go
		check comes_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
		send fg
		expect ran
		expect ready> $
	END
	wait_until 5 no_keys
}

@test "a command that stops itself returns to the prompt, and fg continues it" {
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send rlock run a -- sh -c 'kill -STOP $$; echo continued; exit 7'
			expect Stopped
			expect ready> $
			check test "$(ask_redis "$SERVER_SOCKET" exists a)" = 1
			send fg
			expect continued
			expect ready> $
			send echo status $?
			expect status 7
		END
		no_keys
	done
}

@test "a command that stops itself twice returns to the prompt twice" {
	in_terminal bash <<-'END'
		send rlock run a -- sh -c 'kill -STOP $$; echo once; kill -STOP $$; echo twice'
		expect Stopped
		expect ready> $
		send fg
		expect once
		expect Stopped
		expect ready> $
		send fg
		expect twice
		expect ready> $
		send echo status $?
		expect status 0
	END
	no_keys
}

@test "the lock of a command that stopped itself is kept" {
	in_terminal bash <<-'END'
		send rlock run -t 1s a -- sh -c 'kill -STOP $$; echo continued'
		expect Stopped
		expect ready> $
		check stays_held a 1.5
		send fg
		expect continued
		expect ready> $
	END
	no_keys
}

@test "a command stopped and continued from outside does not hang, and the lock is free behind it" {
	for shell in bash dash; do
		mkfifo fifo
		in_terminal "$shell" <<-'END'
			send rlock run -t 1s a -- sh -c 'echo $$ >pid; echo begun; read line <fifo; echo over >over'
			expect begun
			check kill -STOP "$(cat pid)"
			expect Stopped
			expect ready> $
			check kill -CONT "$(cat pid)"
			check echo >fifo
			check comes_true test -e over
			check comes_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
		END
		rm fifo over
	done
	wait_until 5 nothing_runs
}

@test "a command stopped from outside and killed there does not hang" {
	for option in -t30s -l60s; do
		OPTION=$option in_terminal bash <<-'END'
			send rlock run $OPTION a -- sh -c 'echo $$ >pid; echo begun; exec sleep 60'
			expect begun
			check kill -STOP "$(cat pid)"
			expect Stopped
			expect ready> $
			check kill -KILL "$(cat pid)"
			check comes_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
		END
		wait_until 5 nothing_runs
	done
}

@test "without a terminal a command that is stopped and continued goes on" {
	in_background rlock run a -- sh -c 'echo $$ >pid; touch ready; until_let_go; exit 7'
	wait_until 5 file_exists ready
	kill -s STOP "$(cat pid)"
	wait_until 5 is_stopped "$(cat pid)"
	let_go
	is_held a
	kill -s CONT "$(cat pid)"
	ended_with 7
	no_keys
}

@test "Ctrl-Z, and then kill of the job: nothing is left" {
	in_terminal bash <<-'END'
		send rlock run a -- sh -c 'echo $$ >pid; echo begun; exec sleep 60'
		expect begun
		key Z
		expect Stopped
		expect ready> $
		send kill %1
		check comes_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
		send wait %1; echo status $?
		expect status 143
	END
	is_gone "$(cat pid)"
	wait_until 5 nothing_runs
}

# ---- reading and writing ----

@test "the command reads what is typed, up to Ctrl-D" {
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send rlock run a -- cat
			check comes_true test '$(ask_redis "$SERVER_SOCKET" exists a)' = 1
			send hello
			expect ^hello$
			key D
			expect ready> $
			send echo status $?
			expect status 0
		END
	done
}

@test "what is typed while the lock is waited for is the command's" {
	hold_in_background a
	in_terminal bash <<-'END'
		send rlock run a -- cat
		expect waiting for
		send hello
		check touch let-go
		expect ^hello$
		key D
		expect ready> $
	END
}

@test "a reader that has enough ends the pipe, as without rlock" {
	in_terminal bash <<-'END'
		send rlock run a -- seq 100000 | head -n 1; echo status ${PIPESTATUS[*]}
		expect ^1$
		expect status 141 0
		expect ready> $
	END
	refute_output --partial 'rlock:'
	no_keys
}

@test "a pager at the end of the pipe reads the keys that are typed" {
	cat >pager <<-'END'
		head -n 1
		read -r key </dev/tty
		echo "key $key"
	END
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send rlock run a -- seq 100000 | sh pager
			expect ^1$
			send q
			expect key q
			expect ready> $
		END
	done
	no_keys
}

@test "a job in the background that reads the terminal is stopped, and fg continues it" {
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send rlock run a -- cat &
			expect ready> $
			check comes_true test '$(ask_redis "$SERVER_SOCKET" exists a)' = 1
			check comes_true grep -q "'^State:.T'" '/proc/$(ask_redis "$SERVER_SOCKET" hvals "rlock_holds:{a}" | grep -o "pid [0-9]*" | tr -dc 0-9)/status'
			send
			expect Stopped
			expect ready> $
			send fg
			expect cat
			send hello
			expect ^hello$
			key D
			expect ready> $
			send echo status $?
			expect status 0
		END
		no_keys
	done
}

@test "after the command the terminal belongs to the shell again" {
	in_terminal bash <<-'END'
		send rlock run a -- bash --norc --noprofile --noediting -i
		expect ready> $
		send echo inner
		expect inner
		send exit 3
		expect ready> $
		send echo status $?
		expect status 3
		send sh -c 'echo begun; exec sleep 60'
		expect begun
		key C
		expect ready> $
		send echo still here
		expect ^still here$
	END
}
