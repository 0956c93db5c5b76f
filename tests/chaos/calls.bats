#!/usr/bin/env bats
# A process of rlock stops before one of its system calls, each in turn, for longer than the lease, and goes on. The
# command may end meanwhile, and another owner comes for the lock, or it is deleted. Never are two inside, no
# command runs that is not protected, and what is said is true: 76 and a line when the lock was lost while the command
# ran, and neither else.

load chaos

LEASE_MS=1000
# Those that rlock makes once its lock may be acquired, in whatever process.
CALLS=poll,ppoll,read,write,sendto,recvfrom,sendmsg,connect,socket,clone,clone3,fork,vfork,execve,kill,waitid
CALLS+=,timerfd_settime,pidfd_open,pidfd_send_signal,openat,getdents64,prctl,mmap,fcntl,setpgid

has_stopped() {
	[ -s stopped ] || ! runs "$1"
}

# stop_at NUMBER CALLS_MAX MEANWHILE: one that is not made is no fault, and nothing is put to the test.
stop_at() {
	local n=$((1 + ($1 - 1) % $2)) round=$((($1 - 1) / $2)) pid
	begin_chance
	KIND=${KINDS[(n + round) % 4]}
	# The command ends before the stop, during it, or behind it.
	draw 0 $((LEASE_MS * 5 / 2))
	STAY_US=$((DRAWN * 1000))
	in_background sh -c 'exec "$@" 2>"$0"' said refuse "$CELL/stopped" rlock "$CALLS" STOP "$n" \
		rlock "$(verb_of "$KIND")" -t "${LEASE_MS}ms" --grace 100ms "$NAME" -- \
		overlap "$LEDGER" "$(mode_of "$KIND")" -f "$STAY_US"
	pid=$PID
	soon 30 has_stopped "$pid"
	if [ -s stopped ]; then
		injected
		"$3"
		go_on_later
	fi
	judge "$pid" "call $n, $(cat stopped 2>/dev/null), $KIND, stays $STAY_US us, number $CHANCE"
}

a_rival_comes() {
	visits rival "$(rival_kind "$KIND")" "$LEDGER" '-f 300000' -w 20s
	RIVAL=$PID
}

the_lock_is_deleted() {
	redis del "$NAME" >/dev/null
}

go_on_later() {
	local stopped
	draw $((LEASE_MS + 100)) $((LEASE_MS + 500))
	let_pass_ms "$DRAWN"
	read -r _ _ _ stopped <"$CELL/stopped"
	kill -CONT "$stopped" 2>/dev/null || :
}

# judge PID WHERE
judge() {
	local status=0 said
	wait_until 15 is_gone "$1" >/dev/null || {
		violated "does not end, $2"
		return 0
	}
	wait "$1" || status=$?
	repeated
	said=$(paste -s -d ' ' said)
	case $status in
	0)
		[[ $said != *'lock lost'* ]] || violated "0, and the lock is said to be lost, $2: $said"
		[ "$(grep -c ' leave ' "$LEDGER")" -gt 0 ] || violated "0, and the command did not come to its end, $2"
		;;
	76) [[ $said == *'lock lost'* ]] || violated "76, and nothing is said of a loss, $2: $said" ;;
	*) violated "status $status, $2: $said" ;;
	esac
	[ -z "${RIVAL:-}" ] || must_end 0 rival "$RIVAL" "$2"
	must "a command runs on, $2" overlap -g "$LEDGER" 5000
	count_overlaps "$LEDGER"
	must_leave_nothing 15
}

@test "stopped at a call" {
	needs_refuse
	begin_scenario 'stopped at a call'
	in_cells "$(scaled 240)" 12 stop_at 120 a_rival_comes
	in_cells "$(scaled 240)" 12 stop_at 120 the_lock_is_deleted
	end_scenario ''
}
