#!/usr/bin/env bats
# The record of a hold on the server: what the hold is for, how many names it has, its process, and whether its renewer reads stop
# requests.

load ../lib/usual
load ../lib/queue
load ../lib/inspecting

NAMESPACE=$(stat -L -c %i /proc/self/ns/pid)
BOOT=$(tr -d - </proc/sys/kernel/random/boot_id)
BOOT=${BOOT:0:16}

# change_holder NAME PATTERN REPLACEMENT: in the first hold record whose HOLDER field matches the Lua pattern, replaces the match.
change_holder() {
	run -0 redis eval '
		local records = redis.call("HGETALL", KEYS[1])
		for i = 2, #records, 2 do
			local before, word, note = string.match(records[i], "^(%S+ %d+ %d+ %S+ )(%l+%.%l+%.%d+%.%x+%.%d+%.%d+%.%d+[+-] )(.*)$")
			local changed, count = string.gsub(word or "", ARGV[1], ARGV[2])
			if word and count > 0 then
				redis.call("HSET", KEYS[1], records[i - 1], before .. changed .. note)
				return count
			end
		end
		return 0' 1 "rlock_holds:{$1}" "$2" "$3"
	assert_output 1
}

# in_time_namespace: whether this process is in a time namespace. rlock then records no start time, since start times differ from
# those outside.
in_time_namespace() {
	[ -e /proc/self/ns/time ] && [ "$(readlink /proc/self/ns/time)" != 'time:[4026531834]' ]
}

# start_of PID: prints the process's start time in clock ticks.
start_of() {
	! in_time_namespace || { echo 0 && return; }
	sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 20
}

# status_is EXPRESSION VALUE NAME: EXPRESSION, as for `json`, must have this VALUE for the output of status --json NAME.
status_is() {
	run -0 rlock status --json "$3"
	assert_equal "$(json "$1")" "$2"
}

@test "a hold record says what the hold is for, how many names it has, and its process, before the note" {
	start_holder h run --note 'a note' a
	run -0 redis hvals 'rlock_holds:{a}'
	assert_output --regexp " - command\.plain\.1\.$BOOT\.$NAMESPACE\.${PIDS[h]}\.$(start_of "${PIDS[h]}")\+ a note\$"
	status_is '[lock["holders"][0]["process"][m] for m in ("pid", "start", "pid_namespace", "boot", "here", "reads_requests")]' \
		"[${PIDS[h]}, $(start_of "${PIDS[h]}"), $NAMESPACE, '$BOOT', True, True]" a
	status_is 'lock["holders"][0]["note"]' 'a note' a
	finish_contenders h
}

@test "the record of a lock without a command names the process of --pid, and none for --owner" {
	rlock lock --pid $$ --on-lost ignore a
	status_is '[lock["holders"][0]["process"][m] for m in ("pid", "reads_requests")]' "[$$, False]" a
	run -0 redis hvals 'rlock_holds:{a}'
	assert_output --partial " - process.plain.1.$BOOT.$NAMESPACE.$$."
	rlock unlock --pid $$ a
	rlock lock --owner ci --lease 60s b c
	status_is 'lock["holders"][0]["process"]' None b
	run -0 redis hvals 'rlock_holds:{b}'
	assert_output --regexp ' - owner\.plain\.2\.0000000000000000\.0\.0\.0- '
}

@test "a queued fair waiter and the next writer name their processes" {
	start_holder r1 fair a
	queue_fair_contender r2 a
	status_is '[(w["process"]["pid"], w["process"]["here"], w["dead"]) for w in lock["queue"]]' "[(${PIDS[r2]}, True, False)]" a
	# Wait for the subscription of r2: otherwise queue_contender would count it as that of w.
	wait_until 5 has_subscribers 1
	start_holder r3 read b
	queue_contender w write b
	status_is 'lock["next_writer"]["process"]["pid"]' "${PIDS[w]}" b
	finish_all r1 r2 r3 w
}

@test "status and the messages of a waiter say that the holder's process has ended" {
	local kind
	for kind in run 'sem --permits 1'; do
		rm -f in-*
		# shellcheck disable=SC2086
		start_holder h $kind -t 60s --note 'a note' a
		kill_contender h
		wait "${PIDS[h]}" || :
		run -0 rlock status a
		assert_line --regexp "^  process ${PIDS[h]} has ended, but its command may still run; the lease ends within [1-5][0-9]s, unless its renewer runs and renews it\$"
		status_is 'lock["holders"][0]["gone"]' True a
		# shellcheck disable=SC2086
		run_timed_out 75 rlock $kind -w 3s a -- true
		assert_output --regexp ': held by a note \([^ ]+\) for [0-9.]+s; its process has ended; '
		redis flushall >/dev/null
	done
}

@test "a holder of another boot or PID namespace, or without a recorded process, is not said to have ended" {
	start_holder h run -t 60s --note "me@$(uname -n) pid 999999999 x" a
	kill_contender h
	wait "${PIDS[h]}" || :
	change_holder a "$(printf '%%.%s%%.' "$NAMESPACE")" '.7.'
	status_is 'lock["holders"][0]["gone"], lock["holders"][0]["process"]["here"]' '(False, False)' a
	change_holder a '%.7%.' ".$NAMESPACE."
	status_is 'lock["holders"][0]["gone"]' True a
	change_holder a "%.${BOOT:0:15}%x%." '.0123456789abcdef.'
	run -0 rlock status a
	refute_output --partial 'has ended'
	run_timed_out 75 rlock run -w 1s a -- true
	refute_output --partial 'has ended'
	change_holder a '^.*$' ''
	run -0 rlock status a
	refute_output --partial 'has ended'
}

@test "stop of a holder whose process has ended says when the lease ends" {
	! in_time_namespace || skip 'no start times in a time namespace'
	start_holder h run -t 60s a
	kill_contender h
	wait "${PIDS[h]}" || :
	run -75 rlock stop -w 100ms a
	assert_output --regexp '; its process has ended, and the lease ends within [1-5][0-9]s; if its command has ended as well, try: rlock unlock --force --holder [^ ]+ a$'
}

@test "a holder whose pid was reused has ended, and is no deadlock for a descendant of the new process" {
	local other
	! in_time_namespace || skip 'no start times in a time namespace'
	start_holder h run -t 60s a
	kill_contender h
	wait "${PIDS[h]}" || :
	# Write the pid of this shell into the record, as if the kernel had reused the holder's pid.
	change_holder a "%.${PIDS[h]}%." ".$$."
	status_is 'lock["holders"][0]["gone"]' True a
	run_timed_out 75 rlock run -w 3s a -- true
	assert_output --partial 'its process has ended'
	redis flushall >/dev/null
	in_background rlock run outer -- env -u RLOCK_HELD sh -c 'wait_until_true test -e changed
		rlock run -n a -- true; echo $? >status'
	other=$PID
	start_holder h run -t 60s a
	kill_contender h
	wait "${PIDS[h]}" || :
	# Change the start time as well, since both processes may have started in the same clock tick.
	change_holder a "%.${PIDS[h]}%.%d+" ".$other.1"
	touch changed
	ended_with 0 "$other"
	assert_equal "$(<status)" 75
}
