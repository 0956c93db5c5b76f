#!/usr/bin/env bats
# bats file_tags=long
# The examples of rlock(1), rlock(7), README.md and the recipes do what the text says, without a change, and leave no lock.
# examples_protocol.bats and examples_library.bats run those of rlock-protocol(7) and librlock(3).

load ../lib/usual
load ../lib/documenting
load ../lib/examples
load ../lib/inspecting

# Give the server a port as well, since only the URL of a port can name a user.
setup_file() { start_server_at_port; }
teardown() {
	local server
	server=$(cat "$RLOCK_RUNTIME_DIR/local.pid" 2>/dev/null) && kill "$server" 2>/dev/null &&
		wait_until 10 is_gone "$server"
	teardown_and_check_processes
}

@test "each example that is marked has a test here" {
	awk -v top="$TOP/" '
		sub(/^\.\\" example: /, "") || (sub(/^<!-- example: /, "") && sub(/ -->$/, "")) {
			print substr(FILENAME, length(top) + 1), $0
		}' "$TOP"/man/*.[1-9] "$TOP"/README.md "$TOP"/packaging/recipes/README.md | sort >marked
	grep -ohE 'example (man/[a-z]+[-a-z]*\.[1-9]|(packaging/recipes/)?README\.md) [-a-z]+' "$BATS_TEST_DIRNAME"/examples*.bats |
		cut -d ' ' -f 2- | sort -u >tested
	assert [ "$(wc -l <marked)" -gt 10 ]
	run -0 diff marked tested
}

# ---- examples that do their work and end ----

# does_example FILE NAME OUTPUT [STUB...]: run the example, with stubs instead of the programs STUB. It must print exactly OUTPUT, and
# leave nothing locked. "lease" at the end of OUTPUT stands for the remaining time of a lease of 1 h.
does_example() {
	local name
	for name in "${@:4}"; do stub "$name"; done
	CI_JOB_ID=4711 run_example "$1" "$2"
	if [[ $3 = *lease ]]; then
		# The clock of some servers advances within a script.
		assert_regex "${lines[-1]}" '^(1h00m|59m59s)$'
		set -- "$1" "$2" "${3%lease}${lines[-1]}"
	fi
	assert_done "$3"
	wait_until 5 nothing_is_held
}

@test "the examples that are complete scripts do their work under a lock, and leave nothing locked" {
	does_example man/rlock.1 ci $'build\ndeploy'
	does_example man/rlock.1 deploy $'migrate\ndone'
	does_example man/rlock.1 script 'read, change, write'
	does_example man/rlock.1 staging $'test\ndeploy'
	does_example man/rlock.1 loop $'upgrade web1\nupgrade web2'
	does_example man/rlock.1 owner migrate
	does_example man/rlock.1 first 'the lock is held'
	does_example man/rlock.7 ask-steps $'migrate\nlease'
	does_example man/rlock-flock.1 part 'read-change-write ' read-change-write
	does_example README.md flock $'nightly-report \nread-change-write ' nightly-report
	does_example README.md ci 'deploy.sh production' deploy.sh
	does_example packaging/recipes/README.md names 'migrate-and-restart ' migrate-and-restart
	does_example README.md script 'read-change-write '
	does_example README.md fair 'deploy.sh production'
	does_example README.md warehouse $'report sales\nload ' report load
	does_example README.md steps 'deploy.sh production' deploy.sh
	does_example packaging/recipes/README.md pause $'job \nmaintenance ' job maintenance
	# The example exits with the status of a command that fails.
	stub migrate-and-restart 'exit 3'
	run_example packaging/recipes/README.md names
	assert_equal "$status" 3
	nothing_is_held
}

@test "README: two callers with one lock run one after the other" {
	# Replace `sleep 1`: on a busy machine the first caller, which starts the private server, can need longer to acquire the lock.
	stub sleep '[ "$1" = 3 ] || exec wait_until_true "rlock status shared"; exec /bin/sleep 3'
	PATH=$PWD:$PATH run_example README.md try
	assert_done 'my turn' 'rlock: shared: waiting for [^ ]+ pid [0-9]+ sleep'
}

@test "README: the commands that tell a machine its server write a file and a password by which rlock check succeeds" {
	redis acl setuser ci reset on '>SECRET' allkeys allchannels +@all >/dev/null
	stub sudo 'exec "$@"'
	show_example README.md server | sed "s|/etc/|$PWD/|g; s/redis\.example/127.0.0.1:$PORT/" >script
	PATH=$PWD:$PATH RLOCK_CONFIG=$PWD/rlock.conf run -0 sh ./script <<<SECRET
	assert_line --regexp "^ok +url +redis://ci@127\.0\.0\.1:$PORT, from $PWD/rlock\.conf:1\$"
	assert_equal "$(stat -c %a rlock.password)" 600
	nothing_is_held
}

@test "README: with a link called flock in the first directory of PATH, flock is rlock, and says so" {
	stub sudo 'exec "$@"'
	show_example README.md flock-link | sed "s|/usr/local|$PWD|g" >script
	PATH=$PWD:$PATH run -0 sh ./script
	assert_output --regexp '^flock from rlock '
}

# ---- cron ----

# as_cron FIELDS LINE: run LINE as cron does, without its first FIELDS words, on a machine whose configuration file names the server.
as_cron() {
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	assert_regex "$2" '^([0-9*/]+ +){5}'
	env -i HOME="$PWD" PATH="${RLOCK_BIN%/*}:/usr/bin:/bin" RLOCK_RUNTIME_DIR="$RLOCK_RUNTIME_DIR" \
		/bin/sh -c "$(cut -d ' ' -f "$1-" <<<"$2")"
}

@test "rlock(1): a line in the crontabs of several machines runs its job on one of them" {
	run -0 --separate-stderr as_cron 6 "$(show_example man/rlock.1 crontab)"
	refute_output ''
	assert_equal "$stderr" ''
	run -0 as_cron 6 "$(show_example man/rlock.1 crontab)"
	assert_output ''
	# --at-least keeps the lock for a minute after the job.
	ttl_between 50000 report 60000
}

@test "rlock-flock(1): a line of a crontab is silent if another machine runs the job, and keeps the status of a failure" {
	stub nightly-report 'echo report; exit 3'
	run_example man/rlock-flock.1 crontab
	assert_equal "$status $output" '3 report'
	nothing_is_held
	RLOCK_URL=unix:///nowhere run_example man/rlock-flock.1 crontab
	assert_equal "$status" 69
	rlock write --owner another --lease 1h "$(realpath -m /var/lock/report)"
	run_example man/rlock-flock.1 crontab
	assert_done ''
}

@test "README: a line of a crontab prints nothing until the last run seems to hang" {
	local line
	line=$(show_example README.md complain | sed -n '1s,/usr/local/bin/sync-all,true,; 1s,/usr/local/bin/,,p')
	rlock lock --owner job --lease 60s sync
	run -0 as_cron 7 "$line"
	assert_output ''
	make_older sync 21600000
	run -75 as_cron 7 "$line"
	assert_output --regexp '^rlock: sync: busy: held by .* \(job:0\) for 6h00m, and --complain-after says 6h; end that job$'
}

# ---- rlock(7) ----

@test "rlock(7): a store refuses a smaller fencing token" {
	run_example man/rlock.7 fence
	assert_done "$(printf '%s\n' 'stored with token 1' 'stored with token 2' \
		'refused: token 1 is smaller than 2' 'a holder that lost its lock cannot store')"
	# Only the token counter may remain.
	assert_equal "$(redis getdel 'redisson_lock_token:{report}')" 2
	nothing_is_held
}

@test "rlock(7): status shows which job holds a lock, since when, and which callers wait; list prints metrics" {
	in_background rlock fair --note "nightly backup" nightly -- run_until_ended
	wait_until 5 is_held nightly
	in_background rlock fair --note "nightly report" nightly -- true
	wait_until 5 has_queue_length nightly 1
	run_example man/rlock.7 ask-holder
	assert_equal "$status" 0
	assert_line --index 2 --regexp '^  holder +[0-9.]+s .* nightly backup  '
	assert_line --index 3 --regexp '^  waiter 1 +[0-9.]+s +rlock +nightly report +[0-9a-f]'
	rlock lock --owner ci --lease 1h deploy
	run_example man/rlock.7 metrics
	assert_equal "$status" 0
	check_metrics rlock.prom >found
	assert_equal "$(grep -c '^rlock_lock_held_seconds .*"name": "\(deploy\|nightly\)"' found)" 2
	assert_equal "$(grep -c '^rlock_lock_waiters .*"nightly"} 1$' found)" 1
}

@test "rlock(7): status --watch shows whether a lock is stuck" {
	hold_in_background nightly
	# Shorten the interval, and replace the shell by rlock (exec), so that PID is that of rlock.
	show_example man/rlock.7 ask-stuck | sed 's/^/exec /; s/5s/100ms/' >script
	in_background sh ./script >seen
	wait_until 10 was_seen_twice
	kill "$PID"
}
was_seen_twice() {
	[ "$(grep -cE '^nightly: plain lock, held, [0-9.]+s of its lease left$' seen)" -ge 2 ]
}

@test "rlock(7): stop asks a holder to end, and unlock --force breaks a lock that no process releases" {
	hold_in_background nightly -t 3s
	run_example man/rlock.7 ask-stop
	assert_done ''
	wait_until 5 is_gone "$PID"
	nothing_is_held
	rlock lock --owner ci-1234 --lease 1h nightly
	run_example man/rlock.7 ask-break
	assert_done '' '^rlock: nightly: lock broken: it was held by .+ \(ci-1234:0\), which may still run$'
	nothing_is_held
}

@test "rlock(7): list shows all locks, and those held for too long; recipes: a command of Nagios warns of these" {
	local nagios
	nagios=$(show_example packaging/recipes/README.md nagios | sed -n 's,^command\[[a-z]*\]=/usr/local/bin/,,p')
	rlock lock --owner ci --lease 1h --note 'release 7' deploy-shop
	rlock lock --owner ci --lease 1h --note 'the backup' nightly
	run_example man/rlock.7 ask-list
	assert_equal "$status" 0
	# The example lists all locks, and then those that match a pattern. deploy-shop is in both lists.
	assert_equal "$(grep -cE '^deploy-shop +plain .* release 7$' <<<"$output")" 2
	assert_equal "$(grep -cE '^nightly +plain .* the backup$' <<<"$output")" 1
	run_example man/rlock.7 too-long
	assert_done 'ok: no lock is held for 1h or longer'
	run -0 --separate-stderr sh -c "$nagios"
	assert_output 'ok: no lock is held for 2h or longer'
	make_older nightly 7200000
	run_example man/rlock.7 too-long
	assert_equal "$status" 1
	assert_line --regexp '^nightly .* the backup$'
	run -1 sh -c "$nagios"
	assert_line --regexp '^nightly +plain +2h00m .* the backup$'
}

@test "rlock(7): check shows whether a job of cron reaches the server, and whether a user has all rights" {
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	# The example clears the environment, so rlock uses the default runtime directory of this machine.
	HOME=$PWD run_example man/rlock.7 ask-cron
	assert_equal "$status" 0
	assert_line --regexp "^ok +url +unix://.*, from $PWD/\.config/rlock\.conf:1\$"
	redis acl setuser ci reset on '>pw' '~deploy-*' '&*' +@all -publish >/dev/null
	RLOCK_URL=redis://ci:pw@127.0.0.1:$PORT run_example man/rlock.7 ask-rights
	assert_equal "$status" 77
	assert_line --regexp '^BAD +rights +.*; try: ACL SETUSER ci .*\+publish'
}

@test "rlock(7): the log shows what happened last night; recipes: status shows the last holder of a lock" {
	stub nightly-report 'exit 3'
	echo "log = $PWD/rlock.log" >rlock.conf
	RLOCK_CONFIG=$PWD/rlock.conf run_example packaging/recipes/README.md remember
	assert_equal "$status" 1
	assert_line --index 1 --regexp '^  last held by .* pid [0-9]+ nightly-report .*: its command ended with 3$'
	RLOCK_CONFIG=$PWD/rlock.conf run -0 rlock run other -- true
	show_example man/rlock.7 ask-night | sed "s|/var/log|$PWD|" >script
	run -0 sh ./script
	assert_line --index 0 --regexp ' event=acquired name=nightly '
	assert_line --index 1 --regexp ' event=released name=nightly .* status=3( |$)'
	assert_equal "${#lines[@]}" 2
}

# ---- README.md, and the recipes ----

@test "recipes: a program gets the signal on which it cleans up, instead of SIGTERM" {
	show_example packaging/recipes/README.md signal | sed 's/2h/3s/' >script
	stub dump 'trap "echo cleaned; exit" INT; run_until_ended'
	run -124 --separate-stderr sh ./script
	assert_output cleaned
	nothing_is_held
}

# only_the_semaphore_stays NAME FREE: check that only the semaphore is left, with FREE free permits. Then empty the server.
only_the_semaphore_stays() {
	keys_are "$1" "rlock_total:{$1}"
	redis_says "$2" get "$1"
	redis flushall >/dev/null
}

@test "README: three imports run at a time, and each test has one of three phones" {
	stub import
	run_example README.md imports
	assert_done 'import '
	only_the_semaphore_stays imports 3
	stub test-app
	printf '%s\n' R58 PX7 PX8 >phones.txt
	run_example README.md phones
	assert_done 'test-app --serial R58'
	only_the_semaphore_stays phones 3
}

@test "recipes: a cooldown counts from the start, from the success, or from the end of a job" {
	local example ended
	# example packaging/recipes/README.md cooldown-start
	# example packaging/recipes/README.md cooldown-unless-failed
	# example packaging/recipes/README.md cooldown-success
	# example packaging/recipes/README.md cooldown-end
	for example in cooldown-{start,unless-failed,success,end}; do
		for ended in 0 3; do
			stub sync "echo sync; exit $ended"
			run_example packaging/recipes/README.md "$example"
			assert_equal "$status $output" "$ended sync"
			if [[ "$example $ended" = cooldown-@(success|unless-failed)' 3' ]]; then
				nothing_is_held
				continue
			fi
			ttl_is_above sync 590000
			run -75 sh ./script
			redis flushall >/dev/null
		done
	done
}

@test "recipes: unlock --force ends a cooldown early" {
	stub sync
	run_example packaging/recipes/README.md cooldown-start
	assert_equal "$status" 0
	run_example packaging/recipes/README.md cooldown-early
	assert_done '' '^rlock: sync: lock broken: --at-least kept it until [^ ]+, its job has ended: '
	nothing_is_held
}

# check_of_runs STATUS: the check of the recipes, and of rlock(7), must exit with STATUS.
check_of_runs() {
	run_example packaging/recipes/README.md has-run
	assert_equal "$status" "$1"
	run_example man/rlock.7 has-run
	assert_equal "$status" "$1"
}

@test "recipes: a check fails if the last run of a job has failed or is too long ago, and if the server is down" {
	check_of_runs 1
	rlock run --remember 2d nightly -- true
	check_of_runs 0
	# Change the age in the check instead of the time of the server.
	show_example packaging/recipes/README.md has-run | sed 's/25 \* 3600 \* 1000/-1/' >script
	run -1 sh ./script
	run -3 rlock run --remember 2d nightly -- sh -c 'exit 3'
	check_of_runs 1
	hold_in_background nightly
	check_of_runs 0
	end_commands
	ended_with 0
	# A lock that --at-least keeps must not count as a run.
	run -3 rlock run --remember 2d --at-least 1h nightly -- sh -c 'exit 3'
	is_held nightly
	check_of_runs 1
	rlock unlock --force nightly
	rlock run --remember 2d --at-least 1h nightly -- true
	check_of_runs 0
	RLOCK_URL=unix:///nowhere check_of_runs 1
}

@test "recipes: the result of that check becomes a metric" {
	local status_of_check
	for status_of_check in 0 1; do
		stub has-run "exit $status_of_check"
		run_example packaging/recipes/README.md has-run-metric
		assert_equal "$(<has-run.prom)" "rlock_has_run{name=\"nightly\"} $((!status_of_check))"
	done
}

@test "recipes: one caller runs, one waits, and a third exits at once" {
	stub rebuild 'echo rebuild; run_until_ended'
	show_example packaging/recipes/README.md one-waiter >script
	in_background sh ./script >first
	wait_until 5 grep -q rebuild first
	in_background sh ./script >second
	wait_until 5 is_held rebuild-next
	run_example packaging/recipes/README.md one-waiter
	assert_equal "$status$output" 75
	end_commands
	wait_until 10 grep -q rebuild second
	wait_until 10 nothing_is_held
}

@test "recipes: a command is repeated within its lock until it succeeds; machines start at different times" {
	stub upload 'echo try; [ -e once ] || { touch once; exit 1; }'
	stub sleep
	stub report
	stub shuf 'echo 42'
	PATH=$PWD:$PATH run_example packaging/recipes/README.md retry
	assert_done $'try\nsleep 2\ntry'
	nothing_is_held
	PATH=$PWD:$PATH run_example packaging/recipes/README.md jitter
	assert_done $'sleep 42\nreport '
	is_held report
}

@test "the recipe for a server that is down runs the job once without a lock, and keeps the status of a job that fails" {
	printf '#!/bin/sh\necho ran >>runs\nexit 5\n' >job
	chmod +x job
	run_example packaging/recipes/README.md run-anyway
	assert_equal "$status" 5
	RLOCK_URL=unix:///nowhere run_example packaging/recipes/README.md run-anyway
	assert_equal "$status" 5
	assert_regex "$stderr" '^rlock: nightly: cannot reach '
	assert_equal "$(wc -l <runs)" 2
}

@test "README: unlock --force --holder frees the lock of a CI job whose runner has died" {
	show_example README.md steps | sed '1!d; s/1h/60s/' >script
	CI_JOB_ID=4711 run -0 sh ./script
	is_held deploy-production
	run_example README.md dead-runner
	assert_done '' '^rlock: deploy-production: lock broken: it was held by .* \(job-4711:0\), which may still run$'
	nothing_is_held
}

@test "README: unlock --force breaks a lock that no process releases" {
	hold_by_foreign_client stuck
	run_example README.md stuck
	assert_equal "$status" 0
	assert_line --regexp '^  holder .* 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1$'
	assert_regex "$stderr" '^rlock: stuck: 5e8b3cf0.* cannot be asked: it is not rlock,.*
rlock: stuck: lock broken: it was held by .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1, which may still run$'
	nothing_is_held
}
