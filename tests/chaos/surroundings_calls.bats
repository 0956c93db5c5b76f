#!/usr/bin/env bats
# An operating system that refuses one call: each that rlock or its renewer makes, in turn, by an error that this call may
# end with. surroundings.bash says what has to be true afterwards.

# What is set here is for surroundings.bash.
# shellcheck disable=SC2034

load chaos
load surroundings

DESCRIPTORS=open,openat,socket,socketpair,dup,fcntl,pipe2,eventfd2,epoll_create1,timerfd_create,signalfd4,pidfd_open
PROCESSES=fork,vfork,clone,clone3
MEMORY=mmap,epoll_ctl,prctl,setsid,setpgid,timerfd_settime
WAITS=poll,ppoll,epoll_wait,epoll_pwait
TALK=read,write,recvfrom,sendto,sendmsg,connect
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
	judge "$(judge_of "$use")" 69 71
}

@test "surroundings, one call of a renewer refused" {
	needs_refuse
	begin_scenario 'surroundings, one call of a renewer refused'
	in_cells "$(scaled $((${#RENEWER_REFUSALS[@]} * 2 * 12)))" 16 refuse_renewer
	end_scenario ''
}
