#!/usr/bin/env bats
# The pods of packaging/recipes/kubernetes.yaml, whose commands are run as Kubernetes runs them: a container, a sidecar
# and an init container that hold the lock while the work is done.

load ../lib/usual
load ../lib/recipes

setup() { recipes_setup; }
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
	wait_until 120 has_done migrate
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
	wait_until 120 has_waiters migrate
	run -1 probe_succeeds
	let_go
	wait_until 30 probe_succeeds
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
