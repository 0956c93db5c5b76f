#!/usr/bin/env bats
# The recipes of packaging/recipes for GitLab, GitHub, Jenkins and Ansible, run as these run them: each holds its lock
# over all steps of a job, releases it when one fails or the job is cancelled, and ends with the status of the job.

load ../lib/usual
load ../lib/recipes

setup() { recipes_setup; }
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

@test "a job of GitLab whose lock was lost ends before it deploys" {
	recipe script "$RECIPES/gitlab-ci.yml" deploy before_script >in-one
	echo 'rlock unlock --force deploy' >>in-one
	recipe script "$RECIPES/gitlab-ci.yml" deploy script >>in-one
	CI_JOB_ID=4713 run -1 bash -eo pipefail in-one
	has_done build
	run ! has_done 'deploy '
}

@test "the after_script of a job of GitLab whose lease has ended does not release the lock of its retry" {
	gitlab_files
	CI_JOB_ID=4716 run -0 bash -eo pipefail in-one
	redis del deploy 'rlock_holds:{deploy}'
	touch stay
	begin as_gitlab 4717
	wait_until 120 is_held deploy
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
	in_background env "RUNNER_TRACKING_ID=$BATS_TEST_TMPDIR" recipe action "$RECIPES/github-action.yml" "url=$RLOCK_URL" \
		name=deploy 'run=deploy; true'
	wait_until 120 has_done 'deploy '
	# The runner signals one process only.
	entry=$(pgrep -P "$PID")
	kill -INT "$entry"
	kill -TERM "$entry" || : # it may have ended
	wait_until 120 none_with "RUNNER_TRACKING_ID=$BATS_TEST_TMPDIR"
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

@test "a job of GitHub that is cancelled releases the lock in its last step" {
	touch stay
	in_background recipe job "$RECIPES/github-workflow.yml" deploy "RLOCK_URL=$RLOCK_URL"
	wait_until 120 has_done 'deploy '
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
	in_background env "JENKINS_SERVER_COOKIE=$BATS_TEST_TMPDIR" sh -xe script
	wait_until 120 has_done 'deploy '
	is_held deploy
	# Jenkins knows all processes of a build by their environment, and sends SIGTERM to each.
	# shellcheck disable=SC2046
	kill -TERM $(processes_with "JENKINS_SERVER_COOKIE=$BATS_TEST_TMPDIR") || : # one may have ended
	wait_until 120 none_with "JENKINS_SERVER_COOKIE=$BATS_TEST_TMPDIR"
	run ! has_done ended
	is_free deploy
}

as_ansible() {
	recipe play "${1:-$RECIPES/ansible.yml}"
}

@test "a play of Ansible holds the lock over its tasks, and releases it when one fails" {
	guards deploy 'deploy ' 2 as_ansible
	has_done build
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
