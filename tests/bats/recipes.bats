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
	export PATH=$PWD/jobs:$PATH PREPEND_PATH=$PWD/jobs
	# In the place of /etc/rlock.conf, for cron and systemd.
	mkdir .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	export HOME=$PWD
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
		echo "ended \${0##*/}" >>did
		[ ! -e status ] || exit "\$(cat status)"
	END
}

has_done() {
	grep -q "$1" did 2>/dev/null
}

# processes_with VARIABLE=VALUE: those that have it in their environment, as programs know the processes of a job.
processes_with() {
	grep -lzsxF "$1" /proc/[0-9]*/environ | cut -d / -f 3
}

none_with() {
	[ -z "$(processes_with "$1")" ]
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
	wait_until 30 has_done "$job"
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
	wait_until 10 has_done nightly-report
	run -0 as_cron
	assert_output ''
	touch go
	ended_with 0
	assert_equal "$(grep -c ended did)" 1
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
	in_background env "INVOCATION_ID=$BATS_TEST_NAME" recipe service "$RECIPES/nightly-report.service"
	wait_until 10 has_done nightly-report
}

# stop_service KILLMODE SECONDS: as systemd does.
stop_service() {
	local processes=$PID
	[ "$1" = mixed ] || processes=$(processes_with "INVOCATION_ID=$BATS_TEST_NAME")
	# shellcheck disable=SC2086
	kill -TERM $processes
	wait_until "$2" is_gone "$PID" || :
	processes=$(processes_with "INVOCATION_ID=$BATS_TEST_NAME")
	# shellcheck disable=SC2086
	[ -z "$processes" ] || kill -KILL $processes
	wait_until 5 none_with "INVOCATION_ID=$BATS_TEST_NAME"
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

@test "a service of systemd ends well, too, when all of its processes are sent SIGTERM" {
	touch stay
	start_service
	stop_service control-group "$(unit_value nightly-report.service TimeoutStopSec)"
	ended_with 143
	run ! has_done ended
	run redis hkeys nightly-report
	assert_output --regexp ':lingering:[0-9]+$'
}

@test "a service of systemd whose job ignores SIGTERM is killed, and its lock is left to the lease" {
	rm jobs/nightly-report
	printf '#!/bin/sh\ntrap "" TERM\ncd "%s"\necho nightly-report >>did\n"%s" false\n' "$PWD" \
		"$BATS_TEST_DIRNAME/../bin/comes_true" >jobs/nightly-report
	chmod +x jobs/nightly-report
	start_service
	stop_service mixed 1
	ended_with 137
	run redis pttl nightly-report
	assert [ "$output" -gt 0 ]
	assert [ "$output" -le 30000 ]
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

# ---- CI ----

# gitlab_files: in-one has what GitLab's runner runs in one shell, and after what it runs in another one.
gitlab_files() {
	{
		recipe script "$RECIPES/gitlab-ci.yml" deploy before_script
		recipe script "$RECIPES/gitlab-ci.yml" deploy script
	} >in-one
	recipe script "$RECIPES/gitlab-ci.yml" deploy after_script >after
}

# as_gitlab CI_JOB_ID: as the runner runs a job.
as_gitlab() {
	local status=0
	gitlab_files
	CI_JOB_ID=$1 bash -eo pipefail in-one || status=$?
	CI_JOB_ID=$1 bash -eo pipefail after || echo "after_script: $?"
	return $status
}

@test "a job of GitLab holds the lock over its steps, and releases it when one fails" {
	guards deploy 'deploy ' 3 as_gitlab 4711
	has_done build
	refute_output --partial after_script
}

@test "a job of GitLab that did not acquire the lock ends its after_script well" {
	hold_in_background deploy
	gitlab_files
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

@test "a job of GitLab that was killed keeps its lock until the lease ends, and then its retry acquires the lock" {
	touch stay
	gitlab_files
	in_background env CI_JOB_ID=4714 bash -eo pipefail in-one
	wait_until 10 has_done 'deploy '
	kill -KILL "$PID"
	ended_with 137
	[ "$(redis pttl deploy)" -gt 3500000 ]
	touch go
	rm stay
	# An hour passes.
	redis pexpire deploy 1000
	run -0 as_gitlab 4715
	is_free deploy
}

@test "the after_script of a job of GitLab whose lease has ended does not release the lock of its retry" {
	gitlab_files
	CI_JOB_ID=4716 run -0 bash -eo pipefail in-one
	redis del deploy 'rlock_holds:{deploy}'
	touch stay
	begin as_gitlab 4717
	wait_until 10 is_held deploy
	CI_JOB_ID=4716 run -0 bash -eo pipefail after
	is_held deploy
	touch go
	ended_with 0
	is_free deploy
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

@test "a GitHub action that is cancelled ends its commands, and releases the lock" {
	local entry
	touch stay
	in_background env "RUNNER_TRACKING_ID=$BATS_TEST_NAME" recipe action "$RECIPES/github-action.yml" "url=$RLOCK_URL" \
		name=deploy 'run=deploy; true'
	wait_until 10 has_done 'deploy '
	# The runner signals one process only.
	entry=$(pgrep -P "$PID")
	kill -INT "$entry"
	kill -TERM "$entry"
	wait_until 10 none_with "RUNNER_TRACKING_ID=$BATS_TEST_NAME"
	run ! has_done ended
	is_free deploy
}

as_workflow() {
	recipe job "${1:-$RECIPES/github-workflow.yml}" deploy "RLOCK_URL=$RLOCK_URL"
}

@test "a job of GitHub holds the lock over its steps, and releases it when one fails" {
	guards deploy 'deploy ' 3 as_workflow
	has_done build
}

@test "two jobs of GitHub take turns, though all their numbers are the same" {
	touch stay
	begin as_workflow
	wait_until 10 has_done 'deploy '
	begin as_workflow
	wait_until 10 has_waiters deploy
	assert_equal "$(grep -c 'deploy $' did)" 1
	touch go
	ended_with 0 "${BACKGROUND[0]}"
	ended_with 0
	is_free deploy
}

@test "a job of GitHub that is cancelled releases the lock in its last step" {
	touch stay
	in_background recipe job "$RECIPES/github-workflow.yml" deploy "RLOCK_URL=$RLOCK_URL"
	wait_until 10 has_done 'deploy '
	# The shell of the step.
	kill -TERM "$(pgrep -P "$PID")"
	ended_with 143
	is_free deploy
	touch go
}

@test "a job of GitHub that did not acquire the lock fails, and leaves the lock to its holder" {
	hold_in_background deploy
	sed 's/30m/100ms/' "$RECIPES/github-workflow.yml" >impatient.yml
	run -75 as_workflow impatient.yml
	assert [ ! -e did ]
	is_held deploy
	let_go
}

# jenkins_file: script has what a step of the Jenkinsfile runs.
jenkins_file() {
	sed -n "s/^ *sh '\(.*\)'$/\1/p" "$RECIPES/Jenkinsfile" >script
	assert [ -s script ]
}

as_jenkins() {
	jenkins_file
	sh -xe script
}

@test "a step of Jenkins runs its command while it holds the lock" {
	guards deploy 'deploy ' 3 as_jenkins
}

@test "a build of Jenkins that is aborted ends its command, and releases the lock" {
	touch stay
	jenkins_file
	in_background env "JENKINS_SERVER_COOKIE=$BATS_TEST_NAME" sh -xe script
	wait_until 10 has_done 'deploy '
	is_held deploy
	# Jenkins knows all processes of a build by their environment, and sends SIGTERM to each.
	# shellcheck disable=SC2046
	kill -TERM $(processes_with "JENKINS_SERVER_COOKIE=$BATS_TEST_NAME")
	wait_until 10 none_with "JENKINS_SERVER_COOKIE=$BATS_TEST_NAME"
	run ! has_done ended
	is_free deploy
}

@test "a step of Jenkins whose shell is killed keeps the lock until its command has ended" {
	touch stay
	jenkins_file
	in_background sh -xe script
	wait_until 10 has_done 'deploy '
	kill -KILL "$PID"
	ended_with 137
	run -75 rlock run -n deploy -- true
	touch go
	wait_until 10 is_free deploy
	has_done 'ended deploy'
}

as_ansible() {
	recipe play "${1:-$RECIPES/ansible.yml}"
}

@test "a play of Ansible holds the lock over its tasks, and releases it when one fails" {
	guards deploy 'deploy ' 2 as_ansible
	has_done build
}

@test "a play of Ansible that did not acquire the lock fails, and leaves the lock to its holder" {
	hold_in_background deploy
	sed 's/30m/100ms/' "$RECIPES/ansible.yml" >impatient.yml
	run -2 as_ansible impatient.yml
	assert [ ! -e did ]
	is_held deploy
	let_go
}

@test "a play of Ansible whose lock was lost ends before it deploys" {
	# In the place of a lease that ended while it built.
	sed 's/command: build/command: rlock unlock --force deploy/' "$RECIPES/ansible.yml" >lost.yml
	run -2 as_ansible lost.yml
	assert [ ! -e did ]
}

by_ansible_itself() {
	env ANSIBLE_LOCALHOST_WARNING=false ansible-playbook -i 'one,two,' -c local "$RECIPES/ansible.yml"
}

@test "ansible-playbook runs the play so, on several hosts" {
	command -v ansible-playbook >/dev/null || skip 'ansible-playbook is not here'
	guards deploy 'deploy ' 2 by_ansible_itself
	assert_equal "$(grep -c 'deploy $' did)" 2
}

# ---- Kubernetes ----

# pod_command NUMBER KEY...: sets COMMAND to that of a document, with $(NAME) of its variables put in. What it has in /tmp
# is in a directory of this test.
pod_command() {
	COMMAND=$(recipe at "$RECIPES/kubernetes.yaml" "document=$1" "${@:2}")
	COMMAND=${COMMAND//'$(POD_UID)'/6f1c}
	COMMAND=${COMMAND//\/tmp\//$BATS_TEST_TMPDIR/}
}

# in_pod NUMBER KEY...: runs it.
in_pod() {
	pod_command "$@"
	POD_UID=6f1c sh -c "exec $COMMAND"
}

@test "the container of a pod runs its command while it holds the lock" {
	guards migrate migrate 3 in_pod 0 spec containers 0 command
}

@test "the container of a pod that is deleted ends its command, and releases the lock" {
	touch stay
	pod_command 0 spec containers 0 command
	in_background sh -c "exec $COMMAND"
	wait_until 10 has_done migrate
	kill -TERM "$PID"
	ended_with 143
	run ! has_done ended
	is_free migrate
}

probe_succeeds() {
	in_pod 1 spec initContainers 0 startupProbe exec command
}

@test "the sidecar of a pod lets its other container begin when the lock is held, and releases it at its end" {
	hold_in_background migrate
	pod_command 1 spec initContainers 0 command
	in_background sh -c "exec $COMMAND"
	wait_until 10 has_waiters migrate
	run -1 probe_succeeds
	let_go
	wait_until 10 probe_succeeds
	run -75 rlock run -n migrate -- true
	kill -TERM "$PID"
	ended_with 143
	is_free migrate
	assert_equal "$(recipe at "$RECIPES/kubernetes.yaml" document=1 spec initContainers 0 restartPolicy)" Always
}

# preStop: as the kubelet calls it, before SIGTERM.
pre_stop() {
	in_pod 2 spec containers 0 lifecycle preStop exec command
}

@test "a pod that can't be changed acquires the lock in an init container, for longer than it lives" {
	run -0 in_pod 2 spec initContainers 0 command
	run -75 rlock run -n migrate -- true
	[ "$(redis pttl migrate)" -gt 3500000 ]
	(($(recipe at "$RECIPES/kubernetes.yaml" document=2 spec activeDeadlineSeconds) < 3500))
}

@test "the preStop of a pod releases the lock only after the work was stopped" {
	rm jobs/migrate
	printf '#!/bin/sh\necho "migrate $*" >>did\ntest -e stopped\n' >jobs/migrate
	chmod +x jobs/migrate
	run -0 in_pod 2 spec initContainers 0 command
	run -1 pre_stop
	has_done 'migrate --stop'
	is_held migrate
	touch stopped
	run -0 pre_stop
	is_free migrate
	# Kubernetes may call it once more.
	run -0 pre_stop
}

@test "the preStop of a pod releases the lock, too, when the init container ran twice" {
	run -0 in_pod 2 spec initContainers 0 command
	run -0 in_pod 2 spec initContainers 0 command
	run -0 pre_stop
	is_free migrate
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

@test "xargs -P begins with no other host when a job ended with 255" {
	touch stay
	begin "$RECIPES/xargs.sh" h1 h2 h3 h4 h5
	wait_until 10 has_done h4
	echo 255 >status
	touch go
	ended_with 124
	run ! has_done h5
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
