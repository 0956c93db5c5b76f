#!/usr/bin/env bats
# An operating system that refuses: no descriptors, processes, memory, room on the disk; closed streams, signals
# ignored and blocked, a parent's children and descriptors, pids that are another process's now. Promised is that each
# verb ends, by COMMAND's own status or one that says what happened (71, as a rule), with one line; that COMMAND is run
# once at most, and never without the lock; that a lock which is said to be acquired is held; that one which is not leaves no
# key, no process and no file behind; and that a failure can be repeated.

# In single quotes stand whole scripts. What is set here is for surroundings.bash.
# shellcheck disable=SC2016,SC2034

load chaos
load surroundings

setup_file() {
	local dir=$BATS_FILE_TMPDIR
	start_server --unixsocketperm 777
	# Other users come here, too.
	mkdir "$dir/bin"
	cp "$RLOCK_BIN" "$(command -v overlap)" "$BATS_TEST_DIRNAME/../bin/sees_lock" "$dir/bin"
	while [ "$dir" != / ] && [ -O "$dir" ]; do
		chmod o+x "$dir"
		dir=${dir%/*}
		[ "$dir" != "${BATS_RUN_TMPDIR%/*}" ] || break
	done
}

teardown_file() { stop_server; }

setup() {
	common_setup
	PATH=$BATS_FILE_TMPDIR/bin:$BATS_TEST_DIRNAME/../bin:$PATH
	chmod o+x "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR" || return
}

USES=(use_free use_busy use_stop use_lock use_unlock use_renew)

# kind_of ROUND INDEX: plain in the first round, all in turn in the others.
kind_of() {
	echo "${KINDS[$1 == 0 ? 0 : ($1 + $2) % ${#KINDS[@]}]}"
}

# ---- one call refused ----

DESCRIPTORS=open,openat,socket,socketpair,dup,fcntl,pipe2,eventfd2,epoll_create1,timerfd_create,signalfd4,pidfd_open
PROCESSES=fork,vfork,clone,clone3
MEMORY=mmap,epoll_ctl,prctl,setsid,timerfd_settime
WAITS=poll,ppoll,epoll_wait,epoll_pwait
TALK=read,write,recvfrom,sendto,connect
LOOKS=getdents64,read,pidfd_open
OTHERS=waitid,getrandom
SENDS=pidfd_send_signal

# What is done, which calls are refused, why, and with what it may end when that makes it fail.
REFUSALS=(
	'use_free DESCRIPTORS EMFILE 71'
	'use_free PROCESSES EAGAIN 71'
	'use_free MEMORY ENOMEM 71'
	'use_free WAITS EINTR 71'
	'use_free WAITS ENOMEM 71'
	'use_free TALK EINTR 69 71'
	'use_free TALK ENOMEM 69 71'
	'use_free OTHERS EINTR 71'
	'use_free EXECUTION ENOMEM 71 126'
	'use_busy DESCRIPTORS ENFILE 71'
	'use_busy MEMORY ENOMEM 71'
	'use_busy WAITS EINTR 71'
	'use_busy WAITS ENOMEM 71'
	'use_busy TALK EAGAIN 69 71'
	'use_busy TALK ENOMEM 69 71'
	'use_stop DESCRIPTORS EMFILE 71'
	'use_stop MEMORY ENOMEM 71'
	'use_stop WAITS EINTR 71'
	'use_stop LOOKS EIO 71'
	'use_stop SENDS EAGAIN 71'
	'use_orphan DESCRIPTORS EMFILE 71'
	'use_orphan WAITS ENOMEM 71'
	'use_orphan TALK ENOMEM 69 71'
	'use_lock DESCRIPTORS EMFILE 71'
	'use_lock PROCESSES EAGAIN 71'
	'use_lock MEMORY ENOMEM 71'
	'use_lock WAITS ENOMEM 71'
	'use_lock TALK EIO 69 71'
	'use_lock LOOKS ENOMEM 69 71'
	'use_unlock DESCRIPTORS EMFILE 71'
	'use_unlock MEMORY ENOMEM 71'
	'use_unlock WAITS EINTR 71'
	'use_unlock WAITS ENOMEM 71'
	'use_unlock TALK ENOMEM 69 71'
	'use_unlock LOOKS EIO 69 71'
	'use_unlock SENDS EAGAIN 71'
	'use_renew DESCRIPTORS ENFILE 71'
	'use_renew MEMORY ENOMEM 71'
	'use_renew WAITS ENOMEM 71'
	'use_renew TALK EINTR 69 71'
	'use_renew LOOKS EIO 69 71'
)
EXECUTION=execve

# Each call of these in turn, until there is none any more; of very many, some. (A search for processes makes a few for
# each that the machine has.)
CALLS_MAX=100000
refuse_each() {
	local entry=$((($1 - 1) % ${#REFUSALS[@]})) round=$((($1 - 1) / ${#REFUSALS[@]})) kind wish n
	kind=$(kind_of "$round" "$entry")
	read -ra wish <<<"${REFUSALS[entry]}"
	RANDOM=$1
	begin_caller
	for ((n = 1; n < CALLS_MAX; n += n < 30 ? 1 : 1 + RANDOM % (n / 4))); do
		rm -f refused
		IN=(refuse "$CELL/refused" rlock "${!wish[1]}" "${wish[2]}" "$n")
		WHAT="${wish[0]}, $kind, ${wish[1]} ${wish[2]} $n"
		"${wish[0]}" "$kind"
		# The next one tells whether there are more.
		[ ! -s refused ] || injected
		WHAT+=" ($(cat refused 2>/dev/null))"
		is_over=
		[ -s refused ] || is_over=yes
		judge "$(judge_of "${wish[0]}")" "${wish[@]:3}"
		[ -z "$is_over" ] || break
	done
	[ "$n" -lt "$CALLS_MAX" ] || broke "$WHAT: there is no end"
}

@test "surroundings, one call refused" {
	needs_refuse
	begin_scenario 'surroundings, one call refused'
	in_cells "$(scaled $((${#REFUSALS[@]} * 2)))" 6 refuse_each
	end_scenario ''
}

# A renewer that meets a refusal goes on renewing: that of a command, and that of a lock without one.
RENEWER_REFUSALS=('DESCRIPTORS EMFILE' 'WAITS ENOMEM' 'TALK ENOMEM' 'WAITS EINTR' 'OTHERS EINTR')

refuse_renewer() {
	local wish use=use_lock n=$((1 + ($1 - 1) / ${#RENEWER_REFUSALS[@]} / 2))
	read -ra wish <<<"${RENEWER_REFUSALS[($1 - 1) % ${#RENEWER_REFUSALS[@]}]}"
	[ $((($1 - 1) / ${#RENEWER_REFUSALS[@]} % 2)) = 0 ] || use=use_long
	begin_caller
	LOCK_TTL=2s
	IN=(refuse "$CELL/refused" rlock-renewer "${!wish[0]}" "${wish[1]}" "$n")
	WHAT="$use, its renewer, ${wish[*]} $n"
	"$use" plain
	[ "$use" = use_long ] || let_pass 2.6
	[ ! -s refused ] || injected
	WHAT+=" ($(cat refused 2>/dev/null))"
	judge "$(judge_of "$use")" 71
}

@test "surroundings, one call of a renewer refused" {
	needs_refuse
	begin_scenario 'surroundings, one call of a renewer refused'
	in_cells "$(scaled $((${#RENEWER_REFUSALS[@]} * 2 * 12)))" 16 refuse_renewer
	end_scenario ''
}

# ---- few descriptors ----

# Up to more than it ever has.
MOST_DESCRIPTORS=16

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

# ---- few processes ----

as_user() {
	AS=(setpriv --reuid="$1" --regid="$1" --clear-groups)
	chown "$1:$1" "$CELL"
}

few_processes() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} n kind
	kind=$(kind_of $((($1 - 1) / ${#USES[@]})) "$1")
	begin_caller
	as_user $((50000 + $1))
	OUT=(prlimit --nproc="$(ulimit -H -u):")
	for n in 1 2 3 4 5 6 7 8; do
		IN=(prlimit --nproc="$n:")
		WHAT="$use, $kind, $n processes"
		try "$use" "$kind" 71
		[ "$STATUS" != 71 ] || injected
	done
	is_among 0 124 "$OWN_STATUS" || broke "$WHAT: still too few"
}

# The user's other processes come and go: at any moment there may be one too many.
crowd() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} n kind crowd
	kind=$(kind_of $((($1 - 1) / ${#USES[@]})) "$1")
	begin_caller
	as_user $((51000 + $1))
	OUT=(prlimit --nproc="$(ulimit -H -u):")
	"${AS[@]}" bash -c 'while [ -d "$0" ]; do read -r -t "0.00$((RANDOM % 9))" <> <(:); done' "$CELL" 3>&- &
	crowd=$!
	for n in 1 2 3 4 5 6 7 8 9 10; do
		IN=(prlimit --nproc=$((3 + RANDOM % 3)):)
		WHAT="$use, $kind, in a crowd"
		try "$use" "$kind" 71
		[ "$STATUS" != 71 ] || injected
	done
	kill "$crowd"
}

needs_users() {
	[ "$(id -u)" = 0 ] || skip 'only root can be other users, whom a limit of processes binds'
	setpriv --reuid=50000 --regid=50000 --clear-groups rlock --version >/dev/null || skip 'another user cannot run rlock here'
}

@test "surroundings, few processes" {
	needs_users
	begin_scenario 'surroundings, few processes'
	in_cells "$(scaled $((${#USES[@]} * 2)))" 6 few_processes
	in_cells "$(scaled $((${#USES[@]} * 2)))" 6 crowd
	end_scenario ''
}

# ---- little memory ----

# More than the dynamic linker takes, in steps of two pages, until all is well for a while.
little_memory() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} kb kind well=0
	kind=$(kind_of $((($1 - 1) / ${#USES[@]})) "$1")
	begin_caller
	kb=$(first_kb)
	OUT=(prlimit --as="$(lifted_memory):")
	while ((well < 10 && kb < 65536)); do
		IN=(prlimit --as=$((kb * 1024)):)
		WHAT="$use, $kind, $kb KiB"
		try "$use" "$kind" 71
		if is_among 0 124 "$OWN_STATUS"; then
			well=$((well + 1))
		else
			well=0
			was_not_started || injected
		fi
		kb=$((kb + 8))
	done
	((well == 10)) || broke "$WHAT: still too little"
}

# So much that the dynamic linker is just content.
first_kb() {
	local kb=1024
	until prlimit --as=$((kb * 1024)) rlock --version >/dev/null 2>&1 || ((kb > 65536)); do
		kb=$((kb + 64))
	done
	echo $((kb - 64))
}

# In bytes.
lifted_memory() {
	local kb
	kb=$(ulimit -H -v)
	[ "$kb" = unlimited ] || kb=$((kb * 1024))
	echo "$kb"
}

@test "surroundings, little memory" {
	begin_scenario 'surroundings, little memory'
	in_cells "$(scaled $((${#USES[@]} * 2)))" 6 little_memory
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
	within_limit 5 test -e made || broke 'there is no namespace'
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
		within_limit 5 is_waited_for
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
	within_limit 2 name_is_clear || wrong 'held though the calling process has ended'
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

# ---- streams ----

CLOSED=('<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-' '>/dev/full' '2>/dev/full'
	'>/dev/full 2>/dev/full' '</dev/full >&- 2>/dev/full' '> >(:)' '2> >(:)')

# COMMAND has sound ones again.
spoilt_streams() {
	local how=${CLOSED[($1 - 1) % ${#CLOSED[@]}]} use kind=${KINDS[($1 - 1) / ${#CLOSED[@]} % ${#KINDS[@]}]}
	begin_caller
	IN=(bash -c "exec \"\$@\" $how" bash)
	OUT=(sh -c 'exec "$@" </dev/null >/dev/null 2>&1' sh)
	[[ $how != *2\>* ]] || IS_DEAF=yes
	[[ $how != '> >(:)' ]] || IS_UNREAD=yes
	for use in "${USES[@]}"; do
		WHAT="$use, $kind, $how"
		injected
		try "$use" "$kind" 71
		case $use in
		use_renew) ;;
		*) [ "$STATUS" != 71 ] || wrong 'no stream is needed for this' ;;
		esac
	done
	# No process would know the token.
	WHAT="lock --fence, $how"
	attempt "${IN[@]}" rlock lock --fence --pid "$CALLER" "$NAME" >token
	injected
	repeated
	if [ "$STATUS" = 0 ]; then
		[[ $(cat token) =~ ^[0-9]+$ || $how = *\>\(* ]] || wrong 'had without a token'
		unlock_for_caller || wrong "unlock ends with $?"
	else
		fails_well 71
	fi
	# The counter stays, as it should.
	redis del "redisson_lock_token:{$NAME}" >/dev/null
	nothing_is_left
}

@test "surroundings, streams closed, full or broken" {
	begin_scenario 'surroundings, streams closed, full or broken'
	in_cells "$(scaled $((${#CLOSED[@]} * 4)))" 6 spoilt_streams
	end_scenario ''
}

# ---- signals ----

SIGNALS=(CHLD PIPE TERM INT HUP QUIT USR1 ALRM TSTP)

spoilt_signals() {
	local signal=${SIGNALS[($1 - 1) / 2 % ${#SIGNALS[@]}]} how=ignore use kind
	[ $(($1 % 2)) = 0 ] || how=block
	kind=$(kind_of $((($1 - 1) / 2 / ${#SIGNALS[@]})) "$1")
	begin_caller
	IN=(env "--$how-signal=$signal")
	[ $(($1 % 3)) != 0 ] || IN=(setsid -w "${IN[@]}")
	for use in "${USES[@]}" use_orphan; do
		WHAT="$use, $kind, ${IN[*]}"
		injected
		try "$use" "$kind"
	done
}

@test "surroundings, signals ignored or blocked" {
	begin_scenario 'surroundings, signals ignored or blocked'
	in_cells "$(scaled $((${#SIGNALS[@]} * 2 * 2)))" 6 spoilt_signals
	end_scenario ''
}

# ---- what a parent leaves to us ----

# Children: one that runs on, one that ends soon, one that has ended.
WITH_CHILDREN=(bash -c 'sleep 300 3>&- & echo $! >>bystanders; sleep 0.05 & (exit 3) & exec "$@"' bash)
# Descriptors: hundreds.
WITH_DESCRIPTORS=(bash -c 'for ((fd = 10; fd < 410; fd++)); do eval "exec $fd</dev/null"; done; exec "$@"' bash)
# And hardly any more.
WITH_THE_LAST=(bash -c 'for ((fd = 3; fd < 410; fd++)); do eval "exec $fd</dev/null"; done; exec "$@"' bash prlimit)

inherited() {
	local use=${USES[($1 - 1) % ${#USES[@]}]} kind pid n
	kind=$(kind_of $((($1 - 1) / ${#USES[@]})) "$1")
	begin_caller
	IN=("${WITH_CHILDREN[@]}" "${WITH_DESCRIPTORS[@]}")
	WHAT="$use, $kind, with children and descriptors"
	injected
	try "$use" "$kind"
	while read -r pid; do
		is_running "$pid" || wrong 'a child of its own was ended'
		kill "$pid" 2>/dev/null || :
	done <bystanders
	OUT=(prlimit --nofile=1024:)
	for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
		IN=("${WITH_THE_LAST[@]}" "--nofile=$((410 + n)):")
		WHAT="$use, $kind, with descriptors up to 409 and $n more"
		try "$use" "$kind" 71
		[ "$STATUS" != 71 ] || injected
	done
	is_among 0 124 "$OWN_STATUS" || broke "$WHAT: still too few"
}

@test "surroundings, inherited children and descriptors" {
	begin_scenario 'surroundings, inherited children and descriptors'
	in_cells "$(scaled $((${#USES[@]} * 2)))" 6 inherited
	end_scenario ''
}

# ---- reused pids ----

REUSES=(caller renewer command command-kill-child command-at-start keeper keeper-max-run)

reused_pid() {
	local reuse=${REUSES[($1 - 1) % ${#REUSES[@]}]} kind line
	kind=$(kind_of $((($1 - 1) / ${#REUSES[@]})) "$1")
	timeout -s KILL 60 unshare --fork --pid --mount-proc --kill-child \
		reuses_pid "$reuse" "$(verb_of "$kind")" "$NAME" >found 2>said 3>&- || broke "$reuse, $kind: ends with $?"
	repeated
	injected
	while IFS= read -r line; do
		if [[ $line == broken:* ]]; then
			broke "$kind, $line"
		else
			violated "$kind, $line"
		fi
	done <found
	clear_up
}

needs_pids() {
	unshare --fork --pid --mount-proc --kill-child sh -c 'echo 50 >/proc/sys/kernel/ns_last_pid' 2>/dev/null ||
		skip 'pids can not be chosen here'
	needs_refuse
}

@test "surroundings, reused pids" {
	needs_pids
	begin_scenario 'surroundings, reused pids'
	in_cells "$(scaled $((${#REUSES[@]} * 8)))" 6 reused_pid
	end_scenario ''
}
