#!/usr/bin/env bats
# bats file_tags=long
# On a terminal, under a shell with job control: jobs and commands that are stopped, by Ctrl-Z or from outside, and go
# on by fg and bg as without rlock, with their locks kept meanwhile.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/terminals

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

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
