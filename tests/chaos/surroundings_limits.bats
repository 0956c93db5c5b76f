#!/usr/bin/env bats
# An operating system that has not enough: few descriptors, and a runtime directory that is full, read-only, or gone. surroundings.bash says what has to be true afterwards.

# In single quotes stand whole scripts. What is set here is for surroundings.bash.
# shellcheck disable=SC2016,SC2034

load chaos
load surroundings

# ---- few descriptors ----

# Up to more than it ever has.
MOST_DESCRIPTORS=20

few_descriptors() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} n kind
	kind=$(kind_of $((($1 - 1) / ${#USES[@]})) "$1")
	begin_caller
	OUT=(prlimit --nofile=1024:)
	for ((n = 3; n <= MOST_DESCRIPTORS; n++)); do
		IN=(prlimit --nofile="$n:")
		WHAT="$use, $kind, $n descriptors"
		try "$use" "$kind" 71
		# shellcheck disable=SC2153
		[ "$STATUS" != 71 ] || injected
	done
	is_among 0 124 "$OWN_STATUS" || broke "$WHAT: still too few"
}

@test "surroundings, few descriptors" {
	begin_scenario 'surroundings, few descriptors'
	in_cells "$(scaled $((${#USES[@]} * 3)))" 6 few_descriptors
	end_scenario ''
}

# ---- the runtime directory ----

# How it is spoilt: run in a mount namespace, where $1 is the runtime directory.
SPOILT=(
	'mount -t tmpfs -o mode=700,size=4k none "$1" && head -c 4096 /dev/zero >"$1/full"'
	'mount -t tmpfs -o mode=700,nr_inodes=1 none "$1"'
	'mount -t tmpfs -o mode=700 none "$1" && mount -o remount,ro "$1"'
	'mount -t tmpfs -o mode=700 none "$1" && echo 3 >"$1/hold-1" && mount -o remount,ro "$1"'
)

# in_namespace COMMAND...: with the cell's own mounts. Sets AS.
make_namespace() {
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	in_background unshare -m sh -c 'echo >"$0/made"; until [ -e "$0/over" ] || [ ! -d "$0" ]; do sleep 0.1; done' "$CELL"
	within_limit 20 test -e made || broke 'there is no namespace'
	AS=(nsenter -t "$PID" -m --wd="$CELL")
}

spoilt_directory() {
	local spoilt=${SPOILT[($1 - 1) % ${#SPOILT[@]}]} use kind
	kind=${KINDS[$1 / ${#SPOILT[@]} % ${#KINDS[@]}]}
	begin_caller
	make_namespace
	"${AS[@]}" sh -c "$spoilt" sh "$RLOCK_RUNTIME_DIR" || broke "cannot do $spoilt"
	for use in use_free use_stop use_lock use_busy; do
		WHAT="$use, $kind, $spoilt"
		injected
		try "$use" "$kind" 71
		case $use in
		use_lock) [ "$STATUS" = 71 ] || wrong 'a lock that no file tells of' ;;
		*) [ "$STATUS" != 71 ] || wrong 'no file is needed for this' ;;
		esac
	done
	touch over
}

# A lock that was acquired before: it can be renewed and released, whatever became of the disk.
filled_directory() {
	local use kind=${KINDS[$1 % ${#KINDS[@]}]}
	begin_caller
	make_namespace
	"${AS[@]}" mount -t tmpfs -o mode=700,size=16k none "$RLOCK_RUNTIME_DIR" || broke 'cannot mount'
	for use in use_unlock use_renew; do
		WHAT="$use, $kind, a directory filled meanwhile"
		IN=(sh -c 'head -c 65536 /dev/zero >"$0/full" 2>/dev/null; "$@"; status=$?; rm "$0/full"; exit $status'
			"$RLOCK_RUNTIME_DIR")
		injected
		try "$use" "$kind"
	done
	touch over
}

# It is removed: while a lock is waited for, and while one is held.
vanishing_directory() {
	local kind=${KINDS[$1 % ${#KINDS[@]}]}
	begin_caller
	WHAT="lock, $kind, a directory that vanishes meanwhile"
	held_by_stranger "$NAME"
	(
		within_limit 20 is_waited_for
		rm -rf "$RLOCK_RUNTIME_DIR"
		redis del "$NAME" >/dev/null
		redis publish "redisson_lock__channel:{$NAME}" 0 >/dev/null
	) 3>&- &
	use_lock plain
	wait "$!"
	injected
	judge judge_lock 71
	[ "$STATUS" = 71 ] || wrong 'a lock that no file tells of'

	WHAT="unlock, $kind, a directory that vanished"
	lock_for_caller "$kind"
	rm -rf "$RLOCK_RUNTIME_DIR"
	attempt rlock unlock --pid "$CALLER" "$NAME"
	injected
	repeated
	fails_well 1
	is_held "$NAME" || wrong 'not held any more'
	kill "$CALLER"
	wait "$CALLER" 2>/dev/null || :
	within_limit 10 name_is_clear || wrong 'held though the calling process has ended'
	nothing_is_left
}

needs_mounts() {
	unshare -m mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
}

@test "surroundings, a runtime directory that is full or read-only" {
	needs_mounts
	begin_scenario 'surroundings, runtime directory full or read-only'
	in_cells "$(scaled $((${#SPOILT[@]} * 4)))" 6 spoilt_directory
	in_cells "$(scaled 8)" 6 filled_directory
	end_scenario ''
}

@test "surroundings, a runtime directory that vanishes" {
	begin_scenario 'surroundings, runtime directory vanishes'
	in_cells "$(scaled 24)" 6 vanishing_directory
	end_scenario ''
}
