#!/usr/bin/env bats
# The operating system refuses one system call of rlock or its renewer with an error that this call can have; each call in turn.
# Or the process is stopped before one of its system calls for longer than the lease, and then continued. uses.bash says what must
# be true after a refusal.
#
# While the process is stopped, another owner asks for the lock, or the lock is deleted; the command may end meanwhile. Two
# commands must never be inside, and no command may run without protection. If the lock was lost while the command ran, rlock must
# exit with 76 and one line. Otherwise rlock must not do so.

load chaos
load uses

CALL_LIMIT_MS=30000

setup() {
	directory_setup
	needs_refuse
}

# ---- refused ----

declare -gA CALLS=(
	[descriptors]='open,openat,socket,socketpair,dup,fcntl,pipe2,eventfd2,epoll_create1,timerfd_create,signalfd4,pidfd_open'
	[processes]='fork,vfork,clone,clone3'
	[memory]='mmap,epoll_ctl,prctl,setsid,timerfd_settime'
	[waits]='poll,ppoll,epoll_wait,epoll_pwait'
	[talk]='read,write,recvfrom,sendto,sendmsg,connect'
	[looks]='getdents64,read,pidfd_open'
	[others]='waitid,getrandom'
	[sends]='pidfd_send_signal'
	[execution]='execve'
)

# Each entry: a use (uses.bash), the system calls to refuse (a key of CALLS), the error, and the statuses besides 71 with which
# the use may end if it fails.
REFUSALS=(
	'free descriptors EMFILE' 'free processes EAGAIN' 'free memory ENOMEM' 'free waits EINTR' 'free waits ENOMEM' 'free talk EINTR 69'
	'free talk ENOMEM 69' 'free others EINTR' 'free execution ENOMEM 126'
	'busy descriptors ENFILE' 'busy memory ENOMEM' 'busy waits EINTR' 'busy waits ENOMEM' 'busy talk EAGAIN 69' 'busy talk ENOMEM 69'
	'stop descriptors EMFILE' 'stop memory ENOMEM' 'stop waits EINTR' 'stop looks EIO' 'stop sends EAGAIN'
	'orphan descriptors EMFILE' 'orphan waits ENOMEM' 'orphan talk ENOMEM 69'
	'lock descriptors EMFILE' 'lock processes EAGAIN' 'lock memory ENOMEM' 'lock waits ENOMEM' 'lock talk EIO 69' 'lock looks ENOMEM 69'
	'unlock descriptors EMFILE' 'unlock memory ENOMEM' 'unlock waits EINTR' 'unlock waits ENOMEM' 'unlock talk ENOMEM 69'
	'unlock looks EIO 69' 'unlock sends EAGAIN'
	'renew descriptors ENFILE' 'renew memory ENOMEM' 'renew waits ENOMEM' 'renew talk EINTR 69' 'renew looks EIO 69'
)

# refuse_each NUMBER: repeats the use of an entry of REFUSALS. The first time it refuses the first of these system calls, then the
# second, and so on, until the use makes fewer calls. After the first 30 calls it skips some at random, since a scan of /proc
# makes several for each process of the machine.
refuse_each() {
	local entry=$((($1 - 1) % ${#REFUSALS[@]})) round=$((($1 - 1) / ${#REFUSALS[@]})) kind=plain use calls why status n cell=$WHERE
	((round == 0)) || kind=${KINDS[(round + entry) % 4]}
	read -r use calls why status <<<"${REFUSALS[entry]}"
	begin_uses "$kind"
	REFUSED=$CELL/refused
	for ((n = 1; ; n += n < 30 ? 1 : 1 + RANDOM % (n / 4))); do
		rm -f refused
		IN=(refuse "$REFUSED" rlock "${CALLS[$calls]}" "$why" "$n")
		WHERE="$calls $why $n, $cell"
		# shellcheck disable=SC2086
		try "$use" 71 $status || return 0
		# If nothing was refused, the use makes fewer than n of these calls, so no further call is left to refuse.
		[ -s refused ] || return 0
	done
}

# refuse_renewer NUMBER: refuses one system call of a renewer. The renewer must still renew the lock, unless the use fails with 69
# or 71. In some cells the lock belongs to a command; in the others it is a lock without a command.
refuse_renewer() {
	local wishes=('descriptors EMFILE' 'waits ENOMEM' 'talk ENOMEM' 'waits EINTR' 'others EINTR') calls why use=long_lock
	read -r calls why <<<"${wishes[($1 - 1) % 5]}"
	((($1 - 1) / 5 % 2 == 0)) || use=long
	begin_uses plain
	REFUSED=$CELL/refused
	IN=(refuse "$REFUSED" rlock-renewer "${CALLS[$calls]}" "$why" $((1 + ($1 - 1) / 10)))
	WHERE="its renewer, $calls $why, $WHERE"
	try $use 69 71 || :
}

@test "surroundings: a use of a lock ends as promised when the system refuses one call of rlock" {
	scenario 'surroundings, one call refused' 'for a call' $((${#REFUSALS[@]} * 2)) 6 refuse_each
}

@test "surroundings: a renewer whose system call is refused still renews its lock" {
	scenario 'surroundings, one call of a renewer refused' 'for a call' 120 16 refuse_renewer
}

# ---- stopped ----

LEASE_MS=1000
CALLS_MAX=120
# The system calls at which a process is stopped: those that rlock and its renewer make from the first request on.
STOPS=poll,ppoll,read,write,sendto,recvfrom,sendmsg,connect,socket,clone,clone3,fork,vfork,execve,kill,waitid
STOPS+=,timerfd_settime,pidfd_open,pidfd_send_signal,openat,getdents64,prctl,mmap,fcntl,setsid

# has_stopped: whether a process of the holder was stopped at a system call, or the holder has ended.
has_stopped() {
	[ -s stopped ] || ! is_running "$HOLDER"
}

# stop_at NUMBER contender|deleted: stops a process of the holder at its n-th system call; NUMBER determines n. While it is
# stopped, a contender asks for the lock, or the lock is deleted. If the process makes fewer calls, no fault is recorded.
stop_at() {
	local n=$((1 + ($1 - 1) * 37 % CALLS_MAX)) kind stay_ms stopped contender='' status=0
	kind=${KINDS[(n + ($1 - 1) / CALLS_MAX) % 4]}
	# The command ends before the stop, during it, or after it.
	draw 0 $((LEASE_MS * 5 / 2))
	stay_ms=$DRAWN
	CLOCK=(refuse "$CELL/stopped" rlock "$STOPS" STOP "$n")
	start_contender holder "$kind" "$LEDGER" "-f ${stay_ms}000" -t "${LEASE_MS}ms" --grace 100ms
	HOLDER=$PID CLOCK=()
	wait_until 30 has_stopped
	WHERE="call $n, $(cat stopped), $kind, stays_true_for $stay_ms ms, $2, $WHERE"
	if [ -s stopped ]; then
		injected
		if [ "$2" = deleted ]; then
			redis del "$NAME" >/dev/null
		else
			start_contender contender "$(excluded_kind "$kind")" "$LEDGER" '-f 300000' -w 20s
			contender=$PID
		fi
		draw $((LEASE_MS + 100)) $((LEASE_MS + 500))
		let_pass_ms "$DRAWN"
		stopped=$(cut -d ' ' -f 4 "$CELL/stopped")
		kill -CONT "$stopped"
	fi
	repeated
	must_end '0 75 76' "$HOLDER" holder
	wait "$HOLDER" || status=$?
	if [ "$status" = 0 ]; then
		! grep -q 'lock lost' stderr-holder || violated '0, and the lock is said to be lost'
		[ "$(times leave | head -n 1)" ] || violated '0, and the command did not come to its end'
	else
		grep -q 'lock lost' stderr-holder || violated "$status, and nothing is said of a loss"
		[ "$status" = 76 ] || grep -q 'the command was not started$' stderr-holder || violated "$status, and the command was started"
	fi
	[ -z "$contender" ] || must_end 0 "$contender" contender
}

@test "stopped at a call: two commands never run at the same time when rlock or its renewer stops there for longer than the lease" {
	local meanwhile
	for meanwhile in contender deleted; do
		scenario "stopped at a call, $meanwhile" '' 240 12 stop_at $meanwhile
	done
}
