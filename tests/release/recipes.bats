#!/usr/bin/env bats
# The recipes of packaging/recipes, run as cron, systemd, GitLab, GitHub, Jenkins, Ansible, Kubernetes, make, xargs and parallel run
# them. Each holds its lock while its job runs, releases the lock when the job fails or is cancelled, and exits with the status of
# the job.

load ../lib/usual
load ../lib/release_page

setup_file() {
	start_server_at_port
	start_release_page
}

teardown_file() {
	stop_release_page
	stop_server
}

# Put the jobs of the recipes into PATH and the server into the configuration file. Set RECIPES to the directory of the recipes.
setup() {
	local name
	directory_setup
	RECIPES=$(realpath "$TOP/packaging/recipes")
	mkdir jobs
	# Each job writes a line to "did" when it starts and when it ends, waits for the file "go" if "stay" exists, and exits with the number
	# in "status". prepare and build exit immediately.
	cat >job <<-END
		#!/bin/sh
		cd '$BATS_TEST_TMPDIR'
		echo "\${0##*/} \$*" >>did
		case \${0##*/} in prepare | build) exit 0 ;; esac
		[ ! -e stay ] || '$(type -P wait_until_true)' test -e go
		echo "ended \${0##*/}" >>did
		[ ! -e status ] || exit "\$(cat status)"
	END
	chmod +x job
	for name in jobs/{nightly-report,deploy,build,migrate,prepare,check,upgrade} deploy build; do
		ln job "$name"
	done
	ln -s "$RLOCK_BIN" jobs/rlock
	export INSTALL_SHA256=$PROGRAM_SHA256 RUNNER_TOOL_CACHE=$PWD/tools
	export PATH=$PWD/jobs:$PATH PREPEND_PATH=$PWD/jobs
	# Write a file that replaces /etc/rlock.conf for cron and systemd.
	mkdir .config
	echo "url = $RLOCK_URL" >.config/rlock.conf
	export HOME=$PWD
}

# has_done REGEXP: whether a job has written a line that matches.
has_done() {
	grep -q "$1" did 2>/dev/null
}

# processes_with VARIABLE=VALUE: print the pids of all processes with this variable. Jenkins finds the processes of a job in this way.
# Use a VALUE that is unique on the machine: the same test may run twice, and callers kill these processes.
processes_with() {
	grep -lzsxF "$1" /proc/[0-9]*/environ | cut -d / -f 3
}

# none_with VARIABLE=VALUE: whether no process has this variable.
none_with() {
	[ -z "$(processes_with "$1")" ]
}

# begin COMMAND...: like in_background, but COMMAND may be a function.
begin() {
	"$@" 3>&- &
	PID=$!
	BACKGROUND+=("$PID")
}

# guards LOCK JOB STATUS COMMAND...: check that the recipe that COMMAND runs holds LOCK while JOB runs, and exits with STATUS if
# JOB exits with 3.
guards() {
	touch stay
	begin "${@:4}"
	wait_until 120 has_done "$2"
	run -75 rlock run -n "$1" -- true
	touch go
	ended_with 0
	is_free "$1"
	rm did stay go
	echo 3 >status
	run -"$3" "${@:4}"
	has_done "$2"
	is_free "$1"
	rm status
}

# ---- cron and systemd ----

as_cron() {
	recipe cron "$RECIPES/crontab"
}

# silent_elsewhere COMMAND...: start a job by COMMAND. A second COMMAND, on another machine, must succeed and print nothing, since
# cron would mail the output.
silent_elsewhere() {
	touch stay
	begin "$@"
	wait_until 120 has_done 'nightly-report ....-..-..$'
	run -0 "$@"
	assert_output ''
	touch go
	ended_with 0
	assert_equal "$(grep -c ended did)" 1
	rm did stay go
}

@test "a crontab runs its job on one machine at a time, and keeps the lock because clocks differ" {
	silent_elsewhere as_cron
	# A run a little later must find the lock, which is kept, and do nothing.
	run -0 as_cron
	assert_output ''
	assert [ ! -e did ]
	ttl_is_above nightly-report 200000
	redis flushall >/dev/null
	echo 3 >status
	run -3 as_cron
}

@test "a crontab of flock, whose PATH has the link, runs its job on one machine at a time" {
	local line
	mkdir link
	ln -s "$RLOCK_BIN" link/flock
	grep -q '^PATH=/usr/local/libexec/rlock:' "$RECIPES/crontab-flock"
	line=$(sed -n 's/^17 3 \* \* \*  //p' "$RECIPES/crontab-flock" | sed 's/\\%/%/g')
	assert [ "$line" ]
	silent_elsewhere env PATH="$PWD/link:$PATH" sh -c "$line"
}

# unit_value FILE NAME: print the value of the last line that sets NAME.
unit_value() {
	sed -n "s/^$2=//p" "$RECIPES/$1" | tail -n 1
}

@test "a service of systemd writes the metrics of locks where the node exporter reads them" {
	mkdir node-exporter
	sed "s,/var/lib/prometheus/node-exporter,$PWD/node-exporter," "$RECIPES/rlock-metrics.service" >metrics.service
	rlock lock --owner job --lease 60s nightly
	run -0 recipe service "$PWD/metrics.service"
	assert_output ''
	run -0 check_metrics node-exporter/rlock.prom
	assert_output --partial 'rlock_lock_waiters {"kind": "plain", "name": "nightly"} 0'
	# Without a server the service leaves the old file unchanged, so that no incomplete file is read.
	echo "url = unix://$PWD/none" >.config/rlock.conf
	cp node-exporter/rlock.prom before
	run -69 recipe service "$PWD/metrics.service"
	run -0 cmp before node-exporter/rlock.prom
	grep -q '^OnCalendar=\*-\*-\* \*:\*:00$' "$RECIPES/rlock-metrics.timer"
}

# metrics: print the names of the metrics of rlock.
metrics() {
	rlock list --metrics | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' | sort
}

# rlock_names FILE: print the names of metrics of rlock in FILE.
rlock_names() {
	grep -oE '\brlock_[a-z_]+' "$1" | sort -u
}

@test "promtool finds no fault with the alert rules, and each alert fires when it should, and not before" {
	cp "$RECIPES/alerts.yml" .
	run -0 promtool check rules alerts.yml
	# The check of README.md writes rlock_has_run, not rlock.
	run -0 comm -13 <({ metrics && echo rlock_has_run; } | sort) <(rlock_names alerts.yml)
	assert_output ''
	cat >test.yml <<-'END'
		rule_files: [alerts.yml]
		tests:
		  - interval: 1m
		    input_series:
		      - series: rlock_lock_held_seconds{name="nightly",kind="plain",holder="ci@web1",program="report"}
		        values: 0+60x200
		      - series: rlock_lock_held_seconds{name="daemon-a",kind="plain",holder="ci@web1",program="serve"}
		        values: 90000+60x200
		      - series: rlock_lock_waiters{name="nightly",kind="plain"}
		        values: 10+0x30 11+0x200
		      - series: rlock_lock_ttl_seconds{name="old",kind="plain",holder="ci@web2",program="x"}
		        values: 30+0x9 Inf+0x200
		      - series: node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/rlock.prom"}
		        values: 0+60x100 6000+0x200
		      - series: node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/has-run.prom"}
		        values: 0+60x100 6000+0x200
		      - series: rlock_has_run{name="nightly"}
		        values: 1+0x29 0+0x200
		    alert_rule_test:
		      - { eval_time: 120m, alertname: RlockHeldTooLong, exp_alerts: [] }
		      - eval_time: 121m
		        alertname: RlockHeldTooLong
		        exp_alerts:
		          - exp_labels: { severity: warning, name: nightly, kind: plain, holder: ci@web1, program: report }
		            exp_annotations:
		              summary: Lock nightly is held for 2h 1m 0s
		              description: report of ci@web1 holds the lock. rlock stop nightly ends that job.
		      - { eval_time: 45m, alertname: RlockManyWaiters, exp_alerts: [] }
		      - eval_time: 46m
		        alertname: RlockManyWaiters
		        exp_alerts:
		          - exp_labels: { severity: warning, name: nightly, kind: plain }
		            exp_annotations: { summary: 11 callers wait for lock nightly }
		      - { eval_time: 14m, alertname: RlockNeverExpires, exp_alerts: [] }
		      - eval_time: 15m
		        alertname: RlockNeverExpires
		        exp_alerts:
		          - exp_labels: { severity: critical, name: old, kind: plain, holder: ci@web2, program: x }
		            exp_annotations:
		              summary: "Lock old never expires: its key on the server has lost its TTL"
		              description: Once the job of the holder has ended, rlock unlock --force old frees the lock.
		      - { eval_time: 105m, alertname: RlockNoMetrics, exp_alerts: [] }
		      - eval_time: 106m
		        alertname: RlockNoMetrics
		        exp_alerts:
		          - exp_labels: { severity: critical }
		            exp_annotations: &none
		              summary: "rlock has written no metrics for five minutes: its server cannot be reached, or its timer does not run"
		      - { eval_time: 29m, alertname: RlockJobHasNotRun, exp_alerts: [] }
		      - eval_time: 30m
		        alertname: RlockJobHasNotRun
		        exp_alerts:
		          - exp_labels: { severity: critical, name: nightly }
		            exp_annotations:
		              summary: Job nightly has failed, or has not run in time
		              description: "rlock status nightly shows its last run, if that had --remember."
		      - { eval_time: 160m, alertname: RlockRunNotChecked, exp_alerts: [] }
		      - eval_time: 161m
		        alertname: RlockRunNotChecked
		        exp_alerts:
		          - exp_labels: { severity: critical, file: /var/lib/prometheus/node-exporter/has-run.prom }
		            exp_annotations:
		              summary: For an hour nothing has checked whether the jobs have run
		  - interval: 1m
		    alert_rule_test:
		      - eval_time: 0m
		        alertname: RlockNoMetrics
		        exp_alerts:
		          - exp_labels: { severity: critical }
		            exp_annotations: *none
	END
	run -0 promtool test rules test.yml
}

@test "the dashboard of Grafana has a panel for holders, waiters and times, whose queries are valid and name metrics of rlock" {
	run -0 python3 -IS - "$RECIPES/grafana-dashboard.json" <<-'END'
		import json, sys
		doc = json.load(open(sys.argv[1]))
		with open("queries.yml", "w") as rules:
		    rules.write("groups:\n- name: queries\n  rules:\n")
		    for panel in doc["panels"]:
		        for target in panel["targets"]:
		            rules.write("  - record: panel:%d\n    expr: %s\n" % (panel["id"], json.dumps(target["expr"].replace("$name", ".*"))))
		print(*(panel["title"] for panel in doc["panels"]), sep="\n")
	END
	assert_output $'Holders\nWaiters\nHeld for\nLease left\nPermits of semaphores'
	run -0 promtool check rules queries.yml
	run -0 comm -3 <(metrics) <(rlock_names "$RECIPES/grafana-dashboard.json")
	assert_output ''
}

@test "a service of systemd runs its job on one machine, counts a busy lock as success, and ends its job when it is stopped" {
	local service=(recipe service "$RECIPES/nightly-report.service")
	# systemd must count only 0 as a success: 75 can also be the status of the job, or of --complain-after.
	assert_equal "$(unit_value nightly-report.service SuccessExitStatus)" ''
	echo 75 >status
	run -75 "${service[@]}"
	redis flushall >/dev/null
	echo 3 >status
	run -3 "${service[@]}"
	# --at-least must keep the lock after the job.
	ttl_is_above nightly-report 200000
	redis flushall >/dev/null
	rm did status
	touch stay
	in_background "${service[@]}"
	wait_until 120 has_done nightly-report
	run -0 "${service[@]}"
	assert_output ''
	# End the service as systemd does: it sends SIGTERM to the main process only, waits for TimeoutStopSec, and counts an end
	# by SIGTERM as clean.
	assert_equal "$(unit_value nightly-report.service KillMode)" mixed
	kill -TERM "$PID"
	wait_until "$(unit_value nightly-report.service TimeoutStopSec)" is_gone "$PID"
	ended_with 143
	run ! has_done ended
	run redis hkeys nightly-report
	assert_output --regexp ':lingering:[0-9]+$'
}

# with_credential: write the unit with its two lines for DynamicUser=yes instead of ExecStart.
with_credential() {
	sed '/^ExecStart=/d; s/^#\(LoadCredential=\|ExecStart=\)/\1/' "$RECIPES/nightly-report.service" >nightly-report.service
}

@test "a service of systemd that may not read the password file uses the copy that systemd makes" {
	redis acl setuser ci reset on '>SECRET' allkeys allchannels +@all >/dev/null
	echo "url = redis://ci@127.0.0.1:$PORT" >.config/rlock.conf
	echo "password-file = $PWD/rlock.password" >>.config/rlock.conf
	echo SECRET >rlock.password
	# Copy it as systemd does, since rlock must not be able to read the file itself.
	mkdir credentials
	install -m 400 rlock.password credentials/rlock
	chmod 0 rlock.password
	run -78 as_mode_allows recipe service "$RECIPES/nightly-report.service"
	assert_output --partial 'Permission denied'
	with_credential
	assert_equal "$(sed -n 's/^LoadCredential=//p' nightly-report.service)" rlock:/etc/rlock.password
	CREDENTIALS_DIRECTORY=$PWD/credentials run -0 as_mode_allows recipe service "$PWD/nightly-report.service"
	has_done nightly-report
}

@test "systemd finds no fault with the units" {
	command -v systemd-analyze >/dev/null || skip 'systemd-analyze is not here'
	# systemd looks into its own PATH, where rlock may not be installed.
	sed "s,^ExecStart=rlock ,ExecStart=$PWD/jobs/rlock ," "$RECIPES/nightly-report.service" >nightly-report.service
	cp "$RECIPES/nightly-report.timer" .
	run systemd-analyze verify --man=no ./nightly-report.timer ./nightly-report.service
	refute_output --partial nightly-report
	with_credential
	sed -i "s,^ExecStart=rlock ,ExecStart=$PWD/jobs/rlock ," nightly-report.service
	run systemd-analyze verify --man=no ./nightly-report.service
	refute_output --partial nightly-report
	run -0 systemd-analyze calendar "$(unit_value nightly-report.timer OnCalendar)"
}

# ---- many at a time ----

@test "targets of make -j hold the lock one after the other, and make fails if one of them fails" {
	guards test-database 'check api' 2 make -j 8 -f "$RECIPES/parallel.mk" SUITES=api
	run -0 make -j 8 -f "$RECIPES/parallel.mk"
	assert_equal "$(grep -c "check " did)" 4
	is_free test-database
}

@test "xargs -P and GNU parallel run several commands at a time, each with its own lock, and fail if one of them fails" {
	local script failed
	while read -r script failed; do
		guards upgrade-h1 'upgrade h1' "$failed" "$RECIPES/$script" h1 'h 2'
		is_free 'upgrade-h 2'
		run -0 "$RECIPES/$script" '-h; touch oops'
		has_done 'upgrade -h; touch oops'
		assert [ ! -e oops ]
		rm did
	done <<-'END'
		xargs.sh 123
		parallel.sh 2
	END
	run -64 "$RECIPES/xargs.sh"
}

# ---- GitLab, GitHub, Jenkins, Ansible ----

# gitlab_files: write the scripts of the two shells that the runner of GitLab starts: before_script and script to in-one,
# after_script to after.
gitlab_files() {
	recipe script "$RECIPES/gitlab-ci.yml" deploy before_script >in-one
	recipe script "$RECIPES/gitlab-ci.yml" deploy script >>in-one
	recipe script "$RECIPES/gitlab-ci.yml" deploy after_script >after
}

# as_gitlab CI_JOB_ID: run the job as the runner does.
as_gitlab() {
	local status=0
	gitlab_files
	CI_JOB_ID=$1 bash -eo pipefail in-one || status=$?
	CI_JOB_ID=$1 bash -eo pipefail after || echo "after_script: $?"
	return $status
}

@test "a job of GitLab holds the lock over its steps, and releases it if one fails; its after_script keeps the lock of a retry" {
	guards deploy 'deploy ' 3 as_gitlab 4711
	has_done build
	refute_output --partial after_script
	# Let the lease of job 4716 end before its after_script runs. The script must not release the lock of the next job, 4717.
	gitlab_files
	CI_JOB_ID=4716 run -0 bash -eo pipefail in-one
	redis flushall >/dev/null
	touch stay
	begin as_gitlab 4717
	wait_until 120 is_held deploy
	CI_JOB_ID=4716 run -0 bash -eo pipefail after
	is_held deploy
	touch go
	ended_with 0
	is_free deploy
}

@test "a job of GitLab and a play of Ansible end before they deploy if the lock was lost" {
	gitlab_files
	sed '/build$/s/$/; rlock unlock --force deploy/' in-one >lost
	CI_JOB_ID=4713 run -1 bash -eo pipefail lost
	has_done build
	# Break the lock in the build step, as if the lease had ended during it.
	sed 's/command: build/command: rlock unlock --force deploy/' "$RECIPES/ansible.yml" >lost.yml
	run -2 recipe play lost.yml
	run ! has_done 'deploy '
}

# cancel VARIABLE COMMAND...: run a job by COMMAND and cancel it. Jenkins sends SIGTERM to all processes of the job, GitHub only
# to the process that it has started.
cancel() {
	rm did
	touch stay
	in_background env "$1=$BATS_TEST_TMPDIR" "${@:2}"
	wait_until 120 has_done 'deploy '
	is_held deploy
	# shellcheck disable=SC2046
	kill -TERM $([ "$1" = JENKINS_SERVER_COOKIE ] && processes_with "$1=$BATS_TEST_TMPDIR" || pgrep -P "$PID") || : # one may have ended
	wait_until 120 none_with "$1=$BATS_TEST_TMPDIR"
	run ! has_done ended
	is_free deploy
	rm did stay
}

# action INPUT=VALUE...: run the action with these inputs, and with the server and the release of this test.
action() {
	recipe action "$RECIPES/github-action.yml" "url=$RLOCK_URL" "release=$INSTALL_URL" version=1.0.0 "sha256=$INSTALL_SHA256" "$@"
}

as_github() {
	action name=deploy 'run=build && deploy'
}

# as_workflow [SHA256]: run the job of the workflow, with SHA256 as the checksum of the wheel.
as_workflow() {
	recipe job "$RECIPES/github-workflow.yml" deploy "secrets.RLOCK_URL=$RLOCK_URL" "vars.INSTALL_URL=$INSTALL_URL" \
		"vars.INSTALL_SHA256=${1-$WHEEL_SHA256}"
}

@test "a GitHub action runs its commands under the lock, ends them when it is cancelled, and runs no command in its inputs" {
	guards deploy 'deploy ' 3 as_github
	cancel RUNNER_TRACKING_ID recipe action "$RECIPES/github-action.yml" "url=$RLOCK_URL" "release=$INSTALL_URL" version=1.0.0 \
		"sha256=$INSTALL_SHA256" name=deploy 'run=deploy; true'
	run -0 action 'name=$(touch oops); "x"' 'run=deploy'
	has_done deploy
	assert [ ! -e oops ]
}

@test "a GitHub action uses the rlock in the cache of the runner if its checksum is right" {
	local before
	before=$(downloads)
	run -0 action name=deploy 'run=type -P rlock'
	assert_line "$PWD/tools/rlock/1.0.0/rlock"
	run -0 action name=deploy run=true
	assert_equal $(($(downloads) - before)) 1
	echo changed >>tools/rlock/1.0.0/rlock
	run -0 action name=deploy run=true
	assert_equal $(($(downloads) - before)) 2
	run -0 sha256sum --check --status <<<"$INSTALL_SHA256  tools/rlock/1.0.0/rlock"
}

@test "a recipe that installs rlock stops before it locks if the checksum of the download is wrong" {
	local other=${PROGRAM_SHA256//[0-9]/0}
	export INSTALL_SHA256=$other BUILD_URL=http://jenkins.example/job/a/1/
	run -1 as_gitlab 4718
	run -1 as_github
	run -1 as_workflow "$other"
	CI_PIPELINE_ID=4711 run -1 gitlab_job lock
	GITHUB_RUN_ID=4711 run -1 github_job lock
	sh_steps "$RECIPES/Jenkinsfile" >script
	run -1 sh -xe script
	agent_step 1
	run -1 sh -xe step
	cp "$RECIPES/ansible.yml" .
	run -2 recipe play ansible.yml
	assert [ ! -e did ]
	no_keys
}

@test "a job of GitHub holds the lock over its steps, and releases it when one fails or it is cancelled" {
	guards deploy 'deploy ' 3 as_workflow
	has_done build
	rm did
	touch stay
	in_background recipe job "$RECIPES/github-workflow.yml" deploy "secrets.RLOCK_URL=$RLOCK_URL" "vars.INSTALL_URL=$INSTALL_URL" \
		"vars.INSTALL_SHA256=$WHEEL_SHA256"
	wait_until 120 has_done 'deploy '
	# End the child, which is rlock: the shell of the step has replaced itself by it.
	kill -TERM "$(pgrep -P "$PID")"
	ended_with 143
	is_free deploy
}

# gitlab_job JOB [SITE]: run the job of the recipe for several jobs of GitLab, as the runner does, in a directory of its own.
gitlab_job() {
	mkdir -p "$1${2-}"
	cp -l deploy "$1${2-}" 2>/dev/null || :
	(
		cd "$1${2-}" || exit
		recipe script "$RECIPES/gitlab-pipeline.yml" default before_script >step
		recipe script "$RECIPES/gitlab-pipeline.yml" "$1" script >>step
		SITE=${2-} bash -eo pipefail step
	)
}

# github_job JOB [SITE]: run the job of the recipe for several jobs of GitHub, as the runner does, in a directory of its own.
github_job() {
	mkdir -p "$1${2-}"
	cp -l deploy "$1${2-}" 2>/dev/null || :
	(
		cd "$1${2-}" || exit
		exec recipe job "$RECIPES/github-jobs.yml" "$1" "secrets.RLOCK_URL=$RLOCK_URL" "vars.INSTALL_URL=$INSTALL_URL" \
			"vars.INSTALL_SHA256=$INSTALL_SHA256" "matrix.site=${2-}"
	)
}

@test "the jobs of a pipeline of GitLab, or of a run of GitHub, share the lock, also in parallel, and the last job releases it" {
	local site
	export CI_PIPELINE_ID=4711 GITHUB_RUN_ID=4711
	for site in gitlab github; do
		run -0 "${site}_job" lock
		rm -f did go
		touch stay
		begin "${site}_job" deploy east
		begin "${site}_job" deploy west
		wait_until 120 has_done 'deploy east'
		wait_until 120 has_done 'deploy west'
		# The next pipeline must not acquire the lock. It waits for 30 minutes, so ask with -n.
		run -75 rlock lock -n --owner "$site-4712" --lease 1h staging
		touch go
		ended_with 0 "${BACKGROUND[-1]}"
		ended_with 0 "${BACKGROUND[-2]}"
		is_held staging
		run -0 "${site}_job" unlock
		is_free staging
		# The last job also runs when the first one has failed.
		run -0 "${site}_job" unlock
		rm -r stay lock unlock deployeast deploywest
	done
}

# sh_steps FILE: print the commands of the sh steps that have one line.
sh_steps() {
	sed -n "s/^ *sh '\([^'].*\)'$/\1/p" "$1"
}

# agent_step NUMBER: write the script of sh step NUMBER of Jenkinsfile-agents to the file step.
agent_step() {
	awk -v wanted="$1" "/^ *[']['][']\$/ { inside = 0 } inside == wanted; /sh [']['][']\$/ { inside = ++count }" \
		"$RECIPES/Jenkinsfile-agents" >step
	assert [ -s step ]
}

# as_agents: run the stages of Jenkinsfile-agents, each in the directory of its own agent, and then the step that always runs.
as_agents() {
	local status=0 number
	for number in 1 2; do
		agent_step "$number"
		[ "$status" != 0 ] || (cd "agent$number" && sh -xe ../step) || status=$?
	done
	agent_step 3
	(cd agent2 && sh -xe ../step) || echo "post: $?"
	return $status
}

@test "a pipeline of Jenkins holds the lock over stages on two agents, and releases it when one fails" {
	export BUILD_URL=http://jenkins.example/job/a%2Fb/7/
	mkdir agent1 agent2
	mv build agent1
	mv deploy agent2
	guards deploy 'deploy ' 3 as_agents
	has_done build
	refute_output --partial post:
	# Run the last step, as Jenkins does also when the build has lost its lock.
	cd agent2
	agent_step 3
	run -0 sh -xe step
	# Acquire the lock for another build, which has another id.
	rlock lock --owner "jenkins-$(echo "$BUILD_URL" | sha256sum | cut -c 1-40)" --lease 1h deploy
	agent_step 2
	BUILD_URL=http://jenkins.example/job/a%2Fb/8/ run -1 sh -xe step
}

@test "a step of Jenkins runs its command while it holds the lock, and ends it when the build is aborted" {
	sh_steps "$RECIPES/Jenkinsfile" >script
	assert_equal "$(wc -l <script)" 4
	guards deploy 'deploy ' 3 sh -xe script
	cancel JENKINS_SERVER_COOKIE sh -xe script
}

@test "a play of Ansible holds the lock over its tasks, and releases it when one fails" {
	cp "$RECIPES/ansible.yml" .
	guards deploy 'deploy ' 2 recipe play ansible.yml
	has_done build
	command -v ansible-playbook >/dev/null || return 0
	guards deploy 'deploy ' 2 env ANSIBLE_LOCALHOST_WARNING=false ansible-playbook -i 'one,two,' -c local ansible.yml
}

# ---- Kubernetes ----

# pod_command NUMBER KEY...: set COMMAND to the command at these keys of a document, with $(NAME) expanded as Kubernetes does.
# Replace /tmp by the directory of this test.
pod_command() {
	COMMAND=$(recipe at "$RECIPES/kubernetes.yaml" "document=$1" "${@:2}")
	COMMAND=${COMMAND//'$(POD_UID)'/6f1c}
	COMMAND=${COMMAND//\/tmp\//$BATS_TEST_TMPDIR/}
}

# in_pod NUMBER KEY...: run the command that pod_command sets.
in_pod() {
	pod_command "$@"
	POD_UID=6f1c sh -c "exec $COMMAND"
}

# delete_pod: end the process PID as Kubernetes ends a container, and check that it has released the lock.
delete_pod() {
	kill -TERM "$PID"
	ended_with 143
	is_free migrate
}

@test "the container of a pod runs its command while it holds the lock, and ends it when the pod is deleted" {
	guards migrate migrate 3 in_pod 0 spec containers 0 command
	rm did
	touch stay
	pod_command 0 spec containers 0 command
	in_background sh -c "exec $COMMAND"
	wait_until 120 has_done migrate
	delete_pod
	run ! has_done ended
}

probe_succeeds() {
	in_pod 1 spec initContainers 0 startupProbe exec command
}

@test "the sidecar of a pod holds the lock before the other container starts, and releases the lock when it ends" {
	hold_in_background migrate
	pod_command 1 spec initContainers 0 command
	in_background sh -c "exec $COMMAND"
	wait_until 120 has_waiters migrate
	run -1 probe_succeeds
	end_commands
	wait_until 30 probe_succeeds
	run -75 rlock run -n migrate -- true
	delete_pod
	assert_equal "$(recipe at "$RECIPES/kubernetes.yaml" document=1 spec initContainers 0 restartPolicy)" Always
}

# pre_stop: run the preStop command, which the kubelet runs before it sends SIGTERM.
pre_stop() {
	in_pod 2 spec containers 0 lifecycle preStop exec command
}

@test "a pod acquires the lock in an init container, and preStop releases the lock only after the work has stopped" {
	rm jobs/migrate
	printf '#!/bin/sh\necho "migrate $*" >>did\ntest -e stopped\n' >jobs/migrate
	chmod +x jobs/migrate
	run -0 in_pod 2 spec initContainers 0 command
	# The lease must be longer than the time for which the pod may run (activeDeadlineSeconds).
	ttl_is_above migrate 3500000
	(($(recipe at "$RECIPES/kubernetes.yaml" document=2 spec activeDeadlineSeconds) < 3500))
	run -1 pre_stop
	has_done 'migrate --stop'
	is_held migrate
	touch stopped
	run -0 pre_stop
	is_free migrate
	# Kubernetes may call preStop once more.
	run -0 pre_stop
}

@test "a CronJob of Kubernetes runs its job in one cluster at a time, and succeeds where another cluster holds the lock" {
	local keys=(spec jobTemplate spec template spec containers 0 command)
	touch stay
	pod_command 3 "${keys[@]}"
	in_background sh -c "exec $COMMAND"
	wait_until 120 has_done nightly-report
	run -0 in_pod 3 "${keys[@]}"
	assert_output ''
	touch go
	ended_with 0
	assert_equal "$(grep -c ended did)" 1
	# --at-least must keep the lock, since the clocks of other clusters can be late.
	ttl_is_above nightly-report 200000
	redis flushall >/dev/null
	rm stay
	echo 3 >status
	run -3 in_pod 3 "${keys[@]}"
}

@test "README: the commands of Install fetch what the release page has, check it, and install it" {
	local V FROM ARCH command wheel
	eval "$(sed -n 's/^    \(V=.* ARCH=.*\)/\1/p' "$TOP/README.md")"
	export V ARCH FROM=$INSTALL_URL
	mkdir bin
	printf '#!/bin/sh\nexec "$@"\n' >jobs/sudo
	chmod +x jobs/sudo
	command=$(sed -n 's/^| the static program | `\(.*\)` |$/\1/p' "$TOP/README.md" | sed "s,/usr/local/bin/,$PWD/bin/,")
	run -0 sh -c "$command"
	run -0 cmp bin/rlock "$(realpath "$RLOCK_BIN")"
	wheel=$(sed -n 's/^| a Python wheel | `pipx install \(.*\)` |$/\1/p' "$TOP/README.md")
	run -0 sh -c "curl -fsS -o fetched.whl $wheel"
	run -0 sha256sum --check --status <<<"$WHEEL_SHA256  fetched.whl"
	# A download that was changed on its way must not be installed.
	rm bin/rlock
	printf '#!/bin/sh\ncurl=%s\n"$curl" "$@" && echo x >>"rlock-$V-linux-$ARCH"\n' "$(type -P curl)" >jobs/curl
	chmod +x jobs/curl
	run ! sh -c "$command"
	assert [ ! -e bin/rlock ]
}

@test "the README of the recipes lists each of them" {
	local file
	for file in "$RECIPES"/*; do
		[ "${file##*/}" != README.md ] || continue
		grep -qF "(${file##*/})" "$RECIPES/README.md" || fail "$file is not listed"
	done
}
