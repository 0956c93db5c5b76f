#!/usr/bin/env bats
# rlock run when another holder has the lock: waiting, the messages of a wait, and --complain-after, by which a cron job is silent while
# the last run is merely long, and reports it when it hangs.

load ../lib/usual
load ../lib/inspecting
load ../lib/proxying

# ---- taking turns ----

@test "a second caller with -n exits silently with 75, or with the code of -E" {
	run -3 rlock run -n -E 0 a -- sh -c 'exit 3'
	hold_in_background a
	for options in -n '--wait 0' '-w 0ms' '-q -w 1s'; do
		# shellcheck disable=SC2086
		run_timed_out 75 rlock run $options a -- true
		assert_output ''
	done
	run -0 rlock run -n -E 0 a -- false
	run_timed_out 255 rlock run --conflict-exit-code 255 -w 1s a -- true
	assert_one_line '^rlock: a: timed out after 1s'
}

# requests: as server_commands, but without the probes of a subscription, which a waiter sends every few seconds. Read both counts by
# one request: between two requests the waiter could send a probe.
requests() {
	local subscribes=0
	ask_server info all
	[[ ! $ANSWER =~ cmdstat_subscribe:calls=([0-9]+) ]] || subscribes=${BASH_REMATCH[1]}
	[[ $ANSWER =~ total_commands_processed:([0-9]+) ]] && echo $((BASH_REMATCH[1] - subscribes))
}

@test "a waiter acquires the lock when the holder ends, and sends no request until then" {
	local before subscriptions
	hold_in_background a -t 5m
	subscriptions=$(calls_of subscribe)
	in_background rlock run a -- touch second
	wait_until 5 has_waiters a 1
	# The first probe follows the attempt that comes after the subscription.
	wait_until 10 has_subscribed_again $((subscriptions + 1))
	before=$(requests)
	pause_for 1.5
	assert_equal $(($(requests) - before)) 1
	refute file_exists second
	end_commands
	ended_with 0
	file_exists second
	wait_until 5 no_keys
}

@test "a name may be 512 bytes long and contain any byte but NUL and newline" {
	local name
	for name in "$(printf '%512s' '' | tr ' ' x)" 'two words' '*?[a]' $'tab\tand\x01' 'ünï' '{tag}x' 'a}b{' '%s%n'; do
		run -0 rlock run "$name" -- ask_redis "$SERVER_SOCKET" exists "$name"
		assert_output 1
	done
	no_keys
}

@test "under sudo the note also names the user that called sudo" {
	[ "$(id -u)" = 0 ] || skip 'only root can play a process of sudo'
	while IFS='|' read -r user shown; do
		echo "'$user'" >&2
		run -0 env LOGNAME=root SUDO_USER="$user" rlock run a -- rlock status a
		assert_output --partial " $shown@$(uname -n) pid "
	done <<-END
		joe|root(joe)
		|root
		root|root
		j oe|root
	END
}

# note_is REGEXP [VARIABLE=VALUE...]: the note of a lock that is acquired with this environment must match.
note_is() {
	run -0 env "${@:2}" rlock run a -- rlock status --json a
	assert_output --regexp "\"note\":\"$1\""
}

@test "the note names the effective user, whatever LOGNAME and USER say" {
	local me
	me=$(id -un 2>/dev/null) || me=uid$(id -u)
	note_is "$me@[^ ]+ pid [0-9]+ rlock" LOGNAME=daemon USER=daemon
	note_is "$me@[^ ]+ pid [0-9]+ rlock" LOGNAME= USER=
	note_is "$me@[^ ]+ pid [0-9]+ rlock" LOGNAME="$me" USER=daemon
}

@test "in CI the note has the whole URL of the job, or none of it" {
	local note='[^ ]+ pid [0-9]+ rlock' long
	long=https://ci.example/$(printf 'x%.0s' {1..300})
	note_is "$note https://gitlab.example/a/-/jobs/7" CI_JOB_URL=https://gitlab.example/a/-/jobs/7
	note_is "$note https://github.com/a/b/actions/runs/7" GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=a/b GITHUB_RUN_ID=7
	note_is "$note https://ci.example/job/a/7/" JENKINS_URL=https://ci.example/ BUILD_URL=https://ci.example/job/a/7/
	note_is "$note https://buildkite.com/a/b/builds/7" BUILDKITE_BUILD_URL=https://buildkite.com/a/b/builds/7
	note_is "$note https://circleci.com/gh/a/b/7" CIRCLE_BUILD_URL=https://circleci.com/gh/a/b/7
	note_is "$note" BUILD_URL=https://ci.example/job/a/7/
	note_is "$note" CI_JOB_URL="$long"
	note_is "$note" CI_JOB_URL=https://user:secret@ci.example/7
	note_is "$note" CI_JOB_URL='https://ci.example/a b'
}

@test "the note of a lock for --owner names the owner instead of an ended process" {
	run -0 env CI_JOB_URL=https://ci.example/7 rlock lock --owner job-7 --lease 1m a
	run -0 rlock status --json a
	assert_output --regexp '"note":"[^ ]+ owner job-7 https://ci.example/7"'
	run -0 rlock list --metrics
	assert_output --regexp 'held_seconds\{name="a",kind="plain",holder="[^" ]+@[^" ]+"\}'
	rlock unlock --owner job-7 a
}

@test "a waiter whose subscription is cut each time retries at growing intervals, and ends with 75" {
	hold_in_background a
	start_realtime_proxy
	proxy log "$PWD/requests"
	proxy cut-before subscribe 1000
	run -75 rlock run -w 5s a -- touch ran
	[ ! -e ran ]
	tries=$(grep -c 'redisson_lock_token:{a}' requests)
	((tries > 2 && tries <= 20)) || fail "$tries tries"
}

# ---- the waiting line ----

@test "after a second the waiting line is printed on a terminal, with -v and in CI only" {
	local -a rows
	local number
	hold_in_background a --note 'nightly backup'
	mapfile -t rows <<-'END'
		0 rlock run -w 5s a -- true
		1 rlock run -v -w 5s a -- true
		1 CI=true rlock run -w 5s a -- true
		0 CI=true rlock run -q -w 5s a -- true
		0 CI= rlock run -w 5s a -- true
		0 CI=false rlock run -w 5s a -- true
		1 TERM=dumb script -qec 'rlock run -w 5s a -- true' /dev/null
		0 script -qec 'rlock run -q -w 5s a -- true' /dev/null
	END
	for number in "${!rows[@]}"; do
		in_background sh -c "${rows[number]#* }" >"output-$number" 2>&1 </dev/null
	done
	wait "${BACKGROUND[@]:1}" || :
	for number in "${!rows[@]}"; do
		run grep -cE 'a: waiting for nightly backup, held for [0-9.]+s.?$' "output-$number"
		assert_equal "$output ${rows[number]#* }" "${rows[number]}"
		# A terminal that cannot erase a line must get no escape sequences.
		run ! grep $'\e' "output-$number"
	done
	run -0 env CI=true rlock run free -- true
	assert_output ''
}

@test "the waiting line names each holder, and is rewritten on a terminal; the end of the wait is reported" {
	local shown wait_line='rlock: a: waiting for the first, held for [0-9.]+s'
	in_background rlock run --note 'the first' a -- inside first
	wait_until 5 file_exists in-first
	in_background rlock run --note 'the second' a -- inside second
	wait_until 5 has_waiters a 1
	run_waiter_in_real_time "$PID"
	in_background env TERM=xterm script -qfec 'rlock run a -- echo done' shown </dev/null >/dev/null
	in_background env CI=true rlock run a -- true 2>log
	wait_until 20 grep -qE 'first, held for ([3-9]|[1-9][0-9]+)s' shown
	wait_until 20 grep -q 'waiting for the first' log
	: >out-first
	wait_until 20 grep -q 'waiting for the second' shown
	end_commands
	wait_until 20 grep -q 'Script done' shown
	shown=$(tr -d '\n' <shown | sed 's/\x1b/<E>/g; s/\r/<R>/g')
	assert_regex "$shown" "<R>$wait_line<R><E>\\[Krlock: a: waiting"
	assert_regex "$shown" 'held for [0-9.]+s<R><E>\[Krlock: a: acquired after [0-9.]+s<R>done'
	[[ $shown != *'has ended'* ]]
	ended_with 0
	assert_regex "$(cat log)" $'^'"$wait_line"$'\nrlock: a: acquired after [0-9.]+s$'
}

@test "text of other programs is escaped in the waiting line and at the end of the wait" {
	redis hset a $'\e[31mred:1' 1 >/dev/null
	run_timed_out 75 env CI=true rlock run -w 6s a -- true
	assert_line --index 0 --partial 'waiting for \x1b[31mred:1'
	assert_line --index 1 --partial 'held by \x1b[31mred:1'
	refute_output --partial $'\e'
}

# ---- --complain-after ----

@test "--complain-after is silent with the code of -E until the lock was held that long; then one line and 75" {
	local status said arguments
	local why='busy: held by nightly backup of db1 \([0-9a-f:-]+\) for 2h03m, and --complain-after says' how='to end that job, try: rlock stop a'
	hold_in_background a --note 'nightly backup of db1'
	make_older a 7380000
	printf 'complain-after = 1h\n' >conf
	while IFS='|' read -r status said arguments; do
		echo "$arguments" >&2
		# shellcheck disable=SC2086
		run "-$status" rlock run $arguments a -- touch ran
		[ -z "$said" ] || assert_one_line "^rlock: a: $said\$"
		[ -n "$said" ] || assert_output ''
		refute file_exists ran
	done <<-END
		75||-n --complain-after 3h
		0||-n -E 0 --complain-after 3h
		0||-w 0 -E 0 --complain-after 3h
		75|$why 2h; $how|-n -E 0 --complain-after 2h
		75|$why 2h; $how|-n -q -E 0 --complain-after 2h
		75|$why 1h; $how|-n -E 0 --config conf
		9|timed out after 1s.*|-w 1s -E 9 --config conf
	END
	in_background rlock flock "$PWD/file" run_until_ended
	wait_until 5 is_held "$PWD/file"
	make_older "$PWD/file" 7200000
	run -1 env RLOCK_CONFIG="$PWD/conf" rlock flock -n "$PWD/file" true
	assert_output ''
}

@test "--complain-after is silent about a Java holder, whose age is unknown, and about a lock kept by --at-least" {
	hold_by_foreign_client a
	run -0 rlock run -n -E 0 --complain-after 0 a -- false
	assert_output ''
	rlock run --at-least 1h b -- true
	make_older b 7200000
	run -0 rlock run -n -E 0 --complain-after 1h b -- false
	assert_output ''
}

@test "--complain-after goes by the oldest of several readers, and by the held one of several names" {
	local name
	for name in first second third; do
		acquire read "$name" catalog --note "$name"
	done
	make_older catalog 7200000 second
	run -75 rlock write -n -E 0 --complain-after 2h unheld catalog -- true
	assert_one_line '^rlock: catalog: busy: held by second \(second:0\) for 2h00m, and --complain-after says 2h; end that job$'
}
