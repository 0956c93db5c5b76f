#!/usr/bin/env bats
# A server whose memory is full: it grants no lock, releases locks, and lets waiters wait.

load ../lib/usual
load ../lib/own_servers

teardown() { common_teardown; }

@test "a full server grants no lock, which the message says, and releases one of two holds of an owner" {
	start_own_server
	redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	[ ! -e ran ]
	no_keys
	redis config set maxmemory 0
	run -0 rlock run a -- sh -c '
		rlock run a -- ask_redis "$SERVER_SOCKET" config set maxmemory 1
		ask_redis "$SERVER_SOCKET" hvals a'
	assert_output $'OK\n1'
	no_keys
}

@test "a held lock on a full server is busy for fair -n, also with a queue" {
	local verb
	start_own_server
	hold_in_background a
	in_background rlock fair -w 60s a -- true
	wait_until 5 has_queue_length a 1
	redis config set maxmemory 1
	for verb in run fair; do
		run -75 rlock "$verb" -n a -- touch ran
		assert_output ''
	done
	redis config set maxmemory 0
	end_commands
	ended_with 0
	[ ! -e ran ]
}

# subscriptions: one line with the client id of each subscription.
subscriptions() { redis client list type pubsub | sed -nE 's/^id=([0-9]+) .*/\1/p'; }

is_subscribed() { [ -n "$(subscriptions)" ]; }

# was_denied FILE: whether the rlock that writes to FILE has been denied three times because the memory is full.
was_denied() { [ "$(grep -c 'memory is full' "$1")" -ge 3 ]; }

# wait_with FILE VERB: an rlock waits for the lock a; it writes what it does to FILE. Its pid is added to PIDS.
wait_with() {
	in_background sh -c 'exec rlock "$2" -vv -w 60s a -- true 2>"$1"' sh "$@"
	PIDS+=("$PID")
}

end_all() {
	local pid
	end_commands
	for pid in "${PIDS[@]}"; do
		ended_with 0 "$pid"
	done
}

@test "a fair waiter stays subscribed while the server's memory is full, so that no other waiter takes it for dead" {
	local before
	local -a PIDS=()
	start_own_server
	hold_in_background a
	wait_with first fair
	wait_until 5 has_queue_length a 1
	wait_until 5 is_subscribed
	before=$(subscriptions)
	redis config set maxmemory 1
	end_commands
	wait_until 20 was_denied first
	assert_equal "$(subscriptions)" "$before"
	redis config set maxmemory 0
	end_all
}

# heartbeats_are_over: whether all waiters for the fair lock a would be taken for dead.
heartbeats_are_over() {
	local value
	while read -r value; do
		((${value%% *} < $(server_ms))) || return
	done < <(redis hvals 'rlock_waiters:{a}')
}

@test "while the server's memory is full nobody joins the queue of a fair lock, and its waiters stay in it" {
	local before waiter
	local -a PIDS=()
	start_own_server
	hold_in_background a -t 60s
	for waiter in 1 2; do
		wait_with "$waiter" fair
		wait_until 5 has_queue_length a "$waiter"
	done
	before=$(redis lrange 'redisson_lock_queue:{a}' 0 -1)
	redis config set maxmemory 1
	wait_with 3 fair
	wait_until 10 file_contains 3 'waiting for'
	wait_until 10 heartbeats_are_over
	run -75 rlock fair -n a -- true
	assert_equal "$(redis lrange 'redisson_lock_queue:{a}' 0 -1)" "$before"
	redis config set maxmemory 0
	wait_until 10 has_queue_length a 3
	assert_equal "$(redis lrange 'redisson_lock_queue:{a}' 0 1)" "$before"
	end_all
}

has_tried_again() { [ "$(calls_of evalsha)" -ge 1 ]; }

@test "a waiter for any lock but a fair one stays in the wake queue while the server's memory is full" {
	local before
	local -a PIDS=()
	start_own_server
	hold_in_background a -t 60s
	wait_with first run
	wait_until 5 has_waiters a
	wait_with second run
	wait_until 5 has_waiters a 2
	before=$(redis zrange 'rlock_queue:{a}' 0 -1)
	redis config set maxmemory 1
	redis config resetstat
	# The second waiter tries again after 3 s.
	wait_until 15 has_tried_again
	assert_equal "$(redis zrange 'rlock_queue:{a}' 0 -1)" "$before"
	redis config set maxmemory 0
	end_all
}

@test "a waiter for a semaphore does not join the wake queue while the server's memory is full" {
	local -a PIDS=()
	start_own_server
	in_background rlock sem --permits 1 a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	redis config set maxmemory 1
	in_background sh -c 'exec rlock sem --permits 1 -v -w 60s a -- true 2>waiter'
	PIDS+=("$PID")
	wait_until 5 file_contains waiter 'waiting for'
	redis_says 0 zcard 'rlock_queue:{a}'
	redis config set maxmemory 0
	end_all
}

@test "a writer that finds readers on a full server waits" {
	local -a PIDS=()
	start_own_server
	in_background rlock read a -- run_until_ended
	wait_until 5 is_held a
	redis config set maxmemory 1
	wait_with writer write
	wait_until 5 file_contains writer 'waiting for'
	redis config set maxmemory 0
	end_all
}
