#!/usr/bin/env bats
# The recipes of packaging/recipes for cron, systemd and what runs many jobs at a time, run as these run them: each
# holds its lock while its job runs, releases it when the job fails, too, and ends with the status of the job.
# recipes_ci.bats and recipes_kubernetes.bats do the same with the others.

load ../lib/usual
load ../lib/recipes

setup() { recipes_setup; }
# ---- cron and systemd ----

as_cron() {
	recipe cron "$RECIPES/crontab"
}

@test "a crontab runs its job on one machine, and keeps the lock a while for the others' clocks" {
	run -0 as_cron
	has_done 'nightly-report ....-..-..$'
	rm did
	# Another machine, a little later: not a word, for which cron would send mail.
	run -0 as_cron
	assert_output ''
	assert [ ! -e did ]
	[ "$(redis pttl nightly-report)" -gt 200000 ]
	redis del nightly-report 'rlock_holds:{nightly-report}'
	echo 3 >status
	run -3 as_cron
}

@test "a machine whose crontab comes to a held lock stays silent while the job runs" {
	touch stay
	begin as_cron
	wait_until 120 has_done nightly-report
	run -0 as_cron
	assert_output ''
	touch go
	ended_with 0
	assert_equal "$(grep -c ended did)" 1
}

@test "a crontab of flock, whose PATH has the link, runs its job on one machine at a time" {
	local line
	sed "s|/usr/local/libexec/rlock|$PWD/link|" "$RECIPES/crontab-flock" >table
	mkdir link
	ln -s "$RLOCK_BIN" link/flock
	sed -n 's/^PATH=//p' table >path
	assert_equal "$(cut -d : -f 1 path)" "$PWD/link"
	touch stay
	line=$(sed -n 's/^17 3 \* \* \*  //p' table | sed 's/\\%/%/g')
	assert [ "$line" ]
	begin env PATH="$PWD/link:$PATH" sh -c "$line"
	wait_until 120 has_done 'nightly-report ....-..-..$'
	is_held "$(realpath -m /var/lock/nightly-report)"
	run -0 env PATH="$PWD/link:$PATH" sh -c "$line"
	assert_output ''
	touch go
	ended_with 0
	assert_equal "$(grep -c ended did)" 1
	is_free "$(realpath -m /var/lock/nightly-report)"
}

# unit_value FILE NAME: what the last line says that sets it.
unit_value() {
	sed -n "s/^$2=//p" "$RECIPES/$1" | tail -n 1
}

as_service() {
	recipe service "$RECIPES/nightly-report.service"
}

# start_service: sets PID, its main process; each of its processes has INVOCATION_ID in its environment.
start_service() {
	in_background env "INVOCATION_ID=$BATS_TEST_TMPDIR" recipe service "$RECIPES/nightly-report.service"
	wait_until 120 has_done nightly-report
}

# stop_service KILLMODE SECONDS: as systemd does.
stop_service() {
	local processes=$PID
	[ "$1" = mixed ] || processes=$(processes_with "INVOCATION_ID=$BATS_TEST_TMPDIR")
	# shellcheck disable=SC2086
	kill -TERM $processes || : # one may have ended
	wait_until "$2" is_gone "$PID" || :
	processes=$(processes_with "INVOCATION_ID=$BATS_TEST_TMPDIR")
	# shellcheck disable=SC2086
	[ -z "$processes" ] || kill -KILL $processes || :
	wait_until 5 none_with "INVOCATION_ID=$BATS_TEST_TMPDIR"
}

@test "a service of systemd writes the metrics of locks where the node exporter reads them" {
	mkdir node-exporter
	sed "s,/var/lib/prometheus/node-exporter,$PWD/node-exporter," "$RECIPES/rlock-metrics.service" >metrics.service
	rlock lock --owner job --lease 60s nightly
	run -0 recipe service "$PWD/metrics.service"
	assert_output ''
	run -0 samples node-exporter/rlock.prom
	assert_output --partial 'rlock_lock_held_seconds {"holder": '
	assert_output --partial 'rlock_lock_waiters {"kind": "plain", "name": "nightly"} 0'
	# Without a server the old file stays, and no half of a new one is read.
	echo "url = unix://$PWD/none" >.config/rlock.conf
	cp node-exporter/rlock.prom before
	run -69 recipe service "$PWD/metrics.service"
	run -0 cmp before node-exporter/rlock.prom
	grep -q '^OnCalendar=\*-\*-\* \*:\*:00$' "$RECIPES/rlock-metrics.timer"
}

@test "a service of systemd runs its job on one machine, and counts a busy lock as success" {
	touch stay
	start_service
	run as_service
	assert_equal "$status" "$(unit_value nightly-report.service SuccessExitStatus)"
	assert_output ''
	touch go
	ended_with 0
	# --at-least keeps it.
	[ "$(redis pttl nightly-report)" -gt 200000 ]
	redis del nightly-report 'rlock_holds:{nightly-report}'
	echo 3 >status
	run -3 as_service
}

@test "a service of systemd that is stopped ends its job before its time is over" {
	touch stay
	start_service
	stop_service "$(unit_value nightly-report.service KillMode)" "$(unit_value nightly-report.service TimeoutStopSec)"
	# SIGTERM, which systemd counts as a clean end.
	ended_with 143
	run ! has_done ended
	is_held nightly-report
	run redis hkeys nightly-report
	assert_output --regexp ':lingering:[0-9]+$'
}

@test "systemd finds no fault with the units" {
	command -v systemd-analyze >/dev/null || skip 'systemd-analyze is not here'
	# systemd looks into its own PATH, where rlock may not be installed.
	sed "s,^ExecStart=rlock ,ExecStart=$PWD/jobs/rlock ," "$RECIPES/nightly-report.service" >nightly-report.service
	cp "$RECIPES/nightly-report.timer" .
	run systemd-analyze verify --man=no ./nightly-report.timer ./nightly-report.service
	refute_output --partial nightly-report
	run -0 systemd-analyze calendar "$(unit_value nightly-report.timer OnCalendar)"
}

# ---- many at a time ----

@test "targets of make -j take turns, and one that fails is told" {
	guards test-database 'check api' 2 make -j 8 -f "$RECIPES/parallel.mk" SUITES=api
	run -0 make -j 8 -f "$RECIPES/parallel.mk"
	assert_equal "$(grep -c "check " did)" 4
	is_free test-database
}

@test "xargs -P runs several at a time, each with a lock of its own, and tells that one failed" {
	guards upgrade-h1 'upgrade h1' 123 "$RECIPES/xargs.sh" h1 'h 2'
	is_free 'upgrade-h 2'
	run -0 "$RECIPES/xargs.sh" '-h; touch oops'
	has_done 'upgrade -h; touch oops'
	assert [ ! -e oops ]
	run -64 "$RECIPES/xargs.sh"
}

@test "GNU parallel runs several at a time, each with a lock of its own, and tells how many failed" {
	guards upgrade-h1 'upgrade h1' 2 "$RECIPES/parallel.sh" h1 'h 2'
	is_free 'upgrade-h 2'
	run -0 "$RECIPES/parallel.sh" '-h; touch oops'
	has_done 'upgrade -h; touch oops'
	assert [ ! -e oops ]
}

@test "README lists each recipe" {
	local file
	for file in "$RECIPES"/*; do
		grep -qF "(packaging/recipes/${file##*/})" "$RECIPES/../../README.md" || fail "$file is not listed"
	done
}
