#!/usr/bin/env bats
# bats file_tags=long
# rlock on a terminal, under a shell with job control: Ctrl-C, Ctrl-\, hang-up and input work as without rlock. Jobs and commands stopped
# by Ctrl-Z or by other processes continue after fg and bg, and keep their locks meanwhile.

load ../lib/usual

# in_terminal [SHELL]: runs SHELL under ptyrun, with the script on standard input. Prints what the terminal has shown. Afterwards
# no key and no rlock may be left.
in_terminal() {
	local shell=("${1-bash}" -i)
	[ "${shell[0]}" != bash ] || shell=(bash --norc --noprofile --noediting -i)
	run -0 ptyrun "${shell[@]}"
	wait_until 5 no_keys
	wait_until 5 no_rlock_runs
}

# ---- Ctrl-C, Ctrl-\ ----

@test "Ctrl-C ends a shell's loop around a running or waiting rlock run, and Ctrl-\\ sends SIGQUIT" {
	local shell
	hold_by_foreign_client busy
	redis persist busy >/dev/null
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send ulimit -c 0; for i in 1 2 3; do rlock run a -- sh -c 'echo begun; exec sleep 60'; done; echo not reached
			expect begun
			key C
			ends 130
			check wait_until_true test '$(ask_redis "$SERVER_SOCKET" exists a)' = 0
			send for i in 1 2; do rlock run busy -- echo begun; done; echo not reached
			expect waiting for
			key C
			ends 130
			send rlock run a -- sh -c 'echo other; exec sleep 60'
			expect other
			key \
			ends 131
			check test "$(ask_redis "$SERVER_SOCKET" hlen busy)" = 1
			check ask_redis "$SERVER_SOCKET" del busy
		END
		assert_equal "$(grep -c begun <<<"$output")" 1
		refute_output --partial 'not reached'
		hold_by_foreign_client busy
		redis persist busy >/dev/null
	done
}

# Ctrl-S stops the output of the terminal, so that rlock waits to print between the lock and the command. Ctrl-C continues it.
@test "Ctrl-C that comes before rlock flock --fd has started its command ends rlock, without the command" {
	in_background rlock flock "$PWD/f" run_until_ended
	wait_until 10 is_held "$PWD/f"
	cat >has_lock <<-'END'
		# Succeeds if the rlock that has the file as descriptor 8 has ended its wait, and so has no epoll descriptor any more.
		for process in /proc/[0-9]*; do
			{ read -r name <"$process/comm"; } && [ "$name" = rlock ] && [ "$(readlink "$process/fd/8")" = "$PWD/f" ] || continue
			ls -l "$process/fd" | grep -q eventpoll || exit 0
		done 2>/dev/null
		exit 1
	END
	in_terminal <<-END
		send exec 8<>f; rlock flock --verbose --fd 8 touch begun
		check wait_until_true test '\$(ask_redis "$SERVER_SOCKET" zcard "rlock_queue:{$PWD/f}")' = 1
		key S
		check touch end-commands
		check wait_until_true sh has_lock
		key C
		ends 130
	END
	ended_with 0
	assert [ ! -e begun ]
}

@test "Ctrl-C and Ctrl-\\ end a command that has a process group or a session of its own" {
	local own lock
	for own in 'timeout 60' 'setsid -w'; do
		for lock in 'run a --' 'flock -u --fd 8'; do
			in_terminal <<-END
				send ulimit -c 0; exec 8<>f; rlock $lock $own sh -c 'echo begun; exec sleep 60'
				expect begun
				key C
				ends 130
				send rlock $lock $own sh -c 'echo again; exec sleep 60'
				expect again
				key \\
				ends 131
			END
		done
	done
}

@test "each Ctrl-C reaches the command once" {
	in_terminal <<-'END'
		send rlock run a -- sh -c 'echo $PPID >renewer; exec log_signals'
		check wait_until_true grep -x ready signals
		key C
		check wait_until_true test '$(grep -cx INT signals)' = 1
		key C
		check wait_until_true test '$(grep -cx INT signals)' = 2
		check kill -USR1 "$(cut -d ' ' -f 4 /proc/$(cat renewer)/stat)"
		check wait_until_true grep -x USR1 signals
		check touch end-commands
		ends 0
	END
	assert_equal "$(cat signals)" $'ready\nINT\nINT\nUSR1'
}

# ---- reading and writing ----

@test "a pager at the end of the pipe reads the keys that are typed" {
	printf '%s\n' 'head -n 1' 'read -r key </dev/tty' 'echo "key $key"' >pager
	in_terminal <<-'END'
		send rlock run a -- seq 100000 | sh pager
		expect ^1$
		send q
		expect key q
		expect ready> $
	END
}

@test "a background job that reads the terminal is stopped, and fg continues it" {
	in_terminal <<-'END'
		send rlock run a -- sh -c 'echo $PPID >renewer; exec cat' &
		check wait_until_true grep -q "'^State:.T'" '/proc/$(cut -d " " -f 4 "/proc/$(cat renewer)/stat")/status'
		send
		expect Stopped
		expect ready> $
		send fg
		expect cat
		send hello
		expect ^hello$
		key D
		ends 0
	END
}

# ---- stopped, and continued ----

# The script waits until the command is stopped: otherwise the command would read a part of what is typed at the prompt.
@test "repeated Ctrl-Z and fg stop and continue the command in each shell, and the lock stays held" {
	local shell
	for shell in bash dash; do
		in_terminal "$shell" <<-'END'
			send rlock run -t 9s a -- sh -c 'echo $$ >pid; echo begun; while read line; do echo "got $line"; done'
			expect begun
			key Z
			expect ready> $
			check wait_until_true grep "'^State:.T'" "/proc/$(cat pid)/status"
			check wait_until_true test '$(ask_redis "$SERVER_SOCKET" pttl a)' -lt 7500
			check wait_until_true test '$(ask_redis "$SERVER_SOCKET" pttl a)' -gt 7500
			send fg
			expect rlock run
			send one
			expect got one
			key Z
			expect ready> $
			check wait_until_true grep "'^State:.T'" "/proc/$(cat pid)/status"
			send fg
			expect rlock run
			send two
			expect got two
			key D
			ends 0
		END
	done
}

@test "a waiter that was stopped by Ctrl-Z acquires the lock after fg" {
	not_under_valgrind 'TSTP does not stop it'
	hold_in_background a
	in_terminal <<-'END'
		send rlock run a -- echo ran
		expect waiting for
		key Z
		expect Stopped
		expect ready> $
		check touch end-commands
		check wait_until_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
		send fg
		expect ran
		expect ready> $
	END
}

@test "each time a command stops itself the shell shows its prompt, the lock stays held, and fg and bg continue it" {
	in_terminal <<-'END'
		send rlock run -t 9s a -- sh -c 'kill -STOP $$; echo once; kill -STOP $$; echo over >over'
		expect Stopped
		expect ready> $
		check wait_until_true test '$(ask_redis "$SERVER_SOCKET" pttl a)' -lt 7500
		check wait_until_true test '$(ask_redis "$SERVER_SOCKET" pttl a)' -gt 7500
		send fg
		expect once
		expect Stopped
		expect ready> $
		send bg
		expect ready> $
		check wait_until_true test -e over
		send wait; echo status $?
		expect status 0
	END
}

@test "a command that other processes stop and continue does not hang, and its lock is released" {
	mkfifo fifo
	in_terminal <<-'END'
		send rlock run a -- sh -c 'echo $$ >pid; echo begun; read line <fifo; echo over >over'
		expect begun
		check kill -STOP "$(cat pid)"
		expect Stopped
		expect ready> $
		check kill -CONT "$(cat pid)"
		check echo >fifo
		check wait_until_true test -e over
		check wait_until_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
	END
}

@test "a hang-up ends a job, also a stopped one and one of a script, and the lock is released" {
	local line key
	echo "rlock run a -- sh -c 'echo \$\$ >pid; echo begun; exec sleep 60'" >job
	while IFS='|' read -r line key; do
		echo "$line, $key" >&2
		in_terminal <<-END
			send $line
			expect begun
			$key
			hangup
		END
		wait_until 5 is_gone "$(cat pid)"
	done <<-'END'
		sh job|
		sh job|key Z
		. ./job|key Z
	END
}

# survives_ctrl_z LINE...: runs the script on standard input as the leader of its session, as under `ssh -t host`: no shell can
# continue it. When it has printed "begun", types Ctrl-Z and the line "one". Its command must still read that line, and print "got
# one". Then ptyrun carries out the LINEs.
survives_ctrl_z() {
	{ echo "echo 'ready> '"; cat; } >job
	run -0 ptyrun sh job < <(printf '%s\n' 'expect begun' 'key Z' 'send one' 'expect got one' "$@")
	wait_until 5 no_keys
	wait_until 5 no_rlock_runs
}

@test "Ctrl-Z does nothing when no shell could continue the job, as without rlock" {
	survives_ctrl_z 'key C' hangup <<-'END'
		exec rlock run a -- sh -c 'echo begun; read line; echo "got $line"; exec sleep 60'
	END
}

@test "a script that leads its session continues after Ctrl-Z, as without rlock, when its command ignores Ctrl-Z" {
	survives_ctrl_z 'expect status 0' <<-'END'
		rlock run a -- sh -c 'trap "" TSTP; echo begun; read line; echo "got $line"'
		echo "status $?"
		read line
	END
}

@test "a background command that reads the terminal fails when no shell could give it the terminal, and its script continues" {
	local before
	# Let the command wait until the shell that started it does not own the terminal any more.
	cat >script <<-'END'
		rlock run a -- bash -c 'read -ra stat </proc/$$/stat
			while [ "${stat[4]}" = "${stat[7]}" ]; do sleep 0.02; read -ra stat </proc/$$/stat; done
			read line </dev/tty; echo "read $?" >result'
		echo "status $?" >>result
		touch over
	END
	for before in '' nohup; do
		rm -f result over
		in_terminal <<-END
			send ($before sh script >/dev/null 2>&1 &)
			check wait_until_true test -e over
		END
		assert_equal "$(<result)" $'read 1\nstatus 0'
	done
}

@test "when the command of a nested rlock stops itself the shell shows its prompt, and fg continues it" {
	in_terminal <<-'END'
		send rlock run a -- rlock run b -- sh -c 'kill -STOP $$; echo once; kill -STOP $$; echo over'
		expect Stopped
		expect ready> $
		send fg
		expect once
		expect Stopped
		expect ready> $
		send fg
		expect over
		ends 0
	END
}

@test "when rlock was killed its stopped job gets SIGHUP, as the kernel sends it without rlock" {
	in_terminal <<-'END'
		send rlock run a -- sh -c 'echo $$ >pid; echo $PPID >renewer; exec log_signals'
		check wait_until_true grep -x ready signals
		check kill -STOP "$(cat pid)"
		expect Stopped
		expect ready> $
		check kill -KILL "$(cut -d ' ' -f 4 /proc/$(cat renewer)/stat)"
		check wait_until_true grep -x HUP signals
		check touch end-commands
		check wait_until_true test '$(ask_redis "$SERVER_SOCKET" dbsize)' = 0
	END
}
