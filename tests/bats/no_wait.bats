#!/usr/bin/env bats
# -n asks whether the lock is busy before rlock forks a renewer (cmd_lock.c: is_busy). Its messages and exit codes are tested with
# those of other waits: run_waiting.bats, flock.bats, log.bats.

load ../lib/usual
load ../lib/proxying

# With a port: only a URL with a port can name a user.
setup_file() { start_server_at_port; }

# values: print each key, with a checksum of its value.
values() {
	local key
	for key in $(redis --raw keys '*' | sort); do
		echo "$key $(redis --raw dump "$key" | sha256sum)"
	done
}

@test "-n on a busy lock starts no process, and changes nothing on the server" {
	needs_refuse
	local holder caller
	while IFS=: read -r holder caller; do
		# shellcheck disable=SC2086
		rlock $holder --owner other -l 60s a
		values >before
		# shellcheck disable=SC2086
		# The leak check at the end of a program needs a process of its own.
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 run -75 refuse refused rlock fork,vfork,clone,clone3 EAGAIN 1+ \
			rlock $caller -n --connect-timeout 1m a -- touch ran
		assert_output ''
		run -0 values
		assert_output "$(<before)"
		rlock unlock --owner other a
	done <<-END
		lock:run
		lock:fair
		write:read
		read:write
		sem --permits 1:sem --permits 1
	END
	assert [ ! -e ran ]
}

@test "-n sends one request for a busy lock, and has one connection for the question, the acquisition and the release" {
	rlock run -n a -- true
	rlock lock --owner other -l 60s a
	start_realtime_proxy
	# There are two requests, since the first one of each connection is CLIENT SETNAME.
	run -75 rlock run -n --connect-timeout 1m a -- true
	run -0 proxy count
	assert_output --regexp '^connections=1 requests=2 '
	rlock unlock --owner other a
	# On a busy machine rlock can repeat the release, whose reply is late after a second.
	for _ in 1 2 3; do
		proxy reset-count
		run -0 rlock run -n --connect-timeout 1m a -- true
		run -0 proxy count
		[[ $output != 'connections=1 requests=4 '* ]] || break
	done
	assert_output --regexp '^connections=1 requests=4 '
	no_keys
}

# start_without_answer: starts rlock -n, whose question the server has answered, but the proxy holds the answer. Sets PID.
start_without_answer() {
	rlock run -n a -- true
	start_proxy
	proxy hold-reply "$ACQUIRE" 10
	# After a quarter of this limit rlock would acquire the lock without that answer.
	in_background rlock run -n --connect-timeout 2m a -- touch ran
	wait_until 10 eval 'proxy state | grep -q held=1'
}

@test "rlock -n that is killed before the server's answer has locked nothing" {
	start_without_answer
	run ! is_held a
	kill -s KILL "$PID"
	ended_with 137
	no_keys
	proxy release
	assert [ ! -e ran ]
	no_keys
}

@test "rlock -n that is killed before the server's answer has not locked a name with a fencing counter either" {
	redis set 'redisson_lock_token:{a}' 5 >/dev/null
	start_without_answer
	run ! is_held a
	kill -s KILL "$PID"
	ended_with 137
	proxy release
	keys_are 'redisson_lock_token:{a}'
}

@test "SIGTERM ends rlock -n whose server does not answer, and nothing is locked" {
	start_without_answer
	kill -s TERM "$PID"
	takes_less_than 5 ended_with 143
	wait_until 5 no_keys
	assert [ ! -e ran ]
}

@test "with -n no answer to the question, or an error, is no refusal: the command runs once a request is answered" {
	local fault
	rlock run -n a -- true
	start_proxy
	for fault in hold-reply drop-reply cut-before deny garbage; do
		rm -f ran
		proxy "$fault" "$ACQUIRE" 1
		run -0 rlock run -n --connect-timeout 4s a -- touch ran
		assert [ -e ran ]
		no_keys
	done
}

@test "with -n the password command runs once" {
	redis acl setuser ci on '>t0ken' '~*' '&*' '+@all' >/dev/null
	run -0 rlock run -u "redis://ci@127.0.0.1:$PORT" --connect-timeout 1m \
		--password-command "echo call >>$PWD/calls; echo t0ken" -n a -- true
	run -0 grep -c call calls
	assert_output 1
}
