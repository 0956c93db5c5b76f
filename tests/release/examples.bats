#!/usr/bin/env bats
# bats file_tags=long
# The examples of rlock(1), rlock(7) and README.md do what is said of them, as they stand there, and leave nothing
# locked. Those of rlock-protocol(7) and librlock(3) are run by examples_protocol.bats and examples_library.bats.

# `run` sets what a program said.
# shellcheck disable=SC2154

load ../lib/usual
load ../lib/documenting
load ../lib/examples
load ../lib/inspecting

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown() {
	local server
	server=$(cat "$RLOCK_RUNTIME_DIR/local.pid" 2>/dev/null) && kill "$server" 2>/dev/null &&
		wait_until 10 is_gone "$server"
	watchful_teardown
}

nothing_is_held_locally() {
	assert_equal "$(redis-cli -s "$RLOCK_RUNTIME_DIR/local.sock" dbsize)" 0
}

@test "each example that is marked has a test here" {
	awk -v top="$TOP/" '
		sub(/^\.\\" example: /, "") || (sub(/^<!-- example: /, "") && sub(/ -->$/, "")) {
			print substr(FILENAME, length(top) + 1), $0
		}' "$TOP"/man/*.[1-9] "$TOP/README.md" | sort >marked
	grep -ohE 'example (man/[a-z]+[-a-z]*\.[1-9]|README\.md) [-a-z]+' "$BATS_TEST_DIRNAME"/examples*.bats |
		cut -d ' ' -f 2- | sort -u >tested
	assert [ "$(wc -l <marked)" -gt 10 ]
	run -0 diff marked tested
}

# ---- those that do their work and end ----

# does_example FILE NAME OUTPUT [STUB...]: it prints that and no more ("lease": what is left of one), with these programs in the
# place of the real work.
does_example() {
	local name
	for name in "${@:4}"; do stub "$name"; done
	CI_JOB_ID=4711 run_example "$1" "$2"
	if [ "$3" = lease ]; then
		# Some servers let their clock run on within a script.
		assert_regex "$output" '^(1h00m|59m59s|30m00s|29m59s)$'
		set -- "$1" "$2" "$output"
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
	does_example README.md flock $'nightly-report \nread-change-write ' nightly-report read-change-write
	does_example README.md ci 'deploy.sh production' deploy.sh
	does_example README.md names 'migrate-and-restart ' migrate-and-restart
	does_example README.md script 'read-change-write ' read-change-write
	does_example README.md fair 'deploy.sh production' deploy.sh
	does_example README.md warehouse $'report sales\nload ' report load
}

@test "the examples whose steps are separate shells renew their lock and release it" {
	does_example man/rlock.1 owner lease
	does_example man/rlock.7 ask-steps lease
	does_example README.md steps lease
}

# ---- rlock(1) and rlock(7) ----

@test "rlock(1): the first lock" {
	run_example man/rlock.1 first
	assert_done 'the lock is held'
	nothing_is_held_locally
}

# cron SHELL_LINE: as cron would have it run on one machine.
cron() {
	env -i HOME="$PWD" PATH="${RLOCK_BIN%/*}:/usr/bin:/bin" RLOCK_RUNTIME_DIR="$RLOCK_RUNTIME_DIR" /bin/sh -c "$1"
}

@test "rlock(1): of all machines that have the line in their crontab one does the work" {
	local line
	line=$(show_example man/rlock.1 crontab)
	assert_regex "$line" '^([0-9*]+ +){5}rlock '
	line=$(cut -d ' ' -f 6- <<<"$line")
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	run -0 --separate-stderr cron "$line"
	refute_output ''
	assert_equal "$stderr" ''
	run -0 cron "$line"
	assert_output ''
	# For a minute it has no owner, and then it is free.
	run redis hkeys report
	assert_output --regexp ':lingering:[0-9]+$'
	run redis pttl report
	assert [ "$output" -gt 50000 ]
	assert [ "$output" -le 60000 ]
}

# only_the_counter_stays NAME TOKEN: of a lock with --fence, which was acquired so many times.
only_the_counter_stays() {
	assert_equal "$(redis getdel "redisson_lock_token:{$1}")" "$2"
	nothing_is_held
}

@test "rlock(7): a store that refuses a smaller token" {
	run_example man/rlock.7 fence
	assert_done "$(printf '%s\n' 'stored with token 1' 'stored with token 2' \
		'refused: token 1 is smaller than 2' 'a holder that lost its lock cannot store')"
	only_the_counter_stays report 2
}

# only_the_semaphore_stays NAME FREE
only_the_semaphore_stays() {
	assert_equal "$(redis --scan | sort)" "$(printf '%s\n' "$1" "rlock_total:{$1}")"
	assert_equal "$(redis get "$1")" "$2"
	no_hold_files
}

@test "rlock(7): which job holds a lock, since when, and which wait" {
	in_background rlock fair --note "nightly backup" nightly -- until_let_go
	wait_until 5 is_held nightly
	in_background rlock fair --note "nightly report" nightly -- true
	wait_until 5 has_in_queue nightly 1
	run_example man/rlock.7 ask-holder
	assert_equal "$status" 0
	assert_line --index 0 --regexp '^nightly: fair lock, held, [0-9]+s of its lease left$'
	assert_line --index 1 --regexp '^ +FOR +TTL '
	assert_line --index 2 --regexp '^  holder +[0-9.]+s .* nightly backup  '
	assert_line --index 3 --regexp '^  waiter 1 +[0-9.]+s +rlock +nightly report +[0-9a-f]'
}

@test "rlock(7): whether a lock is stuck" {
	hold_in_background nightly -t 6s
	# Only the interval is another, and the shell is replaced, so that it ends with its script.
	show_example man/rlock.7 ask-stuck | sed 's/^/exec /; s/5s/100ms/' >script
	in_background sh ./script >seen
	# What it shows of the TTL grows again at each renewal.
	wait_until 10 ttl_grew
	kill "$PID"
	run -0 cat seen
	assert_line --index 0 --regexp '^nightly: plain lock, held, [0-9.]+s of its lease left$'
}
ttl_grew() {
	sed -nE 's/.* held, ([0-9.]+)s .*/\1/p' seen | awk 'NR > 1 && $1 > last + 0.5 { grew = 1 } { last = $1 } END { exit !grew }'
}

@test "rlock(7): a holder is asked to stop" {
	hold_in_background nightly -t 1s
	run_example man/rlock.7 ask-stop
	assert_done ''
	wait_until 5 is_gone "$PID"
	nothing_is_held
}

@test "rlock(7): which lock may be broken, and that no other holder is hit" {
	rlock lock --owner ci-1234 --lease 1h nightly
	run -0 rlock status nightly
	assert_line --index 2 --regexp ' ci-1234:0$'
	run_example man/rlock.7 ask-break
	assert_done '' '^rlock: nightly: lock broken: it was held by .+ \(ci-1234:0\), which may still run$'
	nothing_is_held
	rlock lock --owner another --lease 1h nightly
	run_example man/rlock.7 ask-break
	assert_equal "$status" 1
	assert_equal "$(redis exists nightly)" 1
}

@test "rlock(7): which locks there are" {
	rlock lock --owner ci --lease 1h --note 'release 7' deploy-shop
	rlock lock --owner ci --lease 1h --note 'the backup' nightly
	run_example man/rlock.7 ask-list
	assert_equal "$status" 0
	# All of them, then those that fit the pattern.
	assert_equal "$(grep -cE '^deploy-shop +plain .* release 7$' <<<"$output")" 2
	assert_equal "$(grep -cE '^nightly +plain .* the backup$' <<<"$output")" 1
}

@test "rlock(7): whether a job of cron reaches the server" {
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	# The runtime directory is this machine's own here.
	HOME=$PWD run_example man/rlock.7 ask-cron
	assert_equal "$status" 0
	assert_line --regexp '^unix://.*: the server is from .*/\.config/rlock\.conf$'
	assert_line --regexp "^ok +url +unix://.*, from $PWD/\.config/rlock\.conf:1\$"
	echo 'url = redis://127.0.0.1:1' >.config/rlock.conf
	HOME=$PWD run_example man/rlock.7 ask-cron
	assert_equal "$status" 69
	assert_line --regexp '^BAD +server +cannot reach redis://127.0.0.1:1/0'
}

@test "rlock(7): whether a user has all rights" {
	run_example man/rlock.7 ask-rights
	assert_equal "$status" 0
	assert_line --regexp '^ok +rights +all$'
	redis acl setuser ci reset on '>pw' '~deploy-*' '&*' +@all -publish >/dev/null
	RLOCK_URL=redis://ci:pw@127.0.0.1:$PORT run_example man/rlock.7 ask-rights
	assert_equal "$status" 77
	assert_line --regexp '^BAD +rights +.*: try: ACL SETUSER ci .*\+publish'
}

@test "rlock(7): metrics of each lock" {
	rlock lock --owner ci --lease 1h deploy
	in_background rlock run nightly -- until_let_go
	wait_until 5 is_held nightly
	in_background rlock run -w 20s nightly -- true
	wait_until 5 has_waiters nightly 1
	run_example man/rlock.7 metrics
	assert_equal "$status" 0
	samples <rlock.prom >found
	run -0 grep -c '^rlock_lock_held_seconds .*"name": "\(deploy\|nightly\)"' found
	assert_output 2
	run -0 grep -c '^rlock_lock_waiters .*"nightly"} 1$' found
}

@test "rlock(7): which locks are held for too long" {
	rlock lock --owner ci --lease 1h --note 'release 7' deploy
	run_example man/rlock.7 too-long
	assert_done '' 'no lock is held for 1h or longer$'
	make_older deploy 3600000
	run_example man/rlock.7 too-long
	assert_equal "$status" 1
	assert_line --regexp '^deploy .* release 7$'
}

@test "rlock(7): what happened last night" {
	echo "log = $PWD/rlock.log" >rlock.conf
	RLOCK_CONFIG=$PWD/rlock.conf run -3 rlock run nightly -- sh -c 'exit 3'
	RLOCK_CONFIG=$PWD/rlock.conf run -0 rlock run other -- true
	show_example man/rlock.7 ask-night | sed "s|/var/log|$PWD|" >script
	run -0 sh ./script
	assert_line --index 0 --regexp ' event=acquired name=nightly '
	assert_line --index 1 --regexp ' event=released name=nightly .* status=3( |$)'
	assert_equal "${#lines[@]}" 2
}

# ---- rlock-flock(1) ----

@test "rlock-flock(1): a line of a crontab is silent while another machine runs the job" {
	stub nightly-report
	run_example man/rlock-flock.1 crontab
	assert_done 'nightly-report '
	in_background rlock flock /var/lock/report until_let_go
	wait_until 10 is_held "$(realpath -m /var/lock/report)"
	run_example man/rlock-flock.1 crontab
	assert_done ''
	let_go
	ended_with 0
	nothing_is_held
}

@test "rlock-flock(1): a part of a script has the lock, and ends it with status 1 while it is held" {
	stub read-change-write
	run_example man/rlock-flock.1 part
	assert_done 'read-change-write '
	wait_until 5 nothing_is_held
	in_background rlock flock /tmp/mylockfile until_let_go
	wait_until 10 is_held /tmp/mylockfile
	run_example man/rlock-flock.1 part
	assert_equal "$status" 1
	assert_equal "$output$stderr" ''
	let_go
	ended_with 0
	wait_until 5 nothing_is_held
}

# ---- README.md ----

@test "README: two that want one lock" {
	run_example README.md try
	assert_done 'my turn' 'rlock: shared: waiting for [^ ]+ pid [0-9]+ sleep'
	nothing_is_held_locally
}

@test "README: a line of a crontab that is silent until the last run must hang" {
	local line
	mkdir -p .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	show_example README.md complain | sed -n '1s,/usr/local/bin/sync-all,true,; 1s,/usr/local/bin/,,p' >table
	line=$(cut -d ' ' -f 7- table)
	assert_regex "$line" '^rlock '
	rlock lock --owner job --lease 60s sync
	run -0 cron "$line"
	assert_output ''
	make_older sync 21600000
	run -75 cron "$line"
	assert_output --regexp '^rlock: sync: busy: held by .* \(job:0\) for 6h00m, and --complain-after says 6h: end that job$'
	rlock unlock --owner job sync
}

@test "README: a command of Nagios that warns of a lock that is held for too long" {
	local line
	line=$(show_example README.md nagios | sed -n 's,^command\[[a-z]*\]=/usr/local/bin/,,p')
	assert_regex "$line" '^rlock list '
	rlock lock --owner job --lease 60s --note 'nightly backup' nightly
	run -0 --separate-stderr sh -c "$line"
	assert_output ''
	make_older nightly 7200000
	run -1 sh -c "$line"
	assert_line --regexp '^nightly +plain +2h00m .* nightly backup$'
	rlock unlock --owner job nightly
}

@test "README: which holder held a lock last" {
	printf '#!/bin/sh\nexit 3\n' >nightly-report
	chmod +x nightly-report
	run_example README.md remember
	assert_equal "$status" 1
	assert_line --index 1 --regexp '^  last held by .* pid [0-9]+ nightly-report .*: its command ended with 3$'
	redis del 'rlock_last:{nightly}'
}

@test "README: a program that cleans up on another signal than SIGTERM" {
	show_example README.md signal | sed 's/2h/3s/' >script
	echo 'trap "echo cleaned; exit" INT; until_let_go' >dump
	chmod +x dump
	run -124 --separate-stderr sh ./script
	assert_output cleaned
	nothing_is_held
}

@test "README: a command that fails passes its status on" {
	printf '#!/bin/sh\nexit 3\n' >migrate-and-restart
	chmod +x migrate-and-restart
	run_example README.md names
	assert_equal "$status" 3
	nothing_is_held
}

@test "README: three imports at a time" {
	stub import
	run_example README.md imports
	assert_done 'import '
	only_the_semaphore_stays imports 3
}

@test "README: one of three test phones" {
	stub test-app
	printf '%s\n' R58 PX7 PX8 >phones.txt
	run_example README.md phones
	assert_done 'test-app --serial R58'
	in_background rlock sem --permits 3 phones -- until_let_go
	wait_until 5 is_above "$PID" until_let_go
	run_example README.md phones
	assert_done 'test-app --serial PX7'
	let_go
	ended_with 0
	only_the_semaphore_stays phones 3
}

@test "README: a cooldown from the start, after success alone, and after the end" {
	local example ended
	# example README.md cooldown-start
	# example README.md cooldown-success
	# example README.md cooldown-end
	for example in cooldown-{start,success,end}; do
		for ended in 0 3; do
			printf '#!/bin/sh\necho sync\nexit %s\n' "$ended" >sync
			chmod +x sync
			run_example README.md "$example"
			assert_equal "$status" "$ended"
			assert_output sync
			if [ "$example $ended" = 'cooldown-success 3' ]; then
				nothing_is_held
				continue
			fi
			assert [ "$(redis pttl sync)" -gt 590000 ]
			run -75 sh ./script
			redis flushall >/dev/null
		done
	done
}

@test "README: one runs, one waits, and a third call ends at once" {
	printf '#!/bin/sh\necho rebuild\nuntil_let_go\n' >rebuild
	chmod +x rebuild
	show_example README.md one-waiter >script
	in_background sh ./script >first
	wait_until 5 grep -q rebuild first
	in_background sh ./script >second
	wait_until 5 is_held rebuild-next
	run_example README.md one-waiter
	assert_equal "$status" 75
	assert_output ''
	let_go
	wait_until 10 grep -q rebuild second
	wait_until 10 nothing_is_held
}

@test "README: maintenance waits for the jobs that run, and new ones wait for it" {
	stub maintenance
	stub job
	rlock read --owner running --lease 1h jobs
	show_example README.md pause | sed -n 2p >maintain
	in_background sh ./maintain >maintained
	wait_until 5 has_waiters jobs 1
	run -75 rlock read -n jobs -- true
	rlock unlock --owner running jobs
	wait_until 5 grep -q maintenance maintained
	run_example README.md pause
	assert_done $'job \nmaintenance '
	nothing_is_held
}

@test "README: a command that is repeated within its lock until it succeeds" {
	cat >upload <<-"END"
		#!/bin/sh
		echo try
		[ -e once ] || { touch once; exit 1; }
	END
	chmod +x upload
	stub sleep
	PATH=$PWD:$PATH run_example README.md retry
	assert_done $'try\nsleep 2\ntry'
	nothing_is_held
}

@test "README: machines that do not all begin at once" {
	stub report
	stub sleep
	printf '#!/bin/sh\necho 42\n' >shuf
	chmod +x shuf
	PATH=$PWD:$PATH run_example README.md jitter
	assert_done $'sleep 42\nreport '
	is_held report
}

@test "README: a lock that no process releases" {
	held_by_stranger stuck
	run_example README.md stuck
	assert_equal "$status" 0
	assert_line --regexp '^  holder .* 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1$'
	assert_regex "$stderr" '^rlock: stuck: 5e8b3cf0.* cannot be asked: it is no rlock,.*
rlock: stuck: lock broken: it was held by .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1, which may still run$'
	nothing_is_held
}
