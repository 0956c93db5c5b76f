#!/usr/bin/env bats
# The recipes of packaging/recipes, run as the programs run them that they are for: each holds its lock while its job
# runs, releases it when the job fails, too, and ends with the status of the job.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	local name
	common_setup
	RECIPES=$(realpath "$BATS_TEST_DIRNAME/../../packaging/recipes")
	cd "$BATS_TEST_TMPDIR" || return
	mkdir jobs
	make_job >job
	chmod +x job
	for name in nightly-report deploy build migrate prepare check upgrade; do
		ln job "jobs/$name"
	done
	ln job deploy
	ln job build
	ln -s "$RLOCK_BIN" jobs/rlock
	export PATH=$PWD/jobs:$PATH
}

teardown() { watchful_teardown; }

# Each job of the recipes: it writes down that it runs, stays until told to go where "stay" is, and ends as "status" says.
make_job() {
	cat <<-END
		#!/bin/sh
		cd '$BATS_TEST_TMPDIR'
		echo "\${0##*/} \$*" >>did
		case \${0##*/} in prepare | build) exit 0 ;; esac
		[ ! -e stay ] || '$BATS_TEST_DIRNAME/../bin/comes_true' test -e go
		[ ! -e status ] || exit "\$(cat status)"
	END
}

has_done() {
	grep -q "$1" did 2>/dev/null
}

# begin COMMAND...: as in_background, for a function, too.
begin() {
	"$@" 3>&- &
	PID=$!
	BACKGROUND+=("$PID")
}

# guards LOCK JOB STATUS COMMAND...: COMMAND runs a recipe, and ends with STATUS when its job ends with 3.
guards() {
	local lock=$1 job=$2 expected=$3
	shift 3
	touch stay
	begin "$@"
	wait_until 10 has_done "$job"
	run -75 rlock run -n "$lock" -- true
	touch go
	ended_with 0
	is_free "$lock"
	rm did stay go
	echo 3 >status
	run -"$expected" "$@"
	has_done "$job"
	is_free "$lock"
	rm status
}

# ---- cron and systemd ----

# As cron(8) runs a line: with what the crontab sets and little else; the first % ends the command.
as_cron() {
	local line command
	local -a environment=("HOME=$HOME" LOGNAME=root "RLOCK_URL=$RLOCK_URL")
	while IFS= read -r line; do
		case $line in
		'' | '#'*) ;;
		PATH=*) environment+=("PATH=$BATS_TEST_TMPDIR/jobs:${line#*=}") ;;
		[A-Z]*=*) environment+=("$line") ;;
		*) read -r _ _ _ _ _ command <<<"$line" ;;
		esac
	done <"$RECIPES/crontab"
	env -i "${environment[@]}" sh -c "${command%%%*}" </dev/null
}

@test "a crontab runs its job on one machine, and keeps the lock a while for the others' clocks" {
	run -0 as_cron
	has_done nightly-report
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

# unit_value FILE NAME: what the last line says that sets it.
unit_value() {
	sed -n "s/^$2=//p" "$RECIPES/$1" | tail -n 1
}

# As systemd starts a service of Type=exec: words without a shell, in a session of its own, with a short environment.
as_service() {
	local -a words
	read -ra words <<<"$(unit_value nightly-report.service ExecStart)"
	exec setsid -w env -i "PATH=$BATS_TEST_TMPDIR/jobs:/usr/bin:/bin" "RLOCK_URL=$RLOCK_URL" "${words[@]}" </dev/null
}

@test "a service of systemd runs its job on one machine, and counts a busy lock as success" {
	touch stay
	begin as_service
	wait_until 10 has_done nightly-report
	run as_service
	assert_equal "$status" "$(unit_value nightly-report.service SuccessExitStatus)"
	touch go
	ended_with 0
	assert_equal "$(unit_value nightly-report.timer OnCalendar)" '*-*-* 03:17:00'
}

@test "a service of systemd that is stopped ends its job, and is gone within its time" {
	local main
	touch stay
	begin as_service
	wait_until 10 has_done nightly-report
	# KillMode=mixed: to the main process alone.
	main=$(pgrep -f 'rlock run -n --at-least 5m nightly-report' | head -n 1)
	kill -TERM "$main"
	wait_until "$(unit_value nightly-report.service TimeoutStopSec)" is_gone "$PID"
	run ! pgrep -f "$BATS_TEST_TMPDIR/jobs/nightly-report"
}

# ---- CI ----

# As GitLab's runner runs a job: both scripts in one shell, and the last in another one, however the first ended.
as_gitlab() {
	local status=0
	{
		recipe script "$RECIPES/gitlab-ci.yml" deploy before_script
		recipe script "$RECIPES/gitlab-ci.yml" deploy script
	} >in-one
	recipe script "$RECIPES/gitlab-ci.yml" deploy after_script >after
	CI_JOB_ID=4711 bash -eo pipefail in-one || status=$?
	CI_JOB_ID=4711 bash -eo pipefail after || echo "after_script: $?"
	return $status
}

@test "a job of GitLab holds the lock over its steps, and releases it when one fails" {
	guards deploy 'deploy ' 3 as_gitlab
	has_done build
}

@test "a job of GitLab that did not acquire the lock ends its after_script well" {
	in_background rlock run deploy -- until_let_go
	wait_until 5 is_held deploy
	recipe script "$RECIPES/gitlab-ci.yml" deploy after_script >after
	CI_JOB_ID=4712 run -0 bash -eo pipefail after
	is_held deploy
	let_go
}

@test "a job of GitLab whose lock was lost ends before it deploys" {
	recipe script "$RECIPES/gitlab-ci.yml" deploy before_script >in-one
	echo 'rlock unlock --force deploy' >>in-one
	recipe script "$RECIPES/gitlab-ci.yml" deploy script >>in-one
	CI_JOB_ID=4713 run -1 bash -eo pipefail in-one
	has_done build
	run ! has_done 'deploy '
}

as_github() {
	recipe action "$RECIPES/github-action.yml" "url=$RLOCK_URL" name=deploy 'run=build && deploy'
}

@test "a GitHub action runs its commands while it holds the lock" {
	guards deploy 'deploy ' 3 as_github
}

@test "a GitHub action takes its inputs for data, whatever is in them" {
	run -0 recipe action "$RECIPES/github-action.yml" "url=$RLOCK_URL" 'name=$(touch oops); "x"' 'run=deploy'
	has_done deploy
	assert [ ! -e oops ]
}

as_jenkins() {
	sh -xe -c "$(sed -n "s/^ *sh '\(.*\)'$/\1/p" "$RECIPES/Jenkinsfile")"
}

@test "a step of Jenkins runs its command while it holds the lock" {
	guards deploy 'deploy ' 3 as_jenkins
}

as_ansible() {
	recipe play "$RECIPES/ansible.yml"
}

@test "a play of Ansible holds the lock over its tasks, and releases it when one fails" {
	guards deploy 'deploy ' 2 as_ansible
}

# ---- Kubernetes ----

# in_pod NUMBER KEY...: runs the command of that document, with $(NAME) of its variables put in.
in_pod() {
	local words
	words=$(recipe at "$RECIPES/kubernetes.yaml" "document=$1" "${@:2}")
	POD_UID=6f1c sh -c "${words//'$(POD_UID)'/6f1c}"
}

@test "the container of a pod runs its command while it holds the lock" {
	guards migrate migrate 3 in_pod 0 spec containers 0 command
}

@test "a pod that can't be changed acquires the lock in an init container, and releases it in preStop" {
	run -0 in_pod 1 spec initContainers 0 command
	run -75 rlock run -n migrate -- true
	[ "$(redis pttl migrate)" -gt 3500000 ]
	# The pod must have ended before its lease does.
	(($(recipe at "$RECIPES/kubernetes.yaml" document=1 spec activeDeadlineSeconds) < 3600))
	run -0 in_pod 1 spec containers 0 lifecycle preStop exec command
	is_free migrate
}

# ---- many at a time ----

@test "targets of make -j take turns, and one that fails is told" {
	guards test-database 'check api' 2 make -j 8 -f "$RECIPES/parallel.mk" SUITES=api
	run -0 make -j 8 -f "$RECIPES/parallel.mk"
	assert_equal "$(grep -c check did)" 4
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
