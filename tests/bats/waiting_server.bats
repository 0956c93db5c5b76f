#!/usr/bin/env bats
# bats file_tags=long
# How a wait goes on or ends when the server stops answering, sends no messages, or says why it can grant no lock now.

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying
load ../lib/contenders

setup_file() { start_server_at_port; }

# hold_each: acquires plain locks "run" and "several", a fair lock "fair" and a semaphore "sem" for an owner without a process. So
# no waiter can find that this holder has ended.
hold_each() {
	local words
	for words in 'lock run' 'lock several' 'fair fair' 'sem --permits 1 sem'; do
		# shellcheck disable=SC2086
		rlock $words -u "unix://$SERVER_SOCKET" --owner ci --lease 60s
	done
}

release_each() {
	local name
	for name in run several fair sem; do
		rlock unlock -u "unix://$SERVER_SOCKET" --owner ci "$name"
	done
}

# ---- the server stops answering ----

@test "a wait during which the server stops answering ends with 69, even with -q -E 0, as the holder is not known" {
	local verb
	local -a pids=()
	hold_each
	for verb in run fair 'sem --permits 1'; do
		# shellcheck disable=SC2086
		in_background sh -c 'stderr=$1; shift; exec rlock "$@" 2>"$stderr"' sh "stderr-${verb%% *}" \
			$verb -q -E 0 -w 9s "${verb%% *}" -- touch ran
		pids+=("$PID")
	done
	wait_until 5 has_waiters run
	wait_until 5 has_waiters sem
	wait_until 5 has_queue_length fair 1
	for PID in "${pids[@]}"; do run_waiter_in_real_time "$PID"; done
	kill -STOP "$SERVER_PID"
	for PID in "${pids[@]}"; do
		ended_with 69
	done
	kill -CONT "$SERVER_PID"
	for verb in run fair sem; do
		assert_regex "$(cat "stderr-$verb")" "^rlock: $verb: no answer from unix:[^ ]* in time\$"
	done
	refute file_exists ran
}

@test "a wait in which no server has answered ends with 69, even with -q -E 0, also when its renewer does not run at its end" {
	kill -STOP "$SERVER_PID"
	record_stderr rlock run -q -E 0 -w 6s a -- touch ran
	find_renewer "$PID"
	kill -STOP "$RENEWER"
	ended_with 69
	kill -CONT "$SERVER_PID"
	stderr_is_one_line '^rlock: a: not acquired in 6s, and no server has said that it is held: the renewer was killed, or did not run$'
	refute file_exists ran
}

@test "the message at the end of a wait names the holder at that time, not the first one" {
	local id record
	in_background rlock run --note first a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	id=$(redis hkeys 'rlock_holds:{a}' | head -n 1)
	record=$(redis hvals 'rlock_holds:{a}' | head -n 1)
	for _ in 1 2 3; do
		ask_server hset 'rlock_holds:{a}' "$id" "$record"
		record_stderr rlock run -w 6s a -- touch ran
		wait_until 5 has_waiters a
		# Change the record, and publish no message: the waiter, as the first in its queue, makes no attempt until its wait
		# time or the TTL ends. Then it must read the new record.
		ask_server hset 'rlock_holds:{a}' "$id" "${record/first/second}"
		ended_with 75
		# rlock ends a renewer that got no processor for a second, and says that.
		file_contains stderr 'was killed, or did not run' || break
	done
	stderr_is_one_line '^rlock: a: timed out after 6s: held by second '
}

# ---- a half-open subscription ----

@test "a waiter whose subscription is half-open acquires the lock within seconds of a release, not at the end of the TTL" {
	local -a pids=()
	hold_each
	start_realtime_proxy
	in_background rlock run run -- true
	pids+=("$PID")
	in_background rlock run other several -- true
	pids+=("$PID")
	in_background rlock sem --permits 1 sem -- true
	pids+=("$PID")
	in_background rlock fair fair -- true
	pids+=("$PID")
	wait_until 5 has_waiters run
	wait_until 5 has_waiters several
	wait_until 5 has_waiters sem
	wait_until 5 has_queue_length fair 1
	wait_until 5 has_subscribers 4
	proxy silence subscribers
	release_each
	for PID in "${pids[@]}"; do
		takes_less_than 12 ended_with 0
	done
}

# is_probed COUNT: whether the waiter's subscription was probed at least COUNT times.
is_probed() {
	[ "$(calls_of subscribe)" -ge $((1 + $1)) ]
}

@test "an idle waiter only sends a probe every few seconds, which needs no further right, and stays subscribed" {
	local before subscription
	redis acl setuser waiter reset on nopass '~*' '&*' +@all -ping >/dev/null
	hold_in_background a -t 5m
	redis config resetstat >/dev/null
	in_background rlock run -u "redis://waiter:x@127.0.0.1:$PORT" a -- true
	wait_until 5 has_waiters a
	run_waiter_in_real_time "$PID"
	wait_until 5 has_subscribers 1
	# The first probe follows the attempt that comes after the subscription.
	wait_until 10 is_probed 1
	[[ $(redis client list type pubsub) =~ id=([0-9]+) ]]
	subscription=${BASH_REMATCH[1]} before=$(calls_of evalsha)
	wait_until 20 is_probed 3
	assert_equal "$(calls_of evalsha)" "$before"
	assert_equal "$(redis acl log)" ''
	# The connection is still the first one.
	[[ $(redis client list type pubsub) =~ id=([0-9]+) ]]
	assert_equal "${BASH_REMATCH[1]}" "$subscription"
	end_commands
	ended_with 0
}

# ---- a server that does not let a waiter subscribe ----

@test "a waiter polls when SUBSCRIBE is denied in any words, or its connection is closed" {
	local verb fault
	start_realtime_proxy
	for fault in deny cut-before; do
		hold_each
		proxy "$fault" subscribe 1000
		local -a pids=()
		for verb in run fair 'sem --permits 1'; do
			# shellcheck disable=SC2086
			in_background rlock $verb "${verb%% *}" -- true
			pids+=("$PID")
		done
		proxy reset-count
		wait_until 10 is_polled 12
		release_each
		for PID in "${pids[@]}"; do
			takes_less_than 10 ended_with 0
		done
		proxy pass
	done
}

# is_polled REQUESTS: whether at least REQUESTS requests have passed the proxy.
is_polled() {
	[[ $(proxy count) =~ requests=([0-9]+) ]] && ((BASH_REMATCH[1] >= $1))
}

# ---- a server that says why it can grant no lock now ----

# each_verb COMMAND...: runs COMMAND with the words of an rlock call appended, for each kind of lock and for two users: one with all
# rights, and the default user.
each_verb() {
	local verb url
	redis acl setuser all reset on '>secret' '~*' '&*' +@all >/dev/null
	for url in "unix://$SERVER_SOCKET" "redis://all:secret@127.0.0.1:$PORT"; do
		for verb in run fair read write 'sem --permits 2'; do
			# shellcheck disable=SC2086
			"$@" rlock $verb -u "$url"
		done
	done
}

# ends_with_words WORDS RLOCK...: a wait for "x" must end with 69 and WORDS.
ends_with_words() {
	run_timed_out 69 "${@:2}" -w 1s x -- touch ran
	assert_one_line "^rlock: x: denied by the server: .*$1"
	refute file_exists ran
}

@test "a server with too few replicas is retried for the whole wait, then 69 with its message, for each kind and any user" {
	redis config set min-replicas-to-write 1 >/dev/null
	each_verb ends_with_words 'NOREPLICAS Not enough good replicas'
	run -69 rlock run x -- touch ran
	(pause_for 1 && redis config set min-replicas-to-write 0) >/dev/null &
	run -0 rlock run -w 20s x -- touch ran
	file_exists ran
}

@test "a rate limit is waited for, and the message has the service's words" {
	start_realtime_proxy
	proxy denial 'ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.'
	proxy deny evalsha 1000
	run_timed_out 69 rlock run -w 3s x -- touch ran
	assert_one_line '^rlock: x: denied by the server: a limit of its requests is reached; .*: ERR max daily request limit exceeded'
	proxy pass
	proxy deny evalsha 3
	run -0 rlock run -w 20s x -- true
}

# ---- a wait that ends ----

# wait_in_each: starts a waiter of each kind for a held lock, and waits until it is the last one in its queue. Sets WAITERS to the
# pids.
wait_in_each() {
	local verb
	WAITERS=()
	rlock sem -u "unix://$SERVER_SOCKET" --permits 1 --owner ci --lease 60s sem
	rlock write -u "unix://$SERVER_SOCKET" --owner ci --lease 60s read write
	rlock fair -u "unix://$SERVER_SOCKET" --owner ci --lease 60s run fair
	for verb in run read write 'sem --permits 1'; do
		# shellcheck disable=SC2086
		in_background rlock $verb "${verb%% *}" -- touch ran
		WAITERS+=("$PID")
		wait_until 5 has_waiters "${verb%% *}"
	done
	in_background rlock fair fair -- touch ran
	WAITERS+=("$PID")
	wait_until 5 has_queue_length fair 1
}

nobody_waits() {
	[ -z "$(redis keys 'rlock_queue:*')$(redis keys 'redisson_lock_queue:*')" ]
}

# end_each: ends all of WAITERS. Then none of them may be in a queue.
end_each() {
	local pid
	kill -s TERM "${WAITERS[@]}"
	for pid in "${WAITERS[@]}"; do
		ended_with 143 "$pid"
	done
	refute file_exists ran
}

# leave_unless_late COMMAND COMMAND: starts the waiters, and ends them between these two commands. None may stay in a queue. If one does,
# tries again: a waiter attempts to leave for two seconds only, which can be too few on a busy machine.
leave_unless_late() {
	local tries
	for ((tries = 3; tries > 0; tries--)); do
		wait_in_each
		$1
		end_each
		$2
		! wait_until 5 nobody_waits || break
		redis flushall
	done
	assert [ "$tries" -gt 0 ]
}

@test "a waiter that ends leaves its queue, also after SCRIPT FLUSH" {
	leave_unless_late 'redis script flush' true
}

@test "a waiter that ends while the server is frozen is in no queue and holds nothing when the server continues" {
	leave_unless_late "kill -STOP $SERVER_PID" "kill -CONT $SERVER_PID"
}
