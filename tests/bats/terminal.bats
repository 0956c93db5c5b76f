#!/usr/bin/env bats
# bats file_tags=long
# On a terminal, under a shell with job control: Ctrl-C, Ctrl-\, a hang-up and reading what is typed are as without rlock. Jobs
# and commands that are stopped, by Ctrl-Z or from outside, go on by fg and bg, with their locks kept meanwhile.

load ../lib/usual
load ../lib/terminals

teardown() { common_teardown; }

# how_often TEXT: so often it is in the output.
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
			check comes_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
		END
		[ "$(how_often begun)" = 1 ]
		refute_output --partial 'not reached'
		refute_output --partial 'rlock:'
	done
	wait_until 5 nothing_runs
}

@test "a terminal that was stopped by Ctrl-S while it showed a wait keeps no waiter from its turn" {
	hold_in_background a
	in_terminal bash <<-'END'
		send TERM=xterm rlock run a -- sh -c 'echo >ran'
		expect waiting for
		key S
		check echo >let-go
		check comes_true test -e ran
		key Q
		expect ready> $
	END
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
		send rlock run a -- sh -c 'echo $PPID >renewer; exec log_signals'
		check comes_true grep -x ready signals
		key C
		check comes_true test '$(grep -cx INT signals)' = 1
		key C
		check comes_true test '$(grep -cx INT signals)' = 2
		key C
		check comes_true test '$(grep -cx INT signals)' = 3
		check kill -USR1 "$(cut -d ' ' -f 4 /proc/$(cat renewer)/stat)"
		check comes_true grep -x USR1 signals
		check touch let-go
		expect ready> $
		send echo status $?
		expect status 0
	END
	[ "$(grep -cx INT signals)" = 3 ]
}

@test "Ctrl-\\ ends the command, and rlock by SIGQUIT" {
	in_terminal bash <<-'END'
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

@test "Ctrl-C at the moment when the command begins ends it" {
	needs_refuse
	# Before the renewer is forked, and before its command is.
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

# ---- reading and writing ----

@test "a pager at the end of the pipe reads the keys that are typed" {
	cat >pager <<-'END'
		head -n 1
		read -r key </dev/tty
		echo "key $key"
	END
	in_terminal bash <<-'END'
		send rlock run a -- seq 100000 | sh pager
		expect ^1$
		send q
		expect key q
		expect ready> $
	END
	no_keys
}

@test "a job in the background that reads the terminal is stopped, and fg continues it" {
	in_terminal bash <<-'END'
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

# ---- stopped, and continued ----

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
	rm -f let-go
	in_terminal bash <<-'END'
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
}

@test "a job that is stopped as soon as it runs has a renewer that is not stopped" {
	in_terminal bash <<-'END'
		send rlock run a -- sh -c 'echo $PPID >renewer; kill -TSTP 0; echo continued'
		expect Stopped
		expect ready> $
		check comes_true grep -q '"^State:.[SR]"' '/proc/$(cat renewer)/status'
		send fg
		expect continued
		expect ready> $
	END
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

@test "a command that stops itself twice returns to the prompt twice, and its lock is kept meanwhile" {
	in_terminal bash <<-'END'
		send rlock run -t 1s a -- sh -c 'kill -STOP $$; echo once; kill -STOP $$; echo twice'
		expect Stopped
		expect ready> $
		check stays_held a 1.5
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

@test "a command stopped and continued from outside does not hang, and the lock is free behind it" {
	mkfifo fifo
	in_terminal bash <<-'END'
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
	wait_until 5 nothing_runs
}

@test "a terminal that hangs up ends a stopped job, also one of a script, and frees the lock" {
	cat >job <<-'END'
		rlock run a -- sh -c 'echo $$ >pid; echo begun; exec sleep 60'
	END
	for line in "sh job" "$(cat job)"; do
		in_terminal bash <<-END
			send $line
			expect begun
			key Z
			expect ready> $
			check comes_true grep "'^State:.T'" "/proc/\$(cat pid)/status"
			hangup
		END
		wait_until 5 is_gone "$(cat pid)"
		wait_until 5 no_keys
		wait_until 5 nothing_runs
	done
}

@test "Ctrl-Z does nothing where no shell could continue the job, as without rlock" {
	# As under `ssh -t host rlock run ...`.
	cat >job <<-'END'
		echo 'ready> '
		exec rlock run a -- sh -c 'echo begun; read line; echo "got $line"; exec sleep 60'
	END
	run -0 ptyrun sh job <<-'END'
		expect begun
		key Z
		send one
		expect got one
		key C
		hangup
	END
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "a command that reads a terminal which no shell can give it does not keep its lock for ever" {
	in_terminal bash <<-'END'
		send (rlock run a -- sh -c 'echo $$ >pid; read line </dev/tty' &)
		check comes_true test -s pid
	END
	wait_until 5 no_keys
	wait_until 5 is_gone "$(cat pid)"
	wait_until 5 nothing_runs
}
